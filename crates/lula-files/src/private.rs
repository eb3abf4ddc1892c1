//! Files that only their owner may read: keys.
//!
//! A key that another user could read, or could have put there, is refused. Owner and mode are those
//! of the file that was opened, so that no other file can be put in its place after the check.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::regular::{FinalLink, RegularFileError, open_regular, whole};

/// Why a private file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Others can read or replace what it holds.
    #[error(
        "it is not private (mode {mode:o}): run `chmod 600` on it, or remove it to make a new key"
    )]
    NotPrivate {
        /// Permission bits of the file, as `chmod` takes them.
        mode: u32,
    },
    /// Another user wrote it.
    #[error(
        "it belongs to user {owner}, not to you: run `chown` on it, or name a file of your own"
    )]
    NotOwned {
        /// The user it belongs to.
        owner: u32,
    },
    /// It cannot be read at all.
    #[error(transparent)]
    Unreadable(#[from] RegularFileError),
    /// The system gave no random bytes for a name.
    #[error("the system has no random bytes")]
    NoRandomness,
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The bytes of a file that only its owner may read; nothing where there is none.
pub fn read_private(
    path: &Path,
    limit: u64,
    link: FinalLink,
) -> Result<Option<Vec<u8>>, PrivateFileError> {
    let Some((file, metadata)) = open_regular(path, link)? else {
        return Ok(None);
    };
    check(
        metadata.uid(),
        metadata.mode() & 0o7777,
        rustix::process::geteuid().as_raw(),
    )?;
    Ok(Some(whole(file, limit)?))
}

/// The superuser can read everything anyway, so their files are as good as one's own.
fn check(owner: u32, mode: u32, user: u32) -> Result<(), PrivateFileError> {
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::NotPrivate { mode });
    }
    if owner != user && owner != 0 {
        return Err(PrivateFileError::NotOwned { owner });
    }
    Ok(())
}

/// Writes a new private file, whole or not at all. Says whether it did: a file that is there already
/// stays.
pub fn create_private(path: &Path, bytes: &[u8]) -> Result<bool, PrivateFileError> {
    let staged = stage(path, bytes)?;
    // Linking does not replace: of two first users one wins.
    let linked = fs::hard_link(&staged, path);
    let _ = fs::remove_file(&staged);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Puts a private file in the place of another, whole or not at all.
pub fn replace_private(path: &Path, bytes: &[u8]) -> Result<(), PrivateFileError> {
    let staged = stage(path, bytes)?;
    fs::rename(&staged, path).map_err(|error| {
        let _ = fs::remove_file(&staged);
        error.into()
    })
}

/// The bytes of a private file of this program's own, made on first use. Of two processes that make
/// it at once both read what one of them wrote.
pub fn private_or_new<E: From<PrivateFileError>>(
    path: &Path,
    limit: u64,
    new: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    if let Some(bytes) = read_private(path, limit, FinalLink::Refused)? {
        return Ok(bytes);
    }
    create_private(path, &new()?)?;
    let made = read_private(path, limit, FinalLink::Refused)?;
    made.ok_or_else(|| PrivateFileError::Io(io::ErrorKind::NotFound.into()).into())
}

/// Writes the bytes beside their place, on disk when this returns.
fn stage(path: &Path, bytes: &[u8]) -> Result<PathBuf, PrivateFileError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| PrivateFileError::NoRandomness)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", u64::from_be_bytes(random)));
    let staged = path.with_file_name(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&staged)?;
    let written = file.write_all(bytes).and_then(|()| File::sync_all(&file));
    if let Err(error) = written {
        let _ = fs::remove_file(&staged);
        return Err(error.into());
    }
    Ok(staged)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some.key");
        (directory, path)
    }

    fn names(directory: &tempfile::TempDir) -> usize {
        fs::read_dir(directory.path()).unwrap().count()
    }

    #[test]
    fn a_new_file_is_private_and_stays_when_it_is_made_again() {
        let (directory, path) = place();
        assert!(
            read_private(&path, 9, FinalLink::Refused)
                .unwrap()
                .is_none()
        );
        assert!(create_private(&path, b"first").unwrap());
        assert!(!create_private(&path, b"second").unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let read = private_or_new::<PrivateFileError>(&path, 9, || Ok(b"third".to_vec()));
        assert_eq!(read.unwrap(), b"first");
        replace_private(&path, b"fourth").unwrap();
        let read = read_private(&path, 9, FinalLink::Refused).unwrap();
        assert_eq!(read.as_deref(), Some(&b"fourth"[..]));
        assert_eq!(names(&directory), 1, "nothing staged stays behind");
    }

    #[test]
    fn a_file_that_others_can_read_or_write_is_refused() {
        let (_directory, path) = place();
        create_private(&path, b"key").unwrap();
        for shared in [0o604, 0o640, 0o620, 0o602, 0o644, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(shared)).unwrap();
            let read = read_private(&path, 9, FinalLink::Refused);
            let Err(PrivateFileError::NotPrivate { mode }) = read else {
                panic!("{shared:o} was read");
            };
            assert_eq!(mode, shared);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read_private(&path, 9, FinalLink::Refused).is_ok());
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        assert!(check(1000, 0o600, 1000).is_ok());
        assert!(check(0, 0o600, 1000).is_ok());
        for (owner, user) in [(1001, 1000), (1000, 0)] {
            let checked = check(owner, 0o600, user);
            assert!(matches!(checked, Err(PrivateFileError::NotOwned { .. })));
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_key_is_followed_only_where_a_person_named_it() {
        let (directory, path) = place();
        create_private(&path, b"key").unwrap();
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read_private(&link, 9, FinalLink::Refused).is_err());
        assert!(read_private(&link, 9, FinalLink::Followed).is_ok());
        // The mode is the one of the file, not of the link, which is 777.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read_private(&link, 9, FinalLink::Followed).is_err());
    }

    #[test]
    fn of_many_that_make_it_at_once_all_read_the_same() {
        let (directory, path) = place();
        let read =
            |own: u8| private_or_new::<PrivateFileError>(&path, 99, || Ok(vec![own; 32])).unwrap();
        let all: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|own| scope.spawn(move || read(own))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.iter().all(|bytes| *bytes == all[0]));
        assert_eq!(names(&directory), 1);
    }
}
