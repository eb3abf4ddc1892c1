//! The sockets on which a sandbox's connections arrive.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::SandboxNetwork;

/// Listening sockets made inside the network namespace of a sandbox in which every address is local
/// (`local 0.0.0.0/0 dev lo`, `local ::/0 dev lo`), so that the local address of an accepted connection is
/// the one the sandbox dialled.
///
/// Each is bound to the unspecified address of one family, and non-blocking. IPv6 sockets are `V6ONLY` or
/// dual; only addresses that an answer gave (198.18.0.0/15) are served, on whatever socket they arrive.
#[derive(Debug)]
pub struct SandboxListeners {
    /// TCP listeners with their ports; several for one port (IPv4, IPv6) are fine. See
    /// [`crate::EgressPolicy::ports`].
    pub tcp: Vec<(u16, OwnedFd)>,
    /// The UDP socket of port 53. Bound to the address that the sandbox's `resolv.conf` names, because
    /// programs take answers only from there.
    pub dns_udp: OwnedFd,
    /// The TCP listener of port 53.
    pub dns_tcp: OwnedFd,
    /// The network itself, for published ports and for ports that are granted later. Without it neither is
    /// there.
    pub network: Option<Arc<dyn SandboxNetwork>>,
}
