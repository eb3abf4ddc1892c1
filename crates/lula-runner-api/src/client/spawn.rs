//! A runner of one's own, started as a child on a private socket.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lula_protocol::FailureReport;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::{RunnerAddress, RunnerClient, RunnerClientError};

/// How long a runner may take to be well.
const WELL_WITHIN: Duration = Duration::from_secs(30);
/// Variables a runner gets beside those that its caller names; nothing else of the caller's
/// environment, least of all keys.
const PASSED_ON: [&str; 7] = [
    "TMPDIR",
    "LANG",
    "USER",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
];

/// Most bytes that are read of what a runner says before it is well.
const SAID: u64 = 64 << 10;

/// How to start a runner.
#[derive(Debug)]
pub struct RunnerCommand {
    program: PathBuf,
    roots: Vec<PathBuf>,
    state: Option<PathBuf>,
    arguments: Vec<OsString>,
    passed_on: Vec<String>,
    variables: Vec<(OsString, OsString)>,
    log: Option<File>,
}

impl RunnerCommand {
    /// With `program` being the `lula` binary, usually this very one.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            roots: Vec::new(),
            state: None,
            arguments: Vec::new(),
            passed_on: Vec::new(),
            variables: Vec::new(),
            log: None,
        }
    }

    /// Workspaces can be opened below this directory.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.roots.push(root.into());
        self
    }

    /// Keeps its workspaces and its ledger there.
    #[must_use]
    pub fn state(mut self, state: impl Into<PathBuf>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// A further argument of `lula runner`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Passes these variables of this process on, beside the few that every runner gets: those that
    /// lead to toolchains, which commands in its sandboxes need.
    #[must_use]
    pub fn pass_on<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.passed_on.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// A variable beside the few that are passed on.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Appends its diagnostic log to this file, which becomes its standard error.
    #[must_use]
    pub fn log(mut self, file: File) -> Self {
        self.log = Some(file);
        self
    }

    /// Starts it and waits until it is well. It ends when the [`RunnerChild`] is dropped, and when this
    /// process ends in whatever way: it watches its standard input.
    ///
    /// Why it does not get well it says as JSON on its standard output.
    pub async fn start(mut self) -> Result<RunnerChild, RunnerClientError> {
        let log = self.log.take();
        let failed = |reason: String| RunnerClientError::NotStarted {
            program: self.program.display().to_string(),
            reason,
            report: None,
        };
        let directory = private_directory().map_err(|error| failed(error.to_string()))?;
        let socket = directory.join("runner.sock");
        let mut command = Command::new(&self.program);
        command
            .arg("runner")
            .arg("--with-parent")
            .arg("--json")
            .arg("--listen")
            .arg(format!("unix:{}", socket.display()))
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.map_or_else(Stdio::piped, Stdio::from))
            .kill_on_drop(true);
        for root in &self.roots {
            command.arg("--root").arg(root);
        }
        if let Some(state) = &self.state {
            command.arg("--state-dir").arg(state);
        }
        command.args(&self.arguments);
        let named = self.passed_on.iter().map(String::as_str);
        for name in PASSED_ON.into_iter().chain(named) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut spawned = RunnerChild {
            client: RunnerClient::new(RunnerAddress::Unix(socket), None),
            child,
            directory,
        };
        let begun = Instant::now();
        loop {
            if spawned.client.health().await.is_ok() {
                spawned.drain();
                return Ok(spawned);
            }
            if let Ok(Some(status)) = spawned.child.try_wait() {
                return Err(RunnerClientError::NotStarted {
                    program: self.program.display().to_string(),
                    reason: format!("it ended with {status}: {}", spawned.errors().await),
                    report: spawned.report().await.map(Box::new),
                });
            }
            if begun.elapsed() > WELL_WITHIN {
                return Err(failed("it did not get well in time".to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A running child; ends with this value.
#[derive(Debug)]
pub struct RunnerChild {
    client: RunnerClient,
    child: Child,
    directory: PathBuf,
}

impl RunnerChild {
    /// How to ask it.
    pub fn client(&self) -> &RunnerClient {
        &self.client
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Lets it finish what it does, and waits for its end.
    pub async fn shut_down(mut self) -> Result<(), RunnerClientError> {
        drop(self.child.stdin.take());
        let ended = self.child.wait().await;
        ended
            .map(|_| ())
            .map_err(|error| RunnerClientError::Broken(error.to_string()))
    }

    /// Ends it at once, as a crash would.
    pub async fn kill(mut self) -> Result<(), RunnerClientError> {
        let killed = self.child.kill().await;
        killed.map_err(|error| RunnerClientError::Broken(error.to_string()))
    }

    /// What it says to people; the program that started it does not parse it.
    async fn errors(&mut self) -> String {
        let said = read(self.child.stderr.take()).await;
        String::from_utf8_lossy(&said).trim().to_owned()
    }

    async fn report(&mut self) -> Option<FailureReport> {
        FailureReport::find(&read(self.child.stdout.take()).await)
    }

    /// Reads what it still says, so that it never waits for a reader.
    fn drain(&mut self) {
        forget(self.child.stdout.take());
        forget(self.child.stderr.take());
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut said = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(SAID).read_to_end(&mut said).await;
    }
    said
}

fn forget(stream: Option<impl AsyncRead + Unpin + Send + 'static>) {
    if let Some(mut stream) = stream {
        tokio::spawn(async move {
            let mut sink = tokio::io::sink();
            let _ = tokio::io::copy(&mut stream, &mut sink).await;
        });
    }
}

impl Drop for RunnerChild {
    fn drop(&mut self) {
        // The runner removes its socket; a killed one leaves it.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn private_directory() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| std::io::ErrorKind::Other)?;
    let name = format!("{:016x}", u64::from_be_bytes(random));
    let above = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_dir())
        .unwrap_or_else(std::env::temp_dir);
    let directory = above.join(format!("lula-{name}"));
    std::fs::DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}
