//! What can go wrong with a store, and what to do about it.

use lula_protocol::event::BrokenLogChain;
use lula_protocol::payload::PayloadError;
use lula_protocol::{ApprovalId, Digest, RunId};

/// The result of a store operation.
pub type StoreResult<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another worker owns the run now, or its log has moved on.
    #[error(
        "{run} is no longer owned under epoch {epoch}: another worker took it over; drop it here"
    )]
    Fenced {
        /// The run that was to be appended to.
        run: RunId,
        /// The epoch that was believed in.
        epoch: u64,
    },
    /// There is no such run.
    #[error("there is no run {0} in this store; `lula runs` lists them")]
    NoRun(RunId),
    /// The run exists already.
    #[error("{0} exists already in this store")]
    RunExists(RunId),
    /// An approval cannot be used.
    #[error("approval {approval} cannot be used: {why}; ask again")]
    Approval {
        /// The approval that cannot be used.
        approval: ApprovalId,
        why: &'static str,
    },
    /// A committed state would spend more than the limit.
    #[error("{run} would hold more {dimension} than its limit allows; nothing was written")]
    OverLimit {
        /// The run that would spend too much.
        run: RunId,
        /// The dimension in which it would.
        dimension: String,
    },
    /// Stored bytes are not what was stored.
    #[error("blob {0} does not have the bytes it is named by: restore it from a backup")]
    CorruptBlob(Digest),
    /// A blob was dropped to make room.
    #[error(
        "blob {0} was dropped by `lula store compact`: what it held is gone, the log still names \
         its digest"
    )]
    Dropped(Digest),
    /// A blob is missing.
    #[error("blob {0} is missing: restore it from a backup")]
    NoBlob(Digest),
    /// An event cannot be read.
    #[error("event {seq} of {run} cannot be read: {why}")]
    CorruptEvent {
        /// The run whose log holds the event.
        run: RunId,
        /// Sequence number of the event.
        seq: u64,
        why: String,
    },
    /// The log of a run is not whole.
    #[error("the log of {run} is broken: {source}")]
    BrokenLog {
        /// The run whose log it is.
        run: RunId,
        source: BrokenLogChain,
    },
    /// A newer program wrote this.
    #[error(
        "{what} has schema {found}, this program knows up to {known}: use a newer lula, the data \
         was not touched"
    )]
    Newer {
        /// The database or table that has the newer schema.
        what: &'static str,
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// The server would forget acknowledged data.
    #[error("{0}")]
    NotDurable(String),
    /// The server would be spoken to in a way that others can listen to, or pretend to be it.
    #[error("{0}")]
    Insecure(String),
    /// The database is locked by another process.
    #[error("the database is busy: another process holds it ({0}); try again")]
    Busy(String),
    /// There is no space.
    #[error("the store is full ({0}); free space or raise its limit, then resume")]
    Full(String),
    /// A secret was about to be written.
    #[error(
        "refused to store {what}: it contains the secret {name:?}; pass a reference to the secret \
         instead of its value"
    )]
    Secret {
        /// What was to be written.
        what: String,
        /// The name of the secret, never its value.
        name: String,
    },
    /// A value cannot be stored.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("{backend}: {message}")]
    Backend {
        /// The kind of store that failed.
        backend: &'static str,
        message: String,
    },
}

impl StoreError {
    pub(crate) fn backend(backend: &'static str, error: impl std::fmt::Display) -> Self {
        Self::Backend {
            backend,
            message: error.to_string(),
        }
    }

    /// Whether the same call may succeed later without a person doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Backend { .. })
    }
}
