//! Running a command in front of the person, who may stop it at any time.

use std::{
    io::{self, Read, Write},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt::Interrupt;

const POLL: Duration = Duration::from_millis(20);

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// How long to wait for output that a left-over grandchild may hold open.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Runs a command with this process's terminal, and takes over its exit code.
pub(crate) fn run(command: &mut Command, interrupt: &Interrupt) -> Result<ExitCode> {
    let name = spoken(command);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    let status = wait(&mut child, interrupt)?;
    Ok(ExitCode::from(
        status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
    ))
}

/// Runs a command, shows what it writes as it comes, and returns it as well.
pub(crate) fn run_and_read(
    command: &mut Command,
    interrupt: &Interrupt,
) -> Result<(ExitStatus, String)> {
    let name = spoken(command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    let stdout = child
        .stdout
        .take()
        .map(|pipe| Copy::start(pipe, io::stdout()));
    let stderr = child
        .stderr
        .take()
        .map(|pipe| Copy::start(pipe, io::stderr()));
    let status = wait(&mut child, interrupt)?;
    let mut text = String::new();
    for copy in [stdout, stderr].into_iter().flatten() {
        text.push_str(&copy.finish());
    }
    Ok((status, text))
}

/// Waits for a child, and ends it when the person wants to stop.
pub(crate) fn wait(child: &mut Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a command")? {
            return Ok(status);
        }
        if interrupt.is_raised() {
            end(child, &[Signal::TERM], GRACE);
            return child.wait().context("cannot wait for a command");
        }
        thread::sleep(POLL);
    }
}

/// Ends a child: each signal gets its time, then it is killed. It is reaped in any case.
pub(crate) fn end(child: &mut Child, signals: &[Signal], grace: Duration) {
    for signal in signals {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may be gone already, which is what is wanted.
            let _ = kill_process(pid, *signal);
        }
        let asked = Instant::now();
        while asked.elapsed() < grace {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(POLL);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A command as a person would type it.
pub(crate) fn spoken(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A stream on its way to the terminal, kept as it passes.
struct Copy {
    kept: Arc<Mutex<Vec<u8>>>,
    thread: thread::JoinHandle<()>,
}

impl Copy {
    fn start(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                // A closed terminal does not change the result.
                let _ = to.write_all(&buffer[..length]).and_then(|()| to.flush());
                keep.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&buffer[..length]);
            }
        });
        Self { kept, thread }
    }

    fn finish(self) -> String {
        let asked = Instant::now();
        while !self.thread.is_finished() && asked.elapsed() < OUTPUT_GRACE {
            thread::sleep(POLL);
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}
