//! Network namespaces made ahead of time, each with nothing in it but its own loopback.
//!
//! They belong to the zygote's user namespace, not to the sandbox's: not even root inside could
//! change them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::hold_namespace;
use crate::sys::network::raise_loopback;
use crate::sys::process::{Apart, enter, unshare};

/// How many are kept ready.
const READY: usize = 2;

pub(crate) struct Networks {
    original: OwnedFd,
    ready: Vec<OwnedFd>,
}

impl Networks {
    pub(crate) fn new(own: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            original: hold_namespace(own, "net")?,
            ready: Vec::new(),
        })
    }

    pub(crate) fn take(&mut self, own: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        match self.ready.pop() {
            Some(network) => Ok(network),
            None => self.make(own),
        }
    }

    /// Makes networks until enough are ready. One that cannot be made is missed, and reported, by
    /// the sandbox that needs it.
    pub(crate) fn refill(&mut self, own: BorrowedFd<'_>) {
        while self.ready.len() < READY {
            let Ok(network) = self.make(own) else { return };
            self.ready.push(network);
        }
    }

    fn make(&self, own: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        unshare(Apart::NET)?;
        let made = raise_loopback().and_then(|()| hold_namespace(own, "net"));
        enter(self.original.as_fd(), Apart::NET)?;
        made
    }
}
