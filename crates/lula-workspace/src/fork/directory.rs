//! A directory that agents work in and that stays: read and written below its own handle, following
//! no link, because code that ran there may have left anything.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use lula_files::{beneath, read_beneath};

use crate::fork::{ForkError, failed, is_plain, list};

/// Largest file that is read.
const MAX_FILE: u64 = 64 << 20;

/// A directory that is held open, so that its path cannot come to mean another.
#[derive(Debug)]
pub struct OpenDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

impl OpenDirectory {
    /// The directory at that place, which exists.
    pub fn at(path: &Path) -> Result<Self, ForkError> {
        let handle = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| failed(&path.to_string_lossy(), error.into()))?;
        Ok(Self {
            path: path.to_owned(),
            handle,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Every regular file, relative to the top.
    pub fn files(&self) -> Result<Vec<String>, ForkError> {
        let mut found = Vec::new();
        list(&self.handle, "", 0, &mut found)?;
        found.sort();
        Ok(found)
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ForkError> {
        let bytes = read_beneath(&self.handle, checked(path)?, MAX_FILE + 1)
            .map_err(|error| failed(path, error.into()))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(ForkError::TooLarge);
        }
        Ok(bytes)
    }

    /// Replaces or creates a file, and says whether it is a program where that is known.
    pub fn write(&self, path: &str, bytes: &[u8], program: Option<bool>) -> Result<(), ForkError> {
        let name = checked(path)?;
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.make_directories(parent)?;
        }
        let system = |error: Errno| failed(path, error.into());
        let flags = OFlags::WRONLY | OFlags::TRUNC;
        let (file, new) = match beneath(&self.handle, name, flags) {
            Err(Errno::NOENT) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                (beneath(&self.handle, name, flags).map_err(system)?, true)
            }
            opened => (opened.map_err(system)?, false),
        };
        let mut file = File::from(file);
        if !file
            .metadata()
            .map_err(|source| failed(path, source))?
            .is_file()
        {
            return Err(failed(
                path,
                std::io::Error::other("it is not a regular file"),
            ));
        }
        file.write_all(bytes)
            .map_err(|source| failed(path, source))?;
        // Commands that run under another user read it, too.
        if let Some(program) = program.or(new.then_some(false)) {
            let mode = if program { 0o755 } else { 0o644 };
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(system)?;
        }
        Ok(())
    }

    /// Takes a regular file away.
    pub fn remove(&self, path: &str) -> Result<(), ForkError> {
        let system = |error: Errno| failed(path, error.into());
        let name = checked(path)?;
        // Opened first, so that only a regular file inside is ever removed.
        let file = File::from(beneath(&self.handle, name, OFlags::PATH).map_err(system)?);
        if !file
            .metadata()
            .map_err(|source| failed(path, source))?
            .is_file()
        {
            return Err(failed(
                path,
                std::io::Error::other("it is not a regular file"),
            ));
        }
        let (parent, name) = name.rsplit_once('/').unwrap_or((".", name));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = beneath(&self.handle, parent, flags).map_err(system)?;
        rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(system)
    }

    fn make_directories(&self, path: &str) -> Result<(), ForkError> {
        let system = |error: Errno| failed(path, error.into());
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut directory = beneath(&self.handle, ".", flags).map_err(system)?;
        for part in path.split('/') {
            match rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(system(error)),
            }
            directory = beneath(&directory, part, flags).map_err(system)?;
        }
        Ok(())
    }
}

/// A relative path of plain names.
fn checked(path: &str) -> Result<&str, ForkError> {
    if is_plain(path) {
        Ok(path)
    } else {
        Err(ForkError::BadPath(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_below_the_directory_and_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), directory.path().join("link")).unwrap();
        let folder = OpenDirectory::at(directory.path()).unwrap();
        folder.write("a/b/c.txt", b"one", Some(true)).unwrap();
        assert_eq!(folder.read("a/b/c.txt").unwrap(), b"one");
        assert_eq!(folder.files().unwrap(), ["a/b/c.txt"]);
        for bad in ["link/x", "../x", "/x", "", "a/../../x", "a//x"] {
            assert!(folder.write(bad, b"", None).is_err(), "{bad}");
        }
        assert!(outside.path().read_dir().unwrap().next().is_none());
        folder.remove("a/b/c.txt").unwrap();
        assert!(folder.files().unwrap().is_empty());
    }
}
