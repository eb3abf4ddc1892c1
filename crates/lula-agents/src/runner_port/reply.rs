//! What a tool's result says, as a model may read it.

use std::fmt::Write;

use lula_protocol::denial::SandboxDenial;
use lula_protocol::receipt::CommandEnding;
use lula_protocol::{
    ApprovalChallenge, SandboxReceipt, ToolOutcome, ToolOutput, ToolOutputDetails, ToolResult,
};
use lula_repair::trial::tail;
use lula_runner_api::{EXPIRED, REJECTED};
use serde::{Deserialize, Serialize};

use super::RunnerPortError;
use crate::recovery::AttemptFailureClass;

/// Longest output of a command that is kept of each stream.
const KEPT: usize = 24_000;

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
}

impl Reply {
    /// That something did not work, and why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failed: true,
            refused: None,
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
    /// What a result says. Where people are asked first there is none yet.
    pub(crate) fn of(result: ToolResult) -> Result<Self, RunnerPortError> {
        Ok(match result.outcome {
            ToolOutcome::Done { output } => done(output, result.receipt.as_ref()),
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

fn done(output: ToolOutput, receipt: Option<&SandboxReceipt>) -> Reply {
    let plain = |text: String| Reply {
        text,
        failed: false,
        refused: None,
    };
    match output.details {
        Some(ToolOutputDetails::Command {
            status,
            stdout,
            stderr,
            ..
        }) => {
            let timed_out = receipt.is_some_and(|receipt| receipt.ended == CommandEnding::TimedOut);
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
            Reply {
                failed: status != 0,
                ..plain(text)
            }
        }
        _ if output.text.is_empty() => plain("there is nothing".to_owned()),
        _ if output.truncated => plain(format!("{}\n[there is more]\n", output.text)),
        _ => plain(output.text),
    }
}
