//! Why there is no answer.

use std::time::Duration;

use crate::attempt::trouble;
use crate::output::AnswerFault;
use crate::output::schema::UnsupportedSchema;
use crate::resilience::TryFailure;
use crate::spend::SpendLedgerError;
use crate::transport::TransportError;
use crate::wire::{ServerFailure, ServerFailureKind, WireError};

/// What is said where a prompt is longer than a model takes; what asks for it to be made shorter.
pub const CONTEXT_OVERFLOW: &str = "the prompt does not fit the model's context";

/// What is said where an answer broke off or did not come: the same question may be put once more, at
/// the price of another call.
pub const BROKE_OFF: &str = "the answer broke off";

/// Why a model gave no answer that can be used. Holds no key and no prompt.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The server was not reached, or the connection broke.
    #[error("{model}: {error}")]
    Transport {
        /// The model that was asked.
        model: String,
        error: TransportError,
    },
    /// The server answered with a failure.
    #[error("{model}: {failure}{}", advice(.failure.kind))]
    Refused {
        /// The model that was asked.
        model: String,
        failure: ServerFailure,
    },
    /// The prompt is longer than the model's context: it must be made shorter.
    #[error("{model}: {CONTEXT_OVERFLOW}: it must be compacted")]
    ContextOverflow {
        /// The model that was asked.
        model: String,
    },
    /// The answer is not of its protocol, or broke off.
    #[error("{model}: {error}")]
    Wire {
        /// The model that was asked.
        model: String,
        error: WireError,
    },
    /// Nothing came for too long.
    #[error("{model}: nothing came for {} s: the server is stuck or too slow", .after.as_secs())]
    Idle {
        /// The model that was asked.
        model: String,
        /// How long it was waited.
        after: Duration,
    },
    /// The time for the whole call is over.
    #[error("{model}: no answer within {} s", .within.as_secs())]
    Deadline {
        /// The model that was asked.
        model: String,
        /// The time there was.
        within: Duration,
    },
    /// The model is left alone after failures.
    #[error("{model} is left alone for {} more seconds, because it kept failing", .rest.as_secs())]
    Resting {
        /// The model that was asked.
        model: String,
        /// How much longer it is left alone.
        rest: Duration,
    },
    /// The budget does not cover the call.
    #[error(transparent)]
    Budget(#[from] SpendLedgerError),
    /// The answer could not be used, also after asking again.
    #[error("{model}: after {asked} tries its answer still could not be used: {fault}")]
    Unusable {
        /// The model that was asked.
        model: String,
        /// How often it was asked.
        asked: u32,
        /// What is wrong with the last answer.
        fault: AnswerFault,
    },
    /// The question cannot be put to this model.
    #[error(transparent)]
    Schema(#[from] UnsupportedSchema),
}

impl ModelError {
    /// Whether a shorter prompt could help.
    pub const fn wants_compaction(&self) -> bool {
        matches!(self, Self::ContextOverflow { .. })
    }

    /// Whether the call was begun and its answer lost: another call may well have one.
    pub fn broke_off(&self) -> bool {
        trouble(self) == TryFailure::Cut
    }

    /// Whether another model could help.
    pub const fn wants_another_model(&self) -> bool {
        !matches!(self, Self::Budget(_) | Self::ContextOverflow { .. })
    }
}

const fn advice(kind: ServerFailureKind) -> &'static str {
    match kind {
        ServerFailureKind::Unauthorized => "; check its key with `lula models test`",
        ServerFailureKind::NotFound => "; see which models there are with `lula models list`",
        ServerFailureKind::Unpaid => "; add credit at the provider, or use another model",
        _ => "",
    }
}
