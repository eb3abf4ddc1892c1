//! Whole stores: checking one, and copying one into another of any kind.

use std::collections::HashSet;

use lula_protocol::event::Chain;
use lula_protocol::payload::BlobRef;
use lula_protocol::{EventBody, Payload, RunId};
use serde::Serialize;

use crate::append::{Append, ApprovalChange, ApprovalState, Blob, EffectRow, EffectState, Rest};
use crate::compact::Retention;
use crate::error::{Result, StoreError};
use crate::record::{Head, Record};
use crate::run::{Claim, NewRun, RunFilter, RunRow, Status};
use crate::store::Store;

const PAGE: u32 = 512;

/// What a check went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Checked {
    /// Runs.
    pub runs: u64,
    /// Log entries.
    pub events: u64,
    /// Blobs they name.
    pub blobs: u64,
    /// Blobs they name that were dropped to make room.
    pub dropped: u64,
}

/// The whole log of a run, with its chain verified.
pub(crate) async fn whole_log(store: &dyn Store, row: &RunRow) -> Result<Vec<Record>> {
    let mut chain = Chain::start(row.run.clone());
    let mut log = Vec::new();
    loop {
        let page = store.read(&row.run, chain.len(), PAGE).await?;
        if page.is_empty() {
            break;
        }
        Record::verify(&mut chain, &page)?;
        log.extend(page);
    }
    let end = Head {
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
async fn blobs_of(store: &dyn Store, log: &[Record]) -> Result<(Vec<Blob>, Vec<BlobRef>)> {
    let (mut blobs, mut dropped) = (Vec::new(), Vec::new());
    let mut retention = Retention::default();
    for record in log {
        let body = record.read_body()?;
        let keeps = retention.keeps(&body);
        for reference in body.payloads().into_iter().filter_map(Payload::blob) {
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
fn effects_stand(run: &RunId, log: &[Record], effects: &[EffectRow]) -> Result<()> {
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
pub async fn check_run(store: &dyn Store, run: &RunId) -> Result<Checked> {
    let row = store
        .run(run)
        .await?
        .ok_or_else(|| StoreError::NoRun(run.clone()))?;
    // Read before the log, which may grow meanwhile.
    let effects = store.effects(run).await?;
    let log = whole_log(store, &row).await?;
    effects_stand(run, &log, &effects)?;
    let (blobs, dropped) = blobs_of(store, &log).await?;
    Ok(Checked {
        runs: 1,
        events: log.len() as u64,
        blobs: blobs.len() as u64,
        dropped: dropped.len() as u64,
    })
}

/// Verifies every run of a store. Returns what was checked and what was found broken.
pub async fn check_store(store: &dyn Store) -> Result<(Checked, Vec<StoreError>)> {
    let mut total = Checked::default();
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
/// already are left alone. Nobody may be working on the source.
pub async fn copy_store(from: &dyn Store, to: &dyn Store) -> Result<Checked> {
    let mut total = Checked::default();
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
            claim: Some(Claim {
                worker: "copy".to_owned(),
                now_ms: 0,
                ttl_ms: 0,
            }),
        };
        match to.create(new).await {
            Err(StoreError::RunExists(_)) => continue,
            other => other?,
        }
        let mut rest = Append::new(row.run.clone(), epoch, row.head);
        rest.effects = from.effects(&row.run).await?;
        let own = approvals.iter().filter(|approval| approval.run == row.run);
        rest.approvals = own.cloned().map(ApprovalChange::Open).collect();
        rest.rest = match row.status {
            Status::Done => Rest::Done,
            Status::Suspended => Rest::Suspend {
                wake_ms: row.due_ms,
            },
            Status::Ready | Status::Running => Rest::Yield,
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
