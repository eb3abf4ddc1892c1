//! Creating and appending, inside a transaction of the writer.

use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::failed;
use super::read::{end_of_log, need_key};
use super::values::{int, position};
use crate::append::{
    ApprovalChange, ApprovalState, Blob, EffectRow, LeaseAfterAppend, LedgerRow, LogAppend,
};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{NewRun, RunStatus};

/// An append with its bodies and blobs compressed, done on the caller's thread.
pub(super) struct PackedAppend {
    pub(super) append: LogAppend,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) blobs: Vec<Vec<u8>>,
}

fn insert_events(
    db: &Connection,
    run: i64,
    records: &[LogRecord],
    bodies: &[Vec<u8>],
) -> StoreResult<()> {
    let mut insert = db
        .prepare_cached("INSERT INTO events(pos,epoch,at_ms,schema,hash,body) VALUES (?,?,?,?,?,?)")
        .map_err(failed)?;
    for (record, body) in records.iter().zip(bodies) {
        insert
            .execute(params![
                position(run, record.seq)?,
                int(record.epoch),
                int(record.at_ms),
                record.schema,
                record.hash.as_bytes().as_slice(),
                body
            ])
            .map_err(failed)?;
    }
    Ok(())
}

fn insert_blobs<'a>(
    db: &Connection,
    blobs: impl Iterator<Item = (&'a Blob, &'a Vec<u8>)>,
) -> StoreResult<()> {
    for (blob, packed) in blobs {
        db.prepare_cached(
            "INSERT INTO blobs(hash,size,bytes) VALUES (?,?,?)
             ON CONFLICT DO UPDATE SET bytes=excluded.bytes, fate=0 WHERE fate<>0",
        )
        .map_err(failed)?
        .execute(params![
            blob.digest.as_bytes().as_slice(),
            int(blob.bytes.len() as u64),
            packed
        ])
        .map_err(failed)?;
    }
    Ok(())
}

