//! Making room: the log of a run is kept for ever, large values of old runs are not.
//!
//! What a run was asked, what it decided, what people changed and what it did to the world outside
//! is kept. What it was told on the way (files it read, answers of models, output of commands) may
//! be dropped once the run is over and old. The log still names every value by its digest.
//!
//! Values are shared between runs, and others go on writing meanwhile. So candidates are condemned
//! first; a writer that stores such a value again takes the sentence back; and only after a second look
//! at every log that could name them, those still condemned are dropped. No clock decides.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::payload::BlobRef;
use lula_protocol::{Digest, EffectClass, EffectId, EventBody, EventPayload};
use serde::Serialize;

use crate::error::StoreResult;
use crate::run::{RunFilter, RunStatus};
use crate::store::RunStore;
use crate::transfer::whole_log;

/// So many blobs are dropped in one transaction.
const BATCH: usize = 256;

/// What dropping the values of old runs freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CompactionReport {
    /// Runs that are over and old enough.
    pub runs: u64,
    /// Values of theirs that were dropped.
    pub blobs: u64,
    /// Their size before compression.
    pub bytes: u64,
}

/// Tells which values of a log are kept. Fed with every event of a log, in order.
#[derive(Debug, Default)]
pub struct ValueRetention {
    classes: BTreeMap<EffectId, EffectClass>,
}

impl ValueRetention {
    /// Whether the values an event names are kept for ever.
    pub fn keeps(&mut self, body: &EventBody) -> bool {
        match body {
            EventBody::EffectIntended { effect, class, .. } => {
                self.classes.insert(effect.clone(), *class);
                true
            }
            EventBody::EffectSettled { effect, .. } => !matches!(
                self.classes.get(effect),
                Some(EffectClass::Read | EffectClass::Model | EffectClass::Tree)
            ),
            EventBody::ReadDone { .. } => false,
            _ => true,
        }
    }
}

/// What logs name: values that are kept, and values that are not needed any more.
#[derive(Default)]
struct BlobReferences {
    old_runs: u64,
    kept: BTreeSet<Digest>,
    spare: BTreeMap<Digest, BlobRef>,
}

impl BlobReferences {
    async fn by(store: &dyn RunStore, before_ms: u64) -> StoreResult<Self> {
        let mut named = Self::default();
        for row in store.runs(&RunFilter::default()).await? {
            let log = whole_log(store, &row).await?;
            let last = log.last().map_or(u64::MAX, |record| record.at_ms);
            let old = row.status == RunStatus::Done && last < before_ms;
            named.old_runs += u64::from(old);
            let mut retention = ValueRetention::default();
            for record in &log {
                let body = record.read_body()?;
                let kept = retention.keeps(&body) || !old;
                for reference in body.payloads().into_iter().filter_map(EventPayload::blob) {
                    if kept {
                        named.kept.insert(reference.digest);
                    } else {
                        named.spare.insert(reference.digest, reference);
                    }
                }
            }
        }
        let kept = &named.kept;
        named.spare.retain(|digest, _| !kept.contains(digest));
        Ok(named)
    }
}

/// Drops large values of runs that ended before a time. The logs stay whole.
pub async fn compact_store(store: &dyn RunStore, before_ms: u64) -> StoreResult<CompactionReport> {
    let first: Vec<BlobRef> = BlobReferences::by(store, before_ms)
        .await?
        .spare
        .into_values()
        .collect();
    for batch in first.chunks(BATCH) {
        store.condemn_blobs(batch).await?;
    }
    let again = BlobReferences::by(store, before_ms).await?;
    let doomed: Vec<BlobRef> = first
        .into_iter()
        .filter(|reference| again.spare.contains_key(&reference.digest))
        .collect();
    let mut compacted = CompactionReport {
        runs: again.old_runs,
        ..CompactionReport::default()
    };
    for batch in doomed.chunks(BATCH) {
        for dropped in store.drop_blobs(batch).await? {
            compacted.blobs += 1;
            compacted.bytes += dropped.size;
        }
    }
    if compacted.blobs > 0 {
        store.shrink().await?;
    }
    Ok(compacted)
}
