//! What a tool's result says, as a model may read it.

use std::fmt::Write;

use lula_agents::HandsError;
use lula_agents::hands::{Refused, Said};
use lula_protocol::denial::Denial;
use lula_protocol::receipt::Ended;
use lula_protocol::{ApprovalChallenge, Details, Outcome, Output, Receipt, ToolResult};
use lula_repair::trial::tail;
use lula_runner::api::{EXPIRED, REJECTED};

use super::by_whom;

/// Longest output of a command that is kept of each stream.
const KEPT: usize = 24_000;

pub(super) fn said(result: ToolResult) -> Result<Said, HandsError> {
    Ok(match result.outcome {
        Outcome::Done { output } => done(output, result.receipt.as_ref()),
        Outcome::Failed { message, .. } => Said::failed(message),
        Outcome::Denied { denials } => {
            let (by, why) = refused(&denials);
            Said {
                refused: Some(by),
                ..Said::failed(why)
            }
        }
        Outcome::NeedsApproval { challenge } => return Err(held(&challenge)),
    })
}

pub(super) fn held(challenge: &ApprovalChallenge) -> HandsError {
    HandsError::Held {
        approval: challenge.id.clone(),
        reason: challenge.reason.clone(),
    }
}

/// Who said no, and what they said.
pub(super) fn refused(denials: &[Denial]) -> (Refused, String) {
    let by_people = denials
        .iter()
        .any(|denial| denial.rule == REJECTED || denial.rule == EXPIRED);
    let rules: Vec<&str> = denials.iter().map(|denial| denial.rule.as_str()).collect();
    (
        by_whom(by_people),
        format!("it was refused: {}", rules.join("; ")),
    )
}

fn done(output: Output, receipt: Option<&Receipt>) -> Said {
    let plain = |text: String| Said {
        text,
        failed: false,
        refused: None,
    };
    match output.details {
        Some(Details::Command {
            status,
            stdout,
            stderr,
            ..
        }) => {
            let timed_out = receipt.is_some_and(|receipt| receipt.ended == Ended::TimedOut);
            let mut text = if timed_out {
                "its time ran out\n".to_owned()
            } else {
                format!("exit status {status}\n")
            };
            for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
                if !stream.trim().is_empty() {
                    let end = tail(&stream, KEPT);
                    let _ = write!(text, "<{name}>\n{end}\n</{name}>\n");
                }
            }
            Said {
                failed: status != 0,
                ..plain(text)
            }
        }
        _ if output.text.is_empty() => plain("there is nothing".to_owned()),
        _ if output.truncated => plain(format!("{}\n[there is more]\n", output.text)),
        _ => plain(output.text),
    }
}
