//! Queries.

use lula_protocol::event::ParentRun;
use lula_protocol::{ApprovalId, BudgetDimension, Digest, EffectClass, RunId, RunSignal};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::values::{SEQ_BITS, digest, position, seq_bits, uint};
use super::{corrupt, failed};
use crate::append::{ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow, StateSnapshot};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{RunFilter, RunRow, RunStatus};

pub(super) fn read(
    db: &Connection,
    run: &RunId,
    from: u64,
    limit: u32,
) -> StoreResult<Vec<LogRecord>> {
    let Some(id) = run_key(db, run)? else {
        return Err(StoreError::NoRun(run.clone()));
    };
    if from >> SEQ_BITS != 0 {
        return Ok(Vec::new());
    }
    // The entry before the first one asked for brings the digest that one continues.
    let first = from.saturating_sub(1);
    let extra = u32::from(from > 0);
    let mut statement = db
        .prepare_cached(
            "SELECT pos,epoch,at_ms,schema,hash,body FROM events
             WHERE pos >= ? AND pos < ? ORDER BY pos LIMIT ?",
        )
        .map_err(failed)?;
    let end = (id + 1) << SEQ_BITS;
    let rows = statement
        .query_map(
            params![position(id, first)?, end, limit.saturating_add(extra)],
            |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, u32>(3)?,
                    row.get::<_, Vec<u8>>(4)?,
                    row.get::<_, Vec<u8>>(5)?,
                ))
            },
        )
        .map_err(failed)?;
    let mut previous = LogHead::empty().hash;
    let mut records = Vec::new();
    for row in rows {
        let (pos, epoch, at_ms, schema, hash, stored) = row.map_err(failed)?;
        let seq = uint(pos & ((1 << SEQ_BITS) - 1));
        let hash = digest(&hash)?;
        if seq >= from {
            let body = body::unpack(&stored).map_err(|error| StoreError::CorruptEvent {
                run: run.clone(),
                seq,
                why: error.to_string(),
            })?;
            records.push(LogRecord {
                run: run.clone(),
                seq,
                epoch: uint(epoch),
                at_ms: uint(at_ms),
                schema,
                previous,
                hash,
                body,
            });
        }
        previous = hash;
    }
    Ok(records)
}

pub(super) fn run_key(db: &Connection, run: &RunId) -> StoreResult<Option<i64>> {
    db.prepare_cached("SELECT id FROM runs WHERE run_id=?")
        .map_err(failed)?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()
        .map_err(failed)
}

