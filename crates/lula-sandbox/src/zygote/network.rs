//! Network namespaces made ahead of time, each with nothing in it but its own loopback.
//!
//! They belong to the zygote's user namespace, not to the sandbox's: not even root inside could
//! change them.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::hold_namespace;
use crate::sys::network::raise_loopback;
use crate::sys::process::{Apart, enter, unshare};

/// How many are kept ready.
const READY: usize = 2;

/// A network of its own.
pub(crate) struct Network {
    pub(crate) namespace: OwnedFd,
    /// Its interfaces, read when it was made.
    pub(crate) interfaces: Vec<String>,
}

pub(crate) struct Networks {
    home: OwnedFd,
    /// `/proc` as it was before the root changed.
    proc: OwnedFd,
    ready: Vec<Network>,
}

impl Networks {
    /// An unprivileged zygote can leave the host's network, not come back to it: it gets one of its
    /// own to be in.
    pub(crate) fn new(own: BorrowedFd<'_>, privileged: bool) -> io::Result<Self> {
        if !privileged {
            unshare(Apart::NET)?;
        }
        Ok(Self {
            home: hold_namespace(own, "net")?,
            proc: crate::sys::mount::hold_host(std::path::Path::new("/proc"))?,
            ready: Vec::new(),
        })
    }

    pub(crate) fn take(&mut self, own: BorrowedFd<'_>) -> io::Result<Network> {
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

    fn make(&self, own: BorrowedFd<'_>) -> io::Result<Network> {
        unshare(Apart::NET)?;
        let made = raise_loopback().and_then(|()| self.look(own));
        enter(self.home.as_fd(), Apart::NET)?;
        made
    }

    fn look(&self, own: BorrowedFd<'_>) -> io::Result<Network> {
        let page = rustix::fs::openat(
            &self.proc,
            "self/net/dev",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut text = String::new();
        std::fs::File::from(page).read_to_string(&mut text)?;
        Ok(Network {
            namespace: hold_namespace(own, "net")?,
            interfaces: interfaces(&text),
        })
    }
}

/// Names before the colons of `/proc/net/dev`, which has two lines of heading.
fn interfaces(devices: &str) -> Vec<String> {
    devices
        .lines()
        .skip(2)
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_named() {
        let page = "Inter-| Receive\n face |bytes\n    lo:   0 0\n  eth0: 1 1\n";
        assert_eq!(interfaces(page), ["lo", "eth0"]);
    }
}
