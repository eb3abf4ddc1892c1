//! What [`crate::beneath`] does, for where `openat2` is not to be had: in the sandbox, whose filter cannot
//! read what is behind its pointer, below older profiles of container engines, on a kernel before 5.6.
//!
//! As strict: every name is opened in a directory that is held, no link is followed, and what is held is
//! asked which mount it is on. `..` goes back to a directory that was entered before.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

static NEEDED: AtomicBool = AtomicBool::new(false);

/// Whether it was found out that `openat2` is not to be had.
pub(crate) fn is_needed() -> bool {
    NEEDED.load(Ordering::Relaxed)
}

/// Finds that out from an answer of `openat2`. `EPERM` can be about the file: a question that the kernel
/// never refuses tells.
pub(crate) fn is_told_by(error: Errno, directory: impl AsFd) -> bool {
    let missing = match error {
        Errno::NOSYS => true,
        Errno::PERM => {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let asked =
                rustix::fs::openat2(directory, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
            matches!(asked, Err(Errno::PERM | Errno::NOSYS))
        }
        _ => false,
    };
    if missing {
        NEEDED.store(true, Ordering::Relaxed);
    }
    missing
}

/// Opens a path below a directory. `flags` have to refuse links.
pub(crate) fn open(
    directory: BorrowedFd<'_>,
    path: &CStr,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let mount = mount_of(directory)?;
    let mut entered: Vec<OwnedFd> = Vec::new();
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        let here = entered.last().map_or(directory, AsFd::as_fd);
        let name = match name {
            Component::CurDir => continue,
            Component::ParentDir => {
                entered.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
            Component::Normal(name) => name,
        };
        if names.peek().is_none() {
            return last(here, name, flags, mode, mount);
        }
        let held = rustix::fs::openat(here, name, HELD, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) {
            FileType::Directory => {}
            FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::NOTDIR),
        }
        on(held.as_fd(), mount)?;
        entered.push(held);
    }
    // It ends at a directory that was entered, or at the first one.
    let here = entered.last().map_or(directory, AsFd::as_fd);
    rustix::fs::openat(here, ".", flags, mode)
}

const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn last(
    here: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
    mount: u64,
) -> rustix::io::Result<OwnedFd> {
    // Nothing is lost in a file that turns out to be mounted there.
    let opened = rustix::fs::openat(here, name, flags - OFlags::TRUNC, mode)?;
    on(opened.as_fd(), mount)?;
    if flags.contains(OFlags::TRUNC) {
        rustix::fs::ftruncate(&opened, 0)?;
    }
    Ok(opened)
}

/// Refuses what is on another mount.
fn on(held: BorrowedFd<'_>, mount: u64) -> rustix::io::Result<()> {
    if mount_of(held)? == mount {
        Ok(())
    } else {
        Err(Errno::XDEV)
    }
}

/// Which mount something is on. An error where the kernel cannot say: then none is as good as another.
fn mount_of(held: BorrowedFd<'_>) -> rustix::io::Result<u64> {
    let asked = rustix::fs::statx(held, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    if let Ok(found) = &asked
        && found.stx_mask & StatxFlags::MNT_ID.bits() != 0
    {
        return Ok(found.stx_mnt_id);
    }
    let number = std::os::fd::AsRawFd::as_raw_fd(&held);
    let page = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
    let page = page.map_err(|_| Errno::NOSYS)?;
    let line = page.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    line.and_then(|id| id.trim().parse().ok())
        .ok_or(Errno::NOSYS)
}
