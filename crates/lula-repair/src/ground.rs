//! Where a repair takes effect: the one door between its decisions and the world.
//!
//! The search never touches the project itself. It asks the ground for forks, private copies that
//! it may change and run commands in, and throws them away. The product plants this trait on
//! sandbox sessions; whatever stands behind it must hold what each method promises.

use std::time::Duration;

/// A command to run in a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkCommand {
    /// Program and arguments; never passed through a shell.
    pub argv: Vec<String>,
    /// Variables to set beside the ground's own clean environment.
    pub env: Vec<(String, String)>,
    /// What the program reads on its standard input.
    pub stdin: Vec<u8>,
    /// When it and everything it started is killed.
    pub deadline: Duration,
    /// The folder it is started in, from the fork's root; empty for the root itself.
    pub folder: String,
}

impl ForkCommand {
    /// A command with no input and no variables of its own.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>, deadline: Duration) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: Vec::new(),
            deadline,
            folder: String::new(),
        }
    }

    /// Started in this folder of the fork.
    #[must_use]
    pub fn in_folder(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this on its standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkCommandOutput {
    /// Its standard output, possibly cut off by the ground's own limit.
    pub stdout: Vec<u8>,
    /// Its standard error, possibly cut off.
    pub stderr: Vec<u8>,
    /// Its exit code; none when a signal ended it.
    pub exit: Option<i32>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// How long it took.
    pub took: Duration,
}

impl ForkCommandOutput {
    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Why the ground could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action} failed: {reason}")]
pub struct ForkSourceError {
    /// What was tried, and on what.
    pub action: String,
    /// What stood in the way.
    pub reason: String,
}

impl ForkSourceError {
    /// Says what was tried and what stood in the way.
    pub fn new(action: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self {
            action: action.into(),
            reason: reason.to_string(),
        }
    }
}

/// A project that forks can be taken of.
pub trait ForkSource: Sync {
    /// A private copy of the project as it was handed over. Nothing done in it shows in the
    /// project or in another fork, and it is gone when dropped.
    fn fork(&self) -> Result<Box<dyn ProjectFork>, ForkSourceError>;
}

/// One private copy of the project.
pub trait ProjectFork: Send {
    /// Every regular file, as a path relative to the project's root with `/` between its parts.
    /// Version control's own files are left out.
    fn files(&self) -> Result<Vec<String>, ForkSourceError>;

    /// The bytes of one file.
    fn read(&self, path: &str) -> Result<Vec<u8>, ForkSourceError>;

    /// Replaces or creates one file.
    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), ForkSourceError>;

    /// Removes one file of the fork.
    fn remove(&mut self, path: &str) -> Result<(), ForkSourceError>;

    /// The absolute path of the fork's root as commands in it see it.
    fn root(&self) -> String;

    /// Runs a command in its folder of the fork until it ends or its deadline kills it. A command that
    /// fails is an answer, not an error; a program that does not exist is an error.
    fn run(&mut self, command: &ForkCommand) -> Result<ForkCommandOutput, ForkSourceError>;
}
