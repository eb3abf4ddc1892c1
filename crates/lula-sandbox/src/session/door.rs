//! The way out of a sandbox whose network is an allowlist: listeners behind every address, and who
//! answers there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use lula_protocol::{Digest, SandboxDenial};
use rustix::net::SocketType;

use super::zygote::{BuiltNetwork, ZygoteProcess};
use crate::error::SandboxError;
use crate::zygote::{DNS, SocketOrder};

/// The most ports that one sandbox may have listeners on.
pub const MOST_DOOR_PORTS: usize = 24;

/// Answers for the sandboxes of an engine whose policy says `network = "allowlist"`. Without one such a
/// sandbox is refused.
pub trait DoorKeeper: fmt::Debug + Send + Sync {
    /// Decides what a sandbox gets. An error refuses it.
    fn plan(&self, subject: &DoorSubject) -> io::Result<DoorPlan>;
}

/// Which sandbox a door is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorSubject {
    /// What its caller calls it ([`super::Sandbox::named`]), where it was told.
    pub name: Option<String>,
    /// The directory it is about.
    pub workspace: PathBuf,
}

/// Takes the listeners of one sandbox over. An error refuses the sandbox.
pub type DoorOpening = Box<dyn FnOnce(DoorListeners) -> io::Result<Box<dyn OpenDoor>> + Send>;

/// What one sandbox gets.
pub struct DoorPlan {
    /// Digest of what may be reached, for the receipt.
    pub policy: Digest,
    /// The TCP ports that are answered. Connections to others are refused by the kernel. Names are
    /// always answered, on port 53.
    pub ports: BTreeSet<u16>,
    /// Variables of every command: where certificates are, placeholders of credentials.
    pub variables: BTreeMap<String, String>,
    /// A file with the certificates that programs inside are to trust, shown in place of the system's.
    pub certificates: Option<PathBuf>,
    /// The same as a trust store of Java, shown in place of the system's.
    pub java_certificates: Option<PathBuf>,
    /// Servers inside that were published, as `127.0.0.1:3000 -> 8080`, for the receipt.
    pub published: Vec<String>,
    /// What takes the listeners over, before the first command runs.
    pub open: DoorOpening,
}

impl fmt::Debug for DoorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorPlan")
            .field("policy", &self.policy)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

/// A door that is answered. It is dropped with its sandbox, and has to close every listener then.
pub trait OpenDoor: fmt::Debug + Send + Sync {
    /// Takes note that a command of that program begins. Returns the number of the next thing that will
    /// happen here, for [`OpenDoor::denials_since`].
    fn command_begins(&self, program: &str) -> u64;

    /// What was refused since then.
    fn denials_since(&self, mark: u64) -> Vec<SandboxDenial>;

    /// The name that an address stands for inside.
    fn name_of(&self, address: IpAddr) -> Option<String>;
}

/// The listening sockets of one sandbox's network, for the process that answers. None of them blocks.
#[derive(Debug, Default)]
pub struct DoorListeners {
    /// Those of the ports, for IPv4 and IPv6 apart. A connection's own address is where it was to go.
    pub tcp: Vec<TcpListener>,
    /// Where names are asked for by datagram.
    pub dns_udp: Vec<UdpSocket>,
    /// Where names are asked for by stream.
    pub dns_tcp: Vec<TcpListener>,
    /// More sockets of that network, while the sandbox stands.
    pub sockets: Option<SandboxSockets>,
}

/// Makes sockets in the network of one sandbox, from the process that answers there: streams to the servers
/// inside, and listeners on more ports. None of them blocks, and none is made once the sandbox is gone.
#[derive(Debug, Clone)]
pub struct SandboxSockets {
    zygote: Arc<ZygoteProcess>,
    number: u64,
}

impl SandboxSockets {
    /// A stream socket, not connected yet, for addresses like that one.
    pub fn stream(&self, to: IpAddr) -> io::Result<OwnedFd> {
        self.make(if to.is_ipv4() {
            SocketOrder::Stream4
        } else {
            SocketOrder::Stream6
        })
    }

    /// A listener on a port of every IPv4 address, where no program inside listens there.
    pub fn listener(&self, port: u16) -> io::Result<TcpListener> {
        self.make(SocketOrder::Listener(port))
            .map(TcpListener::from)
    }

