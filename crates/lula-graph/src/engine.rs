//! The engine: starts runs, claims them, drives them, and keeps its leases.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::{EventBody, RunId, RunSignal};
use lula_store::{
    Blob, LeaseClaim, LedgerRow, LogHead, LogRecord, NewRun, RunLease, RunStore, StoreError,
    StoreHint,
};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::{SystemWallClock, WallClock};
use crate::drive::{self, RestReason};
use crate::error::EngineError;
use crate::graph::Graph;
use crate::load::{self, NextRunStep, RunState};
use crate::options::{EngineOptions, RunStart};
use crate::seal::to_hex;
use crate::table::TransitionTable;
use crate::world::EffectWorld;

/// A run this engine is driving.
#[derive(Debug)]
pub(crate) struct DrivenRun {
    /// Set when the run is to stop.
    pub(crate) cancel: CancellationToken,
    /// Set when the run is to be put down before it does anything else.
    pub(crate) pause: CancellationToken,
    /// Set when something was sent to the run.
    pub(crate) signalled: AtomicBool,
    /// Set when the run is in the store.
    born: AtomicBool,
    poke: Notify,
    deadline: Mutex<Instant>,
}

impl DrivenRun {
    /// A run that is yet to be created has been sent nothing.
    pub(crate) fn new(deadline: Instant, born: bool) -> Self {
        Self {
            cancel: CancellationToken::new(),
            pause: CancellationToken::new(),
            signalled: AtomicBool::new(born),
            born: AtomicBool::new(born),
            poke: Notify::new(),
            deadline: Mutex::new(deadline),
        }
    }

    /// When the owner has to stop by its own clock, which does not jump.
    pub(crate) fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run is in the store.
    pub(crate) fn bear(&self) {
        self.born.store(true, Ordering::Release);
    }

    fn extend(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

pub(crate) struct EngineInner<G: Graph> {
    pub(crate) graph: G,
    pub(crate) table: TransitionTable<G>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) world: Arc<dyn EffectWorld>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) options: Arc<EngineOptions>,
    live: Mutex<HashMap<RunId, Arc<DrivenRun>>>,
    listening: AtomicBool,
}

/// Runs a graph over a store.
pub struct GraphEngine<G: Graph> {
    pub(crate) inner: Arc<EngineInner<G>>,
}

impl<G: Graph> Clone for GraphEngine<G> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<G: Graph> GraphEngine<G> {
    /// An engine for a graph. Refuses a graph whose transition table is not complete.
    pub fn new(
        graph: G,
        store: Arc<dyn RunStore>,
        world: Arc<dyn EffectWorld>,
        options: EngineOptions,
    ) -> Result<Self, EngineError> {
        Self::with_clock(graph, store, world, options, Arc::new(SystemWallClock))
    }

    /// The same with a clock of one's own.
    pub fn with_clock(
        graph: G,
        store: Arc<dyn RunStore>,
        world: Arc<dyn EffectWorld>,
        options: EngineOptions,
        clock: Arc<dyn WallClock>,
    ) -> Result<Self, EngineError> {
        let table = graph.table();
        table.check(&graph).map_err(|source| EngineError::Table {
            graph: G::NAME,
            source,
        })?;
        Ok(Self {
            inner: Arc::new(EngineInner {
                graph,
                table,
                store,
                world,
                clock,
                options: Arc::new(options),
                live: Mutex::new(HashMap::new()),
                listening: AtomicBool::new(false),
            }),
        })
    }

    /// The store that the engine writes runs to.
    pub fn store(&self) -> &Arc<dyn RunStore> {
        &self.inner.store
    }

    /// The graph whose runs the engine drives.
    pub fn graph(&self) -> &G {
        &self.inner.graph
    }

    /// Puts a run into the queue.
    pub async fn start(&self, input: &G::Input, start: &RunStart) -> Result<RunId, EngineError> {
        let (new, _) = self.inner.new_run(input, start, None)?;
        let run = new.run.clone();
        self.inner.store.create(new).await?;
        Ok(run)
    }

    /// Starts a run and drives it until it rests. It is in the store before anything is asked of
    /// the world.
    pub async fn run(
        &self,
        input: &G::Input,
        start: &RunStart,
    ) -> Result<(RunId, RestReason), EngineError> {
        let (new, lease) = self.inner.new_run(input, start, Some(self.inner.claim()))?;
        let bodies = new.records.first().map(LogRecord::read_body).transpose()?;
        let mut blobs = load::Blobs::new();
        for blob in &new.blobs {
            blobs.insert(blob.digest, blob.bytes.clone());
        }
        let at_ms = new.records.first().map_or(0, |record| record.at_ms);
        let run = new.run.clone();
        let started = match bodies {
            Some(body) => load::begin(&self.inner.graph, &run, &body, &blobs)?,
            None => return Err(StoreError::NoRun(run).into()),
        };
        let loaded = load::LoadedRun {
            run: started,
            head: lease.head,
            last_at: at_ms,
        };
        let rested = self.inner.drive(lease, Some((new, loaded))).await?;
        Ok((run, rested))
    }

