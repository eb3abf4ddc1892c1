//! Starting an engine, and what can be done with one that runs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{oneshot, watch};

use crate::engine::{Engine, inward};
use crate::intercept::{Broker, Interception};
use crate::names;
use crate::policy::Rules;
use crate::{
    BrokeredCredential, ConnectionRecord, DomainName, EgressError, EgressPolicy, EgressRule,
    Outside, PublishedPort, SandboxListeners, SandboxNetwork,
};

/// Threads for lookups of names.
const LOOKUP_THREADS: usize = 16;
/// How long connections that were cut may take to tell their records.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// Serves the connections of one sandbox.
#[derive(Debug)]
pub struct Egress;

/// An engine that runs. Dropping it closes its listeners and cuts every connection.
pub struct EgressHandle {
    engine: Arc<Engine>,
    policy: EgressPolicy,
    ca_certificate_pem: String,
    runtime: Handle,
    published: Arc<Publications>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Publications = Mutex<BTreeMap<u16, Publication>>;

/// A port that is published, until it is dropped.
struct Publication {
    port: PublishedPort,
    at: SocketAddr,
    _over: watch::Sender<()>,
}

/// The servers that one sandbox publishes, as long as it stands. It holds nothing of the sandbox.
#[derive(Clone)]
pub struct PublishedServers {
    published: Weak<Publications>,
    network: Option<Weak<dyn SandboxNetwork>>,
}

impl PublishedServers {
    /// The network of the sandbox, where it publishes that port under that name.
    pub fn find(&self, name: &DomainName, inside: u16) -> Option<Arc<dyn SandboxNetwork>> {
        let published = self.published.upgrade()?;
        let published = published.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = published.get(&inside)?.port.name() == Some(name);
        is_it.then(|| self.network.as_ref()?.upgrade()).flatten()
    }

    /// Whether the sandbox is no more.
    pub fn is_over(&self) -> bool {
        self.published.strong_count() == 0
    }
}

impl fmt::Debug for PublishedServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedServers").finish_non_exhaustive()
    }
}

