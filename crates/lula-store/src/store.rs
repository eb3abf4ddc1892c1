//! The contract every backend keeps. The conformance kit is its other half.

use async_trait::async_trait;
use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, Digest, RunId, RunSignal};
use tokio::sync::broadcast;

use crate::append::{
    ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow, LogAppend, StateSnapshot,
};
use crate::error::StoreResult;
use crate::record::{LogHead, LogRecord};
use crate::run::{LeaseClaim, NewRun, RunFilter, RunLease, RunRow};

/// Something may have happened. Hints can be lost and repeated; a worker that uses them also looks
/// by itself now and then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreHint {
    /// To the log of this run.
    Run(RunId),
    /// Something was sent to this run.
    Signal(RunId),
    /// To some run, which one is not known.
    Any,
}

/// Where runs are kept.
///
/// When a call returns `Ok`, its effect is as durable as the store was configured to be. When it
/// returns an error of the backend, it may or may not have happened: read before going on.
#[async_trait]
pub trait RunStore: Send + Sync + 'static {
    /// Name of the backend.
    fn backend(&self) -> &'static str;

    /// Creates a run with its first events.
    async fn create(&self, run: NewRun) -> StoreResult<()>;

    /// Creates a run and appends to it: one commit where the backend can. Where it cannot, and a
    /// crash comes between, the run is there as after [`create`](Self::create).
    async fn create_and_append(&self, run: NewRun, append: LogAppend) -> StoreResult<LogHead> {
        self.create(run).await?;
        self.append(append).await
    }

    /// Appends to a run. Fails with [`StoreError::Fenced`](crate::StoreError::Fenced), changing
    /// nothing, unless the run is owned under this epoch and its log ends where the caller thinks.
    async fn append(&self, append: LogAppend) -> StoreResult<LogHead>;

    /// Reads up to `limit` entries from a position.
    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>>;

    /// What is known of a run without reading its log.
    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>>;

    /// Lists runs by id, which is by age.
    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>>;

    /// Claims up to `limit` runs of a graph that are due: ready, woken, or left by a dead owner.
    async fn claim(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
    ) -> StoreResult<Vec<RunLease>>;

    /// Claims one run if it is due.
    async fn claim_run(&self, run: &RunId, claim: &LeaseClaim) -> StoreResult<Option<RunLease>>;

    /// Extends a lease and says whether signals wait for the run.
    async fn renew(&self, lease: &RunLease, until_ms: u64) -> StoreResult<bool>;

    /// Sends something to a run and makes it due if it waits. Returns a number for the signal.
    async fn send(&self, run: &RunId, signal: &RunSignal) -> StoreResult<u64>;

    /// What was sent to a run and not dealt with, in order.
    async fn signals(&self, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>>;

    /// Bytes by their digest. Fails where they are missing, changed or dropped.
    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>>;

    /// Marks blobs as about to be dropped. They can still be read; a writer that stores one again takes
    /// the mark off.
    async fn condemn_blobs(&self, blobs: &[BlobRef]) -> StoreResult<()>;

    /// Drops those that are still marked, or were never there, and remembers that they were
    /// dropped. Returns them.
    async fn drop_blobs(&self, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>>;

    /// Gives room back to the machine, where the backend does not do so by itself.
    async fn shrink(&self) -> StoreResult<()> {
        Ok(())
    }

    /// The effects of a run, in the order they were intended.
    async fn effects(&self, run: &RunId) -> StoreResult<Vec<EffectRow>>;

    /// Effects of all runs in a state.
    async fn effects_in(&self, state: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>>;

    /// Looks one approval up by its id.
    async fn approval(&self, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>>;

    /// Approvals in a state.
    async fn approvals_in(&self, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>>;

    /// The budget of a run.
    async fn ledger(&self, run: &RunId) -> StoreResult<Vec<LedgerRow>>;

    /// The newest snapshot of a run, if any is kept.
    async fn snapshot(&self, run: &RunId) -> StoreResult<Option<StateSnapshot>>;

    /// Deletes the snapshots of a run.
    async fn drop_snapshots(&self, run: &RunId) -> StoreResult<()>;

    /// Hints about changes from now on.
    fn watch(&self) -> broadcast::Receiver<StoreHint>;

    /// Hints about signals and new runs only, where a backend can tell them apart: who waits for
    /// those is not woken by every append.
    fn watch_signals(&self) -> broadcast::Receiver<StoreHint> {
        self.watch()
    }
}
