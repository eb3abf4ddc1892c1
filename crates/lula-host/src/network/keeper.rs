//! Answers for the sandboxes of an engine: gives each the policy in force, and starts what serves it.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lula_egress::{
    DomainName, Egress, EgressRule, Outside, PublishedPort, SandboxListeners, SandboxNeighbours,
    SandboxNetwork, UpstreamProxy,
};
use lula_sandbox::{DoorKeeper, DoorListeners, DoorPlan, DoorSubject, OpenDoor, SandboxSockets};

use super::bundle::TrustBundle;
use super::door::{EgressDoor, SeenDenials};
use super::grants::{GrantServer, LiveDoors};
use super::journal::{self, Journal};
use super::publish::{self, PublishedPorts};
use super::{SandboxOwner, SettledNetwork, credentials, file};
use crate::error::HostError;
use crate::installation::Installation;

/// Variables by which this machine names its certificates, and the proxy on its way out.
pub(super) const VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Answers with what an operator granted.
#[derive(Debug)]
pub(super) struct EgressKeeper {
    settled: SettledNetwork,
    published: PublishedPorts,
    owner: SandboxOwner,
    directory: PathBuf,
    journal: Arc<Journal>,
    live: Arc<LiveDoors>,
    /// Hears of live grants, while there is a sandbox.
    server: Mutex<Weak<GrantServer>>,
}

impl EgressKeeper {
    pub(super) fn new(
        mut settled: SettledNetwork,
        published: PublishedPorts,
        owner: SandboxOwner,
        installation: &Installation,
    ) -> Result<Self, HostError> {
        let directory = journal::directory(installation)?;
        // Publishing under a name is the grant to the other sandboxes of the run.
        let named = published.ports().iter().filter_map(PublishedPort::rule);
        if owner == SandboxOwner::OneRun {
            settled.policy.rules.extend(named);
        }
        Ok(Self {
            settled,
            published,
            owner,
            journal: Arc::new(Journal::open(&directory)?),
            directory,
            live: Arc::default(),
            server: Mutex::default(),
        })
    }

    /// Has live grants heard for as long as what this returns is held.
    fn listen(&self) -> Result<Arc<GrantServer>, HostError> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = server.upgrade() {
            return Ok(server);
        }
        let live = Arc::clone(&self.live);
        let started = Arc::new(GrantServer::start(&self.directory, live)?);
        *server = Arc::downgrade(&started);
        Ok(started)
    }

    fn plan_for(&self, subject: &DoorSubject) -> Result<DoorPlan, HostError> {
        let server = self.listen()?;
        let policy = file::narrowed(self.settled.policy.clone(), &subject.workspace)?;
        let brokered = policy.credentials.iter().map(credentials::broker);
        let brokered = brokered.collect::<Result<Vec<_>, _>>()?;
        let mut variables = TrustBundle::variables();
        variables.extend(self.settled.variables.clone());
        for (variable, credential) in &self.settled.placeholders {
            let one = brokered.iter().find(|one| one.rule().name() == credential);
            // One that the repository takes away has none.
            variables.extend(one.map(|one| (variable.clone(), one.placeholder().to_owned())));
        }
        let granted = self.live.granted(subject.name.as_deref());
        let mut ports = policy.ports();
        ports.extend(granted.iter().map(EgressRule::port));
        let mut bundle = TrustBundle::new(&self.directory)?;
        let certificates = Some(bundle.path().to_owned());
        let java_certificates = bundle.java_path().map(Path::to_owned);
        let digest = policy
            .digest()
            .map_err(|error| HostError::Internal(error.to_string()))?;
        let (journal, live) = (Arc::clone(&self.journal), Arc::clone(&self.live));
        let mut outside = outside()?;
        let published = self.published.take()?;
        let shown = published
            .iter()
            .map(|(port, listener)| publish::shown(port, listener))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| HostError::Internal(error.to_string()))?;
        let name = subject.name.clone();
        let owner = self.owner;
        Ok(DoorPlan {
            policy: digest,
            ports,
            variables,
            certificates,
            java_certificates,
            published: shown,
            open: Box::new(move |listeners| {
                let id = new_id()?;
                let seen = Arc::new(SeenDenials::default());
                let recorder = {
                    let (id, name, seen) = (id.clone(), name.clone(), Arc::clone(&seen));
                    move |record| {
                        seen.note(&record);
                        journal.write(&id, name.as_deref(), &record);
                    }
                };
                if owner == SandboxOwner::OneRun {
                    outside.neighbours = Some(Arc::new(OtherSandboxes {
                        own: id.clone(),
                        live: Arc::clone(&live),
                    }));
                }
                let listeners = served(listeners)?;
                let handle = Egress::start(listeners, policy, brokered, outside, recorder)
                    .map_err(io::Error::other)?;
                for rule in granted {
                    handle.grant(rule).map_err(io::Error::other)?;
                }
                for (port, listener) in published {
                    handle.publish(port, listener).map_err(io::Error::other)?;
                }
                bundle.add(handle.ca_certificate_pem())?;
                let door = EgressDoor::new(id, name, handle, seen, (bundle, server));
                live.enter(&door);
                Ok(Box::new(door) as Box<dyn OpenDoor>)
            }),
        })
    }
}

