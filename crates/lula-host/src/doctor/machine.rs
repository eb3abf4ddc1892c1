//! git, the state directory, the disk.

use std::path::Path;

use lula_config::{ConfigValue, keys};
use lula_workspace::GitProgram;

use super::{DoctorCheck, DoctorCheckState};
use crate::installation::Installation;

pub(super) fn checks(installation: &Installation) -> Vec<DoctorCheck> {
    let mut checks = vec![git(installation)];
    match installation.state_directory() {
        Ok(directory) => {
            checks.push(store(&directory));
            checks.push(disk(&directory, installation));
        }
        Err(failure) => checks.push(DoctorCheck::not(
            "store",
            DoctorCheckState::Bad,
            failure.to_string(),
            failure.remedy().unwrap_or_default(),
        )),
    }
    checks
}

fn git(installation: &Installation) -> DoctorCheck {
    let configured = installation.config.get(&keys::GIT_PROGRAM);
    match GitProgram::find(&configured, std::env::var_os("PATH").as_deref()) {
        Ok(git) => DoctorCheck::good(
            "git",
            format!("{} at {}", git.version(), git.program().display()),
        ),
        Err(error) => DoctorCheck::not(
            "git",
            DoctorCheckState::Bad,
            error.to_string(),
            error.remedy(),
        ),
    }
}

/// Whether state can be kept, found out by keeping some. Directories that do not exist yet are
/// left that way.
fn store(directory: &Path) -> DoctorCheck {
    let existing = existing_part(directory);
    match tempfile::tempfile_in(existing) {
        Ok(_) => DoctorCheck::good("store", format!("{} is writable", directory.display())),
        Err(error) => DoctorCheck::not(
            "store",
            DoctorCheckState::Bad,
            format!("{} is not writable: {error}", existing.display()),
            "make it writable, or set state.dir to another place",
        ),
    }
}

fn disk(directory: &Path, installation: &Installation) -> DoctorCheck {
    let needed = installation.config.get(&keys::DOCTOR_MIN_FREE_DISK);
    match rustix::fs::statvfs(existing_part(directory)) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let free_text = lula_protocol::units::rough_size(free);
            if free >= needed {
                DoctorCheck::good("disk", format!("{free_text} free for state"))
            } else {
                DoctorCheck::not(
                    "disk",
                    DoctorCheckState::Bad,
                    format!(
                        "only {free_text} free for state, {} wanted",
                        ConfigValue::Size(needed)
                    ),
                    "free some space, set state.dir to another disk, or lower doctor.min_free_disk",
                )
            }
        }
        Err(error) => DoctorCheck::not(
            "disk",
            DoctorCheckState::Limited,
            format!("free space cannot be read: {error}"),
            "check the file system of the state directory",
        ),
    }
}

/// The deepest part of a path that exists.
fn existing_part(path: &Path) -> &Path {
    path.ancestors()
        .find(|ancestor| ancestor.is_dir())
        .unwrap_or(Path::new("/"))
}
