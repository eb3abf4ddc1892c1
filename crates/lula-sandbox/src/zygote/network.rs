//! Network namespaces made ahead of time, each with nothing in it but its own loopback.
//!
//! They belong to the zygote's user namespace, not to the sandbox's: not even root inside could
//! change them. One in which nothing ever happened is as good as new and is used again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::door::{self, DoorSockets};
use super::namespaces::hold_namespace;
use crate::init::routes;
use crate::page;
use crate::sys::network::raise_loopback;
use crate::sys::process::{NamespaceFlags, enter, unshare};

/// How many are made ahead of time.
const READY: usize = 1;

/// How many unused ones are kept.
const KEPT: usize = 8;

/// A network of its own.
pub(crate) struct PrivateNetwork {
    pub(crate) namespace: OwnedFd,
    /// Its interfaces, read when it was made.
    pub(crate) interfaces: Vec<String>,
}

impl PrivateNetwork {
    /// Another handle on it.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            namespace: self.namespace.try_clone()?,
            interfaces: self.interfaces.clone(),
        })
    }
}

pub(crate) struct PrivateNetworkPool {
    /// The network this process comes back to.
    home: OwnedFd,
    /// Whether it is where it stays. An unprivileged zygote can leave the host's network, not come back
    /// to it: before it makes the first network it gets one of its own to be in.
    settled: bool,
    /// `/proc` as it was before the root changed.
    proc: OwnedFd,
    ready: Vec<PrivateNetwork>,
}

impl PrivateNetworkPool {
    pub(crate) fn new(own: BorrowedFd<'_>, privileged: bool) -> io::Result<Self> {
        Ok(Self {
            home: hold_namespace(own, "net")?,
            settled: privileged,
            proc: crate::sys::mount::hold_host(std::path::Path::new("/proc"))?,
            ready: Vec::new(),
        })
    }

    /// Makes sure that networks can be made.
    pub(crate) fn settle(&mut self, own: BorrowedFd<'_>) -> io::Result<()> {
        if !self.settled {
            unshare(NamespaceFlags::NET)?;
            self.home = hold_namespace(own, "net")?;
            self.settled = true;
        }
        Ok(())
    }

    /// Takes a network back after everything in its sandbox has ended. It is kept only where the
    /// kernel says that no socket is left in it, that not one packet ever crossed it and that no process
    /// looked for a way out: then no connection, port or counter can tell the next sandbox about the
    /// last.
    pub(crate) fn give_back(&mut self, network: PrivateNetwork) {
        if self.ready.len() < KEPT && self.is_untouched(&network).unwrap_or(false) {
            self.ready.push(network);
        }
    }

    fn is_untouched(&self, network: &PrivateNetwork) -> io::Result<bool> {
        enter(network.namespace.as_fd(), NamespaceFlags::NET)?;
        let names = ["sockstat", "dev", "snmp", "snmp6"];
        let pages = names.map(|name| page::read_at(&self.proc, format!("self/net/{name}")));
        enter(self.home.as_fd(), NamespaceFlags::NET)?;
        let [sockets, devices, routes, routes6] = pages;
        let (sockets, devices) = (sockets?, devices?);
        // Without IPv6 there is no such page.
        let tried6 = routes6.ok().and_then(|page| routes::in_page6(&page));
        Ok(no_socket(&sockets)
            && no_packet(&devices)
            && interfaces(&devices) == ["lo"]
            && routes::in_page(&routes?) == Some(0)
            && tried6.is_none_or(|count| count == 0))
    }

    /// One that is ready.
    pub(crate) fn take(&mut self) -> Option<PrivateNetwork> {
        self.ready.pop()
    }

    /// Whether a sandbox that comes now would have to wait for its network.
    pub(crate) fn is_short(&self) -> bool {
        self.settled && self.ready.len() < READY
    }

    /// Makes networks until enough are ready. One that cannot be made is missed, and reported, by
    /// the sandbox that needs it.
    pub(crate) fn refill(&mut self, own: BorrowedFd<'_>) {
        while self.is_short() {
            let Ok(network) = self.make(own) else { return };
            self.ready.push(network);
        }
    }

    pub(crate) fn make(&mut self, own: BorrowedFd<'_>) -> io::Result<PrivateNetwork> {
        self.make_with(own, || Ok(())).map(|(network, ())| network)
    }

    /// Makes one with listeners on those ports behind every address. It is for one sandbox only: it never
    /// comes back here.
    pub(crate) fn make_with_door(
        &mut self,
        own: BorrowedFd<'_>,
        ports: &[u16],
    ) -> io::Result<(PrivateNetwork, DoorSockets)> {
        self.make_with(own, || door::furnish(ports))
    }

    /// Does something in a network that was made here.
    pub(crate) fn within<T>(
        &self,
        network: BorrowedFd<'_>,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        enter(network, NamespaceFlags::NET)?;
        let done = act();
        enter(self.home.as_fd(), NamespaceFlags::NET)?;
        done
    }

    fn make_with<T>(
        &mut self,
        own: BorrowedFd<'_>,
        furnish: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<(PrivateNetwork, T)> {
        self.settle(own)?;
        unshare(NamespaceFlags::NET)?;
        let made = raise_loopback()
            .and_then(|()| furnish())
            .and_then(|furniture| Ok((self.look(own)?, furniture)));
        enter(self.home.as_fd(), NamespaceFlags::NET)?;
        made
    }

    fn look(&self, own: BorrowedFd<'_>) -> io::Result<PrivateNetwork> {
        Ok(PrivateNetwork {
            namespace: hold_namespace(own, "net")?,
            interfaces: interfaces(&page::read_at(&self.proc, "self/net/dev")?),
        })
    }
}

/// `sockets: used 0`: no socket of any family is left, nor a connection that lingers.
fn no_socket(sockstat: &str) -> bool {
    let count = |line: &str, name: &str| -> Option<u64> {
        let mut words = sockstat.lines().find_map(|one| one.strip_prefix(line))?;
        words = words.trim();
        let mut words = words.split_whitespace();
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    };
    count("sockets:", "used") == Some(0)
        && count("TCP:", "inuse") == Some(0)
        && count("TCP:", "tw") == Some(0)
}

/// Every counter of every interface of `/proc/net/dev` is zero.
fn no_packet(devices: &str) -> bool {
    devices.lines().skip(2).all(|line| {
        line.split_once(':').is_some_and(|(_, counters)| {
            let mut counters = counters.split_whitespace().peekable();
            counters.peek().is_some() && counters.all(|counter| counter == "0")
        })
    })
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

    #[test]
    fn one_packet_is_one_too_many() {
        let page = |counters: &str| format!("Inter-|\n face |\n    lo: {counters}\n");
        assert!(no_packet(&page("0 0 0 0 0 0")));
        assert!(!no_packet(&page("84 1 0 0 84 1")));
        assert!(!no_packet(&page("")));
    }

    #[test]
    fn a_socket_or_a_lingering_connection_is_seen() {
        let page = |used: u8, waiting: u8| {
            format!("sockets: used {used}\nTCP: inuse 0 orphan 0 tw {waiting} alloc 3 mem 0\n")
        };
        assert!(no_socket(&page(0, 0)));
        assert!(!no_socket(&page(1, 0)));
        assert!(!no_socket(&page(0, 1)));
        assert!(!no_socket(""));
    }
}