impl DoorKeeper for EgressKeeper {
    fn plan(&self, subject: &DoorSubject) -> io::Result<DoorPlan> {
        self.plan_for(subject).map_err(io::Error::other)
    }
}

/// The sandboxes that this process answers for, as one of them knows them by name.
struct OtherSandboxes {
    own: String,
    live: Arc<LiveDoors>,
}

impl SandboxNeighbours for OtherSandboxes {
    fn find(&self, name: &DomainName, port: u16) -> Option<Arc<dyn SandboxNetwork>> {
        self.live.server(&self.own, name, port)
    }
}

/// The network of a sandbox, as its engine reaches into it.
#[derive(Debug)]
struct NetworkOfSandbox(SandboxSockets);

impl SandboxNetwork for NetworkOfSandbox {
    fn stream(&self, to: IpAddr) -> io::Result<OwnedFd> {
        self.0.stream(to)
    }

    fn listener(&self, port: u16) -> io::Result<OwnedFd> {
        self.0.listener(port).map(OwnedFd::from)
    }
}

/// The way out of this machine, as its variables say.
fn outside() -> Result<Outside, HostError> {
    let variables = VARIABLES[1..].iter();
    let variables =
        variables.filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let variables: BTreeMap<String, String> = variables.collect();
    // Roots of the operator's own, as for every program of theirs.
    let roots = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let roots = roots.and_then(|path| std::fs::read_to_string(path).ok());
    Ok(Outside {
        proxy: UpstreamProxy::from_variables(variables)?,
        extra_roots_pem: roots.into_iter().collect(),
        ..Outside::default()
    })
}

/// The listeners as the egress engine takes them.
pub(crate) fn served(listeners: DoorListeners) -> io::Result<SandboxListeners> {
    let missing = || io::Error::other("the network of the sandbox has no listener for names");
    let mut tcp = Vec::new();
    for listener in listeners.tcp {
        tcp.push((listener.local_addr()?.port(), listener.into()));
    }
    let network = listeners.sockets.map(|sockets| {
        let network: Arc<dyn SandboxNetwork> = Arc::new(NetworkOfSandbox(sockets));
        network
    });
    Ok(SandboxListeners {
        tcp,
        network,
        dns_udp: listeners
            .dns_udp
            .into_iter()
            .next()
            .ok_or_else(missing)?
            .into(),
        dns_tcp: listeners
            .dns_tcp
            .into_iter()
            .next()
            .ok_or_else(missing)?
            .into(),
    })
}

/// A name for a door, short enough to be typed.
fn new_id() -> io::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!("net-{:08x}", u32::from_ne_bytes(random)))
}
