//! A command to run, and what came of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lula_protocol::SandboxReceipt;
use lula_protocol::receipt::CommandEnding;

use super::CapturedStream;
use crate::frames::PtySize;

/// A command to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxCommand {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) terminal: Option<PtySize>,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) streamed: bool,
    pub(crate) built_in: bool,
}

impl SandboxCommand {
    /// The program: a path, or a name to be found on the sandbox's own search path. Its standard
    /// input is empty unless something else is asked for.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            arguments: vec![program.into()],
            environment: BTreeMap::new(),
            directory: None,
            timeout: None,
            terminal: None,
            stdin: Some(Vec::new()),
            streamed: false,
            built_in: false,
        }
    }

    /// A line for the shell.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::new("/bin/sh").arguments([OsString::from("-c"), line.into()])
    }

    /// A program that is part of the helper and needs no file; see [`crate::BuiltInProgram`]. Everything
    /// else is as for any command: layers, limits, directory, environment, streams.
    pub fn built_in(name: impl Into<OsString>) -> Self {
        Self {
            built_in: true,
            ..Self::new(name)
        }
    }

    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable beside those of the policy.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Starts in this directory instead of the workspace.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Ends after this long, with everything it started. Never longer than the policy's wall clock.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs in a terminal of this size. Both outputs are then one.
    #[must_use]
    pub fn terminal(mut self, rows: u16, columns: u16) -> Self {
        self.terminal = Some(PtySize { rows, columns });
        self.stdin = None;
        self
    }

    /// Gets these bytes as its whole standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Keeps standard input open for [`super::SandboxProcess::write_input`].
    #[must_use]
    pub fn open_input(mut self) -> Self {
        self.stdin = None;
        self
    }

    /// Delivers output piece by piece to [`super::SandboxProcess::next_output`]. The command waits while
    /// the caller does not take what it wrote.
    #[must_use]
    pub fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct FinishedCommand {
    /// What was kept of its standard output, or of its terminal.
    pub stdout: CapturedStream,
    /// What was kept of its standard error.
    pub stderr: CapturedStream,
    /// Proof of what stood around it, and how it ended.
    pub receipt: SandboxReceipt,
}

impl FinishedCommand {
    /// Whether it exited by itself with status 0.
    pub fn succeeded(&self) -> bool {
        self.receipt.ended == CommandEnding::Exited { status: 0 }
    }

    /// The status a shell would report: 124 for a timeout, 128 + n for a signal, 137 for a limit.
    pub fn shell_status(&self) -> u8 {
        match self.receipt.ended {
            CommandEnding::Exited { status } => status,
            CommandEnding::Signalled { signal } => signal.saturating_add(128),
            CommandEnding::TimedOut => 124,
            CommandEnding::LimitReached { .. } => 137,
        }
    }
}
