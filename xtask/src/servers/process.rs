//! A server process with a directory of its own, which both end with their owner.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{command, requirements::program};

/// A loaded machine can take this long to bring a server up.
const START: Duration = Duration::from_mins(1);

const STOP: Duration = Duration::from_secs(10);

/// Between finding a free port and the server binding it another process may take it.
const ATTEMPTS: usize = 3;

/// A server's directory, owned by the user the server runs as.
pub(super) struct Home {
    directory: TempDir,
    user: Option<User>,
}

/// The unprivileged user that stands in for root: PostgreSQL refuses to run as root, and no test
/// server needs root's rights.
struct User {
    uid: u32,
    gid: u32,
}

impl Home {
    pub(super) fn new(name: &str) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix(&format!("lula-test-{name}-"))
            .tempdir()
            .context("cannot make a temporary directory for a test server")?;
        let user = if rustix::process::geteuid().is_root() {
            let user = User {
                uid: id("-u")?,
                gid: id("-g")?,
            };
            chown(directory.path(), Some(user.uid), Some(user.gid))
                .context("cannot hand a temporary directory to the user `nobody`")?;
            Some(user)
        } else {
            None
        };
        Ok(Self { directory, user })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A command that runs a program in this directory, without root's rights, and that the
    /// kernel interrupts when this process ends without having stopped it.
    pub(super) fn command(&self, name: &str) -> Result<Command> {
        let program =
            program(name).ok_or_else(|| anyhow!("`{name}` is not installed on this machine"))?;
        let mut command = if cfg!(target_os = "linux") {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "INT"]);
            if let Some(User { uid, gid }) = self.user {
                command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
                command.arg("--clear-groups");
            }
            command.arg("--").arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .stdin(Stdio::null());
        Ok(command)
    }
}

fn id(flag: &str) -> Result<u32> {
    let output = Command::new("id")
        .args([flag, "nobody"])
        .output()
        .context("cannot run `id`")?;
    ensure!(
        output.status.success(),
        "this machine has no user `nobody` to run test servers as"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .with_context(|| format!("`id {flag} nobody` answered {text:?}"))
}

/// A running server; dropping it stops the process, and only then removes its directory.
pub(super) struct Server {
    child: Child,
    command: Command,
    home: Home,
}

impl Server {
    /// Starts a server on a free loopback port and waits until it answers.
    pub(super) fn start(
        name: &str,
        prepare: impl Fn(&Home) -> Result<()>,
        command: impl Fn(&Home, u16) -> Result<Command>,
        ping: impl Fn(u16) -> Result<()>,
    ) -> Result<(Self, u16)> {
        let mut last = anyhow!("{name} was not tried");
        for _ in 0..ATTEMPTS {
            let home = Home::new(name)?;
            prepare(&home)?;
            let port = free_port()?;
            let log = home.path().join("server.log");
            let output = File::create(&log).context("cannot write a test server's log")?;
            let mut command = command(&home, port)?;
            let shared = output.try_clone();
            command
                .stdout(shared.context("cannot share a test server's log")?)
                .stderr(output);
            let child = command.spawn();
            let child = child.with_context(|| format!("cannot start {name}"))?;
            let mut server = Self {
                child,
                command,
                home,
            };
            server.write_pid()?;
            match server.wait_until_up(|| ping(port)) {
                Ok(()) => return Ok((server, port)),
                Err(error) => {
                    last = error.context(format!("{name} did not come up; {}", tail(&log)));
                }
            }
        }
        Err(last)
    }

    fn wait_until_up(&mut self, ping: impl Fn() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        loop {
            let error = match ping() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if let Some(status) = self
                .child
                .try_wait()
                .context("cannot wait for a test server")?
            {
                bail!("it ended with {status}");
            }
            if started.elapsed() > START {
                return Err(error.context(format!("no answer within {START:?}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts the server again, on its data and its port, where its process has ended.
    pub(super) fn revive(&mut self) -> Result<()> {
        let ended = self.child.try_wait();
        if ended.context("cannot wait for a test server")?.is_none() {
            return Ok(());
        }
        let child = self.command.spawn();
        self.child = child.context("cannot start a test server again")?;
        self.write_pid()
    }

    /// A shell command that sends the server's process a signal, whichever process it is then.
    pub(super) fn signal_command(&self, signal: &str) -> String {
        format!("kill -{signal} \"$(cat '{}')\"", self.pid_file().display())
    }

    fn pid_file(&self) -> PathBuf {
        self.home.path().join("server.pid")
    }

    fn write_pid(&self) -> Result<()> {
        let written = fs::write(self.pid_file(), self.pid().to_string());
        written.context("cannot write down a test server's process")
    }

    pub(super) fn directory(&self) -> &Path {
        self.home.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both servers take SIGINT as "end your clients' sessions and go".
        command::end(&mut self.child, &[Signal::INT, Signal::QUIT], STOP);
    }
}

pub(super) fn free_port() -> Result<u16> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on loopback")?;
    Ok(listener
        .local_addr()
        .context("cannot read a port's number")?
        .port())
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().rev().take(5).collect::<Vec<_>>();
    if lines.is_empty() {
        return "it wrote nothing".to_owned();
    }
    format!(
        "it wrote: {}",
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    )
}
