//! The private directory of a sandbox that sees the host's own tree: its home and its temporary
//! files. It goes away with the sandbox, or, where the engine was killed, when the next one starts.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::error::SandboxError;
use crate::owner::OwnerProcess;

/// How the names begin; whose they are follows.
const NAME: &str = "lula-";

/// A directory that goes away with its sandbox.
#[derive(Debug)]
pub(super) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// A new one among the temporary files of this user.
    pub(super) fn make() -> Result<Self, SandboxError> {
        static SWEPT: Once = Once::new();
        let base = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&base));
        Self::make_in(&base)
    }

    fn make_in(base: &Path) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::Path {
            path: base.to_owned(),
            source,
        };
        let owner =
            OwnerProcess::this().ok_or_else(|| failed(std::io::ErrorKind::Unsupported.into()))?;
        let path = base.join(format!("{NAME}{owner}"));
        // The name is this process's alone: what is there already was put there to be in the way.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            Err(source) => Err(SandboxError::Path { path, source }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the directories of engines that are certainly dead. Only what belongs to this user and is
/// a directory itself: others can make names here too.
fn sweep(base: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if !owner
            .and_then(OwnerProcess::from_name)
            .is_some_and(OwnerProcess::is_dead)
        {
            continue;
        }
        // Of the entry itself, not of what a link leads to.
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_dir() && about.uid() == user {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_engine_left_is_swept_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        let living = PrivateDirectory::make_in(base.path()).unwrap();
        // The same process, had it started at another time.
        let text = OwnerProcess::this().unwrap().to_string();
        let mut parts: Vec<String> = text.split('-').map(str::to_owned).collect();
        parts[2] = (parts[2].parse::<u64>().unwrap() + 1).to_string();
        let dead = format!("{NAME}{}", parts.join("-"));
        parts[3] = "1".to_owned();
        let elsewhere = format!("{NAME}{}", parts.join("-"));
        fs::create_dir_all(path(&dead).join("home/deep")).unwrap();
        fs::create_dir(path(&elsewhere)).unwrap();
        fs::create_dir(path("lula-of-somebody")).unwrap();
        fs::create_dir(path("target")).unwrap();
        fs::write(path("target/file"), "kept").unwrap();
        let link = dead.rsplit_once('-').unwrap().0.to_owned() + "-4242";
        std::os::unix::fs::symlink(path("target"), path(&link)).unwrap();

        sweep(base.path());
        assert!(!path(&dead).exists(), "a dead engine's");
        assert!(living.path().exists(), "a living engine's");
        assert!(path(&elsewhere).exists(), "of another pid namespace");
        assert!(path("lula-of-somebody").exists(), "of another name");
        assert!(path("target/file").exists(), "behind a link");
    }

    #[test]
    fn a_private_directory_is_its_users_alone_and_goes_away() {
        let base = tempfile::tempdir().unwrap();
        let made = PrivateDirectory::make_in(base.path()).unwrap();
        let again = PrivateDirectory::make_in(base.path()).unwrap();
        assert_ne!(made.path(), again.path());
        assert_eq!(fs::metadata(made.path()).unwrap().mode() & 0o777, 0o700);
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }
}