impl Egress {
    /// Starts serving on a thread of its own. Nothing is let out before this returns, and nothing after
    /// the handle is gone.
    ///
    /// `credentials` has the secrets for the credentials of the policy; one of the policy's that is missing
    /// is an error. `recorder` is called on the engine's thread: it must not block.
    pub fn start(
        listeners: SandboxListeners,
        policy: EgressPolicy,
        credentials: Vec<BrokeredCredential>,
        outside: Outside,
        recorder: impl Fn(ConnectionRecord) + Send + Sync + 'static,
    ) -> Result<EgressHandle, EgressError> {
        let policy = policy.checked()?;
        are_those_of(&policy, &credentials)?;
        let interception = Interception::new(&outside)?;
        let ca_certificate_pem = interception.certificate_pem();
        let engine = Arc::new(Engine::new(
            Rules::new(policy.clone()),
            outside,
            interception,
            Broker::new(credentials),
            Box::new(recorder),
            listeners.network.clone(),
        ));
        let (stop, is_stopped) = oneshot::channel();
        let (told, started) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("lula-egress".to_owned())
            .spawn({
                let engine = Arc::clone(&engine);
                move || run(&engine, listeners, is_stopped, &told)
            })
            .map_err(EgressError::Start)?;
        let runtime = started.recv().map_err(|_| EgressError::Ended)??;
        Ok(EgressHandle {
            engine,
            policy,
            ca_certificate_pem,
            runtime,
            published: Arc::default(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// Whether each credential of the policy has its secret, and no other is there.
fn are_those_of(
    policy: &EgressPolicy,
    credentials: &[BrokeredCredential],
) -> Result<(), EgressError> {
    let refused = |name: &str, why| EgressError::Credential {
        name: name.to_owned(),
        why,
    };
    for rule in &policy.credentials {
        if !credentials.iter().any(|one| one.rule() == rule) {
            return Err(refused(
                rule.name(),
                "the policy names it and its secret was not given",
            ));
        }
    }
    for (at, one) in credentials.iter().enumerate() {
        let name = one.rule().name();
        if !policy.credentials.contains(one.rule()) {
            return Err(refused(
                name,
                "its secret was given and the policy does not name it",
            ));
        }
        if credentials[..at]
            .iter()
            .any(|other| other.rule().name() == name)
        {
            return Err(refused(name, "its secret was given twice"));
        }
    }
    Ok(())
}

/// What the engine's thread does until it is stopped.
fn run(
    engine: &Arc<Engine>,
    listeners: SandboxListeners,
    is_stopped: oneshot::Receiver<()>,
    told: &mpsc::Sender<Result<Handle, EgressError>>,
) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(LOOKUP_THREADS)
        .build();
    let runtime: Runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = told.send(Err(EgressError::Start(error)));
            return;
        }
    };
    let serving = {
        let _inside = runtime.enter();
        serve(engine, listeners)
    };
    match serving {
        Ok(tasks) => {
            let _ = told.send(Ok(runtime.handle().clone()));
            runtime.block_on(async {
                let _ = is_stopped.await;
                for task in tasks {
                    task.abort();
                }
                engine.end();
                let _ = tokio::time::timeout(LAST_RECORDS, engine.places.all_free()).await;
            });
        }
        Err(error) => {
            let _ = told.send(Err(error));
        }
    }
    // A lookup that hangs must not hold anything up. All sockets end here.
    runtime.shutdown_background();
}

/// Serves all listeners, or none.
fn serve(
    engine: &Arc<Engine>,
    listeners: SandboxListeners,
) -> Result<Vec<tokio::task::JoinHandle<()>>, EgressError> {
    let names_tcp = tcp_listener(listeners.dns_tcp, "names over TCP")?;
    let names_udp = udp_socket(listeners.dns_udp).map_err(|source| EgressError::Listener {
        what: "names over UDP".to_owned(),
        source,
    })?;
    for (port, descriptor) in listeners.tcp {
        let listened = engine.listen(port, descriptor);
        listened.map_err(|source| EgressError::Listener {
            what: format!("port {port}"),
            source,
        })?;
    }
    Ok(vec![
        tokio::spawn(names::serve_udp(Arc::clone(engine), names_udp)),
        tokio::spawn(names::serve_tcp(Arc::clone(engine), names_tcp)),
    ])
}

fn tcp_listener(descriptor: OwnedFd, what: &str) -> Result<TcpListener, EgressError> {
    let listener = || {
        let listener = std::net::TcpListener::from(descriptor);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    listener().map_err(|source| EgressError::Listener {
        what: what.to_owned(),
        source,
    })
}

fn udp_socket(descriptor: OwnedFd) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::from(descriptor);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

impl EgressHandle {
    /// The certificate of this engine's authority, in PEM, for the trust bundles of the sandbox. Its key
    /// is in memory only and ends with the handle.
    pub fn ca_certificate_pem(&self) -> &str {
        &self.ca_certificate_pem
    }

    /// The policy that was started with.
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Allows what a rule says from now on. A person's grant: a narrowing of the repository does not bind
    /// it. Its port must have a listener, or get one now.
    pub fn grant(&self, rule: EgressRule) -> Result<(), EgressError> {
        self.alive()?;
        let late = {
            let _inside = self.runtime.enter();
            if rule.is_of_sandbox() {
                Ok(())
            } else {
                self.engine.listen_late(rule.port())
            }
        };
        late.map_err(|source| EgressError::PortNotServed {
            port: rule.port(),
            source,
        })?;
        self.engine.grant(rule);
        Ok(())
    }

    /// Takes a rule back, whether granted or of the policy, and cuts the open connections that no other
    /// rule allows. Whether the rule was in force.
    pub fn revoke(&self, rule: &EgressRule) -> Result<bool, EgressError> {
        self.alive()?;
        Ok(self.engine.revoke(rule))
    }

    /// The rules that were granted since the start and not taken back.
    pub fn granted(&self) -> Vec<EgressRule> {
        self.engine.rules().granted().to_vec()
    }

    /// Leads connections to that listener, which is of this machine's network, to a port of the server inside.
    pub fn publish(
        &self,
        port: PublishedPort,
        listener: std::net::TcpListener,
    ) -> Result<(), EgressError> {
        self.alive()?;
        let failed = |source| EgressError::Listener {
            what: format!("the published port {port}"),
            source,
        };
        let _inside = self.runtime.enter();
        let at = listener.local_addr().map_err(failed)?;
        let listener = tcp_listener(listener.into(), "a published port")?;
        let (over, is_over) = watch::channel(());
        let engine = Arc::clone(&self.engine);
        tokio::spawn(inward::serve(engine, listener, port.clone(), is_over));
        let publication = Publication {
            port,
            at,
            _over: over,
        };
        self.publications()
            .insert(publication.port.inside(), publication);
        Ok(())
    }

    /// Takes a published port back, and cuts the connections to it. Whether it was published.
    pub fn unpublish(&self, inside: u16) -> bool {
        self.publications().remove(&inside).is_some()
    }

    /// The ports that are published, and where each is reached.
    pub fn published(&self) -> Vec<(PublishedPort, SocketAddr)> {
        let publications = self.publications();
        let publications = publications.values();
        publications.map(|one| (one.port.clone(), one.at)).collect()
    }

    /// Its published servers, for the engines of other sandboxes.
    pub fn servers(&self) -> PublishedServers {
        PublishedServers {
            published: Arc::downgrade(&self.published),
            network: self.engine.network.as_ref().map(Arc::downgrade),
        }
    }

    fn publications(&self) -> MutexGuard<'_, BTreeMap<u16, Publication>> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on names and connections belong to this exec, until it is said again.
    pub fn attribute(&self, exec: Option<String>) {
        self.engine.attribute(exec);
    }

    /// Whether the engine serves. One that ended lets nothing out.
    pub fn is_alive(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    fn alive(&self) -> Result<(), EgressError> {
        if self.is_alive() {
            Ok(())
        } else {
            Err(EgressError::Ended)
        }
    }

    /// Stops serving: closes the listeners, cuts every connection, waits until the last record was told.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for EgressHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for EgressHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressHandle")
            .field("alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}