fn upsert_ledger(db: &Connection, run: i64, rows: &[LedgerRow]) -> StoreResult<()> {
    for row in rows {
        db.prepare_cached(
            "INSERT INTO ledger(run,dimension,cap,reserved,settled) VALUES (?,?,?,?,?)
             ON CONFLICT DO UPDATE SET cap=excluded.cap, reserved=excluded.reserved,
               settled=excluded.settled",
        )
        .map_err(failed)?
        .execute(params![
            run,
            row.dimension.name(),
            row.limit.map(int),
            int(row.reserved),
            int(row.settled)
        ])
        .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn create(
    db: &Connection,
    run: &NewRun,
    bodies: &[Vec<u8>],
    blobs: &[Vec<u8>],
) -> StoreResult<i64> {
    let head = run.head();
    let (status, due) = match &run.claim {
        None => (RunStatus::Ready, 0),
        Some(claim) => (RunStatus::Running, int(claim.until_ms())),
    };
    let inserted = db
        .prepare_cached(
            "INSERT INTO runs(run_id,tenant,graph,graph_version,status,epoch,owner,due_ms,
               head_next,head_hash,parent_run,parent_seq)
             VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(run_id) DO NOTHING",
        )
        .map_err(failed)?
        .execute(params![
            run.run.as_str(),
            run.tenant,
            run.graph,
            run.graph_version,
            status.name(),
            int(run.epoch),
            run.claim.as_ref().map(|claim| claim.worker.as_str()),
            due,
            int(head.next),
            head.hash.as_bytes().as_slice(),
            run.parent.as_ref().map(|parent| parent.run.as_str()),
            run.parent.as_ref().map(|parent| int(parent.seq)),
        ])
        .map_err(failed)?;
    if inserted == 0 {
        return Err(StoreError::RunExists(run.run.clone()));
    }
    let id = db.last_insert_rowid();
    insert_events(db, id, &run.records, bodies)?;
    insert_blobs(db, run.blobs.iter().zip(blobs))?;
    upsert_ledger(db, id, &run.ledger)?;
    Ok(id)
}

/// Creates a run and appends to it what continues it.
pub(super) fn create_and_append(
    db: &Connection,
    run: &NewRun,
    bodies: &[Vec<u8>],
    blobs: &[Vec<u8>],
    packed: &PackedAppend,
) -> StoreResult<LogHead> {
    let append = &packed.append;
    let continues = append.run == run.run
        && append.epoch == run.epoch
        && append.expected == run.head()
        && run.claim.is_some();
    if !continues {
        return Err(fenced(append));
    }
    let id = create(db, run, bodies, blobs)?;
    move_on(db, id, append)?;
    beside(db, id, packed)?;
    Ok(append.new_head())
}

pub(super) fn append(db: &Connection, packed: &PackedAppend) -> StoreResult<LogHead> {
    let append = &packed.append;
    let id = continued(db, append)?.ok_or_else(|| fenced(append))?;
    move_on(db, id, append)?;
    beside(db, id, packed)?;
    Ok(append.new_head())
}

/// The run that an append continues: it is still the caller's, and its log ends where the caller
/// believes. Nothing is written for that: while a run is worked on, its log alone says how far it
/// is, and an append that changes nothing else touches no page but the log's.
fn continued(db: &Connection, append: &LogAppend) -> StoreResult<Option<i64>> {
    let id: Option<i64> = db
        .prepare_cached("SELECT id FROM runs WHERE run_id=? AND epoch=? AND status='running'")
        .map_err(failed)?
        .query_row(params![append.run.as_str(), int(append.epoch)], |row| {
            row.get(0)
        })
        .optional()
        .map_err(failed)?;
    let Some(id) = id else { return Ok(None) };
    let end = end_of_log(db, id)?.unwrap_or_else(LogHead::empty);
    Ok((end == append.expected).then_some(id))
}

fn fenced(append: &LogAppend) -> StoreError {
    StoreError::Fenced {
        run: append.run.clone(),
        epoch: append.epoch,
    }
}

/// Puts the run where it rests, with the end of its log, unless the caller goes on with it.
fn move_on(db: &Connection, id: i64, append: &LogAppend) -> StoreResult<()> {
    for signal in &append.takes {
        db.prepare_cached("DELETE FROM signals WHERE id=? AND run=?")
            .map_err(failed)?
            .execute(params![int(*signal), id])
            .map_err(failed)?;
    }
    let rested = match append.rest {
        LeaseAfterAppend::Keep => None,
        LeaseAfterAppend::Yield => Some((RunStatus::Ready, Some(0))),
        LeaseAfterAppend::Done => Some((RunStatus::Done, None)),
        LeaseAfterAppend::Suspend { .. } if is_signalled(db, id)? => {
            Some((RunStatus::Ready, Some(0)))
        }
        LeaseAfterAppend::Suspend { wake_ms } => Some((RunStatus::Suspended, wake_ms.map(int))),
    };
    let Some((status, due)) = rested else {
        return Ok(());
    };
    let head = append.new_head();
    db.prepare_cached(
        "UPDATE runs SET head_next=?, head_hash=?, status=?, owner=NULL, due_ms=? WHERE id=?",
    )
    .map_err(failed)?
    .execute(params![
        int(head.next),
        head.hash.as_bytes(),
        status.name(),
        due,
        id
    ])
    .map(drop)
    .map_err(failed)
}

fn is_signalled(db: &Connection, id: i64) -> StoreResult<bool> {
    db.prepare_cached("SELECT EXISTS(SELECT 1 FROM signals WHERE run=?)")
        .map_err(failed)?
        .query_row([id], |row| row.get(0))
        .map_err(failed)
}

/// Writes the entries and what changes with them.
fn beside(db: &Connection, id: i64, packed: &PackedAppend) -> StoreResult<()> {
    let append = &packed.append;
    insert_events(db, id, &append.records, &packed.bodies)?;
    insert_blobs(db, append.blobs.iter().zip(&packed.blobs))?;
    for row in &append.effects {
        upsert_effect(db, id, row)?;
    }
    for change in &append.approvals {
        change_approval(db, id, change)?;
    }
    upsert_ledger(db, id, &append.ledger)?;
    if let Some(snapshot) = &append.snapshot {
        db.prepare_cached("INSERT OR REPLACE INTO snapshots(run,next,hash,body) VALUES (?,?,?,?)")
            .map_err(failed)?
            .execute(params![
                id,
                int(snapshot.head.next),
                snapshot.head.hash.as_bytes().as_slice(),
                body::pack(&snapshot.bytes)
            ])
            .map_err(failed)?;
    }
    Ok(())
}

fn upsert_effect(db: &Connection, id: i64, row: &EffectRow) -> StoreResult<()> {
    db.prepare_cached(
        "INSERT INTO effects(run,effect,intent_seq,class,state,attempt,epoch,request,result)
         VALUES (?,?,?,?,?,?,?,?,?)
         ON CONFLICT DO UPDATE SET state=excluded.state, attempt=excluded.attempt,
           epoch=excluded.epoch, result=excluded.result",
    )
    .map_err(failed)?
    .execute(params![
        id,
        row.effect.as_str(),
        int(row.intent_seq),
        row.class.name(),
        row.state.name(),
        row.attempt,
        int(row.epoch),
        row.request.as_bytes().as_slice(),
        row.result
            .as_ref()
            .map(|result| result.as_bytes().as_slice())
    ])
    .map(drop)
    .map_err(failed)
}

fn change_approval(db: &Connection, id: i64, change: &ApprovalChange) -> StoreResult<()> {
    match change {
        ApprovalChange::Open(row) => db
            .prepare_cached(
                "INSERT INTO approvals(approval,run,digest,state,nonce,expires_ms)
                 VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            )
            .map_err(failed)?
            .execute(params![
                row.approval.as_str(),
                id,
                row.digest.as_bytes().as_slice(),
                row.state.name(),
                row.nonce,
                int(row.expires_ms)
            ])
            .map(drop)
            .map_err(failed),
        ApprovalChange::Decide { approval, approved } => {
            let state = if *approved {
                ApprovalState::Approved
            } else {
                ApprovalState::Rejected
            };
            let changed = db
                .prepare_cached(
                    "UPDATE approvals SET state=? WHERE approval=? AND run=? AND state='open'",
                )
                .map_err(failed)?
                .execute(params![state.name(), approval.as_str(), id])
                .map_err(failed)?;
            one(changed, approval, "it is not open")
        }
        ApprovalChange::Use { approval, digest } => {
            let changed = db
                .prepare_cached(
                    "UPDATE approvals SET state='used'
                     WHERE approval=? AND run=? AND state='approved' AND digest=?",
                )
                .map_err(failed)?
                .execute(params![approval.as_str(), id, digest.as_bytes().as_slice()])
                .map_err(failed)?;
            one(changed, approval, "it was used, or is for something else")
        }
    }
}

fn one(changed: usize, approval: &ApprovalId, why: &'static str) -> StoreResult<()> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Approval {
        approval: approval.clone(),
        why,
    })
}

