//! Runs, leases and appends to check a store with.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use lula_protocol::{EventBody, RunId, RunSignal};

use crate::{LeaseClaim, LogAppend, LogHead, LogRecord, NewRun, RunLease, RunStore, StoreError};

/// Now, and twelve random bytes from the standard library's hasher keys.
pub(super) fn fresh() -> (u64, [u8; 10]) {
    let mut bytes = [0; 10];
    for chunk in bytes.chunks_mut(5) {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        chunk.copy_from_slice(&random[..5]);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (u64::try_from(now.as_millis()).unwrap(), bytes)
}

/// An id that was not used before.
pub fn fresh_run() -> RunId {
    let (now, random) = fresh();
    RunId::from_parts(now, random)
}

pub(super) fn note(text: &str) -> EventBody {
    EventBody::SignalIgnored {
        reason: text.to_owned(),
    }
}

pub(super) fn claim(worker: &str, now_ms: u64) -> LeaseClaim {
    LeaseClaim {
        worker: worker.to_owned(),
        now_ms,
        ttl_ms: 30_000,
    }
}

/// A new run with one entry, in a queue of its own.
pub(super) fn new_run(worker: Option<&str>) -> (NewRun, RunLease) {
    let run = fresh_run();
    let epoch = u64::from(worker.is_some());
    let (records, head) =
        LogRecord::continue_log(&run, LogHead::empty(), epoch, 1, &[note("first")]).unwrap();
    let new = NewRun {
        run: run.clone(),
        tenant: "acme".to_owned(),
        graph: format!("graph of {run}"),
        graph_version: 1,
        parent: None,
        records,
        blobs: Vec::new(),
        ledger: Vec::new(),
        epoch,
        claim: worker.map(|worker| claim(worker, 1_000)),
    };
    (new, RunLease { run, epoch, head })
}

pub(super) async fn owned(store: &dyn RunStore) -> RunLease {
    let (new, lease) = new_run(Some("alice"));
    store.create(new).await.unwrap();
    lease
}

pub(super) fn next(lease: &RunLease, head: LogHead, texts: &[&str]) -> LogAppend {
    let bodies: Vec<_> = texts.iter().map(|text| note(text)).collect();
    let (records, _) = LogRecord::continue_log(&lease.run, head, lease.epoch, 2, &bodies).unwrap();
    LogAppend {
        records,
        ..LogAppend::new(lease.run.clone(), lease.epoch, head)
    }
}

pub(super) fn is_fenced<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Fenced { .. })),
        "{result:?}"
    );
}

/// One of two handles on one store.
pub(super) type StoreHandle = Arc<dyn RunStore>;

pub(super) fn cancel() -> RunSignal {
    RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: "enough".to_owned(),
    }
}

/// Numbers that are the same in every run of a test.
pub(super) struct TestRandom(pub(super) u64);

impl TestRandom {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
