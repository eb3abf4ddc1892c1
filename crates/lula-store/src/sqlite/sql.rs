//! The statements. Every function runs inside a transaction of the writer, or on a reader.

use lula_protocol::event::Parent;
use lula_protocol::{ApprovalId, Digest, Dimension, EffectClass, RunId, Signal};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{corrupt, failed};
use crate::append::{
    Append, ApprovalChange, ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow, Rest,
    Snapshot,
};
use crate::body;
use crate::error::{Result, StoreError};
use crate::record::{Head, Record};
use crate::run::{Claim, Lease, NewRun, RunFilter, RunRow, Status};

const SEQ_BITS: u32 = 24;

/// An append with its bodies and blobs compressed, done on the caller's thread.
pub(super) struct Packed {
    pub(super) append: Append,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) blobs: Vec<Vec<u8>>,
}

pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn digest(bytes: &[u8]) -> Result<Digest> {
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| corrupt("a digest has not 32 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

fn position(run: i64, seq: u64) -> Result<i64> {
    if seq >> SEQ_BITS != 0 {
        return Err(StoreError::Full(format!("a log holds at most {} events", 1 << SEQ_BITS)));
    }
    Ok((run << SEQ_BITS) | int(seq))
}

fn insert_events(db: &Connection, run: i64, records: &[Record], bodies: &[Vec<u8>]) -> Result<()> {
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
    blobs: impl Iterator<Item = (&'a crate::Blob, &'a Vec<u8>)>,
) -> Result<()> {
    for (blob, packed) in blobs {
        db.prepare_cached("INSERT INTO blobs(hash,size,bytes) VALUES (?,?,?) ON CONFLICT DO NOTHING")
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

fn upsert_ledger(db: &Connection, run: i64, rows: &[LedgerRow]) -> Result<()> {
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
) -> Result<()> {
    let head = run.records.last().map_or_else(Head::empty, |last| Head {
        next: last.seq + 1,
        hash: last.hash,
    });
    let (status, due) = match &run.claim {
        None => (Status::Ready, 0),
        Some(claim) => (Status::Running, int(claim.until_ms())),
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
    upsert_ledger(db, id, &run.ledger)
}

pub(super) fn append(db: &Connection, packed: &Packed) -> Result<Head> {
    let append = &packed.append;
    let head = append.new_head();
    let id: Option<i64> = db
        .prepare_cached(
            "UPDATE runs SET head_next=?, head_hash=?
             WHERE run_id=? AND head_next=? AND head_hash=? AND epoch=? AND status='running'
             RETURNING id",
        )
        .map_err(failed)?
        .query_row(
            params![
                int(head.next),
                head.hash.as_bytes().as_slice(),
                append.run.as_str(),
                int(append.expected.next),
                append.expected.hash.as_bytes().as_slice(),
                int(append.epoch)
            ],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed)?;
    let Some(id) = id else {
        return Err(StoreError::Fenced {
            run: append.run.clone(),
            epoch: append.epoch,
        });
    };
    insert_events(db, id, &append.records, &packed.bodies)?;
    insert_blobs(db, append.blobs.iter().zip(&packed.blobs))?;
    for row in &append.effects {
        upsert_effect(db, id, row)?;
    }
    for change in &append.approvals {
        change_approval(db, id, change)?;
    }
    upsert_ledger(db, id, &append.ledger)?;
    for signal in &append.takes {
        db.prepare_cached("DELETE FROM signals WHERE id=? AND run=?")
            .map_err(failed)?
            .execute(params![int(*signal), id])
            .map_err(failed)?;
    }
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
    rest(db, id, append.rest)?;
    Ok(head)
}

fn upsert_effect(db: &Connection, id: i64, row: &EffectRow) -> Result<()> {
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
        row.result.as_ref().map(|result| result.as_bytes().as_slice())
    ])
    .map(drop)
    .map_err(failed)
}

fn change_approval(db: &Connection, id: i64, change: &ApprovalChange) -> Result<()> {
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
            let state = if *approved { ApprovalState::Approved } else { ApprovalState::Rejected };
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

fn one(changed: usize, approval: &ApprovalId, why: &'static str) -> Result<()> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Approval {
        approval: approval.clone(),
        why,
    })
}

fn rest(db: &Connection, id: i64, rest: Rest) -> Result<()> {
    let set = |sql: &str, due: Option<i64>| {
        db.prepare_cached(sql)
            .map_err(failed)?
            .execute(params![due, id])
            .map(drop)
            .map_err(failed)
    };
    match rest {
        Rest::Keep => Ok(()),
        Rest::Suspend { wake_ms } => {
            let waiting: bool = db
                .prepare_cached("SELECT EXISTS(SELECT 1 FROM signals WHERE run=?)")
                .map_err(failed)?
                .query_row([id], |row| row.get(0))
                .map_err(failed)?;
            if waiting {
                set("UPDATE runs SET status='ready', owner=NULL, due_ms=? WHERE id=?", Some(0))
            } else {
                set(
                    "UPDATE runs SET status='suspended', owner=NULL, due_ms=? WHERE id=?",
                    wake_ms.map(int),
                )
            }
        }
        Rest::Yield => set("UPDATE runs SET status='ready', owner=NULL, due_ms=? WHERE id=?", Some(0)),
        Rest::Done => set("UPDATE runs SET status='done', owner=NULL, due_ms=? WHERE id=?", None),
    }
}

pub(super) fn read(db: &Connection, run: &RunId, from: u64, limit: u32) -> Result<Vec<Record>> {
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
        .query_map(params![position(id, first)?, end, limit.saturating_add(extra)], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, u32>(3)?,
                row.get::<_, Vec<u8>>(4)?,
                row.get::<_, Vec<u8>>(5)?,
            ))
        })
        .map_err(failed)?;
    let mut previous = Head::empty().hash;
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
            records.push(Record {
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

pub(super) fn run_key(db: &Connection, run: &RunId) -> Result<Option<i64>> {
    db.prepare_cached("SELECT id FROM runs WHERE run_id=?")
        .map_err(failed)?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()
        .map_err(failed)
}

fn need_key(db: &Connection, run: &RunId) -> Result<i64> {
    run_key(db, run)?.ok_or_else(|| StoreError::NoRun(run.clone()))
}

const RUN_COLUMNS: &str = "run_id,tenant,graph,graph_version,status,epoch,owner,due_ms,head_next,\
                           head_hash,parent_run,parent_seq";

fn run_row(row: &Row<'_>) -> rusqlite::Result<Result<RunRow>> {
    let run_id: String = row.get(0)?;
    let status: String = row.get(4)?;
    let hash: Vec<u8> = row.get(9)?;
    let parent: (Option<String>, Option<i64>) = (row.get(10)?, row.get(11)?);
    let (tenant, graph) = (row.get(1)?, row.get(2)?);
    let graph_version = row.get(3)?;
    let (epoch, owner): (i64, Option<String>) = (row.get(5)?, row.get(6)?);
    let (due, next): (Option<i64>, i64) = (row.get(7)?, row.get(8)?);
    Ok((|| {
        let parent = match parent {
            (Some(run), Some(seq)) => Some(Parent {
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
            status: Status::from_name(&status).ok_or_else(|| corrupt("unknown status"))?,
            epoch: uint(epoch),
            owner,
            due_ms: due.map(uint),
            head: Head {
                next: uint(next),
                hash: digest(&hash)?,
            },
            parent,
        })
    })())
}

pub(super) fn run(db: &Connection, run: &RunId) -> Result<Option<RunRow>> {
    db.prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE run_id=?"))
        .map_err(failed)?
        .query_row([run.as_str()], run_row)
        .optional()
        .map_err(failed)?
        .transpose()
}

pub(super) fn runs(db: &Connection, filter: &RunFilter) -> Result<Vec<RunRow>> {
    let mut statement = db
        .prepare_cached(&format!(
            "SELECT {RUN_COLUMNS} FROM runs
             WHERE (?1 IS NULL OR tenant=?1) AND (?2 IS NULL OR status=?2)
               AND (?3 IS NULL OR run_id>?3)
             ORDER BY run_id LIMIT ?4"
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map(
            params![
                filter.tenant,
                filter.status.map(Status::name),
                filter.after.as_ref().map(RunId::as_str),
                filter.limit.map_or(-1, i64::from)
            ],
            run_row,
        )
        .map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

const CLAIM: &str = "UPDATE runs SET epoch=epoch+1, status='running', owner=?1, due_ms=?2";
const CLAIMED: &str = "RETURNING run_id,epoch,head_next,head_hash";

fn lease(row: &Row<'_>) -> rusqlite::Result<Result<Lease>> {
    let run: String = row.get(0)?;
    let (epoch, next): (i64, i64) = (row.get(1)?, row.get(2)?);
    let hash: Vec<u8> = row.get(3)?;
    Ok((|| {
        Ok(Lease {
            run: run.parse().map_err(corrupt)?,
            epoch: uint(epoch),
            head: Head {
                next: uint(next),
                hash: digest(&hash)?,
            },
        })
    })())
}

pub(super) fn claim(db: &Connection, graph: &str, claim: &Claim, limit: u32) -> Result<Vec<Lease>> {
    let mut statement = db
        .prepare_cached(&format!(
            "{CLAIM} WHERE id IN (
               SELECT id FROM runs WHERE graph=?3 AND due_ms<=?4 ORDER BY due_ms LIMIT ?5
             ) {CLAIMED}"
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map(
            params![claim.worker, int(claim.until_ms()), graph, int(claim.now_ms), limit],
            lease,
        )
        .map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn claim_run(db: &Connection, run: &RunId, claim: &Claim) -> Result<Option<Lease>> {
    need_key(db, run)?;
    db.prepare_cached(&format!("{CLAIM} WHERE run_id=?3 AND due_ms<=?4 {CLAIMED}"))
        .map_err(failed)?
        .query_row(
            params![claim.worker, int(claim.until_ms()), run.as_str(), int(claim.now_ms)],
            lease,
        )
        .optional()
        .map_err(failed)?
        .transpose()
}

pub(super) fn renew(db: &Connection, lease: &Lease, until_ms: u64) -> Result<bool> {
    db.prepare_cached(
        "UPDATE runs SET due_ms=? WHERE run_id=? AND epoch=? AND status='running'
         RETURNING EXISTS(SELECT 1 FROM signals WHERE signals.run=runs.id)",
    )
    .map_err(failed)?
    .query_row(params![int(until_ms), lease.run.as_str(), int(lease.epoch)], |row| row.get(0))
    .optional()
    .map_err(failed)?
    .ok_or_else(|| StoreError::Fenced {
        run: lease.run.clone(),
        epoch: lease.epoch,
    })
}

pub(super) fn send(db: &Connection, run: &RunId, signal: &str) -> Result<u64> {
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

pub(super) fn signals(db: &Connection, run: &RunId) -> Result<Vec<(u64, Signal)>> {
    let id = need_key(db, run)?;
    let mut statement =
        db.prepare_cached("SELECT id,body FROM signals WHERE run=? ORDER BY id").map_err(failed)?;
    let rows = statement
        .query_map([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .map_err(failed)?;
    rows.map(|row| {
        let (id, body) = row.map_err(failed)?;
        Ok((uint(id), serde_json::from_str(&body).map_err(corrupt)?))
    })
    .collect()
}

pub(super) fn blob(db: &Connection, digest: &Digest) -> Result<Vec<u8>> {
    let stored: Option<Vec<u8>> = db
        .prepare_cached("SELECT bytes FROM blobs WHERE hash=?")
        .map_err(failed)?
        .query_row([digest.as_bytes().as_slice()], |row| row.get(0))
        .optional()
        .map_err(failed)?;
    body::unpack_blob(digest, &stored.ok_or(StoreError::NoBlob(*digest))?)
}

const EFFECT_COLUMNS: &str = "effect,intent_seq,class,state,attempt,effects.epoch,request,result";

fn effect_row(row: &Row<'_>) -> rusqlite::Result<Result<EffectRow>> {
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

pub(super) fn effects(db: &Connection, run: &RunId) -> Result<Vec<EffectRow>> {
    let id = need_key(db, run)?;
    let mut statement = db
        .prepare_cached(&format!(
            "SELECT {EFFECT_COLUMNS} FROM effects WHERE run=? ORDER BY intent_seq,effect"
        ))
        .map_err(failed)?;
    let rows = statement.query_map([id], effect_row).map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn effects_in(db: &Connection, state: EffectState) -> Result<Vec<(RunId, EffectRow)>> {
    let mut statement = db
        .prepare_cached(&format!(
            "SELECT {EFFECT_COLUMNS},run_id FROM effects JOIN runs ON runs.id=effects.run
             WHERE state=? ORDER BY run_id,intent_seq"
        ))
        .map_err(failed)?;
    let rows = statement
        .query_map([state.name()], |row| Ok((row.get::<_, String>(8)?, effect_row(row)?)))
        .map_err(failed)?;
    rows.map(|row| {
        let (run, effect) = row.map_err(failed)?;
        Ok((run.parse().map_err(corrupt)?, effect?))
    })
    .collect()
}

fn approval_row(row: &Row<'_>) -> rusqlite::Result<Result<ApprovalRow>> {
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
// `status` belongs to runs, `state` to approvals: no name is ambiguous above.

pub(super) fn approval(db: &Connection, approval: &ApprovalId) -> Result<Option<ApprovalRow>> {
    db.prepare_cached(&format!("{APPROVALS} WHERE approval=?"))
        .map_err(failed)?
        .query_row([approval.as_str()], approval_row)
        .optional()
        .map_err(failed)?
        .transpose()
}

pub(super) fn approvals_in(db: &Connection, state: ApprovalState) -> Result<Vec<ApprovalRow>> {
    let mut statement = db
        .prepare_cached(&format!("{APPROVALS} WHERE state=? ORDER BY approval"))
        .map_err(failed)?;
    let rows = statement.query_map([state.name()], approval_row).map_err(failed)?;
    rows.map(|row| row.map_err(failed)?).collect()
}

pub(super) fn ledger(db: &Connection, run: &RunId) -> Result<Vec<LedgerRow>> {
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
            dimension: Dimension::from_name(&dimension)
                .ok_or_else(|| corrupt("unknown dimension"))?,
            limit: limit.map(uint),
            reserved: uint(reserved),
            settled: uint(settled),
        })
    })
    .collect()
}

pub(super) fn snapshot(db: &Connection, run: &RunId) -> Result<Option<Snapshot>> {
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
    Ok(Some(Snapshot {
        head: Head {
            next: uint(next),
            hash: digest(&hash)?,
        },
        bytes,
    }))
}

pub(super) fn drop_snapshots(db: &Connection, run: &RunId) -> Result<()> {
    let id = need_key(db, run)?;
    db.prepare_cached("DELETE FROM snapshots WHERE run=?")
        .map_err(failed)?
        .execute([id])
        .map(drop)
        .map_err(failed)
}
