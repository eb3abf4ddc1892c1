//! Why the runner did not answer as asked.

use std::io;

use hyper::StatusCode;
use lula_protocol::FailureReport;

use crate::RunnerProblem;

/// Why the runner did not answer as asked.
#[derive(Debug, thiserror::Error)]
pub enum RunnerClientError {
    /// No runner listens there.
    #[error("cannot reach the runner at {address}: {source}")]
    Unreachable { address: String, source: io::Error },
    /// The connection broke. The call may or may not have happened: send it again with the same
    /// effect id.
    #[error("the connection to the runner broke: {0}")]
    Broken(String),
    /// The runner said no.
    #[error("{} ({status}, {})", .problem.message, .problem.code)]
    Refused {
        status: StatusCode,
        /// The problem as the runner describes it.
        problem: RunnerProblem,
    },
    /// A rule forbids it, or people are asked first. Nothing was done.
    #[error("held back by a rule: {0:?}")]
    Held(Box<lula_protocol::ToolResult>),
    /// An answer that is none.
    #[error("the runner's answer is not understood: {0}")]
    Nonsense(String),
    /// A runner could not be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// The program that was to be the runner.
        program: String,
        reason: String,
        /// What it reported itself before it ended.
        report: Option<Box<FailureReport>>,
    },
}

impl RunnerClientError {
    /// Whether sending the same call again may help.
    pub const fn is_worth_repeating(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Broken(_))
    }
}
