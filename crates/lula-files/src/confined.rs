//! A directory whose files are used from where an attacker may also be: links inside it are followed
//! as the caller allows, mounts below it are part of it, and nothing leads out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::beneath::resolved;
use crate::steps;

/// Whether links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPolicy {
    /// As long as they stay inside.
    Inside,
    /// No link is followed: opening one fails with `ELOOP`.
    Refused,
}

/// The handle of such a directory.
#[derive(Debug)]
pub struct ConfinedDirectory {
    handle: OwnedFd,
    /// Whether the kernel resolves whole paths for us.
    by_kernel: bool,
}

impl ConfinedDirectory {
    /// The directory at that path, which exists.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        let tried = rustix::fs::openat2(&handle, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
        Ok(Self {
            handle,
            by_kernel: tried.is_ok(),
        })
    }

    /// The same directory, resolved name by name although the kernel could do it: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn by_steps(mut self) -> Self {
        self.by_kernel = false;
        self
    }

    /// Opens a path below it. Fails with `EXDEV` where the path leads out.
    pub fn open_at(
        &self,
        path: &str,
        flags: OFlags,
        links: LinkPolicy,
    ) -> rustix::io::Result<OwnedFd> {
        if !self.by_kernel {
            return steps::open(self.handle.as_fd(), path, flags, links);
        }
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == LinkPolicy::Refused {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        rustix::path::Arg::into_with_c_str(path, |path| {
            resolved(&self.handle, path, flags, Mode::empty(), resolve)
        })
    }
}
