//! What every backend has to pass. A backend's test binary calls
//! [`conformance_tests!`](crate::conformance_tests) with a function that opens one more handle on
//! one and the same store; each check becomes a test of its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs
)]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lula_protocol::approval::Decision;
use lula_protocol::event::{Chain, EffectResult, Via};
use lula_protocol::payload::BlobRef;
use lula_protocol::{
    Amounts, ApprovalId, Digest, Dimension, EffectClass, EffectId, EventBody, Payload, RunId,
    Signal,
};

use crate::{
    Append, ApprovalChange, ApprovalRow, ApprovalState, Blob, Claim, EffectRow, EffectState, Head,
    Hint, Lease, LedgerRow, NewRun, Record, Rest, RunFilter, Snapshot, Status, Store, StoreError,
    check_run, compact_store,
};

/// Makes a test of each check. `$open` is an `async fn() -> Arc<dyn Store>`.
#[macro_export]
macro_rules! conformance_tests {
    ($open:path; $($check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::conformance::$check($open().await, $open().await).await;
            }
        )*
    };
    ($open:path) => {
        $crate::conformance_tests!($open;
            a_run_reads_back_as_it_was_written,
            a_run_is_created_once,
            a_run_is_created_and_continued_at_once,
            an_append_needs_the_head_and_the_epoch,
            of_many_appends_at_one_head_one_wins,
            a_claimed_run_belongs_to_nobody_else,
            a_dead_owners_run_is_claimed_and_the_old_owner_is_fenced,
            many_workers_never_get_the_same_run,
            a_clock_that_jumps_back_claims_nothing,
            a_suspended_run_is_due_when_its_time_comes,
            a_signal_wakes_a_suspended_run,
            a_signal_sent_before_the_suspension_is_not_lost,
            signals_come_in_order_and_are_taken_once,
            a_run_that_is_done_is_never_claimed,
            blobs_are_found_by_their_digest,
            a_condemned_blob_is_dropped_unless_it_is_stored_again,
            what_old_runs_were_told_is_dropped_and_what_others_need_is_kept,
            effects_show_where_they_stand,
            an_approval_is_used_once_and_only_for_its_digest,
            a_refused_append_leaves_nothing_behind,
            a_ledger_row_above_its_limit_is_refused,
            the_newest_snapshot_is_kept_and_can_be_dropped,
            a_log_is_read_in_pages,
            runs_are_listed_by_age_and_filtered,
            a_watcher_hears_of_an_append,
            a_renewed_lease_is_not_claimed,
            a_yielded_run_is_ready_at_once,
        );
    };
}

/// Now, and twelve random bytes from the standard library's hasher keys.
fn fresh() -> (u64, [u8; 10]) {
    let mut bytes = [0; 10];
    for chunk in bytes.chunks_mut(5) {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        chunk.copy_from_slice(&random[..5]);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (u64::try_from(now.as_millis()).unwrap(), bytes)
}

/// An id nobody used before.
pub fn fresh_run() -> RunId {
    let (now, random) = fresh();
    RunId::from_parts(now, random)
}

fn note(text: &str) -> EventBody {
    EventBody::SignalIgnored {
        reason: text.to_owned(),
    }
}

fn claim(worker: &str, now_ms: u64) -> Claim {
    Claim {
        worker: worker.to_owned(),
        now_ms,
        ttl_ms: 30_000,
    }
}

/// A new run with one entry, in a queue of its own.
fn new_run(worker: Option<&str>) -> (NewRun, Lease) {
    let run = fresh_run();
    let epoch = u64::from(worker.is_some());
    let (records, head) =
        Record::continue_log(&run, Head::empty(), epoch, 1, &[note("first")]).unwrap();
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
    (new, Lease { run, epoch, head })
}

async fn owned(store: &dyn Store) -> Lease {
    let (new, lease) = new_run(Some("alice"));
    store.create(new).await.unwrap();
    lease
}

fn next(lease: &Lease, head: Head, texts: &[&str]) -> Append {
    let bodies: Vec<_> = texts.iter().map(|text| note(text)).collect();
    let (records, _) = Record::continue_log(&lease.run, head, lease.epoch, 2, &bodies).unwrap();
    Append {
        records,
        ..Append::new(lease.run.clone(), lease.epoch, head)
    }
}

fn is_fenced<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Fenced { .. })),
        "{result:?}"
    );
}

