//! Why a request was not done, where no tool result says it.

use std::io::ErrorKind;

use lula_gate::approvals::ApprovalsError;
use lula_protocol::{Code, EffectId, WorkspaceId};
use lula_sandbox::SandboxError;
use lula_workspace::WorkspaceError;
use lula_workspace::checkout::CheckoutError;

use super::effect::EffectLedgerError;
use lula_runner_api::RunnerProblem;

/// Why a request was not done. Nothing happened, except where a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// Not what the interface describes.
    #[error("{0}")]
    BadRequest(String),
    /// The directory is not below a root.
    #[error("{0} is not a directory below one of this runner's roots: start it with --root for it")]
    OutsideRoots(String),
    /// The directory holds what no workspace may.
    #[error("{0} is or holds the home directory: open the project's own directory")]
    TooWide(String),
    /// No workspace of this id is open.
    #[error("there is no workspace {0}: open one first")]
    NoWorkspace(WorkspaceId),
    /// No such integration branch.
    #[error("there is no integration branch {0}: open one first")]
    NoBranch(String),
    /// No command was started under this name.
    #[error("there is no session {0}")]
    NoSession(String),
    /// The effect's id stands for another request.
    #[error("{0} was used for another request: give every act an id of its own")]
    Reused(EffectId),
    /// A newer worker has the run.
    #[error("epoch {given} is over: epoch {newest} has this run")]
    Fenced {
        /// The epoch of the caller.
        given: u64,
        /// The newest epoch of this run.
        newest: u64,
    },
    /// It is not known whether it happened.
    #[error(
        "{0} was cut off by a crash and cannot be taken back: look at what it left, then go on under a new id"
    )]
    Unknown(EffectId),
    /// Another caller listens to the command, or it cannot be done just now.
    #[error("{0}")]
    Busy(String),
    /// The sandbox could not be built or failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The workspace refused or failed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The commit that a workspace is that of.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// The ledger of effects failed.
    #[error(transparent)]
    Ledger(#[from] EffectLedgerError),
    /// Rules that are wrong.
    #[error("{0}")]
    BadRules(String),
    /// An approval or an answer to one.
    #[error(transparent)]
    Approval(ApprovalsError),
    /// A tool failed in a way that is no answer to its caller.
    #[error("{0}")]
    ToolBroke(String),
    /// Something in the runner itself.
    #[error("{0}")]
    Internal(String),
}

impl From<crate::environments::EnvironmentError> for RequestRefusal {
    fn from(error: crate::environments::EnvironmentError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<rusqlite::Error> for RequestRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Ledger(error.into())
    }
}

impl RequestRefusal {
    pub fn code(&self) -> Code {
        match self {
            Self::BadRequest(_) => Code::BadRequest,
            Self::OutsideRoots(_) | Self::NoWorkspace(_) => Code::NoWorkspace,
            Self::TooWide(_) => Code::WorkspaceTooWide,
            Self::NoSession(_) | Self::NoBranch(_) => Code::NothingThere,
            Self::Reused(_) => Code::EffectReused,
            Self::Fenced { .. } => Code::Fenced,
            Self::Unknown(_) => Code::EffectUnknown,
            Self::Busy(_) => Code::Busy,
            Self::Sandbox(SandboxError::NotStarted { .. }) => Code::CommandNotStarted,
            Self::Sandbox(
                SandboxError::HelperGone
                | SandboxError::Ended { .. }
                | SandboxError::Protocol(_)
                | SandboxError::Credit(_)
                | SandboxError::Io { .. },
            ) => Code::SandboxBroke,
            Self::Sandbox(_) => Code::SandboxRefused,
            Self::Workspace(error) => error.code(),
            Self::Checkout(error) => match error {
                CheckoutError::Workspace(error) => error.code(),
                CheckoutError::Gone(_) => Code::NoWorkspace,
                CheckoutError::Git(_) => Code::GitUnusable,
                CheckoutError::Io { .. } => Code::FileAccess,
                CheckoutError::Refused(_) => Code::RunRefused,
            },
            Self::BadRules(_) => Code::BadRules,
            Self::Approval(error) => match error {
                ApprovalsError::Unknown(_) => Code::UnknownApproval,
                ApprovalsError::Token(_)
                | ApprovalsError::Vote(_)
                | ApprovalsError::OtherQuestion
                | ApprovalsError::Refused(_) => Code::VoteRefused,
                _ => Code::ApprovalsUnusable,
            },
            Self::ToolBroke(_) => Code::ToolBroke,
            Self::Ledger(error) if error.is_the_disk() => Code::FileAccess,
            Self::Ledger(_) | Self::Internal(_) => Code::Internal,
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) | Self::TooWide(_) => 400,
            Self::OutsideRoots(_)
            | Self::NoWorkspace(_)
            | Self::NoSession(_)
            | Self::NoBranch(_) => 404,
            Self::Reused(_) | Self::Fenced { .. } | Self::Unknown(_) | Self::BadRules(_) => 409,
            Self::Busy(_) => 429,
            Self::Approval(error) => match error {
                ApprovalsError::Unknown(_) => 404,
                ApprovalsError::Token(_) => 403,
                ApprovalsError::Vote(_)
                | ApprovalsError::OtherQuestion
                | ApprovalsError::Refused(_) => 409,
                _ => 500,
            },
            Self::Checkout(error) => match error {
                CheckoutError::Gone(_) => 404,
                CheckoutError::Io { .. } => 500,
                _ => 409,
            },
            Self::Workspace(error) => match error {
                WorkspaceError::Unknown(_)
                | WorkspaceError::NoSuchSnapshot { .. }
                | WorkspaceError::NoSuchChange { .. } => 404,
                // It was removed while this was done.
                WorkspaceError::Io { source, .. } if source.kind() == ErrorKind::NotFound => 409,
                WorkspaceError::Io { .. } | WorkspaceError::BadRecord { .. } => 500,
                WorkspaceError::Path(_) => 400,
                _ => 409,
            },
            Self::Sandbox(_) | Self::ToolBroke(_) => 503,
            Self::Ledger(_) | Self::Internal(_) => 500,
        }
    }

    /// As it is told.
    pub fn problem(&self) -> RunnerProblem {
        let mut message = self.to_string();
        if let Self::Workspace(error) = self {
            message = format!("{message}; {}", error.remedy());
        }
        RunnerProblem {
            code: self.code(),
            message,
        }
    }
}