    /// Claims one run if it is due and drives it until it rests. `None` where it is not due:
    /// another worker has it, it waits, or it is over.
    pub async fn resume(&self, run: &RunId) -> Result<Option<RestReason>, EngineError> {
        let claim = self.inner.claim();
        match self.inner.store.claim_run(run, &claim).await? {
            None => Ok(None),
            Some(lease) => self.inner.drive(lease, None).await.map(Some),
        }
    }

    /// Claims every run that is due and drives each until it rests. Returns what became of them.
    pub async fn sweep(
        &self,
    ) -> Result<Vec<(RunId, Result<RestReason, EngineError>)>, EngineError> {
        let limit = u32::try_from(self.inner.options.concurrency).unwrap_or(u32::MAX);
        let mut rested = Vec::new();
        loop {
            let claim = self.inner.claim();
            let leases = self.inner.store.claim(G::NAME, &claim, limit).await?;
            if leases.is_empty() {
                return Ok(rested);
            }
            let mut tasks = JoinSet::new();
            for lease in leases {
                let inner = Arc::clone(&self.inner);
                tasks.spawn(async move { (lease.run.clone(), inner.drive(lease, None).await) });
            }
            while let Some(done) = tasks.join_next().await {
                rested.extend(done.ok());
            }
        }
    }

    /// Works on the queue until told to stop; then the runs under way are left where their logs
    /// are, and the next worker goes on with them.
    pub async fn work(&self, stop: CancellationToken) -> Result<(), EngineError> {
        let mut hints = self.inner.store.watch_signals();
        let mut tasks: JoinSet<()> = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let room = self.inner.options.concurrency.saturating_sub(tasks.len());
            let limit = u32::try_from(room).unwrap_or(u32::MAX);
            if limit > 0 {
                // A failure is not the end of a worker: the next round tries again.
                let claimed = self
                    .inner
                    .store
                    .claim(G::NAME, &self.inner.claim(), limit)
                    .await;
                for lease in claimed.unwrap_or_default() {
                    let inner = Arc::clone(&self.inner);
                    tasks.spawn(async move { drop(inner.drive(lease, None).await) });
                }
            }
            tokio::select! {
                () = stop.cancelled() => {
                    tasks.shutdown().await;
                    return Ok(());
                }
                () = tokio::time::sleep(self.inner.options.poll) => {}
                () = until_news(&mut hints) => {}
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            }
        }
    }

    /// Puts a run down that this engine drives: what is under way is finished, nothing else is
    /// begun, and the next worker goes on with it.
    pub fn pause(&self, run: &RunId) {
        let live = self.inner.live.lock();
        let live = live.unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = live.get(run) {
            live.pause.cancel();
        }
    }

    /// Something was sent to a run that this engine drives: it is looked for before its next step. A
    /// sender in another process gives no hint of its own at once.
    pub fn notice(&self, run: &RunId) {
        let live = self.inner.live.lock();
        let live = live.unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = live.get(run) {
            live.signalled.store(true, Ordering::Release);
            live.poke.notify_one();
        }
    }

    /// Sends something to a run.
    pub async fn send(&self, run: &RunId, signal: &RunSignal) -> Result<(), EngineError> {
        self.inner.store.send(run, signal).await?;
        Ok(())
    }

    /// A run as it was after its first `at` events, or as it is.
    pub async fn show(
        &self,
        run: &RunId,
        at: Option<u64>,
    ) -> Result<RunState<G::State>, EngineError> {
        let loaded = load::load(&self.inner.graph, &*self.inner.store, run, at).await?;
        Ok(loaded.run)
    }

    /// What a run would do next.
    pub fn next(&self, run: &RunState<G::State>) -> NextRunStep<G::Node> {
        load::next(
            &self.inner.graph,
            &self.inner.table,
            &run.progress,
            &run.state,
        )
    }
}

async fn until_news(hints: &mut tokio::sync::broadcast::Receiver<StoreHint>) {
    loop {
        match hints.recv().await {
            // An owner's own appends say nothing about the queue.
            Ok(StoreHint::Run(_)) => {}
            Ok(StoreHint::Signal(_) | StoreHint::Any) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], EngineError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Random(error.to_string()))?;
    Ok(bytes)
}

