//! How rows and events are spelled in Redis.

use std::collections::HashMap;

use lula_protocol::event::ParentRun;
use lula_protocol::{Digest, RunId};

use crate::append::{ApprovalRow, ApprovalState};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{NewRun, RunRow, RunStatus};

pub(super) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::backend("redis", format_args!("a value cannot be read: {what}"))
}

const HEADER: usize = 8 + 8 + 4 + 32;

/// An event: epoch, time, shape, digest, packed body. Its place in the list is its number.
pub(super) fn event(record: &LogRecord) -> Vec<u8> {
    let body = body::pack(&record.body);
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(&record.epoch.to_le_bytes());
    bytes.extend_from_slice(&record.at_ms.to_le_bytes());
    bytes.extend_from_slice(&record.schema.to_le_bytes());
    bytes.extend_from_slice(record.hash.as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// The digest of a stored event.
pub(super) fn event_hash(bytes: &[u8]) -> Option<Digest> {
    let hash: [u8; 32] = bytes.get(20..HEADER)?.try_into().ok()?;
    Some(Digest::from_bytes(hash))
}

pub(super) fn read_event(
    run: &RunId,
    seq: u64,
    previous: Digest,
    bytes: &[u8],
) -> StoreResult<LogRecord> {
    let broken = |why: String| StoreError::CorruptEvent {
        run: run.clone(),
        seq,
        why,
    };
    let parts = || {
        let epoch = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let at_ms = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        let schema = u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?);
        Some((
            epoch,
            at_ms,
            schema,
            event_hash(bytes)?,
            bytes.get(HEADER..)?,
        ))
    };
    let (epoch, at_ms, schema, hash, body) =
        parts().ok_or_else(|| broken("it is too short".to_owned()))?;
    Ok(LogRecord {
        run: run.clone(),
        seq,
        epoch,
        at_ms,
        schema,
        previous,
        hash,
        body: body::unpack(body).map_err(|error| broken(error.to_string()))?,
    })
}

/// The fields of a new run.
pub(super) fn new_fields(run: &NewRun) -> Vec<(&'static str, String)> {
    let head = run.head();
    let status = if run.claim.is_some() {
        RunStatus::Running
    } else {
        RunStatus::Ready
    };
    let owner = run.claim.as_ref().map(|claim| claim.worker.clone());
    let due = run
        .claim
        .as_ref()
        .map_or(0, crate::run::LeaseClaim::until_ms);
    let mut fields = vec![
        ("tenant", run.tenant.clone()),
        ("graph", run.graph.clone()),
        ("graph_version", run.graph_version.to_string()),
        ("status", status.name().to_owned()),
        ("epoch", run.epoch.to_string()),
        ("owner", owner.unwrap_or_default()),
        ("due", due.to_string()),
        ("head_next", head.next.to_string()),
        ("head_hash", head.hash.to_string()),
    ];
    if let Some(parent) = &run.parent {
        fields.push(("parent_run", parent.run.to_string()));
        fields.push(("parent_seq", parent.seq.to_string()));
    }
    fields
}

fn number<T: std::str::FromStr>(fields: &HashMap<String, String>, name: &str) -> StoreResult<T> {
    let text = fields
        .get(name)
        .ok_or_else(|| corrupt(format_args!("{name} is missing")))?;
    text.parse()
        .map_err(|_| corrupt(format_args!("{name} is {text:?}")))
}

pub(super) fn read_run(run: &RunId, fields: &HashMap<String, String>) -> StoreResult<RunRow> {
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let parent = match fields.get("parent_run") {
        None => None,
        Some(parent) => Some(ParentRun {
            run: parent.parse().map_err(corrupt)?,
            seq: number(fields, "parent_seq")?,
        }),
    };
    let due = text("due");
    let owner = text("owner");
    Ok(RunRow {
        run: run.clone(),
        tenant: text("tenant"),
        graph: text("graph"),
        graph_version: number(fields, "graph_version")?,
        status: RunStatus::from_name(&text("status")).ok_or_else(|| corrupt("unknown status"))?,
        epoch: number(fields, "epoch")?,
        owner: (!owner.is_empty()).then_some(owner),
        due_ms: if due.is_empty() {
            None
        } else {
            Some(due.parse().map_err(corrupt)?)
        },
        head: LogHead {
            next: number(fields, "head_next")?,
            hash: text("head_hash").parse().map_err(corrupt)?,
        },
        parent,
    })
}

pub(super) fn read_approval(
    id: &str,
    fields: &HashMap<String, String>,
) -> StoreResult<ApprovalRow> {
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    Ok(ApprovalRow {
        approval: id.parse().map_err(corrupt)?,
        run: text("run").parse().map_err(corrupt)?,
        digest: text("digest").parse().map_err(corrupt)?,
        state: ApprovalState::from_name(&text("state")).ok_or_else(|| corrupt("unknown state"))?,
        nonce: text("nonce"),
        expires_ms: number(fields, "expires")?,
    })
}