/// A check over two handles on one store.
type Handle = Arc<dyn Store>;

pub async fn a_run_reads_back_as_it_was_written(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let append = next(&lease, lease.head, &["second", "third"]);
    let head = a.append(append.clone()).await.unwrap();
    assert_eq!(head, append.new_head());
    let row = b.run(&lease.run).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.epoch, row.head),
        (Status::Running, 1, head)
    );
    assert_eq!(
        (row.tenant.as_str(), row.owner.as_deref()),
        ("acme", Some("alice"))
    );
    let log = b.read(&lease.run, 0, 100).await.unwrap();
    assert_eq!(log[1..], append.records[..]);
    Record::verify(&mut Chain::start(lease.run.clone()), &log).unwrap();
    assert_eq!(log[2].read_body().unwrap(), note("third"));
    assert_eq!(check_run(&*b, &lease.run).await.unwrap().events, 3);
    assert!(b.run(&fresh_run()).await.unwrap().is_none());
}

pub async fn a_run_is_created_once(a: Handle, b: Handle) {
    let (new, lease) = new_run(None);
    a.create(new.clone()).await.unwrap();
    let again = b.create(new).await;
    assert!(matches!(again, Err(StoreError::RunExists(_))), "{again:?}");
    assert_eq!(a.read(&lease.run, 0, 10).await.unwrap().len(), 1);
}

pub async fn a_run_is_created_and_continued_at_once(a: Handle, b: Handle) {
    let (new, lease) = new_run(Some("alice"));
    let append = next(&lease, lease.head, &["second"]);
    let head = a
        .create_and_append(new.clone(), append.clone())
        .await
        .unwrap();
    assert_eq!(head, append.new_head());
    assert_eq!(b.run(&lease.run).await.unwrap().unwrap().head, head);
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 2);
    let twice = b.create_and_append(new, append).await;
    assert!(matches!(twice, Err(StoreError::RunExists(_))), "{twice:?}");
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 2);
    check_run(&*b, &lease.run).await.unwrap();
}

pub async fn an_append_needs_the_head_and_the_epoch(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let stale = next(&lease, lease.head, &["stale"]);
    let head = a.append(next(&lease, lease.head, &["good"])).await.unwrap();
    is_fenced(&b.append(stale).await);
    for epoch in [0, 2] {
        let wrong = Lease {
            epoch,
            ..lease.clone()
        };
        is_fenced(&b.append(next(&wrong, head, &["wrong epoch"])).await);
    }
    let forked = Head {
        hash: Digest::of_bytes(b"other"),
        ..head
    };
    is_fenced(&b.append(next(&lease, forked, &["wrong hash"])).await);
    let stranger = Lease {
        run: fresh_run(),
        ..lease.clone()
    };
    is_fenced(&b.append(next(&stranger, head, &["no such run"])).await);
    assert_eq!(a.read(&lease.run, 0, 10).await.unwrap().len(), 2);
}

pub async fn of_many_appends_at_one_head_one_wins(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let tries = (0..16).map(|index| {
        let store = if index % 2 == 0 {
            Arc::clone(&a)
        } else {
            Arc::clone(&b)
        };
        let append = next(&lease, lease.head, &[&format!("try {index}")]);
        tokio::spawn(async move { store.append(append).await.is_ok() })
    });
    let tries: Vec<_> = tries.collect();
    let mut won = 0;
    for one in tries {
        won += u32::from(one.await.unwrap());
    }
    assert_eq!(won, 1);
    assert_eq!(a.read(&lease.run, 0, 100).await.unwrap().len(), 2);
}

