//! Writing a run. The statements of one append are sent together; the server answers in order.

use deadpool_postgres::Transaction;
use futures_util::future::try_join_all;
use lula_protocol::ApprovalId;
use tokio_postgres::types::ToSql;

use super::failed;
use super::rows::int;
use crate::append::{
    ApprovalChange, ApprovalState, Blob, EffectRow, LeaseAfterAppend, LedgerRow, LogAppend,
};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{NewRun, RunStatus};

type Param<'a> = &'a (dyn ToSql + Sync);

async fn execute(tx: &Transaction<'_>, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
    let statement = tx.prepare_cached(sql).await.map_err(failed)?;
    tx.execute(&statement, params).await.map_err(failed)
}

async fn insert_events(tx: &Transaction<'_>, run: i64, records: &[LogRecord]) -> StoreResult<()> {
    if records.is_empty() {
        return Ok(());
    }
    let seqs: Vec<i64> = records.iter().map(|record| int(record.seq)).collect();
    let epochs: Vec<i64> = records.iter().map(|record| int(record.epoch)).collect();
    let times: Vec<i64> = records.iter().map(|record| int(record.at_ms)).collect();
    let schema = |record: &LogRecord| i32::try_from(record.schema).unwrap_or(i32::MAX);
    let schemas: Vec<i32> = records.iter().map(schema).collect();
    let hashes: Vec<&[u8]> = records
        .iter()
        .map(|r| r.hash.as_bytes().as_slice())
        .collect();
    let bodies: Vec<Vec<u8>> = records
        .iter()
        .map(|record| body::pack(&record.body))
        .collect();
    let sql = "INSERT INTO events(run,seq,epoch,at_ms,schema,hash,body)
               SELECT $1, * FROM unnest($2::bigint[],$3::bigint[],$4::bigint[],$5::int[],
                                        $6::bytea[],$7::bytea[])";
    execute(
        tx,
        sql,
        &[&run, &seqs, &epochs, &times, &schemas, &hashes, &bodies],
    )
    .await?;
    Ok(())
}

async fn insert_blob(tx: &Transaction<'_>, blob: &Blob) -> StoreResult<()> {
    let sql = "INSERT INTO blobs(hash,size,bytes) VALUES ($1,$2,$3)
               ON CONFLICT(hash) DO UPDATE SET bytes=excluded.bytes, fate=0 WHERE blobs.fate<>0";
    let hash = blob.digest.as_bytes().as_slice();
    let size = int(blob.bytes.len() as u64);
    execute(tx, sql, &[&hash, &size, &body::pack(&blob.bytes)]).await?;
    Ok(())
}

async fn upsert_ledger(tx: &Transaction<'_>, run: i64, row: &LedgerRow) -> StoreResult<()> {
    let sql = "INSERT INTO ledger(run,dimension,cap,reserved,settled) VALUES ($1,$2,$3,$4,$5)
               ON CONFLICT(run,dimension) DO UPDATE SET cap=excluded.cap,
                 reserved=excluded.reserved, settled=excluded.settled";
    let limit = row.limit.map(int);
    let (reserved, settled) = (int(row.reserved), int(row.settled));
    execute(
        tx,
        sql,
        &[&run, &row.dimension.name(), &limit, &reserved, &settled],
    )
    .await?;
    Ok(())
}

async fn upsert_effect(tx: &Transaction<'_>, run: i64, row: &EffectRow) -> StoreResult<()> {
    let sql = "INSERT INTO effects(run,effect,intent_seq,class,state,attempt,epoch,request,result)
               VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9)
               ON CONFLICT(run,effect) DO UPDATE SET state=excluded.state,
                 attempt=excluded.attempt, epoch=excluded.epoch, result=excluded.result";
    let result = row
        .result
        .as_ref()
        .map(|result| result.as_bytes().as_slice());
    let params: &[Param<'_>] = &[
        &run,
        &row.effect.as_str(),
        &int(row.intent_seq),
        &row.class.name(),
        &row.state.name(),
        &i64::from(row.attempt),
        &int(row.epoch),
        &row.request.as_bytes().as_slice(),
        &result,
    ];
    execute(tx, sql, params).await?;
    Ok(())
}

fn one(changed: u64, approval: &ApprovalId, why: &'static str) -> StoreResult<()> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Approval {
        approval: approval.clone(),
        why,
    })
}

async fn change_approval(
    tx: &Transaction<'_>,
    run: i64,
    change: &ApprovalChange,
) -> StoreResult<()> {
    match change {
        ApprovalChange::Open(row) => {
            let sql = "INSERT INTO approvals(approval,run,digest,state,nonce,expires_ms)
                       VALUES ($1,$2,$3,$4,$5,$6) ON CONFLICT DO NOTHING";
            let params: &[Param<'_>] = &[
                &row.approval.as_str(),
                &run,
                &row.digest.as_bytes().as_slice(),
                &row.state.name(),
                &row.nonce,
                &int(row.expires_ms),
            ];
            execute(tx, sql, params).await?;
            Ok(())
        }
        ApprovalChange::Decide { approval, approved } => {
            let state = if *approved {
                ApprovalState::Approved
            } else {
                ApprovalState::Rejected
            };
            let sql = "UPDATE approvals SET state=$1 WHERE approval=$2 AND run=$3 AND state='open'";
            let changed = execute(tx, sql, &[&state.name(), &approval.as_str(), &run]).await?;
            one(changed, approval, "it is not open")
        }
        ApprovalChange::Use { approval, digest } => {
            let sql = "UPDATE approvals SET state='used'
                       WHERE approval=$1 AND run=$2 AND state='approved' AND digest=$3";
            let digest = digest.as_bytes().as_slice();
            let changed = execute(tx, sql, &[&approval.as_str(), &run, &digest]).await?;
            one(changed, approval, "it was used, or is for something else")
        }
    }
}

