//! What changes beside the log, in the same transaction: effects, approvals, ledger, snapshots.

use lula_protocol::{
    ApprovalId, BudgetAmounts, BudgetDimension, Digest, EffectClass, EffectId, RunId,
};

use super::fixtures::{StoreHandle, TestRandom, fresh, new_run, next, owned};
use crate::{
    ApprovalChange, ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow, LogHead,
    StateSnapshot, StoreError,
};

pub(super) fn effect(state: EffectState) -> EffectRow {
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

pub async fn effects_show_where_they_stand(a: StoreHandle, b: StoreHandle) {
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

pub async fn an_approval_is_used_once_and_only_for_its_digest(a: StoreHandle, b: StoreHandle) {
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

    let attempt = |head: LogHead, digest: &[u8]| {
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

pub async fn a_ledger_row_above_its_limit_is_refused(a: StoreHandle, b: StoreHandle) {
    let (mut new, lease) = new_run(Some("alice"));
    new.ledger = LedgerRow::fresh(&BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100));
    a.create(new).await.unwrap();
    let row = |reserved, settled| LedgerRow {
        dimension: BudgetDimension::MicroUsd,
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

pub async fn the_newest_snapshot_is_kept_and_can_be_dropped(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    assert!(a.snapshot(&lease.run).await.unwrap().is_none());
    let mut head = lease.head;
    for text in ["one", "two"] {
        let mut append = next(&lease, head, &[text]);
        append.snapshot = Some(StateSnapshot {
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

/// Decisions and uses in any order: one use, after a yes, for what was asked, and no other.
pub async fn in_no_order_is_an_approval_used_otherwise_than_it_was_given(
    a: StoreHandle,
    b: StoreHandle,
) {
    let lease = owned(&*a).await;
    let mut head = lease.head;
    for seed in 0..12 {
        let mut dice = TestRandom(seed);
        let row = approval(&lease.run);
        let mut append = next(&lease, head, &["ask"]);
        append.approvals = vec![ApprovalChange::Open(row.clone())];
        head = a.append(append).await.unwrap();
        let mut state = ApprovalState::Open;
        for step in 0..12 {
            let mut append = next(&lease, head, &["try"]);
            let approval = row.approval.clone();
            let (change, after) = match dice.roll(4) {
                0 => {
                    let approved = dice.roll(3) > 0;
                    let change = ApprovalChange::Decide { approval, approved };
                    let decided = if approved {
                        ApprovalState::Approved
                    } else {
                        ApprovalState::Rejected
                    };
                    (change, (state == ApprovalState::Open).then_some(decided))
                }
                1 => {
                    let digest = Digest::of_bytes(b"another diff");
                    (ApprovalChange::Use { approval, digest }, None)
                }
                _ => {
                    let digest = row.digest;
                    let used = state == ApprovalState::Approved;
                    let change = ApprovalChange::Use { approval, digest };
                    (change, used.then_some(ApprovalState::Used))
                }
            };
            append.approvals = vec![change];
            let appended = a.append(append).await;
            assert_eq!(
                appended.is_ok(),
                after.is_some(),
                "seed {seed}, step {step}"
            );
            head = appended.unwrap_or(head);
            state = after.unwrap_or(state);
            let found = b.approval(&row.approval).await.unwrap().unwrap();
            assert_eq!(found.state, state, "seed {seed}, step {step}");
        }
    }
}
