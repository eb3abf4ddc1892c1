//! Errors as the person at the terminal meets them: code, what, where, what to do.

use std::io;

use lula_agents::guidelines::GuidelineFileError;
use lula_audit::AuditError;
use lula_config::ConfigError;
use lula_gate::approvals::{ApprovalKeyError, ApprovalsError};
use lula_gate::rules::RulesFileError;
use lula_graph::EngineError;
use lula_graph::bundle::BundleError;
use lula_host::{HostError, MistakeLocation};
use lula_protocol::{Code, FailureReport, RunExit, RunId};
use lula_runner::RunnerStartError;
use lula_runner_api::client::RunnerClientError;
use lula_sandbox::SandboxError;
use lula_store::StoreError;
use lula_workspace::checkout::CheckoutError;
use lula_workspace::scratch::ScratchError;
use lula_workspace::{ForkError, GitError, WorkspaceError};

/// Why a command ended without doing its job.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub(crate) code: Code,
    pub(crate) exit: RunExit,
    pub(crate) message: String,
    pub(crate) place: Option<MistakeLocation>,
    pub(crate) remedy: Option<String>,
    closed_pipe: bool,
}

impl CommandFailure {
    pub(crate) fn new(code: Code, exit: RunExit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            exit,
            message,
            place: None,
            remedy: None,
            closed_pipe: false,
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Why a process that this command needs did not start: whatever it was, the command was not possible.
    fn not_started(report: FailureReport) -> Self {
        Self {
            exit: RunExit::Environment,
            ..report.into()
        }
    }

    /// Whether it only says that our output is no longer read.
    pub(crate) const fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl From<HostError> for CommandFailure {
    fn from(error: HostError) -> Self {
        match error {
            // A runner of ours that cannot start has reported why, and what to do about it.
            HostError::Runner(RunnerClientError::NotStarted {
                report: Some(report),
                ..
            }) => return Self::not_started(*report),
            HostError::NotTakenUp {
                run,
                report: Some(report),
            } => return not_taken_up(&run, Self::not_started(*report)),
            HostError::Answer(error) => return error.into(),
            _ => {}
        }
        Self {
            place: error.place(),
            remedy: error.remedy(),
            ..Self::new(error.code(), error.exit(), error.message())
        }
    }
}

/// What another process of this program reported.
impl From<FailureReport> for CommandFailure {
    fn from(report: FailureReport) -> Self {
        let mut failure = Self::new(report.code, report.exit, report.message);
        failure.place = report
            .place
            .map(|name| MistakeLocation { name, line: None });
        failure.remedy = report.remedy;
        failure
    }
}

/// Why another process did not go on with a run, as it reported it.
fn not_taken_up(run: &RunId, mut said: CommandFailure) -> CommandFailure {
    said.message = format!(
        "{run} was begun and no driver works on it: {}",
        said.message
    );
    let again = format!("`lula resume {run}` goes on with it");
    said.remedy = Some(match said.remedy.take() {
        Some(remedy) => format!("{remedy}; then {again}"),
        None => again,
    });
    said
}

/// Errors of crates below that are told as the host tells them.
macro_rules! told_by_host {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for CommandFailure {
            fn from(error: $error) -> Self {
                HostError::from(error).into()
            }
        })*
    };
}

told_by_host!(
    ApprovalsError,
    AuditError,
    BundleError,
    CheckoutError,
    ConfigError,
    GuidelineFileError,
    RulesFileError,
    RunnerClientError,
    EngineError,
    ForkError,
    GitError,
    ApprovalKeyError,
    RunnerStartError,
    SandboxError,
    ScratchError,
    StoreError,
    WorkspaceError,
);

/// Writing to standard output.
impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if closed_pipe {
            RunExit::Verified
        } else {
            RunExit::Environment
        };
        let message = format!("standard output cannot be written: {error}");
        Self {
            closed_pipe,
            ..Self::new(Code::FileAccess, exit, message)
        }
    }
}

impl From<serde_json::Error> for CommandFailure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return io::Error::from(error).into();
        }
        Self::new(
            Code::Internal,
            RunExit::Failed,
            format!("a result cannot be printed: {error}"),
        )
        .remedy("please report this")
    }
}
