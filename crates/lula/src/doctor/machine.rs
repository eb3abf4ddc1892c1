//! git, the state directory, the disk.

use std::path::Path;

use lula_config::{Value, keys};
use lula_workspace::Git;

use super::{Check, State};
use crate::session::Session;

pub(super) fn checks(session: &Session) -> Vec<Check> {
    let mut checks = vec![git(session)];
    match session.state_directory() {
        Ok(directory) => {
            checks.push(store(&directory));
            checks.push(disk(&directory, session));
        }
        Err(failure) => checks.push(Check::not(
            "store",
            State::Bad,
            failure.message,
            failure.remedy.unwrap_or_default(),
        )),
    }
    checks
}

fn git(session: &Session) -> Check {
    let configured = session.config.get(&keys::GIT_PROGRAM);
    match Git::find(&configured, std::env::var_os("PATH").as_deref()) {
        Ok(git) => Check::good(
            "git",
            format!("{} at {}", git.version(), git.program().display()),
        ),
        Err(error) => Check::not("git", State::Bad, error.to_string(), error.remedy()),
    }
}

/// Whether state can be kept, found out by keeping some. Directories that do not exist yet are
/// left that way.
fn store(directory: &Path) -> Check {
    let existing = existing_part(directory);
    match tempfile::tempfile_in(existing) {
        Ok(_) => Check::good("store", format!("{} is writable", directory.display())),
        Err(error) => Check::not(
            "store",
            State::Bad,
            format!("{} is not writable: {error}", existing.display()),
            "make it writable, or set state.dir to another place",
        ),
    }
}

fn disk(directory: &Path, session: &Session) -> Check {
    let needed = session.config.get(&keys::DOCTOR_MIN_FREE_DISK);
    match rustix::fs::statvfs(existing_part(directory)) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let free_text = crate::term::bytes(free);
            if free >= needed {
                Check::good("disk", format!("{free_text} free for state"))
            } else {
                Check::not(
                    "disk",
                    State::Bad,
                    format!(
                        "only {free_text} free for state, {} wanted",
                        Value::Size(needed)
                    ),
                    "free some space, set state.dir to another disk, or lower doctor.min_free_disk",
                )
            }
        }
        Err(error) => Check::not(
            "disk",
            State::Limited,
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
