//! `cargo xtask servers`, ended in every way a task can end.

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::xtask;

/// A run of `cargo xtask servers`, and the two ports it told.
struct Run {
    child: Child,
    ports: Vec<u16>,
    /// Where it keeps the servers' data; also what a killed run leaves behind.
    scratch: TempDir,
}

impl Run {
    fn start() -> Self {
        let scratch = tempfile::Builder::new()
            // The servers run as another user, who has to reach their directories.
            .permissions(Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary directory");
        let mut child = xtask()
            .arg("servers")
            .env("TMPDIR", scratch.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("xtask runs");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let ports = stdout
            .lines()
            .take(2)
            .map(|line| port(&line.expect("a line")).expect("an address"))
            .collect::<Vec<_>>();
        assert_eq!(ports.len(), 2, "two servers are told");
        assert!(ports.iter().all(|port| is_open(*port)), "both are up");
        Self {
            child,
            ports,
            scratch,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().expect("a process id"));
        kill_process(pid.expect("a process id"), signal).expect("the signal is sent");
    }

    /// The servers are gone when the task is, and so is their data.
    fn assert_cleaned_up(mut self) {
        self.child.wait().expect("xtask ends");
        assert!(!self.is_any_up(), "a server still listens");
        let left = fs::read_dir(self.scratch.path())
            .expect("the directory")
            .count();
        assert_eq!(left, 0, "the servers' data is still there");
    }

    fn is_any_up(&self) -> bool {
        self.ports.iter().any(|port| is_open(*port))
    }
}

fn port(line: &str) -> Option<u16> {
    line.rsplit_once(':')?.1.split('/').next()?.parse().ok()
}

fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn ctrl_c_stops_the_servers() {
    let run = Run::start();
    run.signal(Signal::INT);
    run.assert_cleaned_up();
}

#[test]
fn a_polite_kill_stops_the_servers() {
    let run = Run::start();
    run.signal(Signal::TERM);
    run.assert_cleaned_up();
}

#[test]
#[cfg(target_os = "linux")]
fn servers_do_not_outlive_a_task_that_was_killed() {
    let mut run = Run::start();
    run.signal(Signal::KILL);
    run.child.wait().expect("xtask ends");
    // No process is left to wait for the servers: they take a moment to shut down.
    let asked = Instant::now();
    while run.is_any_up() && asked.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!run.is_any_up(), "a server still listens");
}

#[test]
fn a_command_beside_the_servers_finds_them_and_its_exit_code_is_kept() {
    let output = xtask()
        .args(["servers", "--", "sh", "-c"])
        .arg("echo $LULA_TEST_POSTGRES_URL; echo $LULA_TEST_REDIS_URL; exit 7")
        .output()
        .expect("xtask runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines = said.lines().collect::<Vec<_>>();
    assert_eq!(
        lines.len(),
        2,
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        lines[0].starts_with("postgres://") && lines[1].starts_with("redis://"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(7));
    assert!(
        !lines
            .iter()
            .any(|line| is_open(port(line).expect("an address"))),
        "{said}"
    );
}
