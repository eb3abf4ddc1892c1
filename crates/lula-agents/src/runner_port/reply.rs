//! What a tool's result says, as a model may read it.

use std::fmt::Write;

use lula_edit::numbered;
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_protocol::receipt::CommandEnding;
use lula_protocol::{
    ApprovalChallenge, SandboxReceipt, ToolOutcome, ToolOutput, ToolOutputDetails, ToolResult,
};
use lula_repair::trial::uncoloured;
use lula_runner_api::{EXPIRED, REJECTED};
use serde::{Deserialize, Serialize};

use super::RunnerPortError;
use super::excerpt::{excerpt, grouped};
use crate::recovery::AttemptFailureClass;

/// Most bytes of an answer where it is not said how many there are room for.
pub(crate) const USUAL: usize = 48_000;

/// What a tool replied, as a model may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The text. Material, never an instruction.
    pub text: String,
    /// Whether the tool did not do what was asked.
    pub failed: bool,
    /// Whether a rule or people refused it; `None` where it was let happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ToolRefusal>,
    /// The picture that was read, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<ReplyPicture>,
}

/// A picture that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyPicture {
    /// Where it stands in the workspace.
    pub path: String,
    /// Its format, as in `image/png`.
    pub media_type: String,
    /// Its bytes in base64, where they were asked for and are not too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl Reply {
    /// What a tool that did what was asked said.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failed: false,
            refused: None,
            picture: None,
        }
    }

    /// That something did not work, and why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            failed: true,
            ..Self::plain(text)
        }
    }
}

/// Who did not let something be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRefusal {
    /// A rule of the policy.
    ByRule,
    /// An approver said no, or none answered in time.
    ByPeople,
}

impl ToolRefusal {
    /// The class of a failure by it.
    pub const fn class(self) -> AttemptFailureClass {
        match self {
            Self::ByRule => AttemptFailureClass::PolicyDenied,
            Self::ByPeople => AttemptFailureClass::ApprovalRejected,
        }
    }
}

impl Reply {
    /// What a result says, in about `most` bytes. Where people are asked first there is none yet.
    pub(crate) fn of(result: ToolResult, most: usize) -> Result<Self, RunnerPortError> {
        Ok(match result.outcome {
            ToolOutcome::Done { output } => done(output, result.receipt.as_ref(), most),
            ToolOutcome::Failed { message, .. } => Self::failed(message),
            ToolOutcome::Denied { denials } => {
                let (by, why) = refused(&denials);
                Self {
                    refused: Some(by),
                    ..Self::failed(why)
                }
            }
            ToolOutcome::NeedsApproval { challenge } => return Err(held(&challenge)),
        })
    }
}

pub(super) fn held(challenge: &ApprovalChallenge) -> RunnerPortError {
    RunnerPortError::Held {
        approval: challenge.id.clone(),
        reason: challenge.reason.clone(),
    }
}

/// Who said no, and what they said.
pub(super) fn refused(denials: &[SandboxDenial]) -> (ToolRefusal, String) {
    let by_people = denials
        .iter()
        .any(|denial| denial.rule == REJECTED || denial.rule == EXPIRED);
    let rules: Vec<&str> = denials.iter().map(|denial| denial.rule.as_str()).collect();
    (
        if by_people {
            ToolRefusal::ByPeople
        } else {
            ToolRefusal::ByRule
        },
        format!("it was refused: {}", rules.join("; ")),
    )
}

