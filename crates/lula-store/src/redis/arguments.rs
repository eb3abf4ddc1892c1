//! What the scripts are told.

use super::codec::{self, corrupt};
use crate::append::{ApprovalChange, Blob, LedgerRow};
use crate::body;
use crate::error::StoreResult;
use crate::record::LogRecord;

pub(super) fn json<T: serde::Serialize>(value: &T) -> StoreResult<String> {
    serde_json::to_string(value).map_err(corrupt)
}

/// Arguments in counted sections.
pub(super) struct RedisArgumentSections<'a, 'b>(pub(super) &'a mut redis::ScriptInvocation<'b>);

impl RedisArgumentSections<'_, '_> {
    pub(super) fn events(&mut self, records: &[LogRecord]) {
        self.0.arg(records.len());
        for record in records {
            self.0.arg(codec::event(record));
        }
    }

    pub(super) fn blobs(&mut self, blobs: &[Blob]) {
        self.0.arg(blobs.len());
        for blob in blobs {
            self.0
                .arg(blob.digest.to_string())
                .arg(body::pack(&blob.bytes));
        }
    }

    pub(super) fn ledger(&mut self, rows: &[LedgerRow]) -> StoreResult<()> {
        self.0.arg(rows.len());
        for row in rows {
            self.0.arg(row.dimension.name()).arg(json(row)?);
        }
        Ok(())
    }

    pub(super) fn approvals(&mut self, changes: &[ApprovalChange]) {
        self.0.arg(changes.len());
        for change in changes {
            match change {
                ApprovalChange::Open(row) => {
                    self.0
                        .arg("open")
                        .arg(row.approval.as_str())
                        .arg(row.digest.to_string());
                    self.0
                        .arg(row.state.name())
                        .arg(&row.nonce)
                        .arg(row.expires_ms);
                }
                ApprovalChange::Decide { approval, approved } => {
                    let state = if *approved { "approved" } else { "rejected" };
                    self.0
                        .arg(state)
                        .arg(approval.as_str())
                        .arg("")
                        .arg("")
                        .arg("")
                        .arg("");
                }
                ApprovalChange::Use { approval, digest } => {
                    self.0
                        .arg("use")
                        .arg(approval.as_str())
                        .arg(digest.to_string());
                    self.0.arg("").arg("").arg("");
                }
            }
        }
    }
}
