//! A directory that agents work in and that stays: read and written below its own handle, following
//! no link, because code that ran there may have left anything.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::fork::{ForkError, beneath, failed, list, open_directory};

/// Largest file that is read.
const MAX_FILE: u64 = 64 << 20;

/// The directory.
#[derive(Debug)]
pub struct OpenDirectory {
    path: PathBuf,
    handle: OwnedFd,
}

impl OpenDirectory {
    /// The directory at that place, which exists.
    pub fn at(path: &Path) -> Result<Self, ForkError> {
        Ok(Self {
            path: path.to_owned(),
            handle: open_directory(path)?,
        })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
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
        let file = self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE)
            .read_to_end(&mut bytes)
            .map_err(|source| failed(path, source))?;
        Ok(bytes)
    }

    /// Replaces or creates a file, and says whether it is a program where that is known.
    pub fn write(&self, path: &str, bytes: &[u8], program: Option<bool>) -> Result<(), ForkError> {
        let name = checked(path)?;
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.make_directories(parent)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK;
        let mut file = self.open(path, flags)?;
        file.write_all(bytes)
            .map_err(|source| failed(path, source))?;
        if let Some(program) = program {
            let mode = if program { 0o755 } else { 0o644 };
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))
                .map_err(|error| failed(path, error.into()))?;
        }
        Ok(())
    }

    /// Takes a file away.
    pub fn remove(&self, path: &str) -> Result<(), ForkError> {
        let name = checked(path)?;
        let (parent, name) = name.rsplit_once('/').unwrap_or((".", name));
        let parent = beneath(&self.handle, parent, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|error| failed(path, error.into()))?;
        rustix::fs::unlinkat(&parent, name, AtFlags::empty())
            .map_err(|error| failed(path, error.into()))
    }

    fn make_directories(&self, path: &str) -> Result<(), ForkError> {
        let mut made = String::new();
        for part in path.split('/') {
            let parent = if made.is_empty() { "." } else { made.as_str() };
            let parent = beneath(&self.handle, parent, OFlags::PATH | OFlags::DIRECTORY)
                .map_err(|error| failed(path, error.into()))?;
            match rustix::fs::mkdirat(&parent, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(failed(path, error.into())),
            }
            if !made.is_empty() {
                made.push('/');
            }
            made.push_str(part);
        }
        Ok(())
    }

    fn open(&self, path: &str, flags: OFlags) -> Result<File, ForkError> {
        let file = beneath(&self.handle, checked(path)?, flags)
            .map(File::from)
            .map_err(|error| failed(path, error.into()))?;
        let metadata = file.metadata().map_err(|source| failed(path, source))?;
        if !metadata.is_file() {
            let reason = std::io::Error::other("it is not a regular file");
            return Err(failed(path, reason));
        }
        Ok(file)
    }
}

/// A relative path of plain names.
fn checked(path: &str) -> Result<&str, ForkError> {
    let plain = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if plain {
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