pub(super) fn need_key(db: &Connection, run: &RunId) -> StoreResult<i64> {
    run_key(db, run)?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

/// Where the log of a run ends.
pub(super) fn end_of_log(db: &Connection, id: i64) -> StoreResult<Option<LogHead>> {
    let found: Option<(i64, Vec<u8>)> = db
        .prepare_cached(
            "SELECT pos,hash FROM events WHERE pos >= ? AND pos < ? ORDER BY pos DESC LIMIT 1",
        )
        .map_err(failed)?
        .query_row([id << SEQ_BITS, (id + 1) << SEQ_BITS], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(failed)?;
    found.map(|(pos, hash)| head_at(pos, &hash)).transpose()
}

fn head_at(pos: i64, hash: &[u8]) -> StoreResult<LogHead> {
    Ok(LogHead {
        next: uint(pos & ((1 << SEQ_BITS) - 1)) + 1,
        hash: digest(hash)?,
    })
}

/// The last entry of the log of a row of `runs` that does not rest.
macro_rules! last_entry {
    ($column:literal) => {
        concat!(
            "CASE status WHEN 'running' THEN (SELECT ",
            $column,
            " FROM events WHERE pos >= (runs.id << ",
            seq_bits!(),
            ") AND pos < ((runs.id + 1) << ",
            seq_bits!(),
            ") ORDER BY pos DESC LIMIT 1) END"
        )
    };
}

/// The end of the log as it was when the run last rested, as it is where the run does not rest, and
/// the last effect that was announced in it.
pub(super) const HEAD_COLUMNS: &str = concat!(
    "head_next,head_hash,",
    last_entry!("pos"),
    ",",
    last_entry!("hash"),
    ",CASE status WHEN 'running' THEN
        (SELECT max(intent_seq) FROM effects WHERE run = runs.id) END"
);

/// The values of [`HEAD_COLUMNS`] in one row.
pub(super) struct HeadColumns {
    rested: (i64, Vec<u8>),
    running: Option<(i64, Vec<u8>)>,
    announced: Option<i64>,
}

impl HeadColumns {
    pub(super) fn at(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let pos: Option<i64> = row.get(first + 2)?;
        let hash: Option<Vec<u8>> = row.get(first + 3)?;
        Ok(Self {
            rested: (row.get(first)?, row.get(first + 1)?),
            running: pos.zip(hash),
            announced: row.get(first + 4)?,
        })
    }

    /// Never before the place where the run last rested, nor before an effect that was announced: a
    /// log that lost its end is not taken for a shorter one.
    pub(super) fn head(&self) -> StoreResult<LogHead> {
        let mut head = LogHead {
            next: uint(self.rested.0),
            hash: digest(&self.rested.1)?,
        };
        if let Some((pos, hash)) = &self.running {
            let end = head_at(*pos, hash)?;
            if end.next > head.next {
                head = end;
            }
        }
        // Its digest went with it.
        head.next = head.next.max(self.announced.map_or(0, |seq| uint(seq) + 1));
        Ok(head)
    }
}

const RUN_COLUMNS: &str = "run_id,tenant,graph,graph_version,status,epoch,owner,due_ms,parent_run,\
                           parent_seq";

fn run_row(row: &Row<'_>) -> rusqlite::Result<StoreResult<RunRow>> {
    let run_id: String = row.get(0)?;
    let status: String = row.get(4)?;
    let parent: (Option<String>, Option<i64>) = (row.get(8)?, row.get(9)?);
    let head = HeadColumns::at(row, 10)?;
    let (tenant, graph) = (row.get(1)?, row.get(2)?);
    let graph_version = row.get(3)?;
    let (epoch, owner): (i64, Option<String>) = (row.get(5)?, row.get(6)?);
    let due: Option<i64> = row.get(7)?;
    Ok((|| {
        let parent = match parent {
            (Some(run), Some(seq)) => Some(ParentRun {
                run: run.parse().map_err(corrupt)?,
                seq: uint(seq),
            }),
            _ => None,
        };
        Ok(RunRow {
            run: run_id.parse().map_err(corrupt)?,
            tenant,
            graph,
            graph_version,
            status: RunStatus::from_name(&status).ok_or_else(|| corrupt("unknown status"))?,
            epoch: uint(epoch),
            owner,
            due_ms: due.map(uint),
            head: head.head()?,
            parent,
        })
    })())
}

pub(super) fn run(db: &Connection, run: &RunId) -> StoreResult<Option<RunRow>> {
    db.prepare_cached(&format!(
        "SELECT {RUN_COLUMNS},{HEAD_COLUMNS} FROM runs WHERE run_id=?"
    ))
    .map_err(failed)?
    .query_row([run.as_str()], run_row)
    .optional()
    .map_err(failed)?
    .transpose()
}

pub(super) fn runs(db: &Connection, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
    let mut statement = db
        .prepare_cached(&format!(
            "SELECT {RUN_COLUMNS},{HEAD_COLUMNS} FROM runs
             WHERE (?1 IS NULL OR tenant=?1) AND (?2 IS NULL OR status=?2)
               AND (?3 IS NULL OR run_id>?3)
             ORDER BY run_id LIMIT ?4"
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map(
            params![
                filter.tenant,
                filter.status.map(RunStatus::name),
                filter.after.as_ref().map(RunId::as_str),
                filter.limit.map_or(-1, i64::from)
            ],
            run_row,
        )
        .map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn signals(db: &Connection, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
    let id = need_key(db, run)?;
    let mut statement = db
        .prepare_cached("SELECT id,body FROM signals WHERE run=? ORDER BY id")
        .map_err(failed)?;
    let rows = statement
        .query_map([id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .map_err(failed)?;
    rows.map(|row| {
        let (id, body) = row.map_err(failed)?;
        Ok((uint(id), serde_json::from_str(&body).map_err(corrupt)?))
    })
    .collect()
}

pub(super) fn blob(db: &Connection, digest: &Digest) -> StoreResult<Vec<u8>> {
    let stored: Option<(Vec<u8>, bool)> = db
        .prepare_cached("SELECT bytes, fate=2 FROM blobs WHERE hash=?")
        .map_err(failed)?
        .query_row([digest.as_bytes().as_slice()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(failed)?;
    match stored {
        None => Err(StoreError::NoBlob(*digest)),
        Some((_, true)) => Err(StoreError::Dropped(*digest)),
        Some((bytes, false)) => body::unpack_blob(digest, &bytes),
    }
}

const EFFECT_COLUMNS: &str = "effect,intent_seq,class,state,attempt,effects.epoch,request,result";

fn effect_row(row: &Row<'_>) -> rusqlite::Result<StoreResult<EffectRow>> {
    let effect: String = row.get(0)?;
    let intent: i64 = row.get(1)?;
    let (class, state): (String, String) = (row.get(2)?, row.get(3)?);
    let (attempt, epoch): (u32, i64) = (row.get(4)?, row.get(5)?);
    let (request, result): (Vec<u8>, Option<Vec<u8>>) = (row.get(6)?, row.get(7)?);
    Ok((|| {
        Ok(EffectRow {
            effect: effect.parse().map_err(corrupt)?,
            intent_seq: uint(intent),
            class: EffectClass::from_name(&class).ok_or_else(|| corrupt("unknown class"))?,
            state: EffectState::from_name(&state).ok_or_else(|| corrupt("unknown state"))?,
            attempt,
            epoch: uint(epoch),
            request: digest(&request)?,
            result: result.map(|result| digest(&result)).transpose()?,
        })
    })())
}

pub(super) fn effects(db: &Connection, run: &RunId) -> StoreResult<Vec<EffectRow>> {
    let id = need_key(db, run)?;
    let mut statement = db
        .prepare_cached(&format!(
            "SELECT {EFFECT_COLUMNS} FROM effects WHERE run=? ORDER BY intent_seq,effect"
        ))
        .map_err(failed)?;
    let rows = statement.query_map([id], effect_row).map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn effects_in(
    db: &Connection,
    state: EffectState,
) -> StoreResult<Vec<(RunId, EffectRow)>> {
    let mut statement = db
        .prepare_cached(&format!(
            // Spelled out, so that the index of unknown effects is seen to fit.
            "SELECT {EFFECT_COLUMNS},run_id FROM effects JOIN runs ON runs.id=effects.run
             WHERE state='{}' ORDER BY run_id,intent_seq",
            state.name()
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(8)?, effect_row(row)?)))
        .map_err(failed)?;
    rows.map(|row| {
        let (run, effect) = row.map_err(failed)?;
        Ok((run.parse().map_err(corrupt)?, effect?))
    })
    .collect()
}

fn approval_row(row: &Row<'_>) -> rusqlite::Result<StoreResult<ApprovalRow>> {
    let (approval, run): (String, String) = (row.get(0)?, row.get(1)?);
    let bytes: Vec<u8> = row.get(2)?;
    let (state, nonce): (String, String) = (row.get(3)?, row.get(4)?);
    let expires: i64 = row.get(5)?;
    Ok((|| {
        Ok(ApprovalRow {
            approval: approval.parse().map_err(corrupt)?,
            run: run.parse().map_err(corrupt)?,
            digest: digest(&bytes)?,
            state: ApprovalState::from_name(&state).ok_or_else(|| corrupt("unknown state"))?,
            nonce,
            expires_ms: uint(expires),
        })
    })())
}

const APPROVALS: &str = "SELECT approval,run_id,digest,state,nonce,expires_ms FROM approvals
                         JOIN runs ON runs.id=approvals.run";

pub(super) fn approval(db: &Connection, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
    db.prepare_cached(&format!("{APPROVALS} WHERE approval=?"))
        .map_err(failed)?
        .query_row([approval.as_str()], approval_row)
        .optional()
        .map_err(failed)?
        .transpose()
}

pub(super) fn approvals_in(db: &Connection, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
    let mut statement = db
        .prepare_cached(&format!("{APPROVALS} WHERE state=? ORDER BY approval"))
        .map_err(failed)?;
    let rows = statement
        .query_map([state.name()], approval_row)
        .map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn ledger(db: &Connection, run: &RunId) -> StoreResult<Vec<LedgerRow>> {
    let id = need_key(db, run)?;
    let mut statement = db
        .prepare_cached(
            "SELECT dimension,cap,reserved,settled FROM ledger WHERE run=? ORDER BY dimension",
        )
        .map_err(failed)?;
    let rows = statement
        .query_map([id], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Option<i64>>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, i64>(3)?,
            ))
        })
        .map_err(failed)?;
    rows.map(|row| {
        let (dimension, limit, reserved, settled) = row.map_err(failed)?;
        Ok(LedgerRow {
            dimension: BudgetDimension::from_name(&dimension)
                .ok_or_else(|| corrupt("unknown dimension"))?,
            limit: limit.map(uint),
            reserved: uint(reserved),
            settled: uint(settled),
        })
    })
    .collect()
}

pub(super) fn snapshot(db: &Connection, run: &RunId) -> StoreResult<Option<StateSnapshot>> {
    let id = need_key(db, run)?;
    let found: Option<(i64, Vec<u8>, Vec<u8>)> = db
        .prepare_cached("SELECT next,hash,body FROM snapshots WHERE run=?")
        .map_err(failed)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
        .map_err(failed)?;
    let Some((next, hash, stored)) = found else {
        return Ok(None);
    };
    // Only a cache: one that cannot be read is as good as none.
    let Ok(bytes) = body::unpack(&stored) else {
        return Ok(None);
    };
    Ok(Some(StateSnapshot {
        head: LogHead {
            next: uint(next),
            hash: digest(&hash)?,
        },
        bytes,
    }))
}
