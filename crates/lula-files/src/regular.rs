//! Reading a file that may be anything: a link elsewhere, a pipe that never ends, a device, a file
//! of a terabyte.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What happens where the last name of a path is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalLink {
    /// It is followed: an operator may keep their own files elsewhere.
    Followed,
    /// It is an error: a repository's link could point anywhere.
    Refused,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum RegularFileError {
    /// Its name is a link.
    #[error("it is a symbolic link")]
    Link,
    /// It is a directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is longer than its reader takes; a part of it would mean something else.
    #[error("it is larger than {} KiB", .limit / 1024)]
    TooLarge {
        /// Most bytes that its reader takes.
        limit: u64,
    },
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for RegularFileError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Link,
            // What a socket or a device without a driver says.
            Errno::NXIO => Self::NotRegular,
            error => Self::Io(error.into()),
        }
    }
}

impl From<RegularFileError> for io::Error {
    fn from(error: RegularFileError) -> Self {
        match error {
            RegularFileError::Io(error) => error,
            error => Self::other(error),
        }
    }
}

/// Opens a regular file for reading; nothing where there is none. What was opened is checked, not
/// what its name stands for by then.
pub(crate) fn open_regular(
    path: &Path,
    link: FinalLink,
) -> Result<Option<(File, Metadata)>, RegularFileError> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if link == FinalLink::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => regular(File::from(handle)).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The open file, if it is a regular one.
pub(crate) fn regular(file: File) -> Result<(File, Metadata), RegularFileError> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(RegularFileError::NotRegular)
    }
}

/// All bytes of a regular file; nothing where there is none. A longer one is an error, not cut off.
pub fn read_regular(
    path: &Path,
    limit: u64,
    link: FinalLink,
) -> Result<Option<Vec<u8>>, RegularFileError> {
    open_regular(path, link)?
        .map(|(file, _)| whole(file, limit))
        .transpose()
}

/// All text of a regular file; nothing where there is none.
pub fn read_regular_text(
    path: &Path,
    limit: u64,
    link: FinalLink,
) -> Result<Option<String>, RegularFileError> {
    read_regular(path, limit, link)?
        .map(|bytes| String::from_utf8(bytes).map_err(|_| RegularFileError::NotText))
        .transpose()
}

/// All bytes of an open file, or an error where there are more than the limit.
pub(crate) fn whole(file: File, limit: u64) -> Result<Vec<u8>, RegularFileError> {
    let bytes = bounded(file, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        return Err(RegularFileError::TooLarge { limit });
    }
    Ok(bytes)
}

/// The first bytes of an open file, at most so many.
pub(crate) fn bounded(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::FileType;

    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert!(
            read_regular(&path, 9, FinalLink::Refused)
                .unwrap()
                .is_none()
        );
        std::fs::write(&path, "123456789").unwrap();
        let text = read_regular_text(&path, 9, FinalLink::Refused).unwrap();
        assert_eq!(text.as_deref(), Some("123456789"));
        let cut = read_regular(&path, 8, FinalLink::Refused);
        assert!(matches!(cut, Err(RegularFileError::TooLarge { limit: 8 })));
        std::fs::write(&path, b"\xff").unwrap();
        let binary = read_regular_text(&path, 9, FinalLink::Refused);
        assert!(matches!(binary, Err(RegularFileError::NotText)));
    }

    #[test]
    fn a_link_is_followed_only_for_a_caller_who_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        let refused = read_regular(&link, 9, FinalLink::Refused);
        assert!(matches!(refused, Err(RegularFileError::Link)));
        let followed = read_regular(&link, 9, FinalLink::Followed).unwrap();
        assert_eq!(followed.as_deref(), Some(&b"text"[..]));
    }

    #[test]
    fn what_is_no_file_is_an_error_and_not_a_wait() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        for path in [&pipe, directory.path(), Path::new("/dev/zero")] {
            let read = read_regular(path, 9, FinalLink::Followed);
            assert!(matches!(read, Err(RegularFileError::NotRegular)));
        }
    }
}
