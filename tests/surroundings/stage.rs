//! What surroundings are made with: a root file system with nothing in it but the program, and places that
//! go away.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// Where surroundings are set up. It goes away when dropped.
pub(crate) struct Stage {
    directory: TempDir,
    bundles: AtomicU32,
}

impl Stage {
    /// For that program.
    pub(crate) fn new(lula: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("lula-around")
            .tempdir_in("/var/tmp")
            .unwrap();
        open_to_all(directory.path());
        let stage = Self {
            directory,
            bundles: AtomicU32::new(0),
        };
        // As in an image without a distribution: the program and the libraries it is linked with.
        let root = stage.root_file_system();
        for place in [
            "proc", "dev", "sys", "tmp", "etc", "usr/bin", "run", "var/tmp",
        ] {
            std::fs::create_dir_all(root.join(place)).unwrap();
        }
        // What is mounted there gets the permissions of the place.
        let all = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(root.join("tmp"), all).unwrap();
        // Podman makes these where they are missing, which a user who owns nothing here cannot.
        for file in ["etc/hostname", "etc/hosts", "etc/resolv.conf"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("/proc/mounts", root.join("etc/mtab")).unwrap();
        std::fs::copy(lula, root.join("usr/bin/lula")).unwrap();
        for library in libraries(lula) {
            let to = root.join(library.strip_prefix("/").unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(library, to).unwrap();
        }
        stage
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The tree of a container, in which nothing else is than what the program needs.
    pub(crate) fn root_file_system(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// The program, at a place that every user can reach.
    pub(crate) fn lula(&self) -> PathBuf {
        self.root_file_system().join("usr/bin/lula")
    }

    /// A new directory for the rules of a container.
    pub(crate) fn bundle(&self) -> PathBuf {
        let number = self.bundles.fetch_add(1, Ordering::Relaxed);
        let bundle = self
            .path()
            .join(format!("lula-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&bundle).unwrap();
        bundle
    }

    /// A new directory that a user owns.
    pub(crate) fn home_of(&self, user: u32) -> PathBuf {
        let home = self.bundle();
        chown(&home, Some(user), Some(user)).unwrap();
        home
    }
}

impl Drop for Stage {
    /// Ends what was left behind here: rootless Podman keeps a process asleep, that its next start may find
    /// its namespaces. Nothing else has the stage in its environment.
    fn drop(&mut self) {
        let home = format!("HOME={}/", self.path().display());
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_ours = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable.starts_with(home.as_bytes()));
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if is_ours && let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The files that the dynamic linker loads for a program.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}
