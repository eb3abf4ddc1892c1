//! What a sandbox gets after it has begun: its network, which takes as long to make as a third of
//! everything its first process does, and its user namespace. That process needs them last.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::PrivateNetwork;
use crate::frames::{FrameReader, FrameWriter};
use crate::sys::socket;

/// The longest message: the names of a few interfaces.
const LONGEST: usize = 4096;

/// Where a sandbox has its network from.
pub(crate) enum NetworkSupply {
    /// It was ready before the sandbox was asked for.
    Here(PrivateNetwork),
    /// It comes on this line.
    Comes(OwnedFd),
}

impl NetworkSupply {
    /// Waits for the network, and for the user namespace where one comes along. An error where no
    /// network can be made, or the helper, which makes it, is gone.
    pub(crate) fn wait(self) -> io::Result<(PrivateNetwork, Option<OwnedFd>)> {
        let line = match self {
            Self::Here(network) => return Ok((network, None)),
            Self::Comes(line) => line,
        };
        let mut buffer = [0; LONGEST];
        let (length, descriptors) = socket::receive(&line, &mut buffer)?;
        let mut reader = FrameReader::new(&buffer[..length]);
        let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let errno = reader.u32("errno").map_err(broken)?;
        if errno != 0 {
            return Err(io::Error::from_raw_os_error(errno.cast_signed()));
        }
        let interfaces = reader.list("interfaces", |reader| reader.text("interface"));
        let interfaces = interfaces.map_err(broken)?;
        let mut descriptors = descriptors.into_iter();
        let namespace = descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let network = PrivateNetwork {
            namespace,
            interfaces,
        };
        Ok((network, descriptors.next()))
    }
}

/// The helper's end of a line at whose other end init waits.
pub(super) struct NetworkRequest(OwnedFd);

impl NetworkRequest {
    /// An order, and what the sandbox gets in place of its network.
    pub(super) fn place() -> io::Result<(Self, NetworkSupply)> {
        let (ours, theirs) = socket::packet_pair()?;
        Ok((Self(ours), NetworkSupply::Comes(theirs)))
    }

    /// Delivers what was made, or why no network was. Without a user namespace init, which waits, makes its
    /// own. It may be gone.
    pub(super) fn deliver(self, made: &io::Result<PrivateNetwork>, home: Option<&OwnedFd>) {
        let mut writer = FrameWriter::new();
        let sent = match made {
            Ok(network) => {
                writer.u32(0).list(&network.interfaces, |writer, name| {
                    writer.text(name);
                });
                let descriptors: Vec<_> = [&network.namespace]
                    .into_iter()
                    .chain(home)
                    .map(AsFd::as_fd)
                    .collect();
                socket::send(&self.0, &writer.bytes, &descriptors)
            }
            Err(error) => {
                let unknown = rustix::io::Errno::IO.raw_os_error();
                let errno = error.raw_os_error().unwrap_or(unknown);
                writer.u32(errno.cast_unsigned());
                socket::send(&self.0, &writer.bytes, &[])
            }
        };
        // Its end is seen elsewhere.
        let _ = sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> PrivateNetwork {
        PrivateNetwork {
            namespace: rustix::fs::open(
                "/proc/self/ns/net",
                rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            )
            .unwrap(),
            interfaces: vec!["lo".to_owned()],
        }
    }

    #[test]
    fn a_network_arrives_as_it_was_made() {
        let (order, supply) = NetworkRequest::place().unwrap();
        order.deliver(&Ok(network()), None);
        let (arrived, home) = supply.wait().unwrap();
        assert_eq!(arrived.interfaces, ["lo"]);
        assert!(home.is_none());
        let inode = |file: &OwnedFd| rustix::fs::fstat(file).unwrap().st_ino;
        assert_eq!(inode(&arrived.namespace), inode(&network().namespace));

        let (order, supply) = NetworkRequest::place().unwrap();
        let own = std::fs::File::open("/proc/self/ns/user").unwrap().into();
        order.deliver(&Ok(network()), Some(&own));
        let (arrived, home) = supply.wait().unwrap();
        assert_eq!(inode(&arrived.namespace), inode(&network().namespace));
        assert_eq!(inode(&home.unwrap()), inode(&own));
    }

    #[test]
    fn whoever_waits_learns_why_there_is_none() {
        let (order, supply) = NetworkRequest::place().unwrap();
        let refused = rustix::io::Errno::NOSPC;
        order.deliver(&Err(refused.into()), None);
        let error = supply.wait().err().unwrap();
        assert_eq!(error.raw_os_error(), Some(refused.raw_os_error()));
    }

    #[test]
    fn nobody_waits_for_a_maker_that_is_gone() {
        let (order, supply) = NetworkRequest::place().unwrap();
        drop(order);
        assert!(supply.wait().is_err());
    }
}
