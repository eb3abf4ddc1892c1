//! How an engine works.

use std::time::Duration;

use ed25519_dalek::SigningKey;
use lula_protocol::{BudgetAmounts, RunId};

/// What happens when an effect does not fit into the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BudgetPolicy {
    /// The run waits until a person raises the limit or refuses.
    #[default]
    Ask,
    /// The node is told, and decides.
    Refuse,
}

/// Hears of visits: the run, the node, and how often it was left before.
pub type VisitObserver = std::sync::Arc<dyn Fn(&RunId, &str, u32) + Send + Sync>;

/// How an engine works.
#[derive(Clone)]
pub struct EngineOptions {
    /// Name of this worker, for people.
    pub worker: String,
    /// How long a lease lasts.
    pub lease: Duration,
    /// How often it is renewed.
    pub renew: Duration,
    /// A worker that could not renew stops so long before its lease ends.
    pub margin: Duration,
    /// How long a run rests after the world could not be reached.
    pub backoff: Duration,
    /// How often the queue is looked at without a hint.
    pub poll: Duration,
    /// How many runs are driven at once.
    pub concurrency: usize,
    /// What happens when an effect does not fit into the budget.
    pub on_budget: BudgetPolicy,
    /// How long an answer of the world may wait for something it can be committed with. Nothing
    /// that follows from it is done, asked or shown before; a crash meanwhile is as if the answer
    /// had not come. Zero commits each at once.
    pub linger: Duration,
    /// Hears which node of which run is visited now, before the log can tell: for a display of the
    /// moment, not for anything that is to last.
    pub on_visit: Option<VisitObserver>,
    /// Signs the log of each run; without a key logs are not sealed.
    pub seal: Option<SigningKey>,
    /// After how many events a log is sealed before its end.
    pub seal_every: u64,
    /// After how many events a snapshot is taken; 0 for never.
    pub snapshot_every: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            worker: format!("worker-{}", std::process::id()),
            lease: Duration::from_secs(30),
            renew: Duration::from_secs(10),
            margin: Duration::from_secs(5),
            backoff: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            concurrency: 256,
            on_budget: BudgetPolicy::Ask,
            linger: Duration::from_millis(2),
            on_visit: None,
            seal: None,
            seal_every: 256,
            snapshot_every: 64,
        }
    }
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("worker", &self.worker)
            .field("lease", &self.lease)
            .field("seals", &self.seal.is_some())
            .finish_non_exhaustive()
    }
}

/// How a run is started.
#[derive(Debug, Clone)]
pub struct RunStart {
    pub tenant: String,
    /// What it may spend.
    pub limits: BudgetAmounts,
    /// After how many visits it is stopped.
    pub max_visits: u64,
    /// What random numbers are derived from; drawn where none is given.
    pub seed: Option<[u8; 32]>,
    /// The id of the run; made where none is given. Starting the same id twice fails with
    /// [`StoreError::RunExists`](lula_store::StoreError::RunExists), which makes starting a run an
    /// effect that can be repeated.
    pub run: Option<RunId>,
}

impl Default for RunStart {
    fn default() -> Self {
        Self {
            tenant: "local".to_owned(),
            limits: BudgetAmounts::none(),
            max_visits: 1_000,
            seed: None,
            run: None,
        }
    }
}
