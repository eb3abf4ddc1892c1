//! Errors as the person at the terminal meets them: code, what, where, what to do.

use std::io;
use std::path::Path;

use lula_agents::guidelines::GuidelineFileError;
use lula_audit::AuditError;
use lula_config::{ConfigError, ConfigOrigin};
use lula_gate::approvals::{ApprovalKeyError, ApprovalsError};
use lula_gate::rules::RulesFileError;
use lula_graph::EngineError;
use lula_graph::bundle::BundleError;
use lula_host::HostError;
use lula_host::story::environment;
use lula_protocol::{Code, RunExit, RunId};
use lula_repair::RepairError;
use lula_runner::RunnerStartError;
use lula_runner_api::client::RunnerClientError;
use lula_sandbox::SandboxError;
use lula_sandbox::probes::TierAttackError;
use lula_store::StoreError;
use lula_workspace::checkout::CheckoutError;
use lula_workspace::scratch::ScratchError;
use lula_workspace::{ForkError, GitError, WorkspaceError};

use crate::term::read_text;

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

/// Where a mistake stands.
#[derive(Debug)]
pub(crate) struct MistakeLocation {
    /// `file:line`, a variable or a flag.
    pub(crate) name: String,
    /// The line itself, with its number.
    pub(crate) line: Option<(usize, String)>,
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

    /// Whether it only says that our output is no longer read.
    pub(crate) const fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl From<ConfigError> for CommandFailure {
    fn from(error: ConfigError) -> Self {
        let mut failure = Self::new(error.code(), RunExit::Usage, error.to_string());
        failure.place = error.origin().map(place);
        failure.remedy(error.remedy())
    }
}

/// A line of a file with its number, so that it acts on no terminal.
fn line_of(file: &Path, number: usize) -> Option<(usize, String)> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().nth(number.checked_sub(1)?)?;
    let shown = line.chars().filter(|c| !c.is_control() || *c == '\t');
    Some((number, shown.take(120).collect()))
}

fn place(origin: &ConfigOrigin) -> MistakeLocation {
    let line = match origin {
        ConfigOrigin::File { path, line } => line_of(path, *line),
        ConfigOrigin::Default | ConfigOrigin::Variable(_) | ConfigOrigin::Flag(_) => None,
    };
    MistakeLocation {
        name: origin.to_string(),
        line,
    }
}

impl From<HostError> for CommandFailure {
    fn from(error: HostError) -> Self {
        match error {
            // A runner of ours that cannot start has said why, and what to do about it.
            HostError::Runner(RunnerClientError::NotStarted { ref reason, .. })
                if let Some(said) = read_text(reason) =>
            {
                return said;
            }
            HostError::NotTakenUp {
                ref run,
                said: Some(ref said),
            } if let Some(said) = read_text(said) => {
                return not_taken_up(run, said);
            }
            HostError::Repair(RepairError::EnvironmentBroken(ref broken)) => {
                let message = environment::lines(broken).join("\n");
                return Self {
                    remedy: error.remedy(),
                    ..Self::new(error.code(), error.exit(), message)
                };
            }
            HostError::Answer(error) => return error.into(),
            HostError::Config(error) => return error.into(),
            HostError::Rules(error) => return error.into(),
            HostError::Guidelines(error) => return error.into(),
            _ => {}
        }
        Self {
            remedy: error.remedy(),
            ..Self::new(error.code(), error.exit(), error.to_string())
        }
    }
}

/// Why another process did not go on with a run, in its own words.
fn not_taken_up(run: &RunId, mut said: CommandFailure) -> CommandFailure {
    said.message = format!("{run} was begun and nobody works on it: {}", said.message);
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

impl From<RulesFileError> for CommandFailure {
    fn from(error: RulesFileError) -> Self {
        let line = line_of(Path::new(&error.file), error.line);
        let mut failure = Self::new(Code::BadRules, RunExit::Usage, error.what);
        failure.place = Some(MistakeLocation {
            name: format!("{}:{}", error.file, error.line),
            line,
        });
        failure.remedy("`lula policy test FILE` runs every example of the file")
    }
}

impl From<GuidelineFileError> for CommandFailure {
    fn from(error: GuidelineFileError) -> Self {
        let mut failure = Self::new(Code::BadRules, RunExit::Usage, error.what);
        failure.place = Some(MistakeLocation {
            name: format!("{}:{}", error.file, error.line),
            line: None,
        });
        failure.remedy("`lula guidelines test FILE` runs every example of the file")
    }
}

impl From<TierAttackError> for CommandFailure {
    fn from(error: TierAttackError) -> Self {
        match error {
            TierAttackError::Sandbox(error) => error.into(),
            TierAttackError::Tier(_) => {
                Self::new(Code::BadCommandLine, RunExit::Usage, error.to_string())
                    .remedy("name namespace or landlock, or leave --tier out")
            }
            TierAttackError::Stage(_) | TierAttackError::Program(_) => Self::new(
                Code::EnvironmentUnfit,
                RunExit::Environment,
                error.to_string(),
            ),
        }
    }
}

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
