//! Running a command of a call, and what is told of it.
#![expect(
    clippy::result_large_err,
    reason = "an outcome is an answer like another, and moved once"
)]

use std::fmt::Write as _;
use std::time::Duration;

use lula_protocol::call::ExecCommand;
use lula_protocol::{Code, SandboxReceipt, TextOrigin, ToolOutcome, ToolOutput, ToolOutputDetails};
use lula_sandbox::{CapturedStream, FinishedCommand, SandboxCommand, SandboxError};

use super::refusal::RequestRefusal;
use super::room::LiveSandbox;
use crate::halt::CommandStopper;

/// Most words of a command, variables included.
const WORDS: usize = 4096;
/// Most bytes of them.
const BYTES: usize = 512 << 10;
/// Most bytes of one stream that are told.
const TOLD: usize = 128 << 10;

/// The command for the sandbox, or why it cannot be one.
pub(super) fn command(
    exec: &ExecCommand,
    live: &LiveSandbox,
) -> Result<SandboxCommand, ToolOutcome> {
    let Some((program, arguments)) = exec.argv.split_first() else {
        return Err(failed(Code::BadRequest, "argv is empty: name a program"));
    };
    let words = || {
        let variables = exec.env.iter().flat_map(|(name, value)| [name, value]);
        exec.argv.iter().chain(variables)
    };
    if words().count() > WORDS || words().map(String::len).sum::<usize>() > BYTES {
        let message = format!("the command has more than {WORDS} words or {BYTES} bytes");
        return Err(failed(Code::OverLimit, message));
    }
    if program.is_empty() || words().any(|word| word.contains('\0')) {
        return Err(failed(
            Code::BadRequest,
            "an empty program or a NUL in a word",
        ));
    }
    if let Some(name) = exec.env.keys().find(|name| !is_variable(name)) {
        let message = format!("{name:?} is not a name of a variable");
        return Err(failed(Code::BadRequest, message));
    }
    let directory = live.shown().join(inside(&exec.cwd)?);
    let mut command = SandboxCommand::new(program)
        .arguments(arguments)
        .directory(directory)
        .input(exec.stdin.clone().unwrap_or_default());
    for (name, value) in &exec.env {
        command = command.variable(name, value);
    }
    if let Some(timeout) = exec.timeout_ms {
        command = command.timeout(Duration::from_millis(timeout.max(1)));
    }
    Ok(command)
}

fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// A directory of a call: below the workspace by its words. The sandbox is what keeps it there.
fn inside(path: &str) -> Result<&str, ToolOutcome> {
    let out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    if out || path.contains('\0') {
        let message = format!("{path:?} is not a directory inside the workspace");
        return Err(failed(Code::PathRefused, message));
    }
    Ok(path)
}

/// Runs it to its end, unless it is stopped.
pub(super) fn run(
    exec: &ExecCommand,
    live: &LiveSandbox,
    halt: &CommandStopper,
) -> Result<(ToolOutcome, Option<SandboxReceipt>), RequestRefusal> {
    if halt.is_set() {
        let message = "it was stopped before it began";
        return Ok((failed(Code::CommandNotStarted, message), None));
    }
    let command = match command(exec, live) {
        Ok(command) => command,
        Err(outcome) => return Ok((outcome, None)),
    };
    match halt.run(&live.session, &command) {
        Ok(finished) => Ok(command_outcome(&finished)),
        Err(error) => not_started(error).map(|outcome| (outcome, None)),
    }
}

/// A program that is not there is the caller's mistake; anything else is ours.
pub(super) fn not_started(error: SandboxError) -> Result<ToolOutcome, RequestRefusal> {
    match error {
        SandboxError::NotStarted { .. } => Ok(failed(Code::CommandNotStarted, error.to_string())),
        error => Err(error.into()),
    }
}

/// What a command that ended came to.
pub(super) fn command_outcome(finished: &FinishedCommand) -> (ToolOutcome, Option<SandboxReceipt>) {
    let (stdout, stdout_dropped) = kept(&finished.stdout);
    let (stderr, stderr_dropped) = kept(&finished.stderr);
    let status = finished.shell_status();
    let mut text = stdout.clone();
    if !stderr.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("[standard error]\n");
        text.push_str(&stderr);
    }
    if status != 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "[exit status {status}]");
    }
    let mut output = ToolOutput::new(text, TextOrigin::Command).with(ToolOutputDetails::Command {
        status,
        stdout,
        stdout_dropped,
        stderr,
        stderr_dropped,
    });
    output.truncated = stdout_dropped > 0 || stderr_dropped > 0;
    (ToolOutcome::Done { output }, Some(finished.receipt.clone()))
}

/// The beginning and the end of a stream, and how many bytes between them are not told.
fn kept(stream: &CapturedStream) -> (String, u64) {
    let bytes = stream.bytes();
    if stream.dropped() == 0 && bytes.len() <= TOLD {
        return (String::from_utf8_lossy(&bytes).into_owned(), 0);
    }
    let half = TOLD / 2;
    let head = &stream.head()[..stream.head().len().min(half)];
    let tail = &bytes[bytes.len().saturating_sub(half).max(head.len())..];
    let dropped = stream.total() - (head.len() + tail.len()) as u64;
    let text = format!(
        "{}\n[… {dropped} bytes left out …]\n{}",
        String::from_utf8_lossy(head),
        String::from_utf8_lossy(tail)
    );
    (text, dropped)
}

pub(super) fn failed(code: Code, message: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Failed {
        code,
        message: message.into(),
    }
}
