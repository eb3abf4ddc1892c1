//! One append: events and everything that changes with them, or nothing.

use lula_protocol::{
    ApprovalId, BudgetAmounts, BudgetDimension, Digest, EffectClass, EffectId, RunId,
};
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};

/// Bytes named by their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Digest of the bytes.
    pub digest: Digest,
    pub bytes: Vec<u8>,
}

impl Blob {
    /// Takes the digest of bytes, which names them from now on.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            digest: Digest::of_bytes(&bytes),
            bytes,
        }
    }
}

/// Where an effect stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// It is about to be tried, or was when its owner died.
    Intended,
    /// It is known how it ended.
    Settled,
    /// It is not known whether it happened; a person is asked.
    Unknown,
}

impl EffectState {
    /// The name in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Settled => "settled",
            Self::Unknown => "unknown",
        }
    }

    /// The state of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Intended, Self::Settled, Self::Unknown]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// An effect as the store lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRow {
    pub effect: EffectId,
    /// Sequence number of the event that announced it.
    pub intent_seq: u64,
    /// What may be done again.
    pub class: EffectClass,
    pub state: EffectState,
    /// How often it was tried before.
    pub attempt: u32,
    /// The owner that tried it last.
    pub epoch: u64,
    /// Digest of the request.
    pub request: Digest,
    /// Digest of the result.
    pub result: Option<Digest>,
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Approvers are asked and can still answer.
    Open,
    /// They agreed; it can be used once.
    Approved,
    /// An approver said no, or too few said yes in time.
    Rejected,
    /// It was used, which can happen only once.
    Used,
}

impl ApprovalState {
    /// The name in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Used => "used",
        }
    }

    /// The state of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Approved, Self::Rejected, Self::Used]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// An approval as the store lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRow {
    pub approval: ApprovalId,
    /// The run that asks.
    pub run: RunId,
    /// Digest of what is asked.
    pub digest: Digest,
    pub state: ApprovalState,
    /// Fresh for each question, so that no old token fits.
    pub nonce: String,
    /// When the answer becomes no.
    pub expires_ms: u64,
}

/// What happens to an approval in an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalChange {
    /// A question is put.
    Open(ApprovalRow),
    /// An open question is answered.
    Decide {
        approval: ApprovalId,
        approved: bool,
    },
    /// An approval is used up. Fails, and the whole append with it, unless the approval is
    /// approved, unused and for exactly this digest.
    Use {
        approval: ApprovalId,
        /// Digest of what is done under the approval.
        digest: Digest,
    },
}

/// What a run holds of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    pub dimension: BudgetDimension,
    /// The limit, if there is one.
    pub limit: Option<u64>,
    /// Held back for effects under way.
    pub reserved: u64,
    /// Spent by effects that ended.
    pub settled: u64,
}

impl LedgerRow {
    /// The rows of fresh limits.
    pub fn fresh(limits: &BudgetAmounts) -> Vec<Self> {
        let row = |(dimension, limit)| Self {
            dimension,
            limit: Some(limit),
            reserved: 0,
            settled: 0,
        };
        limits.iter().map(row).collect()
    }

    /// Whether it stays within its limit.
    pub fn holds(&self) -> bool {
        self.limit
            .is_none_or(|limit| self.reserved.saturating_add(self.settled) <= limit)
    }
}

/// A fold of the log up to a position, kept to save time. May be deleted at any moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSnapshot {
    /// The end of the log it was taken at.
    pub head: LogHead,
    /// Whatever the graph engine needs.
    pub bytes: Vec<u8>,
}

/// What becomes of the lease with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaseAfterAppend {
    /// The owner goes on.
    #[default]
    Keep,
    /// The run waits; unless something was sent to it meanwhile, then it is ready at once.
    Suspend {
        /// When it should be looked at again by itself.
        wake_ms: Option<u64>,
    },
    /// The owner gives it back to the queue.
    Yield,
    /// The run is over.
    Done,
}

/// One append. All of it is committed, or none.
#[derive(Debug, Clone)]
pub struct LogAppend {
    /// The run whose log is appended to.
    pub run: RunId,
    /// The epoch of the lease.
    pub epoch: u64,
    /// The end of the log as the owner knows it.
    pub expected: LogHead,
    /// New entries, which continue `expected`.
    pub records: Vec<LogRecord>,
    /// Values that the new entries name.
    pub blobs: Vec<Blob>,
    /// Rows of effects that changed.
    pub effects: Vec<EffectRow>,
    pub approvals: Vec<ApprovalChange>,
    /// Budget rows that changed.
    pub ledger: Vec<LedgerRow>,
    /// Signals that are hereby dealt with.
    pub takes: Vec<u64>,
    /// A fold up to the new end.
    pub snapshot: Option<StateSnapshot>,
    /// What becomes of the lease.
    pub rest: LeaseAfterAppend,
}

impl LogAppend {
    /// An append of nothing yet.
    pub const fn new(run: RunId, epoch: u64, expected: LogHead) -> Self {
        Self {
            run,
            epoch,
            expected,
            records: Vec::new(),
            blobs: Vec::new(),
            effects: Vec::new(),
            approvals: Vec::new(),
            ledger: Vec::new(),
            takes: Vec::new(),
            snapshot: None,
            rest: LeaseAfterAppend::Keep,
        }
    }

    /// The end of the log afterwards.
    pub fn new_head(&self) -> LogHead {
        self.records.last().map_or(self.expected, |last| LogHead {
            next: last.seq + 1,
            hash: last.hash,
        })
    }

    /// Refuses budget rows that break their limit.
    pub(crate) fn check_limits(&self) -> StoreResult<()> {
        match self.ledger.iter().find(|row| !row.holds()) {
            None => Ok(()),
            Some(row) => Err(StoreError::OverLimit {
                run: self.run.clone(),
                dimension: row.dimension.to_string(),
            }),
        }
    }
}