pub async fn a_claimed_run_belongs_to_nobody_else(a: Handle, b: Handle) {
    let (new, lease) = new_run(None);
    let graph = new.graph.clone();
    a.create(new).await.unwrap();
    let claimed = a.claim(&graph, &claim("alice", 5_000), 10).await.unwrap();
    assert_eq!(
        claimed,
        [Lease {
            epoch: 1,
            ..lease.clone()
        }]
    );
    assert!(
        b.claim(&graph, &claim("bob", 6_000), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 6_000))
            .await
            .unwrap()
            .is_none()
    );
    let other = b
        .claim("another graph", &claim("bob", 9_000_000), 10)
        .await
        .unwrap();
    assert!(other.iter().all(|lease| lease.run != claimed[0].run));
    let missing = b.claim_run(&fresh_run(), &claim("bob", 6_000)).await;
    assert!(matches!(missing, Err(StoreError::NoRun(_))), "{missing:?}");
}

pub async fn a_dead_owners_run_is_claimed_and_the_old_owner_is_fenced(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let after = 1_000 + 30_000;
    assert!(
        b.claim_run(&lease.run, &claim("bob", after - 1))
            .await
            .unwrap()
            .is_none()
    );
    let taken = b
        .claim_run(&lease.run, &claim("bob", after))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((taken.epoch, taken.head), (lease.epoch + 1, lease.head));
    is_fenced(
        &a.append(next(&lease, lease.head, &["from the grave"]))
            .await,
    );
    is_fenced(&a.renew(&lease, after + 99_000).await);
    b.append(next(&taken, taken.head, &["alive"]))
        .await
        .unwrap();
}

pub async fn many_workers_never_get_the_same_run(a: Handle, b: Handle) {
    let graph = format!("shared {}", fresh_run());
    for _ in 0..40 {
        let (mut new, _) = new_run(None);
        new.graph.clone_from(&graph);
        a.create(new).await.unwrap();
    }
    let workers: Vec<_> = (0..8)
        .map(|index| {
            let store = if index % 2 == 0 {
                Arc::clone(&a)
            } else {
                Arc::clone(&b)
            };
            let graph = graph.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let worker = claim(&format!("worker {index}"), 1_000);
                    let some = store.claim(&graph, &worker, 3).await.unwrap();
                    if some.is_empty() {
                        return mine;
                    }
                    mine.extend(some.into_iter().map(|lease| lease.run));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    assert_eq!(all.len(), 40);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 40, "a run was claimed twice");
}

pub async fn a_clock_that_jumps_back_claims_nothing(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let hour = 3_600_000;
    a.renew(&lease, hour + 30_000).await.unwrap();
    assert!(
        b.claim_run(&lease.run, &claim("bob", 0))
            .await
            .unwrap()
            .is_none()
    );
    a.append(next(&lease, lease.head, &["undisturbed"]))
        .await
        .unwrap();
    // A clock that jumps forward takes the run over; then the old owner is the one that stops.
    let taken = b
        .claim_run(&lease.run, &claim("bob", 2 * hour))
        .await
        .unwrap()
        .unwrap();
    is_fenced(&a.append(next(&lease, taken.head, &["late"])).await);
}

pub async fn a_suspended_run_is_due_when_its_time_comes(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = Rest::Suspend {
        wake_ms: Some(90_000),
    };
    a.append(append).await.unwrap();
    let row = b.run(&lease.run).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.due_ms, row.owner),
        (Status::Suspended, Some(90_000), None)
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 89_999))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 90_000))
            .await
            .unwrap()
            .is_some()
    );
}

fn cancel() -> Signal {
    Signal::Cancel {
        by: "alice".parse().unwrap(),
        reason: "enough".to_owned(),
    }
}

pub async fn a_signal_wakes_a_suspended_run(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = Rest::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    let never = claim("bob", u64::from(u32::MAX));
    assert!(b.claim_run(&lease.run, &never).await.unwrap().is_none());
    b.send(&lease.run, &cancel()).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        Status::Ready
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 1))
            .await
            .unwrap()
            .is_some()
    );
}

pub async fn a_signal_sent_before_the_suspension_is_not_lost(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    b.send(&lease.run, &cancel()).await.unwrap();
    assert!(
        a.renew(&lease, 50_000).await.unwrap(),
        "the owner is told of the signal"
    );
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = Rest::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        Status::Ready
    );
}

