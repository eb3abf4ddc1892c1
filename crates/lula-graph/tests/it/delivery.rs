//! The example every test here uses: a small delivery pipeline, the world it acts on, a clock that
//! is set by hand, and a store that dies on command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use lula_graph::{
    CrashEvidence, EffectError, EffectOrder, EffectOutput, EffectRequest, EffectTrouble,
    EffectWorld, EngineOptions, Graph, GraphEngine, NodeContext, NodeExit, NodeVisitFuture,
    RunEndReport, TransitionTable, VisitStop, WallClock, async_trait, labels,
};
use lula_protocol::payload::BlobRef;
use lula_protocol::{
    ApprovalId, BudgetAmounts, BudgetDimension, Digest, RunExit, RunId, RunSignal,
};
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    ApprovalRow, ApprovalState, Durability, EffectRow, EffectState, LeaseClaim, LedgerRow,
    LogAppend, LogHead, LogRecord, NewRun, RunFilter, RunLease, RunRow, RunStore, SqliteStore,
    StateSnapshot, StoreError, StoreHint, StoreResult,
};
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use serde_json::json;

labels! {
    pub(crate) enum Node {
        Plan = "plan", Edit = "edit", Review = "review", Commit = "commit", Push = "push",
        Report = "report",
    }
}

labels! {
    pub(crate) enum Way { Ok = "ok", Again = "again", Poor = "poor" }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) rounds: u32,
    /// Bytes of noise in each event, to have large values too.
    pub(crate) weight: usize,
    /// What one model call may cost.
    pub(crate) price: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) rounds: u32,
    pub(crate) weight: usize,
    pub(crate) price: u64,
    pub(crate) done: u32,
    pub(crate) notes: Vec<String>,
    pub(crate) style: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    Noted(String),
    Edited { round: u32, noise: String },
    Styled(String),
}

/// Plans, edits in rounds, commits, pushes, reports.
pub(crate) struct Delivery;

#[async_trait]
impl Graph for Delivery {
    type Node = Node;
    type Outcome = Way;
    type Input = Job;
    type State = Work;
    type Event = Change;
    const NAME: &'static str = "delivery";
    const VERSION: u32 = 1;

