//! Claims, leases and signals, inside a transaction of the writer.

use lula_protocol::RunId;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::read::{HEAD_COLUMNS, HeadColumns, need_key};
use super::values::{int, uint};
use super::{corrupt, failed};
use crate::error::{StoreError, StoreResult};
use crate::run::{LeaseClaim, RunLease};

const CLAIM: &str = "UPDATE runs SET epoch=epoch+1, status='running', owner=?1, due_ms=?2";

fn lease(row: &Row<'_>) -> rusqlite::Result<StoreResult<RunLease>> {
    let run: String = row.get(0)?;
    let epoch: i64 = row.get(1)?;
    let head = HeadColumns::at(row, 2)?;
    Ok((|| {
        Ok(RunLease {
            run: run.parse().map_err(corrupt)?,
            epoch: uint(epoch),
            head: head.head()?,
        })
    })())
}

pub(super) fn claim(
    db: &Connection,
    graph: &str,
    claim: &LeaseClaim,
    limit: u32,
) -> StoreResult<Vec<RunLease>> {
    let mut statement = db
        .prepare_cached(&format!(
            "{CLAIM} WHERE id IN (
               SELECT id FROM runs WHERE graph=?3 AND due_ms<=?4 ORDER BY due_ms LIMIT ?5
             ) RETURNING run_id,epoch,{HEAD_COLUMNS}"
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map(
            params![
                claim.worker,
                int(claim.until_ms()),
                graph,
                int(claim.now_ms),
                limit
            ],
            lease,
        )
        .map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn claim_run(
    db: &Connection,
    run: &RunId,
    claim: &LeaseClaim,
) -> StoreResult<Option<RunLease>> {
    need_key(db, run)?;
    db.prepare_cached(&format!(
        "{CLAIM} WHERE run_id=?3 AND due_ms<=?4 RETURNING run_id,epoch,{HEAD_COLUMNS}"
    ))
    .map_err(failed)?
    .query_row(
        params![
            claim.worker,
            int(claim.until_ms()),
            run.as_str(),
            int(claim.now_ms)
        ],
        lease,
    )
    .optional()
    .map_err(failed)?
    .transpose()
}

pub(super) fn renew(db: &Connection, lease: &RunLease, until_ms: u64) -> StoreResult<bool> {
    db.prepare_cached(
        "UPDATE runs SET due_ms=? WHERE run_id=? AND epoch=? AND status='running'
         RETURNING EXISTS(SELECT 1 FROM signals WHERE signals.run=runs.id)",
    )
    .map_err(failed)?
    .query_row(
        params![int(until_ms), lease.run.as_str(), int(lease.epoch)],
        |row| row.get(0),
    )
    .optional()
    .map_err(failed)?
    .ok_or_else(|| StoreError::Fenced {
        run: lease.run.clone(),
        epoch: lease.epoch,
    })
}

pub(super) fn send(db: &Connection, run: &RunId, signal: &str) -> StoreResult<u64> {
    let id = need_key(db, run)?;
    db.prepare_cached("INSERT INTO signals(run,body) VALUES (?,?)")
        .map_err(failed)?
        .execute(params![id, signal])
        .map_err(failed)?;
    let signal = db.last_insert_rowid();
    db.prepare_cached("UPDATE runs SET status='ready', due_ms=0 WHERE id=? AND status='suspended'")
        .map_err(failed)?
        .execute([id])
        .map_err(failed)?;
    Ok(uint(signal))
}
