//! Runs as the queue sees them: who owns one, until when, and when it may be looked at again.
//!
//! A run's place in the queue is one number, the time at which it may be claimed: at once, when its
//! lease ends, when its timer fires, or never. The queue, the leases and the timers are one index.
//! A worker's clock is an argument of a claim: clocks decide when, epochs decide who.

use std::fmt;

use lula_protocol::RunId;
use lula_protocol::event::ParentRun;
use serde::{Deserialize, Serialize};

use crate::append::{Blob, LedgerRow};
use crate::record::{LogHead, LogRecord};

/// What acknowledged data survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Acknowledged data survives the machine losing power.
    #[default]
    PowerLoss,
    /// Acknowledged data survives the death of the process, not of the machine.
    ProcessCrash,
}

/// Where a run stands in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Waits for a worker.
    Ready,
    /// A worker has it, or had it and died.
    Running,
    /// Waits for a person or a time.
    Suspended,
    /// Over. The only status from which nothing is resumed.
    Done,
}

impl RunStatus {
    pub const ALL: [Self; 4] = [Self::Ready, Self::Running, Self::Suspended, Self::Done];

    /// The name in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Done => "done",
        }
    }

    /// The status of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A run to be created, with its first events.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub run: RunId,
    pub tenant: String,
    /// Which graph it follows.
    pub graph: String,
    pub graph_version: u32,
    /// Where it was forked from.
    pub parent: Option<ParentRun>,
    /// The first entries of its log.
    pub records: Vec<LogRecord>,
    /// Values that those entries name.
    pub blobs: Vec<Blob>,
    pub ledger: Vec<LedgerRow>,
    /// The epoch it begins with: 0 for one that waits in the queue, 1 for one that is owned from
    /// the start, more for one that was brought from elsewhere.
    pub epoch: u64,
    /// A worker that owns it from the start; otherwise it waits in the queue.
    pub claim: Option<LeaseClaim>,
}

impl NewRun {
    /// The end of its log.
    pub fn head(&self) -> LogHead {
        self.records
            .last()
            .map_or_else(LogHead::empty, |last| LogHead {
                next: last.seq + 1,
                hash: last.hash,
            })
    }
}

/// Who wants a run, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseClaim {
    /// Name of the worker.
    pub worker: String,
    /// The worker's clock, Unix time in milliseconds. A clock that jumps costs time, never
    /// correctness: what keeps two owners apart is the epoch.
    pub now_ms: u64,
    /// For how long, in milliseconds.
    pub ttl_ms: u64,
}

impl LeaseClaim {
    /// When the lease ends.
    pub const fn until_ms(&self) -> u64 {
        self.now_ms.saturating_add(self.ttl_ms)
    }
}

/// The right to append to a run until another worker claims it with a higher epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    /// The run that the holder may append to.
    pub run: RunId,
    /// The epoch every append has to name.
    pub epoch: u64,
    /// The end of the log at the time of the claim.
    pub head: LogHead,
}

/// What a store knows of a run without reading its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    pub run: RunId,
    pub tenant: String,
    /// Which graph it follows.
    pub graph: String,
    pub graph_version: u32,
    pub status: RunStatus,
    /// How often it was claimed.
    pub epoch: u64,
    /// The worker that has it; none while it waits in the queue.
    pub owner: Option<String>,
    /// When it may be claimed: at once, when its lease ends, when its time comes, never.
    pub due_ms: Option<u64>,
    /// The end of its log.
    pub head: LogHead,
    /// Where it was forked from.
    pub parent: Option<ParentRun>,
}

/// Which runs to list, oldest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only with this status.
    pub status: Option<RunStatus>,
    /// Only after this one.
    pub after: Option<RunId>,
    /// At most so many; all where none is given.
    pub limit: Option<u32>,
}