    fn outcomes(&self, node: Node) -> &'static [Way] {
        match node {
            Node::Review => &[Way::Ok, Way::Again],
            Node::Plan => &[Way::Ok, Way::Poor],
            _ => &[Way::Ok],
        }
    }

    fn table(&self) -> TransitionTable<Self> {
        TransitionTable::starting_at(Node::Plan)
            .on(Node::Plan, Way::Ok, Node::Edit)
            .on(Node::Plan, Way::Poor, Node::Report)
            .on(Node::Edit, Way::Ok, Node::Review)
            .on(Node::Review, Way::Again, Node::Edit)
            .on(Node::Review, Way::Ok, Node::Commit)
            .on(Node::Commit, Way::Ok, Node::Push)
            .on(Node::Push, Way::Ok, Node::Report)
            .done(Node::Report, Way::Ok)
    }

    fn begin(&self, job: Job) -> Work {
        Work {
            rounds: job.rounds,
            weight: job.weight,
            price: job.price,
            style: "plain".to_owned(),
            ..Work::default()
        }
    }

    fn apply(&self, work: &mut Work, change: &Change) {
        match change {
            Change::Noted(note) => work.notes.push(note.clone()),
            Change::Edited { round, noise } => {
                work.done += 1;
                work.notes.push(format!("round {round}: {}", noise.len()));
            }
            Change::Styled(style) => style.clone_into(&mut work.style),
        }
    }

    async fn visit(
        &self,
        node: Node,
        work: &Work,
        ctx: &mut NodeContext<'_>,
    ) -> NodeVisitFuture<Self> {
        match node {
            Node::Plan => {
                let ask = json!({"style": work.style});
                let cost = BudgetAmounts::none().with(BudgetDimension::MicroUsd, work.price);
                // A call that was lost for good is made anew, as another call.
                for _ in 0..5 {
                    let call = EffectRequest::model("plan", &ask).reserving(cost.clone());
                    match ctx.effect::<String>(call).await {
                        Ok(plan) => return Ok(NodeExit::by(Way::Ok).with(Change::Noted(plan))),
                        Err(VisitStop::Effect(EffectError::Failed { .. })) => {}
                        Err(VisitStop::Effect(error @ EffectError::OverBudget { .. })) => {
                            return Ok(
                                NodeExit::by(Way::Poor).with(Change::Noted(error.to_string()))
                            );
                        }
                        Err(stop) => return Err(stop),
                    }
                }
                Err(VisitStop::Halt("no plan could be made".to_owned()))
            }
            Node::Edit => {
                let seen: String = ctx.effect(EffectRequest::read("look", &work.done)).await?;
                let dice = ctx.rng().next_u32();
                let line = json!({"line": format!("{seen}/{dice}")});
                let _: String = ctx.effect(EffectRequest::tree("edit", &line)).await?;
                let _: String = ctx.effect(EffectRequest::tree("format", &line)).await?;
                let noise = "n".repeat(work.weight);
                let round = work.done;
                Ok(NodeExit::by(Way::Ok).with(Change::Edited { round, noise }))
            }
            Node::Review => {
                let way = if work.done < work.rounds {
                    Way::Again
                } else {
                    Way::Ok
                };
                Ok(NodeExit::by(way))
            }
            Node::Commit => {
                let _: u64 = ctx
                    .effect(EffectRequest::cas("commit", &json!({"onto": 0})))
                    .await?;
                Ok(NodeExit::by(Way::Ok))
            }
            Node::Push => {
                let at = ctx.now().await?;
                assert!(at > 0);
                let _: serde_json::Value = ctx
                    .effect(EffectRequest::external("push", &work.done))
                    .await?;
                Ok(NodeExit::by(Way::Ok).with(Change::Noted("pushed".to_owned())))
            }
            Node::Report => Ok(NodeExit::by(Way::Ok)),
        }
    }

    fn report(&self, work: &Work) -> RunEndReport {
        let pushed = work.notes.iter().any(|note| note == "pushed");
        RunEndReport {
            exit: if pushed {
                RunExit::Verified
            } else {
                RunExit::Budget
            },
            summary: format!("{} rounds", work.done),
        }
    }

    fn set(&self, _: &Work, key: &str, value: &str) -> Result<Change, String> {
        match key {
            "style" => Ok(Change::Styled(value.to_owned())),
            _ => Err(format!("there is no {key:?} to set; there is style")),
        }
    }
}

/// Per run: the files, what is committed, and what was done how often.
#[derive(Debug, Default, Clone)]
pub(crate) struct Site {
    pub(crate) tree: Vec<String>,
    pub(crate) trees: BTreeMap<Digest, Vec<String>>,
    pub(crate) commit: u64,
    pub(crate) pushes: BTreeMap<String, u32>,
    pub(crate) model_calls: u32,
    pub(crate) epoch: u64,
}

/// The world: it survives the death of engines.
#[derive(Default)]
pub(crate) struct Yard {
    sites: Mutex<BTreeMap<RunId, Site>>,
    /// Effects whose result got lost although they were done.
    pub(crate) lose: Mutex<BTreeSet<&'static str>>,
    /// Whether the yard remembers what it did.
    pub(crate) forgetful: std::sync::atomic::AtomicBool,
}

impl Yard {
    fn sites(&self) -> MutexGuard<'_, BTreeMap<RunId, Site>> {
        self.sites.lock().unwrap()
    }

    pub(crate) fn site(&self, run: &RunId) -> Site {
        self.sites().get(run).cloned().unwrap_or_default()
    }

    pub(crate) fn pushes(&self, run: &RunId) -> u32 {
        self.site(run).pushes.values().sum()
    }
}

