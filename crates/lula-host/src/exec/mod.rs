//! One command of an operator in the sandbox: prepare what it runs in, run it, settle what it left.
//!
//! The order is also what makes it quick: the sandbox's helper gets ready while the policy is read, the
//! thread that clears away starts while the sandbox is built, and the audit entry is written while the
//! sandbox goes.

mod prepare;
mod run;
mod settle;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lula_protocol::{Code, IsolationTier};
use lula_sandbox::policy::Profile;
use lula_sandbox::{
    EarlyHelper, FinishedCommand, Sandbox, SandboxCommand, SandboxEngine, SandboxError,
    SandboxSession,
};
use lula_workspace::WorkspaceError;

use crate::error::HostError;
use crate::installation::Installation;
use crate::record;
use prepare::PreparedExec;
use settle::ExecCleanup;
pub use settle::{ExecReport, ReviewableChanges, SettledExec};

/// What is to be run, and how.
#[derive(Debug)]
pub struct ExecInvocation<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The directory it works on, instead of the one around the caller.
    pub workspace: Option<PathBuf>,
    /// The workspace it goes on in.
    pub on: Option<&'a str>,
    /// Where its changes go.
    pub write: ExecWriteMode,
    /// A policy of the operator's own.
    pub policy: Option<PathBuf>,
    /// The profile to use where no policy file is named.
    pub profile: Profile,
    /// The tier to use, neither a weaker nor a stronger one.
    pub tier: Option<IsolationTier>,
    /// Whether every path it opens is watched.
    pub explain: bool,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Which network it has.
    pub network: ExecNetwork,
}

/// Which network a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecNetwork {
    /// What the configuration and the flags grant by name; where that is nothing, none.
    Granted,
    /// The same, and each name it asks for is told.
    Learned,
    /// The host's own network.
    Host,
}

/// Where the changes of a command go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecWriteMode {
    /// Nowhere: the directory is read-only.
    None,
    /// Into a layer, for review.
    Review,
    /// Into the directory itself.
    Direct,
}

impl ExecWriteMode {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Review => "review",
            Self::Direct => "direct",
        }
    }
}

/// Why a command has no exit status.
#[derive(Debug)]
pub enum ExecError {
    /// The sandbox refused to run it.
    Refused(SandboxError),
    /// The streams of the caller cannot be used.
    Streams(io::Error),
    /// Something around it failed.
    Failed(HostError),
}

impl From<SandboxError> for ExecError {
    fn from(error: SandboxError) -> Self {
        Self::Refused(error)
    }
}

impl From<HostError> for ExecError {
    fn from(error: HostError) -> Self {
        Self::Failed(error)
    }
}

impl From<WorkspaceError> for ExecError {
    fn from(error: WorkspaceError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<io::Error> for ExecError {
    fn from(error: io::Error) -> Self {
        Self::Streams(error)
    }
}

impl ExecError {
    /// The code it is recorded by.
    pub fn code(&self) -> Code {
        match self {
            Self::Refused(SandboxError::NotStarted { .. }) => Code::CommandNotStarted,
            Self::Refused(_) => Code::SandboxRefused,
            Self::Streams(_) => Code::FileAccess,
            Self::Failed(error) => error.code(),
        }
    }
}

/// How a command ended, and the sandbox it was in, where one stood.
pub type AttendedCommand = (Result<FinishedCommand, ExecError>, Option<SandboxSession>);

/// Who a command is run for.
pub trait ExecAttendant {
    /// Something that may surprise.
    fn warning(&self, text: &str);

    /// Starts the command and stays with it until it ends. `meanwhile` is called once, while its
    /// sandbox is being built.
    fn attend(
        &self,
        engine: &SandboxEngine,
        sandbox: &Sandbox,
        command: SandboxCommand,
        meanwhile: &mut dyn FnMut(),
    ) -> AttendedCommand;
}

/// Runs a command. What was refused before there was anything to record is the error; everything else
/// is in what is settled.
pub fn execute(
    request: &ExecInvocation<'_>,
    attendant: &dyn ExecAttendant,
    helper: Option<EarlyHelper>,
    installation: &Installation,
) -> Result<SettledExec, ExecError> {
    let base = prepare::base(request)?;
    let cleanup = ExecCleanup::new(record::begin(installation)?);
    let prepared = PreparedExec::new(request, base.clone(), attendant, helper, installation);
    let ran = prepared.and_then(|prepared| prepared.run(attendant, &cleanup));
    Ok(cleanup.settle(request, &base, ran))
}
