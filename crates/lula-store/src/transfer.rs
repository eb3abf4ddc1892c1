//! Whole stores: checking one, and copying one into another of any kind.

use std::collections::HashSet;

use lula_protocol::event::LogChain;
use lula_protocol::payload::BlobRef;
use lula_protocol::{EventBody, EventPayload, RunId};
use serde::Serialize;

use crate::append::{
    ApprovalChange, ApprovalState, Blob, EffectRow, EffectState, LeaseAfterAppend, LogAppend,
};
use crate::compact::ValueRetention;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{LeaseClaim, NewRun, RunFilter, RunRow, RunStatus};
use crate::store::RunStore;

const PAGE: u32 = 512;

/// What a check went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StoreCheckReport {
    /// Runs that were gone through.
    pub runs: u64,
    pub events: u64,
    /// Blobs that those entries name.
    pub blobs: u64,
    /// Blobs they name that were dropped to make room.
    pub dropped: u64,
}

/// The whole log of a run, with its chain verified.
pub(crate) async fn whole_log(store: &dyn RunStore, row: &RunRow) -> StoreResult<Vec<LogRecord>> {
    let mut chain = LogChain::start(row.run.clone());
    let mut log = Vec::new();
    loop {
        let page = store.read(&row.run, chain.len(), PAGE).await?;
        if page.is_empty() {
            break;
        }
        LogRecord::verify(&mut chain, &page)?;
        log.extend(page);
    }
    let end = LogHead {
        next: chain.len(),
        hash: chain.head(),
    };
    // A live run may have grown since its row was read; a shorter log lost something.
    if end.next < row.head.next || (end.next == row.head.next && end.hash != row.head.hash) {
        return Err(StoreError::CorruptEvent {
            run: row.run.clone(),
            seq: end.next,
            why: format!(
                "the log ends here, the run should have {} entries",
                row.head.next
            ),
        });
    }
    Ok(log)
}

/// The blobs a log names: those there are, and those that were dropped to make room. One that is
/// dropped and must be kept is missing.
async fn blobs_of(
    store: &dyn RunStore,
    log: &[LogRecord],
) -> StoreResult<(Vec<Blob>, Vec<BlobRef>)> {
    let (mut blobs, mut dropped) = (Vec::new(), Vec::new());
    let mut retention = ValueRetention::default();
    for record in log {
        let body = record.read_body()?;
        let keeps = retention.keeps(&body);
        for reference in body.payloads().into_iter().filter_map(EventPayload::blob) {
            match store.blob(&reference.digest).await {
                Ok(bytes) => blobs.push(Blob {
                    digest: reference.digest,
                    bytes,
                }),
                Err(StoreError::Dropped(_)) if !keeps => {
                    if !dropped.contains(&reference) {
                        dropped.push(reference);
                    }
                }
                Err(StoreError::Dropped(digest)) => return Err(StoreError::NoBlob(digest)),
                Err(error) => return Err(error),
            }
        }
    }
    Ok((blobs, dropped))
}

/// Every effect that is listed stands in the log: where it was announced, and that it ended.
fn effects_stand(run: &RunId, log: &[LogRecord], effects: &[EffectRow]) -> StoreResult<()> {
    let (mut announced, mut settled) = (HashSet::new(), HashSet::new());
    for record in log {
        match record.read_body()? {
            EventBody::EffectIntended { effect, .. } => drop(announced.insert(effect)),
            EventBody::EffectSettled { effect, .. } => drop(settled.insert(effect)),
            _ => {}
        }
    }
    for row in effects {
        let missing = if !announced.contains(&row.effect) {
            "announced"
        } else if row.state == EffectState::Settled && !settled.contains(&row.effect) {
            "settled"
        } else {
            continue;
        };
        return Err(StoreError::CorruptEvent {
            run: run.clone(),
            seq: row.intent_seq,
            why: format!(
                "{} is listed as {missing}, the log does not say so",
                row.effect
            ),
        });
    }
    Ok(())
}

/// Verifies the log of one run, every blob it names and every effect that is listed for it.
pub async fn check_run(store: &dyn RunStore, run: &RunId) -> StoreResult<StoreCheckReport> {
    let row = store
        .run(run)
        .await?
        .ok_or_else(|| StoreError::NoRun(run.clone()))?;
    // Read before the log, which may grow meanwhile.
    let effects = store.effects(run).await?;
    let log = whole_log(store, &row).await?;
    effects_stand(run, &log, &effects)?;
    let (blobs, dropped) = blobs_of(store, &log).await?;
    Ok(StoreCheckReport {
        runs: 1,
        events: log.len() as u64,
        blobs: blobs.len() as u64,
        dropped: dropped.len() as u64,
    })
}

/// Verifies every run of a store. Returns what was checked and what was found broken.
pub async fn check_store(store: &dyn RunStore) -> StoreResult<(StoreCheckReport, Vec<StoreError>)> {
    let mut total = StoreCheckReport::default();
    let mut broken = Vec::new();
    for row in store.runs(&RunFilter::default()).await? {
        match check_run(store, &row.run).await {
            Ok(one) => {
                total.runs += one.runs;
                total.events += one.events;
                total.blobs += one.blobs;
                total.dropped += one.dropped;
            }
            Err(error) => broken.push(error),
        }
    }
    Ok((total, broken))
}

/// Copies every run of one store into another, verifying each on the way. Runs that are there
/// already are left alone. No worker may be at work on the source.
pub async fn copy_store(from: &dyn RunStore, to: &dyn RunStore) -> StoreResult<StoreCheckReport> {
    let mut total = StoreCheckReport::default();
    let mut approvals = Vec::new();
    for state in [
        ApprovalState::Open,
        ApprovalState::Approved,
        ApprovalState::Rejected,
        ApprovalState::Used,
    ] {
        approvals.extend(from.approvals_in(state).await?);
    }
    for row in from.runs(&RunFilter::default()).await? {
        let log = whole_log(from, &row).await?;
        let (blobs, dropped) = blobs_of(from, &log).await?;
        let (events, blob_count) = (log.len() as u64, blobs.len() as u64);
        let ledger = from.ledger(&row.run).await?;
        let epoch = row.epoch + 1;
        let new = NewRun {
            run: row.run.clone(),
            tenant: row.tenant.clone(),
            graph: row.graph.clone(),
            graph_version: row.graph_version,
            parent: row.parent.clone(),
            records: log,
            blobs,
            ledger,
            epoch,
            claim: Some(LeaseClaim {
                worker: "copy".to_owned(),
                now_ms: 0,
                ttl_ms: 0,
            }),
        };
        match to.create(new).await {
            Err(StoreError::RunExists(_)) => continue,
            other => other?,
        }
        let mut rest = LogAppend::new(row.run.clone(), epoch, row.head);
        rest.effects = from.effects(&row.run).await?;
        let own = approvals.iter().filter(|approval| approval.run == row.run);
        rest.approvals = own.cloned().map(ApprovalChange::Open).collect();
        rest.rest = match row.status {
            RunStatus::Done => LeaseAfterAppend::Done,
            RunStatus::Suspended => LeaseAfterAppend::Suspend {
                wake_ms: row.due_ms,
            },
            RunStatus::Ready | RunStatus::Running => LeaseAfterAppend::Yield,
        };
        for (_, signal) in from.signals(&row.run).await? {
            to.send(&row.run, &signal).await?;
        }
        // What the other store happens to have is kept.
        to.drop_blobs(&dropped).await?;
        to.append(rest).await?;
        total.runs += 1;
        total.dropped += dropped.len() as u64;
        total.events += events;
        total.blobs += blob_count;
    }
    Ok(total)
}