#[async_trait]
impl EffectWorld for Yard {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let mut sites = self.sites();
        let site = sites.entry(order.run.clone()).or_default();
        if order.epoch < site.epoch {
            return Err(EffectTrouble::Unreachable(
                "an owner of the past".to_owned(),
            ));
        }
        site.epoch = order.epoch;
        let value = match order.name.as_str() {
            "plan" => {
                site.model_calls += 1;
                json!("a plan")
            }
            "look" => json!(format!("{} lines", site.tree.len())),
            "edit" | "format" => {
                let line = order.request["line"].as_str().unwrap_or_default();
                site.tree.push(format!("{} {line}", order.name));
                json!("edited")
            }
            "commit" => {
                site.commit += 1;
                json!(site.commit)
            }
            "push" => {
                *site.pushes.entry(order.effect.to_string()).or_default() += 1;
                json!({"pushed": order.request})
            }
            other => {
                return Err(EffectTrouble::Failed {
                    message: format!("nobody can {other}"),
                    spent: BudgetAmounts::none(),
                });
            }
        };
        if self.lose.lock().unwrap().remove(order.name.as_str()) {
            return Err(EffectTrouble::Lost("the line went dead".to_owned()));
        }
        let spent = match order.name.as_str() {
            "plan" => BudgetAmounts::none().with(BudgetDimension::MicroUsd, 7),
            _ => BudgetAmounts::none(),
        };
        Ok(EffectOutput { value, spent })
    }

    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        let mut sites = self.sites();
        let site = sites.entry(order.run.clone()).or_default();
        site.epoch = site.epoch.max(order.epoch);
        if self.forgetful.load(Ordering::Relaxed) {
            return CrashEvidence::Unknown("the yard keeps no book".to_owned());
        }
        let done = match order.name.as_str() {
            "commit" if site.commit == 1 => Some(json!(1)),
            "push" if site.pushes.contains_key(order.effect.as_str()) => {
                Some(json!({"pushed": order.request}))
            }
            _ => None,
        };
        done.map_or(CrashEvidence::NotDone, |value| {
            CrashEvidence::Done(EffectOutput::free(value))
        })
    }

    async fn tree(&self, order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        let mut sites = self.sites();
        let site = sites.entry(order.run.clone()).or_default();
        let tree = site.tree.clone();
        let digest = Digest::of_bytes(tree.join("\n").as_bytes());
        site.trees.insert(digest, tree);
        Ok(Some(digest))
    }

    async fn restore(
        &self,
        order: &EffectOrder,
        tree: Option<Digest>,
    ) -> Result<(), EffectTrouble> {
        let mut sites = self.sites();
        let site = sites.entry(order.run.clone()).or_default();
        let known = tree.and_then(|tree| site.trees.get(&tree).cloned());
        site.tree = known.ok_or_else(|| EffectTrouble::Unreachable("no such tree".to_owned()))?;
        Ok(())
    }
}

/// A clock that is set by hand.
pub(crate) struct HandClock(AtomicU64);