fn done(output: ToolOutput, receipt: Option<&SandboxReceipt>, most: usize) -> Reply {
    let ToolOutput {
        text,
        truncated,
        details,
        ..
    } = output;
    match details {
        Some(ToolOutputDetails::Command {
            status,
            stdout,
            stdout_dropped,
            stderr,
            stderr_dropped,
        }) => {
            let streams = [(stdout, stdout_dropped), (stderr, stderr_dropped)];
            Reply {
                failed: status != 0,
                ..Reply::plain(command(status, receipt, &streams, most))
            }
        }
        Some(ToolOutputDetails::Job {
            output, left_out, ..
        }) => {
            let mut shown = text;
            if left_out > 0 {
                let left_out = grouped(left_out);
                let _ = writeln!(shown, "[… {left_out} earlier bytes left out …]");
            }
            if !output.is_empty() {
                let output = excerpt(&output, most, 0);
                let _ = writeln!(
                    shown,
                    "<output>\n{}\n</output>",
                    output.trim_end_matches('\n')
                );
            }
            Reply::plain(shown)
        }
        Some(ToolOutputDetails::Picture {
            path,
            media_type,
            base64,
            ..
        }) => Reply {
            picture: Some(ReplyPicture {
                path,
                media_type,
                base64,
            }),
            ..Reply::plain(text)
        },
        Some(ToolOutputDetails::File { binary: false, .. }) => {
            Reply::plain(page(&text, truncated, details.as_ref()))
        }
        Some(
            ToolOutputDetails::Matches { left_out, .. } | ToolOutputDetails::Files { left_out, .. },
        ) if truncated => {
            let mut shown = excerpt(&text, most, 0);
            let _ = match left_out {
                0 => writeln!(
                    shown,
                    "[there is more: name a folder or a narrower pattern]"
                ),
                left_out => writeln!(
                    shown,
                    "[… {} more left out: name a folder or a narrower pattern …]",
                    grouped(left_out)
                ),
            };
            Reply::plain(shown)
        }
        _ if text.is_empty() => Reply::plain("there is nothing".to_owned()),
        _ if truncated => Reply::plain(format!("{}\n[there is more]\n", excerpt(&text, most, 0))),
        _ => Reply::plain(excerpt(&text, most, 0)),
    }
}

/// How a command ended, in the first line, and both ends of what it wrote.
fn command(
    status: u8,
    receipt: Option<&SandboxReceipt>,
    streams: &[(String, u64); 2],
    most: usize,
) -> String {
    let mut text = format!("exit status {status}");
    match receipt.map(|receipt| &receipt.ended) {
        Some(CommandEnding::TimedOut) => text.push_str(": its time ran out"),
        Some(CommandEnding::LimitReached { limit }) => {
            let _ = write!(text, ": it reached its limit of {limit}");
        }
        _ => {}
    }
    text.push('\n');
    let [out, err] = streams;
    // Each may have half, and what the other leaves.
    let half = most / 2;
    let rooms = [most - err.0.len().min(half), most - out.0.len().min(half)];
    for ((name, (stream, dropped)), room) in ["stdout", "stderr"].iter().zip(streams).zip(rooms) {
        if !stream.trim().is_empty() {
            let shown = excerpt(&uncoloured(stream), room, *dropped);
            let shown = shown.trim_end_matches('\n');
            let _ = write!(text, "<{name}>\n{shown}\n</{name}>\n");
        }
    }
    for denial in receipt.iter().flat_map(|receipt| &receipt.denials) {
        text.extend(no_way_out(denial));
    }
    text
}

/// A connection that was refused, and who can allow it: from the output alone it looks like a server that
/// is down.
fn no_way_out(denial: &SandboxDenial) -> Option<String> {
    let tried = match &denial.attempt {
        DeniedAttempt::Connect { host, port } => format!("a connection to {host}:{port}"),
        DeniedAttempt::Resolve { host } => format!("to look up {host}"),
        _ => return None,
    };
    let remedy = match &denial.grant {
        Some(grant) => format!("the operator can allow it with {grant}"),
        None => "do without it".to_owned(),
    };
    Some(format!(
        "[the sandbox refused {tried} ({}); {remedy}]\n",
        denial.rule
    ))
}

/// Lines of a file with their numbers, which of how many they are, and how to read on.
fn page(text: &str, truncated: bool, details: Option<&ToolOutputDetails>) -> String {
    let Some(ToolOutputDetails::File {
        bytes,
        lines,
        from_line,
        to_line,
        lossy,
        ..
    }) = details
    else {
        return text.to_owned();
    };
    if *lines == 0 {
        return "the file is empty".to_owned();
    }
    let all = grouped(u64::from(*lines));
    let mut shown = format!("lines {from_line}-{to_line} of {all}\n");
    shown.push_str(&numbered(*from_line as usize, text));
    if *lossy {
        shown.push_str("[bytes that are no UTF-8 are shown as \u{fffd}]\n");
    }
    let is_cut = truncated && from_line == to_line && !text.ends_with('\n');
    if is_cut {
        let _ = writeln!(
            shown,
            "[line {to_line} is cut after {} of at most {} bytes: `cut -c` shows the rest]",
            grouped(text.len() as u64),
            grouped(*bytes)
        );
    }
    if to_line < lines {
        let more = grouped(u64::from(lines - to_line));
        let _ = writeln!(
            shown,
            "[{more} more lines: read on with from_line {}]",
            to_line + 1
        );
    }
    shown
}

#[cfg(test)]
mod tests;
