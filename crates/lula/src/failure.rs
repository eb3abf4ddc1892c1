//! Errors as the person at the terminal meets them: code, what, where, what to do.

use std::io;

use lula_config::{ConfigError, Origin};
use lula_protocol::{Code, Exit};
use lula_sandbox::SandboxError;
use lula_sandbox::probes::AttackError;
use lula_workspace::{ForkError, GitError, scratch::ScratchError};

/// Why a command ended without doing its job.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) place: Option<Place>,
    pub(crate) remedy: Option<String>,
    closed_pipe: bool,
}

/// Where a mistake stands.
#[derive(Debug)]
pub(crate) struct Place {
    /// `file:line`, a variable or a flag.
    pub(crate) name: String,
    /// The line itself, with its number.
    pub(crate) line: Option<(usize, String)>,
}

impl Failure {
    pub(crate) fn new(code: Code, exit: Exit, message: impl Into<String>) -> Self {
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

    /// Whether it only says that nobody reads our output any more.
    pub(crate) const fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let mut failure = Self::new(error.code(), Exit::Usage, error.to_string());
        failure.place = error.origin().map(place);
        failure.remedy(error.remedy())
    }
}

fn place(origin: &Origin) -> Place {
    let line = match origin {
        Origin::File { path, line } => std::fs::read_to_string(path).ok().and_then(|text| {
            text.lines().nth(line - 1).map(|text| {
                (
                    *line,
                    text.chars()
                        .filter(|c| !c.is_control() || *c == '\t')
                        .take(120)
                        .collect(),
                )
            })
        }),
        Origin::Default | Origin::Variable(_) | Origin::Flag(_) => None,
    };
    Place {
        name: origin.to_string(),
        line,
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        Self::new(error.code(), Exit::Environment, error.to_string()).remedy(error.remedy())
    }
}

impl From<ScratchError> for Failure {
    fn from(error: ScratchError) -> Self {
        match error {
            ScratchError::Git(error) => error.into(),
            ScratchError::Write(_) => {
                Self::new(Code::FileAccess, Exit::Environment, error.to_string()).remedy(
                    "check that the temporary directory ($TMPDIR) has space and is writable",
                )
            }
        }
    }
}

impl From<ForkError> for Failure {
    fn from(error: ForkError) -> Self {
        Self::new(Code::CannotFork, Exit::Environment, error.to_string())
            .remedy("name a smaller part of the project with --workspace")
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let (code, exit) = match &error {
            SandboxError::NotStarted { .. } => (Code::CommandNotStarted, Exit::Environment),
            SandboxError::HelperGone
            | SandboxError::Ended { .. }
            | SandboxError::Protocol(_)
            | SandboxError::Credit(_)
            | SandboxError::Io { .. } => (Code::SandboxBroke, Exit::Failed),
            _ => (Code::SandboxRefused, Exit::Environment),
        };
        let remedy = match &error {
            SandboxError::NotStarted { .. } => "check that the program exists inside the sandbox",
            SandboxError::HelperGone | SandboxError::Ended { .. } => "run the command again",
            _ => "`lula doctor` shows what works on this machine",
        };
        Self::new(code, exit, error.to_string()).remedy(remedy)
    }
}

impl From<AttackError> for Failure {
    fn from(error: AttackError) -> Self {
        match error {
            AttackError::Sandbox(error) => error.into(),
            AttackError::Tier(_) => Self::new(Code::BadCommandLine, Exit::Usage, error.to_string())
                .remedy("name namespace or landlock, or leave --tier out"),
            AttackError::Stage(_) | AttackError::Program(_) => {
                Self::new(Code::EnvironmentUnfit, Exit::Environment, error.to_string())
            }
        }
    }
}

/// Writing to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if closed_pipe {
            Exit::Verified
        } else {
            Exit::Environment
        };
        let message = format!("standard output cannot be written: {error}");
        Self {
            closed_pipe,
            ..Self::new(Code::FileAccess, exit, message)
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return io::Error::from(error).into();
        }
        Self::new(
            Code::Internal,
            Exit::Failed,
            format!("a result cannot be printed: {error}"),
        )
        .remedy("please report this")
    }
}
