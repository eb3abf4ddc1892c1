//! Servers on this machine's loopback that stand for the network, and a sandbox whose door leads to some of
//! them. No other host is contacted.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_egress::{DomainName, Egress, EgressHandle, EgressPolicy, NameResolver, Outside};
use lula_protocol::{IsolationTier, SandboxDenial};
use lula_sandbox::policy::{Network, Profile};
use lula_sandbox::{
    DoorKeeper, DoorPlan, DoorSubject, HostToolchains, OpenDoor, Sandbox, SandboxCommand,
    SandboxEngine, SandboxSession,
};

use super::acts::{HEARD, NETWORK_ATTACKER, NetworkAct};
use crate::error::HostError;
use crate::network;

/// What a hello, a request or a packet of an attack contains, so that it is known again.
pub(super) const TOKEN: &str = "lulaprobetoken";

/// What reached a server, or the resolver outside.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<u8>>);

impl Heard {
    fn note(&self, bytes: &[u8]) {
        locked(&self.0).extend(bytes);
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut locked(&self.0))
    }
}

/// Resolves the names of the stage to this machine, and some to where they must not lead.
struct StageResolver(Arc<Heard>);

impl NameResolver for StageResolver {
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>> {
        self.0.note(name.as_str().as_bytes());
        Ok(vec![match name.as_str() {
            "metadata.probe.example" => Ipv4Addr::new(169, 254, 169, 254).into(),
            "many.probe.example" => Ipv4Addr::new(224, 0, 0, 1).into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        }])
    }
}

/// Where the granted and the other servers are.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagePorts {
    /// Granted, speaks TLS as far as the first bytes go.
    pub(super) tls: u16,
    /// Granted, and speaks HTTP.
    pub(super) web: u16,
    /// Granted for some requests.
    pub(super) detail: u16,
    /// No rule grants this one.
    pub(super) other: u16,
}

/// The scene of the attack.
pub(super) struct NetworkStage {
    pub(super) ports: StagePorts,
    heard: Arc<Heard>,
    asked: Arc<Heard>,
    over: Arc<AtomicBool>,
    handle: SharedHandle,
    session: SandboxSession,
}

impl Drop for NetworkStage {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl NetworkStage {
    pub(super) fn set(engine: SandboxEngine) -> Result<Self, HostError> {
        let unusable = |error: io::Error| HostError::Internal(format!("no stage: {error}"));
        let asked = Arc::new(Heard::default());
        let (heard, over) = (Arc::new(Heard::default()), Arc::new(AtomicBool::new(false)));
        let listen = || listen(&heard, &over).map_err(unusable);
        let ports = StagePorts {
            tls: listen()?,
            web: listen()?,
            detail: listen()?,
            other: listen()?,
        };
        let handle = SharedHandle::default();
        let engine = engine.with_door_keeper(Arc::new(StageKeeper {
            policy: policy(ports)?,
            asked: Arc::clone(&asked),
            handle: Arc::clone(&handle),
        }));
        let mut policy = Profile::Strict.policy().with_network(Network::Allowlist);
        // A `/proc` that is shown and not its own is no matter of the network.
        policy.min_tier = IsolationTier::Landlock;
        policy
            .required_layers
            .retain(|layer| layer.name() == "egress");
        let sandbox = Sandbox::new(policy, std::env::temp_dir())
            .read_only_workspace()
            .tier(IsolationTier::Namespace)
            .toolchains(HostToolchains::none());
        let session = engine.open(&sandbox)?;
        Ok(Self {
            ports,
            heard,
            asked,
            over,
            handle,
            session,
        })
    }

    /// What the attacker says came of an act, and whether anything was heard outside: of a question by the
    /// resolver, of anything else by a server.
    pub(super) fn attempt(&self, act: &NetworkAct) -> Result<(String, bool), HostError> {
        self.heard.take();
        self.asked.take();
        let command = SandboxCommand::built_in(NETWORK_ATTACKER.name)
            .arguments(act.arguments())
            .directory("/")
            .timeout(Duration::from_secs(20));
        let finished = self.session.run(&command)?;
        // What was let out is heard within this time.
        std::thread::sleep(Duration::from_millis(30));
        let ear = match act {
            NetworkAct::Question { .. } => &self.asked,
            _ => &self.heard,
        };
        let said = finished.stdout.text().trim_end().to_owned();
        Ok((said, !ear.take().is_empty()))
    }

