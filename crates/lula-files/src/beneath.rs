//! Opening below a handle, the strict way: for trees that an attacker writes and this process reads.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::name_by_name;
use crate::regular::{RegularFileError, bounded, regular};

const STRICT: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// How often the kernel is asked again when names moved under it.
const TRIES: usize = 64;

/// Opens a path below a directory that is open. A link on the way is `ELOOP`, a mount point or a way
/// out is `EXDEV`, and a pipe does not wait for its other end.
///
/// A file that is made here is private (0600) until its maker gives it other permissions: between
/// the two no other user can open it.
pub fn beneath(
    directory: impl AsFd,
    path: impl rustix::path::Arg,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let mode = if flags.contains(OFlags::CREATE) {
        0o600
    } else {
        0
    };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // `openat2` refuses flags that mean nothing together.
    let flags = if flags.contains(OFlags::PATH) {
        flags - OFlags::NONBLOCK - OFlags::NOCTTY
    } else {
        flags | OFlags::NONBLOCK | OFlags::NOCTTY
    };
    let mode = Mode::from_raw_mode(mode);
    path.into_with_c_str(|path| strictly(directory.as_fd(), path, flags, mode))
}

/// Asks the kernel, and asks again when names moved under it.
pub(crate) fn resolved(
    directory: impl AsFd,
    path: &std::ffi::CStr,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    for _ in 0..TRIES {
        match rustix::fs::openat2(&directory, path, flags, mode, resolve) {
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens it by one call, or name by name where there is no such call.
fn strictly(
    directory: BorrowedFd<'_>,
    path: &std::ffi::CStr,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    if !name_by_name::is_needed() {
        match resolved(directory, path, flags, mode, STRICT) {
            Err(error) if name_by_name::is_told_by(error, directory) => {}
            opened => return opened,
        }
    }
    name_by_name::open(directory, path, flags, mode)
}

/// The first bytes of a regular file below a directory, at most so many.
pub fn read_beneath(
    directory: impl AsFd,
    path: impl rustix::path::Arg,
    most: u64,
) -> Result<Vec<u8>, RegularFileError> {
    let opened = beneath(directory, path, OFlags::RDONLY)?;
    let (file, _) = regular(File::from(opened))?;
    Ok(bounded(file, most)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::FileType;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("top");
        std::fs::create_dir_all(top.join("inside")).unwrap();
        std::fs::write(top.join("inside/file"), "inside").unwrap();
        std::fs::write(directory.path().join("secret"), "outside").unwrap();
        symlink("inside/file", top.join("near")).unwrap();
        symlink("inside", top.join("nearby")).unwrap();
        symlink("../secret", top.join("far")).unwrap();
        let handle = rustix::fs::open(&top, OFlags::DIRECTORY, Mode::empty()).unwrap();
        (directory, handle)
    }

    #[test]
    fn a_plain_path_is_opened_and_no_link_is_followed() {
        let (_directory, top) = tree();
        assert_eq!(read_beneath(&top, "inside/file", 99).unwrap(), b"inside");
        assert_eq!(read_beneath(&top, "inside/file", 3).unwrap(), b"ins");
        for link in ["near", "nearby/file", "far"] {
            assert_eq!(beneath(&top, link, OFlags::RDONLY).err(), Some(Errno::LOOP));
        }
    }

    #[test]
    fn nothing_leads_out() {
        let (_directory, top) = tree();
        for out in ["../secret", "inside/../../secret", "/etc/passwd"] {
            assert_eq!(beneath(&top, out, OFlags::PATH).err(), Some(Errno::XDEV));
        }
    }

    #[test]
    fn what_is_mounted_is_not_part_of_the_tree() {
        let root = rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty()).unwrap();
        let into = beneath(&root, "proc/self", OFlags::PATH);
        assert_eq!(into.err(), Some(Errno::XDEV));
    }

    #[test]
    fn a_pipe_is_an_error_and_not_a_wait() {
        let (_directory, top) = tree();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(&top, "pipe", FileType::Fifo, mode, 0).unwrap();
        let read = read_beneath(&top, "pipe", 9);
        assert!(matches!(read, Err(RegularFileError::NotRegular)));
        let written = beneath(&top, "pipe", OFlags::WRONLY);
        assert_eq!(written.err(), Some(Errno::NXIO));
    }

    /// Everything that can be asked for gives the same by one call and name by name.
    #[test]
    fn name_by_name_is_as_strict() {
        let (directory, top) = tree();
        let root = rustix::fs::open("/", OFlags::DIRECTORY, Mode::empty()).unwrap();
        rustix::fs::mknodat(&top, "pipe", FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let read = OFlags::RDONLY | OFlags::NONBLOCK;
        let cut = OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK;
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NONBLOCK;
        let cases = [
            (&top, "inside/file", read),
            (&top, "inside/../inside/./file", read),
            (&top, "inside//file", read),
            (&top, ".", OFlags::DIRECTORY),
            (&top, "inside", OFlags::DIRECTORY),
            (&top, "inside", OFlags::PATH | OFlags::DIRECTORY),
            (&top, "inside/file", OFlags::DIRECTORY),
            (&top, "inside/file/more", read),
            (&top, "nowhere", read),
            (&top, "nowhere/file", read),
            (&top, "", read),
            (&top, "near", read),
            (&top, "near", OFlags::PATH),
            (&top, "nearby", OFlags::DIRECTORY),
            (&top, "nearby/file", read),
            (&top, "far", read),
            (&top, "../secret", read),
            (&top, "inside/../../secret", read),
            (&top, "..", OFlags::DIRECTORY),
            (&top, "/etc/passwd", read),
            (&top, "pipe", OFlags::WRONLY | OFlags::NONBLOCK),
            (&top, "inside/file", new),
            (&root, "proc", OFlags::PATH),
            (&root, "proc/self", OFlags::PATH),
            (&root, "proc/sys/kernel/hostname", cut),
        ];
        for (from, path, flags) in cases {
            let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = if flags.contains(OFlags::CREATE) {
                Mode::from_raw_mode(0o600)
            } else {
                Mode::empty()
            };
            let path_text = std::ffi::CString::new(path).unwrap();
            let found = |opened: rustix::io::Result<OwnedFd>| {
                opened.and_then(|file| Ok(rustix::fs::fstat(file)?.st_ino))
            };
            let whole = found(resolved(from, &path_text, flags, mode, STRICT));
            let steps = found(name_by_name::open(from.as_fd(), &path_text, flags, mode));
            assert_eq!(whole, steps, "{path:?} with {flags:?}");
        }
        let file = name_by_name::open(top.as_fd(), c"inside/file", cut, Mode::empty()).unwrap();
        assert_eq!(rustix::fs::fstat(file).unwrap().st_size, 0);
        let secret = std::fs::read(directory.path().join("secret")).unwrap();
        assert_eq!(secret, b"outside");
    }

    #[test]
    fn a_new_file_is_private() {
        let (directory, top) = tree();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        beneath(&top, "new", flags).unwrap();
        let made = std::fs::metadata(directory.path().join("top/new")).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o600);
    }
}
