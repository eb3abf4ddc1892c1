//! Copies of whole trees that keep what a user would miss: permissions, times, links, empty
//! directories. File content is shared with the original where the file system can do that.

pub(crate) mod manifest;
mod snapshots;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::overlay::{OPAQUE, WHITEOUT};
use crate::tree::node::{FileNodeKind, PERMISSION_BITS, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, MAX_FILE, attribute, beneath, open_plain, os, set_attribute};

/// Attributes that an overlay's layer lives by.
const LAYER_ATTRIBUTES: [&str; 3] = [OPAQUE, WHITEOUT, "user.overlay.origin"];

/// How a tree is copied.
pub(crate) struct Copier<'a> {
    pub(crate) reader: &'a mut BudgetedReader,
    /// It is an overlay's layer: deleted names and opaque directories are part of it.
    pub(crate) layer: bool,
    /// Most bytes that may be copied.
    pub(crate) allowed: u64,
}

/// Called for each thing copied, with what it was and what became of it.
pub(crate) type CopyObserver<'a> = &'a mut dyn FnMut(&WorkspacePath, &Stat, &Stat);

impl Copier<'_> {
    /// Copies everything in one directory into another, empty one.
    pub(crate) fn tree(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        noted: CopyObserver<'_>,
    ) -> WorkspaceResult<()> {
        self.directory(from, to, None, 0, noted)
    }

    fn directory(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        place: Option<&WorkspacePath>,
        depth: usize,
        noted: CopyObserver<'_>,
    ) -> WorkspaceResult<()> {
        for path in self.reader.paths(from, place, depth)? {
            let name = os(path.name());
            let failed = |error: Errno| WorkspaceError::io("copy", &path, error);
            let Some(stat) = Stat::maybe(from, name).map_err(failed)? else {
                continue;
            };
            match stat.kind {
                FileNodeKind::File => self.file(from, to, &path, &stat)?,
                FileNodeKind::Symlink => symlink(from, to, &path, &stat).map_err(failed)?,
                FileNodeKind::Directory => {
                    let inner = match beneath(from, name, OFlags::DIRECTORY) {
                        Ok(inner) => inner,
                        // Something else is mounted there, which is not part of this tree.
                        Err(Errno::XDEV) => continue,
                        Err(error) => return Err(failed(error)),
                    };
                    rustix::fs::mkdirat(to, name, Mode::RWXU).map_err(failed)?;
                    let made = beneath(to, name, OFlags::DIRECTORY).map_err(failed)?;
                    self.directory(&inner, &made, Some(&path), depth + 1, noted)?;
                    self.finish(&inner, &made, &stat).map_err(failed)?;
                }
                FileNodeKind::CharacterDevice if self.layer && stat.represents == (0, 0) => {
                    let mode = Mode::empty();
                    rustix::fs::mknodat(to, name, FileType::CharacterDevice, mode, 0)
                        .map_err(failed)?;
                }
                // Never part of a project, and in a layer never to be committed.
                _ => continue,
            }
            let copied = Stat::of(to, name).map_err(failed)?;
            noted(&path, &stat, &copied);
        }
        Ok(())
    }

    fn file(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &WorkspacePath,
        stat: &Stat,
    ) -> WorkspaceResult<()> {
        let failed = |error: Errno| WorkspaceError::io("copy", path, error);
        if stat.size > MAX_FILE || stat.blocks * 512 > self.allowed {
            return Err(WorkspaceError::TooMuch {
                what: "bytes to copy",
                limit: self.allowed.min(MAX_FILE),
            });
        }
        self.allowed -= stat.blocks * 512;
        let source = open_plain(from, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let target = File::from(beneath(to, os(path.name()), flags).map_err(failed)?);
        copy_content(&source, &target).map_err(|error| WorkspaceError::io("copy", path, error))?;
        self.finish(&source, &target, stat).map_err(failed)
    }

    fn finish(&self, from: impl AsFd, to: impl AsFd, stat: &Stat) -> rustix::io::Result<()> {
        if self.layer {
            for name in LAYER_ATTRIBUTES {
                if let Some(value) = attribute(&from, name) {
                    set_attribute(&to, name, &value)?;
                }
            }
        }
        dress(&to, stat)
    }
}

/// Gives a copy the owner, permissions and times of what it is a copy of. Set-id bits stay behind.
pub(crate) fn dress(copy: impl AsFd, like: &Stat) -> rustix::io::Result<()> {
    own(&copy, like.owner)?;
    rustix::fs::fchmod(&copy, Mode::from_raw_mode(like.mode & PERMISSION_BITS))?;
    rustix::fs::futimens(&copy, &times(like))
}

fn times(like: &Stat) -> Timestamps {
    let time = Timespec {
        tv_sec: like.modified.0,
        tv_nsec: like.modified.1.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Only root can give things away, and only for root it makes a difference.
pub(crate) fn own(file: impl AsFd, owner: (u32, u32)) -> rustix::io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
        rustix::fs::fchown(file, Some(user), Some(group))?;
    }
    Ok(())
}

/// Copies a link as it is.
pub(crate) fn symlink(
    from: &OwnedFd,
    to: &OwnedFd,
    path: &WorkspacePath,
    stat: &Stat,
) -> rustix::io::Result<()> {
    let target = rustix::fs::readlinkat(from, os(path.name()), Vec::new())?;
    make_link(to, path.name(), &target, stat)
}

/// A link of that name with the owner and times of another.
pub(crate) fn make_link(
    directory: &OwnedFd,
    name: &[u8],
    target: &std::ffi::CStr,
    like: &Stat,
) -> rustix::io::Result<()> {
    rustix::fs::symlinkat(target, directory, os(name))?;
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(like.owner.0), Gid::from_raw(like.owner.1));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(directory, os(name), Some(user), Some(group), flags)?;
    }
    rustix::fs::utimensat(directory, os(name), &times(like), AtFlags::SYMLINK_NOFOLLOW)
}

/// Shares the content where that is possible, and copies it otherwise.
pub(crate) fn copy_content(mut from: &File, mut to: &File) -> std::io::Result<()> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    std::io::copy(&mut from, &mut to).map(drop)
}