pub(super) async fn create(tx: &Transaction<'_>, run: &NewRun) -> StoreResult<()> {
    let head = run.head();
    let (status, due) = match &run.claim {
        None => (RunStatus::Ready, 0),
        Some(claim) => (RunStatus::Running, int(claim.until_ms())),
    };
    let statement = tx
        .prepare_cached(
            "INSERT INTO runs(run_id,tenant,graph,graph_version,status,epoch,owner,due_ms,
               head_next,head_hash,parent_run,parent_seq)
             VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)
             ON CONFLICT(run_id) DO NOTHING RETURNING id",
        )
        .await
        .map_err(failed)?;
    let params: &[Param<'_>] = &[
        &run.run.as_str(),
        &run.tenant,
        &run.graph,
        &i32::try_from(run.graph_version).unwrap_or(i32::MAX),
        &status.name(),
        &int(run.epoch),
        &run.claim.as_ref().map(|claim| claim.worker.as_str()),
        &due,
        &int(head.next),
        &head.hash.as_bytes().as_slice(),
        &run.parent.as_ref().map(|parent| parent.run.as_str()),
        &run.parent.as_ref().map(|parent| int(parent.seq)),
    ];
    let Some(row) = tx.query_opt(&statement, params).await.map_err(failed)? else {
        return Err(StoreError::RunExists(run.run.clone()));
    };
    let id: i64 = row.get(0);
    let events = insert_events(tx, id, &run.records);
    let blobs = try_join_all(run.blobs.iter().map(|blob| insert_blob(tx, blob)));
    let ledger = try_join_all(run.ledger.iter().map(|row| upsert_ledger(tx, id, row)));
    tokio::try_join!(events, blobs, ledger)?;
    Ok(())
}

pub(super) async fn append(tx: &Transaction<'_>, append: &LogAppend) -> StoreResult<LogHead> {
    let head = append.new_head();
    let statement = tx
        .prepare_cached(
            "UPDATE runs SET head_next=$1, head_hash=$2
             WHERE run_id=$3 AND head_next=$4 AND head_hash=$5 AND epoch=$6 AND status='running'
             RETURNING id",
        )
        .await
        .map_err(failed)?;
    let params: &[Param<'_>] = &[
        &int(head.next),
        &head.hash.as_bytes().as_slice(),
        &append.run.as_str(),
        &int(append.expected.next),
        &append.expected.hash.as_bytes().as_slice(),
        &int(append.epoch),
    ];
    let Some(row) = tx.query_opt(&statement, params).await.map_err(failed)? else {
        return Err(StoreError::Fenced {
            run: append.run.clone(),
            epoch: append.epoch,
        });
    };
    let id: i64 = row.get(0);
    let events = insert_events(tx, id, &append.records);
    let blobs = try_join_all(append.blobs.iter().map(|blob| insert_blob(tx, blob)));
    let effects = try_join_all(append.effects.iter().map(|row| upsert_effect(tx, id, row)));
    let ledger = try_join_all(append.ledger.iter().map(|row| upsert_ledger(tx, id, row)));
    let takes = async {
        if append.takes.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = append.takes.iter().map(|signal| int(*signal)).collect();
        let sql = "DELETE FROM signals WHERE run=$1 AND id=ANY($2)";
        execute(tx, sql, &[&id, &ids]).await.map(drop)
    };
    let snapshot = async {
        let Some(snapshot) = &append.snapshot else {
            return Ok(());
        };
        let sql = "INSERT INTO snapshots(run,next,hash,body) VALUES ($1,$2,$3,$4)
                   ON CONFLICT(run) DO UPDATE SET next=excluded.next, hash=excluded.hash,
                     body=excluded.body";
        let hash = snapshot.head.hash.as_bytes().as_slice();
        let bytes = body::pack(&snapshot.bytes);
        execute(tx, sql, &[&id, &int(snapshot.head.next), &hash, &bytes])
            .await
            .map(drop)
    };
    tokio::try_join!(events, blobs, effects, ledger, takes, snapshot)?;
    for change in &append.approvals {
        change_approval(tx, id, change).await?;
    }
    rest(tx, id, append.rest).await?;
    Ok(head)
}

async fn rest(tx: &Transaction<'_>, id: i64, rest: LeaseAfterAppend) -> StoreResult<()> {
    let (sql, due) = match rest {
        LeaseAfterAppend::Keep => return Ok(()),
        // The row is locked by this append, and a sender of a signal locks it too: one of the
        // two sees what the other did.
        LeaseAfterAppend::Suspend { wake_ms } => (
            "UPDATE runs SET owner=NULL,
               status=CASE WHEN EXISTS(SELECT 1 FROM signals WHERE run=$2)
                 THEN 'ready' ELSE 'suspended' END,
               due_ms=CASE WHEN EXISTS(SELECT 1 FROM signals WHERE run=$2)
                 THEN 0 ELSE $1::bigint END
             WHERE id=$2",
            wake_ms.map(int),
        ),
        LeaseAfterAppend::Yield => (
            "UPDATE runs SET status='ready', owner=NULL, due_ms=$1 WHERE id=$2",
            Some(0),
        ),
        LeaseAfterAppend::Done => (
            "UPDATE runs SET status='done', owner=NULL, due_ms=$1 WHERE id=$2",
            None,
        ),
    };
    execute(tx, sql, &[&due, &id]).await.map(drop)
}