pub async fn signals_come_in_order_and_are_taken_once(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let vote = Signal::Vote {
        approval: ApprovalId::from_parts(1, [1; 10]),
        digest: Digest::of_bytes(b"seen"),
        by: "bob".parse().unwrap(),
        role: "maintainer".to_owned(),
        decision: Decision::Approve,
    };
    b.send(&lease.run, &vote).await.unwrap();
    b.send(&lease.run, &cancel()).await.unwrap();
    let waiting = a.signals(&lease.run).await.unwrap();
    let bodies: Vec<_> = waiting.iter().map(|(_, signal)| signal.clone()).collect();
    assert_eq!(bodies, [vote, cancel()]);
    let mut append = next(&lease, lease.head, &["took the vote"]);
    append.takes = vec![waiting[0].0];
    let head = a.append(append).await.unwrap();
    let left = a.signals(&lease.run).await.unwrap();
    assert_eq!(left, waiting[1..]);
    let mut append = next(&lease, head, &["took the rest"]);
    append.takes = vec![waiting[1].0];
    append.rest = Rest::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        Status::Suspended
    );
    let nobody = a.send(&fresh_run(), &cancel()).await;
    assert!(matches!(nobody, Err(StoreError::NoRun(_))), "{nobody:?}");
}

pub async fn a_run_that_is_done_is_never_claimed(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["the end"]);
    append.rest = Rest::Done;
    let head = a.append(append).await.unwrap();
    a.send(&lease.run, &cancel()).await.unwrap();
    let late = claim("bob", u64::from(u32::MAX));
    assert!(b.claim_run(&lease.run, &late).await.unwrap().is_none());
    is_fenced(&a.append(next(&lease, head, &["after the end"])).await);
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        Status::Done
    );
}

pub async fn blobs_are_found_by_their_digest(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let blob = Blob::new(format!("{} {}", lease.run, "x".repeat(100_000)).into_bytes());
    let mut append = next(&lease, lease.head, &["with a blob"]);
    append.blobs = vec![blob.clone(), blob.clone()];
    a.append(append).await.unwrap();
    assert_eq!(b.blob(&blob.digest).await.unwrap(), blob.bytes);
    let missing = b.blob(&Digest::of_bytes(b"never stored")).await;
    assert!(matches!(missing, Err(StoreError::NoBlob(_))), "{missing:?}");
}

fn named(blob: &Blob) -> BlobRef {
    BlobRef {
        digest: blob.digest,
        size: blob.bytes.len() as u64,
    }
}