impl<G: Graph> EngineInner<G> {
    pub(crate) fn claim(&self) -> LeaseClaim {
        LeaseClaim {
            worker: self.options.worker.clone(),
            now_ms: self.clock.now_ms(),
            ttl_ms: u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn new_run(
        &self,
        input: &G::Input,
        start: &RunStart,
        claim: Option<LeaseClaim>,
    ) -> Result<(NewRun, RunLease), EngineError> {
        let now_ms = self.clock.now_ms();
        let run = match &start.run {
            Some(run) => run.clone(),
            None => RunId::from_parts(now_ms, random()?),
        };
        let packed = lula_protocol::EventPayload::pack(input)
            .map_err(|error| EngineError::payload(&run, 0, error))?;
        let seed = start.seed.map_or_else(random, Ok)?;
        let body = EventBody::RunStarted {
            graph: G::NAME.to_owned(),
            graph_version: G::VERSION,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            seed: to_hex(&seed),
            limits: start.limits.clone(),
            max_visits: start.max_visits,
            input: packed.payload,
            parent: None,
        };
        let epoch = u64::from(claim.is_some());
        let (records, head) =
            LogRecord::continue_log(&run, LogHead::empty(), epoch, now_ms, &[body])?;
        let blobs = packed.blob.map(|(digest, bytes)| Blob { digest, bytes });
        let new = NewRun {
            run: run.clone(),
            tenant: start.tenant.clone(),
            graph: G::NAME.to_owned(),
            graph_version: G::VERSION,
            parent: None,
            records,
            blobs: blobs.into_iter().collect(),
            ledger: LedgerRow::fresh(&start.limits),
            epoch,
            claim,
        };
        Ok((new, RunLease { run, epoch, head }))
    }

    /// Drives a claimed run, or one that is yet to be created, until it rests, keeping the lease
    /// meanwhile.
    pub(crate) async fn drive(
        self: &Arc<Self>,
        lease: RunLease,
        newborn: Option<(NewRun, load::LoadedRun<G::State>)>,
    ) -> Result<RestReason, EngineError> {
        self.listen();
        let live = Arc::new(DrivenRun::new(
            Instant::now() + self.patience(),
            newborn.is_none(),
        ));
        let registered = LiveRunGuard::new(self, &lease.run, &live);
        let work = drive::drive(self, lease.clone(), newborn, Arc::clone(&live));
        let rested = tokio::select! {
            biased;
            rested = work => rested,
            lost = self.keep_lease(&lease, &live) => Err(lost),
        };
        drop(registered);
        rested
    }

    /// How long an owner may go on after the last renewal.
    fn patience(&self) -> Duration {
        self.options.lease.saturating_sub(self.options.margin)
    }

    /// Renews the lease and listens for signals. Returns only when the lease is lost.
    async fn keep_lease(&self, lease: &RunLease, live: &DrivenRun) -> EngineError {
        let mut renew_at = Instant::now() + self.options.renew;
        loop {
            let renewing = tokio::select! {
                () = tokio::time::sleep_until(renew_at.into()) => true,
                () = live.poke.notified() => false,
            };
            let signals = if renewing && !live.born.load(Ordering::Acquire) {
                // No worker can take what is not there; its lease begins when it is created.
                live.extend(Instant::now() + self.patience());
                renew_at = Instant::now() + self.options.renew;
                false
            } else if renewing {
                let asked = Instant::now();
                let until = self.claim().until_ms();
                match self.store.renew(lease, until).await {
                    Ok(signals) => {
                        live.extend(asked + self.patience());
                        renew_at = asked + self.options.renew;
                        signals
                    }
                    Err(StoreError::Fenced { run, epoch }) => {
                        return StoreError::Fenced { run, epoch }.into();
                    }
                    Err(error) if Instant::now() >= live.deadline() => return error.into(),
                    Err(_) => {
                        renew_at = Instant::now() + self.options.renew / 10;
                        false
                    }
                }
            } else {
                true
            };
            if signals && let Ok(waiting) = self.store.signals(&lease.run).await {
                live.signalled.store(true, Ordering::Release);
                let cancel =
                    |(_, signal): &(u64, RunSignal)| matches!(signal, RunSignal::Cancel { .. });
                if waiting.iter().any(cancel) {
                    live.cancel.cancel();
                }
            }
        }
    }

    /// Passes hints about signals on to the runs they are for.
    fn listen(self: &Arc<Self>) {
        if self.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut hints = self.store.watch_signals();
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let hint = hints.recv().await;
                let Some(inner) = weak.upgrade() else { return };
                let live = inner.live.lock().unwrap_or_else(PoisonError::into_inner);
                match hint {
                    Ok(StoreHint::Run(_)) => {}
                    Ok(StoreHint::Signal(run)) => {
                        if let Some(live) = live.get(&run) {
                            live.poke.notify_one();
                        }
                    }
                    Ok(StoreHint::Any) | Err(RecvError::Lagged(_)) => {
                        live.values().for_each(|live| live.poke.notify_one());
                    }
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }
}

/// A run in the list of live ones, for as long as this value lives.
struct LiveRunGuard<'a, G: Graph> {
    inner: &'a EngineInner<G>,
    run: RunId,
}

impl<'a, G: Graph> LiveRunGuard<'a, G> {
    fn new(inner: &'a EngineInner<G>, run: &RunId, live: &Arc<DrivenRun>) -> Self {
        let mut list = inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        list.insert(run.clone(), Arc::clone(live));
        drop(list);
        Self {
            inner,
            run: run.clone(),
        }
    }
}

impl<G: Graph> Drop for LiveRunGuard<'_, G> {
    fn drop(&mut self) {
        let mut list = self
            .inner
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        list.remove(&self.run);
    }
}
