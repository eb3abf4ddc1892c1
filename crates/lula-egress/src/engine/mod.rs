//! What all connections of one sandbox share: rules in force, names, limits, records, and the open
//! connections, so that a revoked grant can cut them.

pub(crate) mod accept;
pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod inward;
pub(crate) mod meter;
mod rate;
mod records;
mod relay;
pub(crate) mod resolve;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use crate::intercept::{Broker, Interception};
use crate::names::Pins;
use crate::policy::{ConnectionRuling, Rules};
use crate::record::EgressVerdict;
use crate::{ConnectionRecord, DomainName, EgressLimits, EgressRule, Outside, SandboxNetwork};
use accept::Places;
use meter::Traffic;
use rate::Rate;
use resolve::Resolutions;

/// Lookups of names outside at once; each occupies a thread.
const MOST_LOOKUPS: usize = 16;

/// Locks are held for single steps that do not panic; one that was poisoned all the same is still whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Recorder = Box<dyn Fn(ConnectionRecord) + Send + Sync>;

/// The state of one engine.
pub(crate) struct Engine {
    rules: RwLock<Rules>,
    limits: EgressLimits,
    pins: Mutex<Pins>,
    outside: Outside,
    resolutions: Mutex<Resolutions>,
    lookups: Semaphore,
    pub(crate) names_rate: Rate,
    connects_rate: Rate,
    /// One record of overload in a second is enough.
    overload_told: Rate,
    traffic: Arc<Traffic>,
    open: Mutex<HashMap<u64, OpenConnection>>,
    numbers: AtomicU64,
    ending: AtomicBool,
    recorder: Recorder,
    names_told: Mutex<HashSet<(String, EgressVerdict, Option<String>)>>,
    attribution: Mutex<Option<String>>,
    ports: Mutex<BTreeSet<u16>>,
    pub(crate) places: Places,
    pub(crate) network: Option<Arc<dyn SandboxNetwork>>,
    pub(crate) interception: Interception,
    pub(crate) broker: Broker,
}

/// A connection as a revoked grant finds it.
struct OpenConnection {
    name: DomainName,
    port: u16,
    ruling: ConnectionRuling,
    cut: oneshot::Sender<()>,
}

impl Engine {
    pub(crate) fn new(
        rules: Rules,
        outside: Outside,
        interception: Interception,
        broker: Broker,
        recorder: Recorder,
        network: Option<Arc<dyn SandboxNetwork>>,
    ) -> Self {
        let limits = rules.policy().limits.clone();
        Self {
            pins: Mutex::default(),
            resolutions: Mutex::default(),
            lookups: Semaphore::new(MOST_LOOKUPS),
            names_rate: Rate::per_second(limits.names_per_second),
            connects_rate: Rate::per_second(limits.connects_per_second),
            overload_told: Rate::per_second(1),
            traffic: Arc::new(Traffic::new(limits.bytes_up, limits.bytes_down)),
            open: Mutex::default(),
            numbers: AtomicU64::new(1),
            ending: AtomicBool::new(false),
            names_told: Mutex::default(),
            attribution: Mutex::default(),
            ports: Mutex::default(),
            places: Places::new(limits.connections),
            network,
            rules: RwLock::new(rules),
            limits,
            outside,
            recorder,
            interception,
            broker,
        }
    }

    pub(crate) fn rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pins(&self) -> MutexGuard<'_, Pins> {
        locked(&self.pins)
    }

    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.header_timeout_ms)
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.idle_timeout_ms)
    }

    pub(crate) fn attribute(&self, exec: Option<String>) {
        *locked(&self.attribution) = exec;
    }

    fn attribution(&self) -> Option<String> {
        locked(&self.attribution).clone()
    }

    /// Serves a port of the sandbox on that listener. Only from within the engine's runtime.
    pub(crate) fn listen(self: &Arc<Self>, port: u16, listener: OwnedFd) -> io::Result<()> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        tokio::spawn(accept::serve(Arc::clone(self), listener));
        locked(&self.ports).insert(port);
        Ok(())
    }

    /// Serves a port that no listener was made for at the start, where the sandbox's network is at hand and no
    /// program inside has the port. Only from within the engine's runtime, and not on its thread: the
    /// listener comes from another process.
    pub(crate) fn listen_late(self: &Arc<Self>, port: u16) -> io::Result<()> {
        if locked(&self.ports).contains(&port) {
            return Ok(());
        }
        let network = self.network.as_ref();
        let network = network.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        self.listen(port, network.listener(port)?)
    }

    pub(crate) fn grant(&self, rule: EgressRule) {
        self.rules
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .grant(rule);
        // What was refused before may be allowed now, and is worth telling again.
        locked(&self.names_told).clear();
    }

    /// Takes a rule back and cuts what only it allowed.
    pub(crate) fn revoke(&self, rule: &EgressRule) -> bool {
        let was = self
            .rules
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .revoke(rule);
        locked(&self.names_told).clear();
        let rules = self.rules();
        let mut open = locked(&self.open);
        let fallen: Vec<u64> = open
            .iter()
            .filter(|(_, one)| !rules.still_allows(&one.name, one.port, &one.ruling))
            .map(|(number, _)| *number)
            .collect();
        for number in fallen {
            if let Some(one) = open.remove(&number) {
                let _ = one.cut.send(());
            }
        }
        was
    }

    /// Admits no connection any more, and cuts those that are open.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        for (_, one) in locked(&self.open).drain() {
            let _ = one.cut.send(());
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether connections to a name go through a proxy, which resolves it.
    pub(crate) fn is_proxied(&self, name: &DomainName) -> bool {
        let proxy = &self.outside.proxy;
        !name.is_of_sandbox()
            && (proxy.for_connection(name).is_some() || proxy.for_http(name).is_some())
    }

    /// Notes an open connection; what resolves when it is to be cut.
    fn opened(
        &self,
        number: u64,
        name: &DomainName,
        port: u16,
        ruling: &ConnectionRuling,
    ) -> oneshot::Receiver<()> {
        let (cut, is_cut) = oneshot::channel();
        let one = OpenConnection {
            name: name.clone(),
            port,
            ruling: ruling.clone(),
            cut,
        };
        locked(&self.open).insert(number, one);
        is_cut
    }

    fn closed(&self, number: u64) {
        locked(&self.open).remove(&number);
    }
}
