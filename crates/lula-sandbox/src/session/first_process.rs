//! The first process of a sandbox, as the engine holds it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{Signal, pidfd_send_signal};

use super::zygote::ZygoteProcess;

/// A process that cannot be mistaken for another one.
#[derive(Debug)]
pub(crate) struct FirstProcess {
    /// A descriptor for the process, or a pipe that the helper closes when the process is gone: something
    /// happens to either at its end.
    held: OwnedFd,
    /// Its number as the helper, whose child it is, and this process see it.
    pid: u32,
    helper: Arc<ZygoteProcess>,
}

impl FirstProcess {
    pub(super) const fn new(pid: u32, held: OwnedFd, helper: Arc<ZygoteProcess>) -> Self {
        Self { held, pid, helper }
    }

    /// Kills it, through the helper where the kernel does not do it by descriptor. It may be gone already.
    pub(super) fn kill(&self) {
        match pidfd_send_signal(&self.held, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(_) => self.helper.kill(self.pid),
        }
    }

    /// Something that can be waited for until it is gone.
    pub(super) fn end(&self) -> io::Result<OwnedFd> {
        self.held.try_clone()
    }
}

impl AsFd for FirstProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}