pub async fn a_condemned_blob_is_dropped_unless_it_is_stored_again(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let blob = |text: &str| Blob::new(format!("{} {text}", lease.run).into_bytes());
    let (one, other) = (blob("dropped"), blob("stored again"));
    let mut append = next(&lease, lease.head, &["with blobs"]);
    append.blobs = vec![one.clone(), other.clone()];
    let head = a.append(append).await.unwrap();
    let both = [named(&one), named(&other)];
    assert_eq!(
        b.drop_blobs(&both).await.unwrap(),
        [],
        "nobody condemned them"
    );

    b.condemn_blobs(&both).await.unwrap();
    assert_eq!(a.blob(&one.digest).await.unwrap(), one.bytes, "still there");
    let mut append = next(&lease, head, &["once more"]);
    append.blobs = vec![other.clone()];
    let head = a.append(append).await.unwrap();
    assert_eq!(b.drop_blobs(&both).await.unwrap(), [named(&one)]);
    assert_eq!(b.drop_blobs(&both).await.unwrap(), [], "once is enough");
    let gone = a.blob(&one.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
    assert_eq!(a.blob(&other.digest).await.unwrap(), other.bytes);

    let mut append = next(&lease, head, &["and back"]);
    append.blobs = vec![one.clone()];
    a.append(append).await.unwrap();
    assert_eq!(b.blob(&one.digest).await.unwrap(), one.bytes);
    let unseen = named(&blob("never there"));
    assert_eq!(b.drop_blobs(&[unseen]).await.unwrap(), [unseen]);
    let gone = a.blob(&unseen.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
}

/// Something large that a run was told, or did.
fn settled(class: EffectClass, text: &str) -> (Vec<EventBody>, Blob) {
    let packed = Payload::pack(&text.repeat(5_000 / text.len() + 1)).unwrap();
    let (digest, bytes) = packed.blob.unwrap();
    let (now, random) = fresh();
    let effect = EffectId::from_parts(now, random);
    let intended = EventBody::EffectIntended {
        ordinal: 0,
        effect: effect.clone(),
        class,
        name: "act".to_owned(),
        request: Digest::of_bytes(b"request"),
        pre_tree: None,
        reserve: Amounts::none(),
        approval: None,
    };
    let settled = EventBody::EffectSettled {
        effect,
        via: Via::Executed,
        spent: Amounts::none(),
        result: EffectResult::Done(packed.payload),
    };
    (vec![intended, settled], Blob { digest, bytes })
}

pub async fn what_old_runs_were_told_is_dropped_and_what_others_need_is_kept(a: Handle, b: Handle) {
    let word = fresh_run();
    let (told, told_blob) = settled(EffectClass::Model, &format!("told {word} "));
    let (shared, shared_blob) = settled(EffectClass::Tree, &format!("shared {word} "));
    let (pushed, pushed_blob) = settled(EffectClass::External, &format!("pushed {word} "));
    let run = |bodies: Vec<EventBody>, blobs: Vec<Blob>, rest: Rest| {
        let a = Arc::clone(&a);
        async move {
            let lease = owned(&*a).await;
            let (records, _) =
                Record::continue_log(&lease.run, lease.head, lease.epoch, 2, &bodies).unwrap();
            let mut append = Append::new(lease.run.clone(), lease.epoch, lease.head);
            (append.records, append.blobs, append.rest) = (records, blobs, rest);
            a.append(append).await.unwrap();
            lease.run
        }
    };
    let all = [told, shared.clone(), pushed].concat();
    let blobs = vec![told_blob.clone(), shared_blob.clone(), pushed_blob.clone()];
    let over = run(all, blobs, Rest::Done).await;
    let suspended = Rest::Suspend { wake_ms: None };
    let waiting = run(shared, vec![shared_blob.clone()], suspended).await;

    assert_eq!(
        compact_store(&*b, 2).await.unwrap().blobs,
        0,
        "not old enough"
    );
    let compacted = compact_store(&*b, 3).await.unwrap();
    // Other checks use the same store at the same time.
    assert!(compacted.runs >= 1 && compacted.blobs >= 1, "{compacted:?}");
    let gone = a.blob(&told_blob.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
    assert_eq!(
        a.blob(&shared_blob.digest).await.unwrap(),
        shared_blob.bytes
    );
    assert_eq!(
        a.blob(&pushed_blob.digest).await.unwrap(),
        pushed_blob.bytes
    );
    let checked = check_run(&*a, &over).await.unwrap();
    assert_eq!((checked.blobs, checked.dropped), (2, 1));
    assert_eq!(check_run(&*a, &waiting).await.unwrap().dropped, 0);
}

fn effect(state: EffectState) -> EffectRow {
    let (now, random) = fresh();
    EffectRow {
        effect: EffectId::from_parts(now, random),
        intent_seq: 1,
        class: EffectClass::External,
        state,
        attempt: 0,
        epoch: 1,
        request: Digest::of_bytes(b"push"),
        result: None,
    }
}

pub async fn effects_show_where_they_stand(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let intended = effect(EffectState::Intended);
    let mut append = next(&lease, lease.head, &["intent"]);
    append.effects = vec![intended.clone()];
    let head = a.append(append).await.unwrap();
    assert_eq!(
        b.effects(&lease.run).await.unwrap(),
        std::slice::from_ref(&intended)
    );
    let unknown = EffectRow {
        state: EffectState::Unknown,
        attempt: 1,
        ..intended
    };
    let mut append = next(&lease, head, &["unknown"]);
    append.effects = vec![unknown.clone()];
    let head = a.append(append).await.unwrap();
    let asked = b.effects_in(EffectState::Unknown).await.unwrap();
    assert!(asked.contains(&(lease.run.clone(), unknown.clone())));
    let settled = EffectRow {
        state: EffectState::Settled,
        result: Some(Digest::of_bytes(b"done")),
        ..unknown
    };
    let mut append = next(&lease, head, &["settled"]);
    append.effects = vec![settled.clone()];
    a.append(append).await.unwrap();
    assert_eq!(b.effects(&lease.run).await.unwrap(), [settled]);
    let asked = b.effects_in(EffectState::Unknown).await.unwrap();
    assert!(asked.iter().all(|(run, _)| *run != lease.run));
}

fn approval(run: &RunId) -> ApprovalRow {
    let (now, random) = fresh();
    ApprovalRow {
        approval: ApprovalId::from_parts(now, random),
        run: run.clone(),
        digest: Digest::of_bytes(b"this diff"),
        state: ApprovalState::Open,
        nonce: "n1".to_owned(),
        expires_ms: 77_000,
    }
}

pub async fn an_approval_is_used_once_and_only_for_its_digest(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let row = approval(&lease.run);
    let mut append = next(&lease, lease.head, &["ask"]);
    append.approvals = vec![ApprovalChange::Open(row.clone())];
    let mut head = a.append(append).await.unwrap();
    assert_eq!(b.approval(&row.approval).await.unwrap(), Some(row.clone()));
    assert!(
        b.approvals_in(ApprovalState::Open)
            .await
            .unwrap()
            .contains(&row)
    );

    let attempt = |head: Head, digest: &[u8]| {
        let mut append = next(&lease, head, &["use"]);
        append.approvals = vec![ApprovalChange::Use {
            approval: row.approval.clone(),
            digest: Digest::of_bytes(digest),
        }];
        a.append(append)
    };
    assert!(
        attempt(head, b"this diff").await.is_err(),
        "used before it was approved"
    );
    let mut append = next(&lease, head, &["approved"]);
    append.approvals = vec![ApprovalChange::Decide {
        approval: row.approval.clone(),
        approved: true,
    }];
    head = a.append(append).await.unwrap();
    let other = attempt(head, b"another diff").await;
    assert!(
        matches!(other, Err(StoreError::Approval { .. })),
        "{other:?}"
    );
    head = attempt(head, b"this diff").await.unwrap();
    let twice = attempt(head, b"this diff").await;
    assert!(
        matches!(twice, Err(StoreError::Approval { .. })),
        "{twice:?}"
    );
    let state = b.approval(&row.approval).await.unwrap().unwrap().state;
    assert_eq!(state, ApprovalState::Used);
}

pub async fn a_refused_append_leaves_nothing_behind(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let signal = b.send(&lease.run, &cancel()).await.unwrap();
    let mut append = next(&lease, lease.head, &["must not appear"]);
    let blob = Blob::new(format!("blob of {}", lease.run).into_bytes());
    append.blobs = vec![blob.clone()];
    append.effects = vec![effect(EffectState::Intended)];
    append.takes = vec![signal];
    append.rest = Rest::Done;
    append.approvals = vec![ApprovalChange::Use {
        approval: ApprovalId::from_parts(1, [9; 10]),
        digest: Digest::of_bytes(b"nothing"),
    }];
    let refused = a.append(append).await;
    assert!(
        matches!(refused, Err(StoreError::Approval { .. })),
        "{refused:?}"
    );
    assert_eq!(
        b.run(&lease.run).await.unwrap().unwrap().status,
        Status::Running
    );
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 1);
    assert!(b.effects(&lease.run).await.unwrap().is_empty());
    assert_eq!(b.signals(&lease.run).await.unwrap().len(), 1);
    assert!(b.blob(&blob.digest).await.is_err());
    a.append(next(&lease, lease.head, &["goes on"]))
        .await
        .unwrap();
}

pub async fn a_ledger_row_above_its_limit_is_refused(a: Handle, b: Handle) {
    let (mut new, lease) = new_run(Some("alice"));
    new.ledger = LedgerRow::fresh(&Amounts::none().with(Dimension::MicroUsd, 100));
    a.create(new).await.unwrap();
    let row = |reserved, settled| LedgerRow {
        dimension: Dimension::MicroUsd,
        limit: Some(100),
        reserved,
        settled,
    };
    let mut append = next(&lease, lease.head, &["spend"]);
    append.ledger = vec![row(40, 60)];
    let head = a.append(append).await.unwrap();
    assert_eq!(b.ledger(&lease.run).await.unwrap(), [row(40, 60)]);
    let mut append = next(&lease, head, &["overspend"]);
    append.ledger = vec![row(41, 60)];
    let refused = a.append(append).await;
    assert!(
        matches!(refused, Err(StoreError::OverLimit { .. })),
        "{refused:?}"
    );
    assert_eq!(b.ledger(&lease.run).await.unwrap(), [row(40, 60)]);
}

pub async fn the_newest_snapshot_is_kept_and_can_be_dropped(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    assert!(a.snapshot(&lease.run).await.unwrap().is_none());
    let mut head = lease.head;
    for text in ["one", "two"] {
        let mut append = next(&lease, head, &[text]);
        append.snapshot = Some(Snapshot {
            head: append.new_head(),
            bytes: text.repeat(100).into_bytes(),
        });
        head = a.append(append).await.unwrap();
    }
    let newest = b.snapshot(&lease.run).await.unwrap().unwrap();
    assert_eq!(
        (newest.head, newest.bytes),
        (head, "two".repeat(100).into_bytes())
    );
    a.drop_snapshots(&lease.run).await.unwrap();
    assert!(b.snapshot(&lease.run).await.unwrap().is_none());
}

pub async fn a_log_is_read_in_pages(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let texts: Vec<String> = (0..20).map(|index| format!("event {index}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    a.append(next(&lease, lease.head, &texts)).await.unwrap();
    let whole = b.read(&lease.run, 0, 100).await.unwrap();
    assert_eq!(whole.len(), 21);
    let mut paged = Vec::new();
    while let Some(page) = Some(b.read(&lease.run, paged.len() as u64, 4).await.unwrap())
        && !page.is_empty()
    {
        assert!(page.len() <= 4);
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    let missing = b.read(&fresh_run(), 0, 10).await;
    assert!(matches!(missing, Err(StoreError::NoRun(_))), "{missing:?}");
}

pub async fn runs_are_listed_by_age_and_filtered(a: Handle, b: Handle) {
    let tenant = format!("tenant {}", fresh_run());
    let mut ids = Vec::new();
    for index in 0..3 {
        let (mut new, _) = new_run((index == 1).then_some("alice"));
        new.tenant.clone_from(&tenant);
        ids.push(new.run.clone());
        a.create(new).await.unwrap();
    }
    ids.sort();
    let filter = RunFilter {
        tenant: Some(tenant),
        ..RunFilter::default()
    };
    let list = |filter: RunFilter| {
        let b = Arc::clone(&b);
        async move {
            let rows = b.runs(&filter).await.unwrap();
            rows.into_iter().map(|row| row.run).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(filter.clone()).await, ids);
    let ready = RunFilter {
        status: Some(Status::Ready),
        ..filter.clone()
    };
    assert_eq!(list(ready).await.len(), 2);
    let page = RunFilter {
        after: Some(ids[0].clone()),
        limit: Some(1),
        ..filter
    };
    assert_eq!(list(page).await, ids[1..2]);
}

pub async fn a_watcher_hears_of_an_append(a: Handle, _: Handle) {
    let lease = owned(&*a).await;
    let mut hints = a.watch();
    let listening = async {
        loop {
            match hints.recv().await.unwrap() {
                Hint::Run(run) if run == lease.run => return,
                _ => {}
            }
        }
    };
    // A hint can be lost while a watcher connects; then the next append brings another.
    let noise = async {
        let mut head = lease.head;
        loop {
            head = a.append(next(&lease, head, &["hear me"])).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = noise => {}
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("no hint came"),
    }
}

pub async fn a_renewed_lease_is_not_claimed(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    assert!(!a.renew(&lease, 60_000).await.unwrap());
    assert!(
        b.claim_run(&lease.run, &claim("bob", 59_999))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 60_000))
            .await
            .unwrap()
            .is_some()
    );
}

pub async fn a_yielded_run_is_ready_at_once(a: Handle, b: Handle) {
    let lease = owned(&*a).await;
    let mut append = Append::new(lease.run.clone(), lease.epoch, lease.head);
    append.rest = Rest::Yield;
    assert_eq!(a.append(append).await.unwrap(), lease.head);
    let taken = b
        .claim_run(&lease.run, &claim("bob", 0))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken.epoch, 2);
}
