//! How the process exits: with a meaning of ours, or with the status of the command it ran.

use std::process::ExitCode;

use lula_protocol::RunExit;

/// A process exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessExitStatus(u8);

impl ProcessExitStatus {
    /// The command was not run: the sandbox refused.
    pub(crate) const REFUSED: Self = Self(125);
    /// The command was found but cannot be executed.
    pub(crate) const NOT_EXECUTABLE: Self = Self(126);
    /// There is no such command.
    pub(crate) const NOT_FOUND: Self = Self(127);

    /// What a command of the user's ended with.
    pub(crate) const fn of_command(status: u8) -> Self {
        Self(status)
    }
}

impl From<RunExit> for ProcessExitStatus {
    fn from(exit: RunExit) -> Self {
        Self(exit.status())
    }
}

impl From<ProcessExitStatus> for i32 {
    fn from(status: ProcessExitStatus) -> Self {
        status.0.into()
    }
}

impl From<ProcessExitStatus> for ExitCode {
    fn from(status: ProcessExitStatus) -> Self {
        Self::from(status.0)
    }
}