    /// Starts a server inside, which ends with the sandbox.
    pub(super) fn serve(&self, port: u16) -> Result<(), HostError> {
        let command = SandboxCommand::built_in(NETWORK_ATTACKER.name)
            .arguments(NetworkAct::Serve { port }.arguments())
            .directory("/")
            .timeout(Duration::from_mins(1));
        self.session.start_in_background(&command)?;
        Ok(())
    }

    /// Publishes a server inside.
    pub(super) fn publish(&self, port: &str, listener: TcpListener) -> Result<(), HostError> {
        if let Some(handle) = &*locked(&self.handle) {
            handle.publish(port.parse()?, listener)?;
        }
        Ok(())
    }

    /// Ends the publication of a port inside, and the connections to it.
    pub(super) fn unpublish(&self, inside: u16) {
        if let Some(handle) = &*locked(&self.handle) {
            handle.unpublish(inside);
        }
    }

    /// Takes the grant of a name back.
    pub(super) fn revoke(&self, rule: &str) -> Result<(), HostError> {
        if let Some(handle) = &*locked(&self.handle) {
            handle.revoke(&rule.parse()?)?;
        }
        Ok(())
    }

    /// Ends what answers, as if it had died.
    pub(super) fn kill(&self) {
        drop(locked(&self.handle).take());
    }
}

fn policy(ports: StagePorts) -> Result<EgressPolicy, HostError> {
    let StagePorts {
        tls, web, detail, ..
    } = ports;
    let mut policy = EgressPolicy::default();
    for rule in [
        format!("granted.probe.example:{tls} private"),
        format!("revoked.probe.example:{tls} private"),
        format!("bound.probe.example:{tls}"),
        format!("metadata.probe.example:{tls} private"),
        format!("many.probe.example:{tls} private"),
        format!("http://web.probe.example:{web} private"),
        format!("GET http://detail.probe.example:{detail}/open/* private"),
    ] {
        policy.rules.push(rule.parse()?);
    }
    Ok(policy)
}

/// A server for streams and datagrams that says what it hears.
fn listen(heard: &Arc<Heard>, over: &Arc<AtomicBool>) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    let packets = UdpSocket::bind(("127.0.0.1", port))?;
    packets.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (ear, ends) = (Arc::clone(heard), Arc::clone(over));
    std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    let _ = stream.set_nonblocking(false);
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                    let mut bytes = [0; 4096];
                    if let Ok(length) = stream.read(&mut bytes) {
                        ear.note(&bytes[..length]);
                    }
                    let length = HEARD.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{HEARD}"
                    );
                    let _ = stream.write_all(answer.as_bytes());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    });
    let (ear, ends) = (Arc::clone(heard), Arc::clone(over));
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while !ends.load(Ordering::Relaxed) {
            if let Ok(length) = packets.recv(&mut bytes) {
                ear.note(&bytes[..length]);
            }
        }
    });
    Ok(port)
}

/// What answers on the stage; nothing, once it was killed.
type SharedHandle = Arc<Mutex<Option<EgressHandle>>>;

/// Answers for the one sandbox of the stage.
#[derive(Debug)]
struct StageKeeper {
    policy: EgressPolicy,
    asked: Arc<Heard>,
    handle: SharedHandle,
}

impl DoorKeeper for StageKeeper {
    fn plan(&self, _subject: &DoorSubject) -> io::Result<DoorPlan> {
        let (policy, handle) = (self.policy.clone(), Arc::clone(&self.handle));
        let outside = Outside {
            resolver: Arc::new(StageResolver(Arc::clone(&self.asked))),
            ..Outside::default()
        };
        Ok(DoorPlan {
            policy: policy.digest().map_err(io::Error::other)?,
            ports: policy.ports(),
            variables: BTreeMap::new(),
            certificates: None,
            java_certificates: None,
            published: Vec::new(),
            open: Box::new(move |listeners| {
                let served = network::served(listeners)?;
                let started = Egress::start(served, policy, Vec::new(), outside, |_| ());
                *locked(&handle) = Some(started.map_err(io::Error::other)?);
                Ok(Box::new(StageDoor(handle)) as Box<dyn OpenDoor>)
            }),
        })
    }
}

#[derive(Debug)]
struct StageDoor(SharedHandle);

impl Drop for StageDoor {
    fn drop(&mut self) {
        drop(locked(&self.0).take());
    }
}

impl OpenDoor for StageDoor {
    fn command_begins(&self, _program: &str) -> u64 {
        0
    }

    fn denials_since(&self, _mark: u64) -> Vec<SandboxDenial> {
        Vec::new()
    }

    fn name_of(&self, _address: IpAddr) -> Option<String> {
        None
    }
}

fn locked<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
