//! git, inside the sandbox and with everything off that a repository could make it run.
//!
//! A commit goes into the workspace's private layer like any other change. When the workspace is
//! committed, what lies below `.git` is held back unless it is asked for.

use lula_protocol::call::{ExecCommand, GitAction};
use lula_protocol::{Code, SandboxReceipt, TextOrigin, ToolOutcome, ToolOutputDetails};
use lula_workspace::git::INERT;

use super::exec::{self, failed};
use super::refusal::RequestRefusal;
use super::room::LiveSandbox;
use crate::halt::CommandStopper;

/// Most commits of a log.
const COMMITS: u32 = 1000;
/// Longest commit message, in bytes.
const MESSAGE: usize = 64 << 10;

pub(super) fn run(
    git: &GitAction,
    live: &LiveSandbox,
) -> Result<(ToolOutcome, Option<SandboxReceipt>), RequestRefusal> {
    match git {
        GitAction::Status {} => one(live, &["status", "--porcelain=v1", "--branch"], None),
        GitAction::Log { count } => {
            let count = format!("--max-count={}", (*count).clamp(1, COMMITS));
            let form = "--format=%H %ad %an%n    %s";
            let words = [
                "log",
                "--no-ext-diff",
                "--no-textconv",
                "--date=short",
                &count,
                form,
            ];
            one(live, &words, None)
        }
        GitAction::Diff { path } => {
            let mut words = vec!["diff", "--no-ext-diff", "--no-textconv", "HEAD", "--"];
            words.extend(path.as_deref());
            one(live, &words, None)
        }
        GitAction::Blame { path } => one(live, &["blame", "--date=short", "--", path], None),
        GitAction::Commit { message } => commit(live, message),
    }
}

fn commit(
    live: &LiveSandbox,
    message: &str,
) -> Result<(ToolOutcome, Option<SandboxReceipt>), RequestRefusal> {
    if message.trim().is_empty() || message.len() > MESSAGE {
        let message = format!("a commit message has 1 to {MESSAGE} bytes");
        return Ok((failed(Code::BadRequest, message), None));
    }
    let steps: [(&[&str], Option<&str>); 2] = [
        (&["add", "--all"], None),
        (
            &["commit", "--quiet", "--no-verify", "--file=-"],
            Some(message),
        ),
    ];
    for (words, input) in steps {
        let step = one(live, words, input)?;
        if !succeeded(&step.0) {
            return Ok(step);
        }
    }
    let (mut outcome, receipt) = one(live, &["rev-parse", "HEAD"], None)?;
    if let ToolOutcome::Done { output } = &mut outcome {
        let id = output.text.trim().to_owned();
        output.text = format!("committed {id}\n");
        output.details = Some(ToolOutputDetails::Commit { id });
    }
    Ok((outcome, receipt))
}

fn succeeded(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Done { .. })
}

/// One command. That git says no is a failure, not an output.
fn one(
    live: &LiveSandbox,
    words: &[&str],
    input: Option<&str>,
) -> Result<(ToolOutcome, Option<SandboxReceipt>), RequestRefusal> {
    let plain = [
        "git",
        "--no-pager",
        "--no-replace-objects",
        "--literal-pathspecs",
    ];
    let exec = ExecCommand {
        argv: plain.iter().chain(words).map(ToString::to_string).collect(),
        env: environment(),
        stdin: input.map(str::to_owned),
        timeout_ms: Some(60_000),
        ..ExecCommand::default()
    };
    let (outcome, receipt) = exec::run(&exec, live, &CommandStopper::default())?;
    let ToolOutcome::Done { mut output } = outcome else {
        return Ok((outcome, receipt));
    };
    let Some(ToolOutputDetails::Command {
        status,
        stdout,
        stderr,
        ..
    }) = output.details.take()
    else {
        return Ok((ToolOutcome::Done { output }, receipt));
    };
    if status != 0 {
        let said = if stderr.trim().is_empty() {
            stdout
        } else {
            stderr
        };
        let name = words.first().unwrap_or(&"");
        let message = format!("git {name} ended with {status}: {}", said.trim());
        return Ok((failed(Code::GitUnusable, message), receipt));
    }
    output.text = stdout;
    output.origin = TextOrigin::Repository;
    Ok((ToolOutcome::Done { output }, receipt))
}

fn environment() -> std::collections::BTreeMap<String, String> {
    let fixed = [
        ("LC_ALL", "C.UTF-8"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_PAGER", "cat"),
        ("GIT_EDITOR", "false"),
        ("GIT_AUTHOR_NAME", "Lula"),
        ("GIT_AUTHOR_EMAIL", "lula@localhost"),
        ("GIT_COMMITTER_NAME", "Lula"),
        ("GIT_COMMITTER_EMAIL", "lula@localhost"),
    ];
    let mut variables: std::collections::BTreeMap<String, String> = fixed
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    // The sandbox shows the repository under another owner's name.
    let settings = INERT.iter().chain(&[("safe.directory", "*")]);
    let mut count = 0;
    for (name, value) in settings {
        variables.insert(format!("GIT_CONFIG_KEY_{count}"), (*name).to_owned());
        variables.insert(format!("GIT_CONFIG_VALUE_{count}"), (*value).to_owned());
        count += 1;
    }
    variables.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
    variables
}
