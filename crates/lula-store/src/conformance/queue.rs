//! The queue: leases, epochs, waits and signals.

use std::sync::Arc;

use lula_protocol::approval::ApprovalDecision;
use lula_protocol::{ApprovalId, Digest, RunSignal};

use super::fixtures::{
    StoreHandle, TestRandom, cancel, claim, fresh_run, is_fenced, new_run, next, owned,
};
use crate::{LeaseAfterAppend, LogAppend, RunLease, RunStatus, StoreError, check_run};

pub async fn a_claimed_run_belongs_to_nobody_else(a: StoreHandle, b: StoreHandle) {
    let (new, lease) = new_run(None);
    let graph = new.graph.clone();
    a.create(new).await.unwrap();
    let claimed = a.claim(&graph, &claim("alice", 5_000), 10).await.unwrap();
    assert_eq!(
        claimed,
        [RunLease {
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

pub async fn a_dead_owners_run_is_claimed_and_the_old_owner_is_fenced(
    a: StoreHandle,
    b: StoreHandle,
) {
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

pub async fn many_workers_never_get_the_same_run(a: StoreHandle, b: StoreHandle) {
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

pub async fn a_clock_that_jumps_back_claims_nothing(a: StoreHandle, b: StoreHandle) {
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

pub async fn a_suspended_run_is_due_when_its_time_comes(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = LeaseAfterAppend::Suspend {
        wake_ms: Some(90_000),
    };
    a.append(append).await.unwrap();
    let row = b.run(&lease.run).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.due_ms, row.owner),
        (RunStatus::Suspended, Some(90_000), None)
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

pub async fn a_signal_wakes_a_suspended_run(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = LeaseAfterAppend::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    let never = claim("bob", u64::from(u32::MAX));
    assert!(b.claim_run(&lease.run, &never).await.unwrap().is_none());
    b.send(&lease.run, &cancel()).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        RunStatus::Ready
    );
    assert!(
        b.claim_run(&lease.run, &claim("bob", 1))
            .await
            .unwrap()
            .is_some()
    );
}

pub async fn a_signal_sent_before_the_suspension_is_not_lost(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    b.send(&lease.run, &cancel()).await.unwrap();
    assert!(
        a.renew(&lease, 50_000).await.unwrap(),
        "the owner is told of the signal"
    );
    let mut append = next(&lease, lease.head, &["wait"]);
    append.rest = LeaseAfterAppend::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        RunStatus::Ready
    );
}

pub async fn signals_come_in_order_and_are_taken_once(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let vote = RunSignal::Vote {
        approval: ApprovalId::from_parts(1, [1; 10]),
        digest: Digest::of_bytes(b"seen"),
        by: "bob".parse().unwrap(),
        role: "maintainer".to_owned(),
        decision: ApprovalDecision::Approve,
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
    append.rest = LeaseAfterAppend::Suspend { wake_ms: None };
    a.append(append).await.unwrap();
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        RunStatus::Suspended
    );
    let nobody = a.send(&fresh_run(), &cancel()).await;
    assert!(matches!(nobody, Err(StoreError::NoRun(_))), "{nobody:?}");
}

pub async fn a_run_that_is_done_is_never_claimed(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let mut append = next(&lease, lease.head, &["the end"]);
    append.rest = LeaseAfterAppend::Done;
    let head = a.append(append).await.unwrap();
    a.send(&lease.run, &cancel()).await.unwrap();
    let late = claim("bob", u64::from(u32::MAX));
    assert!(b.claim_run(&lease.run, &late).await.unwrap().is_none());
    is_fenced(&a.append(next(&lease, head, &["after the end"])).await);
    assert_eq!(
        a.run(&lease.run).await.unwrap().unwrap().status,
        RunStatus::Done
    );
}

pub async fn a_renewed_lease_is_not_claimed(a: StoreHandle, b: StoreHandle) {
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

pub async fn a_yielded_run_is_ready_at_once(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let mut append = LogAppend::new(lease.run.clone(), lease.epoch, lease.head);
    append.rest = LeaseAfterAppend::Yield;
    assert_eq!(a.append(append).await.unwrap(), lease.head);
    let taken = b
        .claim_run(&lease.run, &claim("bob", 0))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken.epoch, 2);
}

/// Three workers claim, append and renew in any order, each with what it believes; a model says
/// who may.
pub async fn in_no_order_of_claims_and_appends_can_two_owners_write(
    a: StoreHandle,
    b: StoreHandle,
) {
    for seed in 0..12 {
        let mut dice = TestRandom(seed);
        let (new, lease) = new_run(None);
        a.create(new).await.unwrap();
        let (mut now, mut epoch, mut due, mut head) = (1_000, 0, 0, lease.head);
        let mut believed: [Option<RunLease>; 3] = [None, None, None];
        for step in 0..40 {
            let at = format!("seed {seed}, step {step}");
            let store = if dice.roll(2) == 0 { &a } else { &b };
            let who = usize::try_from(dice.roll(3)).unwrap();
            let mine = believed[who].clone();
            let owns = mine.as_ref().is_some_and(|mine| mine.epoch == epoch);
            match (dice.roll(4), mine) {
                (0, _) => now += dice.roll(40_000),
                (1, _) => {
                    let worker = claim(&format!("worker {who}"), now);
                    let taken = store.claim_run(&lease.run, &worker).await.unwrap();
                    assert_eq!(taken.is_some(), due <= now, "{at}");
                    if let Some(taken) = taken {
                        (epoch, due) = (epoch + 1, worker.until_ms());
                        assert_eq!((taken.epoch, taken.head), (epoch, head), "{at}");
                        believed[who] = Some(taken);
                    }
                }
                (2, Some(mine)) => {
                    let until = now + 30_000;
                    let renewed = store.renew(&mine, until).await;
                    assert_eq!(renewed.is_ok(), owns, "{at}");
                    due = if owns { until } else { due };
                }
                (_, Some(mine)) => {
                    let appended = store.append(next(&mine, mine.head, &["step"])).await;
                    assert_eq!(appended.is_ok(), owns, "{at}: {appended:?}");
                    if let Ok(after) = appended {
                        head = after;
                        believed[who] = Some(RunLease { head, ..mine });
                    }
                }
                (_, None) => {}
            }
        }
        check_run(&*b, &lease.run).await.unwrap();
    }
}