pub(super) fn condemn_blobs(db: &Connection, blobs: &[BlobRef]) -> StoreResult<()> {
    let mut condemn = db
        .prepare_cached("UPDATE blobs SET fate=1 WHERE hash=? AND fate=0")
        .map_err(failed)?;
    for blob in blobs {
        condemn
            .execute([blob.digest.as_bytes().as_slice()])
            .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn drop_blobs(db: &Connection, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
    let mut drop = db
        .prepare_cached(
            "INSERT INTO blobs(hash,size,bytes,fate) VALUES (?,?,x'',2)
             ON CONFLICT DO UPDATE SET bytes=x'', fate=2 WHERE fate=1",
        )
        .map_err(failed)?;
    let mut dropped = Vec::new();
    for blob in blobs {
        let changed = drop
            .execute(params![blob.digest.as_bytes().as_slice(), int(blob.size)])
            .map_err(failed)?;
        if changed > 0 {
            dropped.push(*blob);
        }
    }
    Ok(dropped)
}

pub(super) fn drop_snapshots(db: &Connection, run: &RunId) -> StoreResult<()> {
    let id = need_key(db, run)?;
    db.prepare_cached("DELETE FROM snapshots WHERE run=?")
        .map_err(failed)?
        .execute([id])
        .map(drop)
        .map_err(failed)
}