impl HandClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_700_000_000_000)))
    }

    pub(crate) fn forward(&self, by: Duration) {
        self.0
            .fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn back(&self, by: Duration) {
        self.0
            .fetch_sub(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl WallClock for HandClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// When a store dies: before or after its n-th append reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Before(u32),
    After(u32),
    Never,
}

/// What is waited for before each append.
pub(crate) type AppendDelay =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A store whose process dies. From then on it answers nothing.
pub(crate) struct MortalStore {
    store: Arc<dyn RunStore>,
    state: Mutex<(Death, u32, bool)>,
    slowly: OnceLock<AppendDelay>,
    /// Takes the whole process along.
    really: bool,
}

impl MortalStore {
    pub(crate) fn new(store: Arc<dyn RunStore>, death: Death) -> Arc<Self> {
        Arc::new(Self {
            store,
            state: Mutex::new((death, 0, false)),
            slowly: OnceLock::new(),
            really: false,
        })
    }

    /// The same, and the process really dies.
    pub(crate) fn really(store: Arc<dyn RunStore>, death: Death) -> Arc<Self> {
        Arc::new(Self {
            store,
            state: Mutex::new((death, 0, false)),
            slowly: OnceLock::new(),
            really: true,
        })
    }

    fn die(&self, state: &mut (Death, u32, bool)) -> StoreError {
        if self.really {
            std::process::abort();
        }
        state.2 = true;
        Self::dead()
    }

    /// Has every append wait for something first.
    pub(crate) fn take_time(&self, slowly: AppendDelay) {
        assert!(self.slowly.set(slowly).is_ok(), "once");
    }

    /// How many appends reached it.
    pub(crate) fn appends(&self) -> u32 {
        self.state.lock().unwrap().1
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().unwrap().2
    }

    fn dead() -> StoreError {
        StoreError::Backend {
            backend: "mortal",
            message: "the process is dead".to_owned(),
        }
    }

    fn alive(&self) -> StoreResult<&dyn RunStore> {
        if self.is_dead() {
            Err(Self::dead())
        } else {
            Ok(&*self.store)
        }
    }
}

#[async_trait]
impl RunStore for MortalStore {
    fn backend(&self) -> &'static str {
        "mortal"
    }

    async fn append(&self, append: LogAppend) -> StoreResult<LogHead> {
        let number = {
            let mut state = self.state.lock().unwrap();
            if state.2 {
                return Err(Self::dead());
            }
            let number = state.1;
            state.1 += 1;
            if state.0 == Death::Before(number) {
                return Err(self.die(&mut state));
            }
            number
        };
        if let Some(slowly) = self.slowly.get() {
            slowly().await;
        }
        let head = self.store.append(append).await;
        let mut state = self.state.lock().unwrap();
        if state.0 == Death::After(number) {
            return Err(self.die(&mut state));
        }
        head
    }

    async fn create(&self, run: NewRun) -> StoreResult<()> {
        self.alive()?.create(run).await
    }
    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>> {
        self.alive()?.read(run, from, limit).await
    }
    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        self.alive()?.run(run).await
    }
    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        self.alive()?.runs(filter).await
    }
    async fn claim(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
    ) -> StoreResult<Vec<RunLease>> {
        self.alive()?.claim(graph, claim, limit).await
    }
    async fn claim_run(&self, run: &RunId, claim: &LeaseClaim) -> StoreResult<Option<RunLease>> {
        self.alive()?.claim_run(run, claim).await
    }
    async fn renew(&self, lease: &RunLease, until_ms: u64) -> StoreResult<bool> {
        self.alive()?.renew(lease, until_ms).await
    }
    async fn send(&self, run: &RunId, signal: &RunSignal) -> StoreResult<u64> {
        self.alive()?.send(run, signal).await
    }
    async fn signals(&self, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
        self.alive()?.signals(run).await
    }
    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>> {
        self.alive()?.blob(digest).await
    }
    async fn condemn_blobs(&self, blobs: &[BlobRef]) -> StoreResult<()> {
        self.alive()?.condemn_blobs(blobs).await
    }
    async fn drop_blobs(&self, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
        self.alive()?.drop_blobs(blobs).await
    }
    async fn effects(&self, run: &RunId) -> StoreResult<Vec<EffectRow>> {
        self.alive()?.effects(run).await
    }
    async fn effects_in(&self, state: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>> {
        self.alive()?.effects_in(state).await
    }
    async fn approval(&self, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
        self.alive()?.approval(approval).await
    }
    async fn approvals_in(&self, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
        self.alive()?.approvals_in(state).await
    }
    async fn ledger(&self, run: &RunId) -> StoreResult<Vec<LedgerRow>> {
        self.alive()?.ledger(run).await
    }
    async fn snapshot(&self, run: &RunId) -> StoreResult<Option<StateSnapshot>> {
        self.alive()?.snapshot(run).await
    }
    async fn drop_snapshots(&self, run: &RunId) -> StoreResult<()> {
        self.alive()?.drop_snapshots(run).await
    }
    fn watch(&self) -> tokio::sync::broadcast::Receiver<StoreHint> {
        self.store.watch()
    }
    fn watch_signals(&self) -> tokio::sync::broadcast::Receiver<StoreHint> {
        self.store.watch_signals()
    }
}

/// A database in a directory.
pub(crate) fn sqlite(directory: &Path) -> Arc<dyn RunStore> {
    let options = SqliteOptions {
        durability: Durability::ProcessCrash,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(directory.join("runs.db"), options).unwrap())
}

pub(crate) fn options() -> EngineOptions {
    EngineOptions {
        worker: "tester".to_owned(),
        ..EngineOptions::default()
    }
}

/// An engine for a graph over a store and a world.
pub(crate) fn engine<G: Graph>(
    graph: G,
    store: Arc<dyn RunStore>,
    world: Arc<dyn EffectWorld>,
    clock: &Arc<HandClock>,
) -> GraphEngine<G> {
    engine_with(graph, store, world, clock, options())
}

pub(crate) fn engine_with<G: Graph>(
    graph: G,
    store: Arc<dyn RunStore>,
    world: Arc<dyn EffectWorld>,
    clock: &Arc<HandClock>,
    options: EngineOptions,
) -> GraphEngine<G> {
    let clock: Arc<dyn WallClock> = clock.clone();
    GraphEngine::with_clock(graph, store, world, options, clock).unwrap()
}

/// Long enough for any lease to end.
pub(crate) const LEASE: Duration = Duration::from_mins(1);
