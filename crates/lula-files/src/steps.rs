//! Opening a path below a directory step by step, for where the kernel's own way is not to be had:
//! the sandbox refuses `openat2`, because no filter can read the mode it creates files with.
//!
//! Every step opens one name in a directory that is held open, and follows no link. A link is read
//! and its words become steps; `..` goes back to a directory that was entered before, never to
//! where the kernel thinks its parent is now. So nothing that is swapped meanwhile leads out.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::confined::LinkPolicy;

/// Links that one path may go through.
const LINKS: usize = 40;

/// Opens `path` below `root`. Fails with `EXDEV` where it leads out.
pub(crate) fn open(
    root: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
    links: LinkPolicy,
) -> Result<OwnedFd, Errno> {
    let mut steps: VecDeque<OsString> = parts(path.as_bytes()).collect();
    let mut entered: Vec<OwnedFd> = Vec::new();
    let mut followed = 0;
    while let Some(step) = steps.pop_front() {
        if step == ".." {
            entered.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let here = entered.last().map_or(root, AsFd::as_fd);
        let last = steps.is_empty();
        let peek = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(here, &step, peek, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        match kind {
            FileType::Symlink if last && flags.contains(OFlags::NOFOLLOW) => return Ok(found),
            FileType::Symlink => {
                followed += 1;
                if links == LinkPolicy::Refused || followed > LINKS {
                    return Err(Errno::LOOP);
                }
                // Of the link that was found, whatever has its name now.
                let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
                if target.to_bytes().starts_with(b"/") {
                    return Err(Errno::XDEV);
                }
                let words: Vec<OsString> = parts(target.to_bytes()).collect();
                for word in words.into_iter().rev() {
                    steps.push_front(word);
                }
            }
            FileType::Directory if !last => entered.push(found),
            _ if !last => return Err(Errno::NOTDIR),
            _ if flags.contains(OFlags::PATH) => return Ok(found),
            _ => {
                // A link that was put there since is not followed, and says so.
                let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                return rustix::fs::openat(here, &step, flags, Mode::empty());
            }
        }
    }
    // The path ends at a directory that was entered, or at the root itself.
    let here = entered.last().map_or(root, AsFd::as_fd);
    rustix::fs::openat(here, ".", flags | OFlags::CLOEXEC, Mode::empty())
}

/// The words of a path, without empty ones and `.`.
fn parts(path: &[u8]) -> impl Iterator<Item = OsString> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| OsStr::from_bytes(part).to_owned())
}
