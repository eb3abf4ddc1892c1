//! What can go wrong with an engine, and what to do about it.

use lula_protocol::RunId;
use lula_protocol::payload::PayloadError;
use lula_store::StoreError;

use crate::progress::InvalidRunHistory;
use crate::table::TransitionTableError;

/// Why an engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The transition table is not complete.
    #[error("the transition table of {graph} is wrong: {source}")]
    Table {
        /// The name of the graph with the incomplete table.
        graph: &'static str,
        source: TransitionTableError,
    },
    /// The store failed or another worker owns the run.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log was not written by this engine, or was changed.
    #[error("the log of {run} cannot be followed: {source}")]
    History {
        /// The run whose log it is.
        run: RunId,
        source: InvalidRunHistory,
    },
    /// A value in the log is not what the graph expects.
    #[error("event {seq} of {run} is not one of this graph: {source}")]
    Payload {
        /// The run whose log holds the value.
        run: RunId,
        /// Sequence number of the event that holds the value.
        seq: u64,
        source: PayloadError,
    },
    /// The run keeps to a version of its graph that this program does not have.
    #[error(
        "{run} keeps to version {version} of {graph}, which this program does not have: use the \
         lula that started it, or migrate it"
    )]
    Version {
        /// The run that cannot be driven here.
        run: RunId,
        /// The graph it was begun with.
        graph: String,
        /// The version it keeps to.
        version: u32,
    },
    /// The run is in the middle of a node that works otherwise now.
    #[error(
        "{run} was put down in the middle of {node} by an earlier version, which asked for other things \
         there: go on with that version, or from before that node with `lula fork {run} --at N`, where \
         `lula logs {run}` has N"
    )]
    OpenVisit {
        /// The run that cannot be driven on.
        run: RunId,
        /// The node that it is in the middle of.
        node: &'static str,
    },
    /// The run cannot be forked there.
    #[error("{run} cannot be forked at {at}: {why}")]
    Fork {
        /// The run that was to be forked.
        run: RunId,
        /// Sequence number of the event after which it was to be forked.
        at: u64,
        /// Why, and where it can.
        why: String,
    },
    /// The machine gave no random numbers.
    #[error("the system gave no random numbers: {0}")]
    Random(String),
}

impl EngineError {
    pub(crate) fn payload(run: &RunId, seq: u64, source: PayloadError) -> Self {
        Self::Payload {
            run: run.clone(),
            seq,
            source,
        }
    }
}
