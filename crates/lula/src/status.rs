//! How the process exits: with a meaning of ours, or with the status of the command it ran.

use std::process::ExitCode;

use lula_protocol::Exit;

/// A process exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(u8);

impl Status {
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

impl From<Exit> for Status {
    fn from(exit: Exit) -> Self {
        Self(exit.status())
    }
}

impl From<Status> for i32 {
    fn from(status: Status) -> Self {
        status.0.into()
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.0)
    }
}
