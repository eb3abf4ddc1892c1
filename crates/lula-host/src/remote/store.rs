//! The runs of a server, read as a store is read. Nothing is written through it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lula_protocol::event::LogChain;
use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, Code, Digest, RunId, RunSignal};
use lula_store::{
    ApprovalRow, ApprovalState, EffectRow, EffectState, LeaseClaim, LedgerRow, LogAppend, LogHead,
    LogRecord, NewRun, RunFilter, RunLease, RunRow, RunStore, StateSnapshot, StoreError, StoreHint,
    StoreResult,
};
use tokio::sync::broadcast;

use super::client::ServerClient;
use super::page::RunLogPage;
use crate::error::HostError;

/// Name of the backend.
const SERVER: &str = "server";

/// What was read of one log.
struct KnownLog {
    chain: LogChain,
    records: Vec<LogRecord>,
}

#[derive(Default)]
struct Known {
    logs: BTreeMap<RunId, KnownLog>,
    values: BTreeMap<Digest, Vec<u8>>,
    dropped: BTreeSet<Digest>,
}

/// The runs of a server.
pub struct ServerStore {
    client: Arc<ServerClient>,
    known: Mutex<Known>,
    /// No hint ever comes: it is asked again.
    hints: broadcast::Sender<StoreHint>,
}

fn refused(error: &HostError) -> StoreError {
    StoreError::Backend {
        backend: SERVER,
        message: error.to_string(),
    }
}

fn only_read<T>() -> StoreResult<T> {
    Err(StoreError::Backend {
        backend: SERVER,
        message: "the runs of a server are written by the server alone".to_owned(),
    })
}

impl ServerStore {
    pub fn new(client: Arc<ServerClient>) -> Self {
        Self {
            client,
            known: Mutex::default(),
            hints: broadcast::Sender::new(1),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is new in a log, and the run as it is; nothing where there is no such run.
    async fn refresh(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        loop {
            let from = self
                .known()
                .logs
                .get(run)
                .map_or(0, |log| log.records.len());
            let path = format!("/v1/runs/{run}/log?from={from}");
            let page: RunLogPage = match self.client.get(&path).await {
                Ok(page) => page,
                Err(HostError::Server(report)) if report.code == Code::NoSuchRun => {
                    return Ok(None);
                }
                Err(error) => return Err(refused(&error)),
            };
            let values = page.values()?;
            let mut known = self.known();
            let log = known.logs.entry(run.clone()).or_insert_with(|| KnownLog {
                chain: LogChain::start(run.clone()),
                records: Vec::new(),
            });
            // Another reader of this process may have been faster.
            if log.records.len() == from {
                let records = page.records(&mut log.chain)?;
                log.records.extend(records);
            }
            known.values.extend(values);
            known.dropped.extend(page.dropped());
            drop(known);
            if !page.is_cut() {
                return Ok(Some(page.row()));
            }
        }
    }

    fn kept(&self, run: &RunId, from: u64, limit: u32) -> Vec<LogRecord> {
        let known = self.known();
        let records = known.logs.get(run).map_or(&[][..], |log| &log.records);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        records.iter().skip(from).take(limit).cloned().collect()
    }
}

#[async_trait]
impl RunStore for ServerStore {
    fn backend(&self) -> &'static str {
        SERVER
    }

    async fn create(&self, _: NewRun) -> StoreResult<()> {
        only_read()
    }

    async fn append(&self, _: LogAppend) -> StoreResult<LogHead> {
        only_read()
    }

    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>> {
        let kept = self.kept(run, from, limit);
        if !kept.is_empty() {
            return Ok(kept);
        }
        self.refresh(run).await?;
        Ok(self.kept(run, from, limit))
    }

    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        self.refresh(run).await
    }

    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        let all = super::acts::listings(&self.client).await;
        let mut rows = Vec::new();
        for listing in all.map_err(|error| refused(&error))? {
            let fits = filter.status.is_none_or(|status| status == listing.status)
                && filter
                    .after
                    .as_ref()
                    .is_none_or(|after| listing.run > *after);
            if fits {
                rows.push(listing.into_row());
            }
        }
        if let Some(limit) = filter.limit {
            rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(rows)
    }

    async fn claim(&self, _: &str, _: &LeaseClaim, _: u32) -> StoreResult<Vec<RunLease>> {
        only_read()
    }

    async fn claim_run(&self, _: &RunId, _: &LeaseClaim) -> StoreResult<Option<RunLease>> {
        only_read()
    }

    async fn renew(&self, _: &RunLease, _: u64) -> StoreResult<bool> {
        only_read()
    }

    async fn send(&self, _: &RunId, _: &RunSignal) -> StoreResult<u64> {
        only_read()
    }

    async fn signals(&self, _: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
        Ok(Vec::new())
    }

    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>> {
        let known = self.known();
        match known.values.get(digest) {
            Some(bytes) => Ok(bytes.clone()),
            None if known.dropped.contains(digest) => Err(StoreError::Dropped(*digest)),
            None => Err(StoreError::NoBlob(*digest)),
        }
    }

    async fn condemn_blobs(&self, _: &[BlobRef]) -> StoreResult<()> {
        only_read()
    }

    async fn drop_blobs(&self, _: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
        only_read()
    }

    async fn effects(&self, _: &RunId) -> StoreResult<Vec<EffectRow>> {
        only_read()
    }

    async fn effects_in(&self, _: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>> {
        only_read()
    }

    async fn approval(&self, _: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
        only_read()
    }

    async fn approvals_in(&self, _: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
        only_read()
    }

    async fn ledger(&self, _: &RunId) -> StoreResult<Vec<LedgerRow>> {
        only_read()
    }

    async fn snapshot(&self, _: &RunId) -> StoreResult<Option<StateSnapshot>> {
        Ok(None)
    }

    async fn drop_snapshots(&self, _: &RunId) -> StoreResult<()> {
        only_read()
    }

    fn watch(&self) -> broadcast::Receiver<StoreHint> {
        self.hints.subscribe()
    }
}
