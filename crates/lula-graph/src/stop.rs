//! Why a node's body does not go on.

use lula_protocol::{BudgetDimension, Digest};
use lula_store::StoreError;

/// Why a visit ends before its body does. A body passes it on with `?`; only
/// [`VisitStop::Effect`] is its own business, and it may handle that one.
#[derive(Debug, thiserror::Error)]
pub enum VisitStop {
    /// An effect did not work. Not handled by the body, it halts the run.
    #[error(transparent)]
    Effect(#[from] EffectError),
    /// The run waits. It goes on at this place when the answer is there.
    #[error("the run waits")]
    Suspended,
    /// A signal asked the run to stop.
    #[error("the run was cancelled")]
    Cancelled,
    /// The driver wants to put it down.
    #[error("the run is put down")]
    Paused,
    /// The body asks the run to end.
    #[error("{0}")]
    Halt(String),
    /// The body asked for something else than its journal holds.
    #[error("call {ordinal} asks for {found}, the journal holds {recorded}")]
    NonDeterminism {
        /// Which journaled call of the visit.
        ordinal: u32,
        /// What the journal holds.
        recorded: Digest,
        /// What is asked now.
        found: Digest,
    },
    /// A replay has come to the end of what was recorded.
    #[error("the journal ends here")]
    EndOfJournal,
    /// The world outside cannot be reached; the run is tried again later.
    #[error("{0}")]
    Trouble(String),
    /// The run is owned by another worker now, or the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an effect gave no value. Journaled: a replay sees the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectError {
    /// It was tried and did not work.
    #[error("{name} failed: {message}")]
    Failed { name: String, message: String },
    /// A budget does not allow it; it was not tried.
    #[error("{name} may need {asked} of {dimension}, {free} are left; raise the limit and resume")]
    OverBudget {
        /// What would have been done.
        name: String,
        /// The limit in the way.
        dimension: BudgetDimension,
        /// How much it may need.
        asked: u64,
        /// How much is left.
        free: u64,
    },
    /// What is to be done is not what was approved; it was not tried.
    #[error("{name} is not what was approved: ask again")]
    ApprovalVoid {
        /// What would have been done.
        name: String,
    },
    /// The answer is not of the expected shape.
    #[error("{name} answered something unexpected: {message}")]
    Shape { name: String, message: String },
}
