//! Sockets in the network of a sandbox that stands: a server in it is reached, and a port of it answered,
//! from the engine, which is in another network. A socket stays in the one it was made in.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

use super::door;
use crate::frames::{FrameReader, FrameWriter};

/// The message's first byte; others are in `blueprint.rs`, `kill.rs` and `remains.rs`.
const MAKE: u8 = 5;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketOrder {
    /// A stream over IPv4 that is not connected yet.
    Stream4,
    /// The same over IPv6.
    Stream6,
    /// A listener on that port of every IPv4 address.
    Listener(u16),
}

impl SocketOrder {
    /// As a message about the sandbox with that number. A socket or a failure is answered.
    pub(crate) fn encode(self, sandbox: u64) -> Vec<u8> {
        let (kind, port) = match self {
            Self::Stream4 => (0, 0),
            Self::Stream6 => (1, 0),
            Self::Listener(port) => (2, port),
        };
        let mut writer = FrameWriter::new();
        writer.u8(MAKE).u64(sandbox).u8(kind).u16(port);
        writer.bytes
    }

    /// The order in such a message, and the sandbox it is about.
    pub(super) fn decode(message: &[u8]) -> Option<(u64, Self)> {
        let mut reader = FrameReader::new(message);
        if reader.u8("message").ok()? != MAKE {
            return None;
        }
        let sandbox = reader.u64("sandbox").ok()?;
        let (kind, port) = (reader.u8("kind").ok()?, reader.u16("port").ok()?);
        reader.end().ok()?;
        let order = match (kind, port) {
            (0, 0) => Self::Stream4,
            (1, 0) => Self::Stream6,
            (2, 1..) if port != door::DNS => Self::Listener(port),
            _ => return None,
        };
        Some((sandbox, order))
    }

    /// Makes it in the network that this process is in.
    pub(super) fn make(self) -> io::Result<OwnedFd> {
        let family = match self {
            Self::Stream4 => AddressFamily::INET,
            Self::Stream6 => AddressFamily::INET6,
            Self::Listener(port) => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
                return door::bound(SocketType::STREAM, any);
            }
        };
        Ok(rustix::net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None::<Protocol>,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_asks() {
        for order in [
            SocketOrder::Stream4,
            SocketOrder::Stream6,
            SocketOrder::Listener(8080),
        ] {
            let message = order.encode(1 << 40);
            assert_eq!(SocketOrder::decode(&message), Some((1 << 40, order)));
            assert_eq!(SocketOrder::decode(&message[1..]), None);
            assert_eq!(SocketOrder::decode(&[&message[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn the_ports_that_are_no_ones_are_not_given() {
        for port in [0, 53] {
            let message = SocketOrder::Listener(port).encode(1);
            assert_eq!(SocketOrder::decode(&message), None, "{port}");
        }
    }
}