    fn make(&self, order: SocketOrder) -> io::Result<OwnedFd> {
        self.zygote.socket(self.number, order)
    }
}

/// What was read back of a door, for the receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoorFacts {
    pub(crate) policy: Digest,
    pub(crate) routes: Vec<String>,
    /// What listens, as `tcp 0.0.0.0:443`.
    pub(crate) listening: Vec<String>,
    pub(crate) published: Vec<String>,
}

/// What came of opening a door; nothing, where none was asked for.
#[derive(Debug, Default)]
pub(super) struct OpenedDoor {
    pub(super) open: Option<Arc<dyn OpenDoor>>,
    pub(super) facts: Option<DoorFacts>,
    pub(super) ports: BTreeSet<u16>,
    pub(super) variables: BTreeMap<String, String>,
}

impl OpenedDoor {
    /// Hands the listeners over to what answers, and tells what was read back of them.
    pub(super) fn open(
        plan: Option<DoorPlan>,
        network: BuiltNetwork,
        zygote: &Arc<ZygoteProcess>,
    ) -> Result<Self, SandboxError> {
        let Some(plan) = plan else {
            return Ok(Self::default());
        };
        let failed = |source| SandboxError::Io {
            act: "cannot answer for the sandbox's network",
            source,
        };
        let (mut listeners, listening) = DoorListeners::sort(network.listeners).map_err(failed)?;
        listeners.sockets = Some(SandboxSockets {
            zygote: Arc::clone(zygote),
            number: network.sandbox,
        });
        Ok(Self {
            open: Some(Arc::from((plan.open)(listeners).map_err(failed)?)),
            facts: Some(DoorFacts {
                policy: plan.policy,
                routes: network.routes,
                listening,
                published: plan.published,
            }),
            ports: plan.ports,
            variables: plan.variables,
        })
    }
}

impl DoorListeners {
    /// Sorts the sockets by what the kernel says they are.
    pub(super) fn sort(sockets: Vec<OwnedFd>) -> io::Result<(Self, Vec<String>)> {
        let mut sorted = Self::default();
        let mut listening = Vec::new();
        for socket in sockets {
            let stream = rustix::net::sockopt::socket_type(&socket)? == SocketType::STREAM;
            let address = rustix::net::getsockname(&socket)?;
            let address = SocketAddr::try_from(address)?;
            let kind = if stream { "tcp" } else { "udp" };
            listening.push(format!("{kind} {address}"));
            match (stream, address.port() == DNS) {
                (true, false) => sorted.tcp.push(socket.into()),
                (true, true) => sorted.dns_tcp.push(socket.into()),
                (false, _) => sorted.dns_udp.push(socket.into()),
            }
        }
        Ok((sorted, listening))
    }
}

/// The ports of a plan, where a sandbox can have them.
pub(super) fn checked(ports: &BTreeSet<u16>) -> Result<Vec<u16>, SandboxError> {
    let refused = |problem: String| Err(SandboxError::DoorPorts { problem });
    if ports.len() > MOST_DOOR_PORTS {
        let count = ports.len();
        return refused(format!(
            "{count} ports are asked for; at most {MOST_DOOR_PORTS} can be"
        ));
    }
    if let Some(port) = ports.iter().find(|port| matches!(**port, 0 | DNS)) {
        return refused(format!("the port {port} cannot be asked for"));
    }
    Ok(ports.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_told_apart_by_what_they_are() {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("[::1]:0").unwrap();
        let port = stream.local_addr().unwrap();
        let names = datagrams.local_addr().unwrap();
        let (sorted, listening) =
            DoorListeners::sort(vec![stream.into(), datagrams.into()]).unwrap();
        assert_eq!(listening, [format!("tcp {port}"), format!("udp {names}")]);
        assert_eq!(sorted.tcp.len(), 1);
        assert_eq!(sorted.dns_udp.len(), 1);
        assert!(sorted.dns_tcp.is_empty());
    }

    #[test]
    fn the_port_of_names_is_not_for_others() {
        assert_eq!(checked(&[80, 443].into()).unwrap(), [80, 443]);
        for bad in [0, 53] {
            let error = checked(&[bad].into()).unwrap_err().to_string();
            assert!(error.contains(&bad.to_string()), "{error}");
        }
        assert!(checked(&(1000..1000 + 25).collect()).is_err());
    }
}
