//! Rows as values.

use lula_protocol::event::ParentRun;
use lula_protocol::{BudgetDimension, Digest, EffectClass};
use tokio_postgres::Row;

use crate::append::{ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow};
use crate::columns;
pub(super) use crate::columns::{int, uint};
use crate::error::{StoreError, StoreResult};
use crate::record::LogHead;
use crate::run::{RunLease, RunRow, RunStatus};

pub(super) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::backend("postgres", format_args!("a row cannot be read: {what}"))
}

pub(super) fn digest(bytes: &[u8]) -> StoreResult<Digest> {
    columns::digest(bytes, |why| corrupt(why))
}

pub(super) const RUN: &str = "run_id,tenant,graph,graph_version,status,epoch,owner,due_ms,\
                              head_next,head_hash,parent_run,parent_seq";

pub(super) fn run(row: &Row) -> StoreResult<RunRow> {
    let parent = match (
        row.get::<_, Option<&str>>(10),
        row.get::<_, Option<i64>>(11),
    ) {
        (Some(run), Some(seq)) => Some(ParentRun {
            run: run.parse().map_err(corrupt)?,
            seq: uint(seq),
        }),
        _ => None,
    };
    Ok(RunRow {
        run: row.get::<_, &str>(0).parse().map_err(corrupt)?,
        tenant: row.get(1),
        graph: row.get(2),
        graph_version: u32::try_from(row.get::<_, i32>(3)).map_err(corrupt)?,
        status: RunStatus::from_name(row.get(4)).ok_or_else(|| corrupt("unknown status"))?,
        epoch: uint(row.get(5)),
        owner: row.get(6),
        due_ms: row.get::<_, Option<i64>>(7).map(uint),
        head: LogHead {
            next: uint(row.get(8)),
            hash: digest(row.get(9))?,
        },
        parent,
    })
}

pub(super) const LEASE: &str = "RETURNING run_id,epoch,head_next,head_hash";

pub(super) fn lease(row: &Row) -> StoreResult<RunLease> {
    Ok(RunLease {
        run: row.get::<_, &str>(0).parse().map_err(corrupt)?,
        epoch: uint(row.get(1)),
        head: LogHead {
            next: uint(row.get(2)),
            hash: digest(row.get(3))?,
        },
    })
}

pub(super) const EFFECT: &str =
    "effect,intent_seq,class,state,attempt,effects.epoch,request,result";

pub(super) fn effect(row: &Row) -> StoreResult<EffectRow> {
    Ok(EffectRow {
        effect: row.get::<_, &str>(0).parse().map_err(corrupt)?,
        intent_seq: uint(row.get(1)),
        class: EffectClass::from_name(row.get(2)).ok_or_else(|| corrupt("unknown class"))?,
        state: EffectState::from_name(row.get(3)).ok_or_else(|| corrupt("unknown state"))?,
        attempt: u32::try_from(row.get::<_, i64>(4)).map_err(corrupt)?,
        epoch: uint(row.get(5)),
        request: digest(row.get(6))?,
        result: row.get::<_, Option<&[u8]>>(7).map(digest).transpose()?,
    })
}

pub(super) const APPROVALS: &str = "SELECT approval,run_id,digest,state,nonce,expires_ms
                                    FROM approvals JOIN runs ON runs.id=approvals.run";

pub(super) fn approval(row: &Row) -> StoreResult<ApprovalRow> {
    Ok(ApprovalRow {
        approval: row.get::<_, &str>(0).parse().map_err(corrupt)?,
        run: row.get::<_, &str>(1).parse().map_err(corrupt)?,
        digest: digest(row.get(2))?,
        state: ApprovalState::from_name(row.get(3)).ok_or_else(|| corrupt("unknown state"))?,
        nonce: row.get(4),
        expires_ms: uint(row.get(5)),
    })
}

pub(super) fn ledger(row: &Row) -> StoreResult<LedgerRow> {
    Ok(LedgerRow {
        dimension: BudgetDimension::from_name(row.get(0))
            .ok_or_else(|| corrupt("unknown dimension"))?,
        limit: row.get::<_, Option<i64>>(1).map(uint),
        reserved: uint(row.get(2)),
        settled: uint(row.get(3)),
    })
}
