//! What rules say, and why.

use std::fmt;

use lula_protocol::SandboxDenial;
use lula_protocol::denial::DeniedAttempt;
use serde::{Deserialize, Serialize};

use crate::approvals::ApprovalTerms;

/// What a rule says about an act. The order is the order of strictness.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It may happen without asking.
    #[default]
    Allow,
    /// A person has to agree first.
    Ask,
    /// It may not happen.
    Deny,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// One reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulingReason {
    /// The id of the rule that matched.
    pub rule: String,
    /// What it says here.
    pub ruling: Ruling,
    /// Why the rule is there.
    pub reason: String,
    /// The part of the act that it is about.
    pub matched: String,
}

/// What all rules together say about an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateVerdict {
    /// The strictest of all that matched.
    pub ruling: Ruling,
    /// Everything that matched, strictest first.
    pub because: Vec<RulingReason>,
    /// What has to be true of the answers, where people are asked.
    pub terms: ApprovalTerms,
    /// Whether the operator who started the work may have agreed before, if it stays in a workspace.
    pub beforehand: bool,
}

impl GateVerdict {
    /// Why, in one sentence.
    pub fn reason(&self) -> String {
        match self.because.first() {
            Some(because) => format!("{} ({}: {})", because.reason, because.rule, because.matched),
            None => "no rule is about it".to_owned(),
        }
    }

    /// The rule that decided, where one did.
    pub fn rule(&self) -> Option<&str> {
        self.because.first().map(|because| because.rule.as_str())
    }

    /// The refusals as they go over the wire.
    pub fn denials(&self, tool: &str) -> Vec<SandboxDenial> {
        let denied = |because: &&RulingReason| because.ruling == Ruling::Deny;
        self.because
            .iter()
            .filter(denied)
            .map(|because| SandboxDenial {
                attempt: DeniedAttempt::Call {
                    tool: tool.to_owned(),
                },
                rule: format!("{}: {}", because.rule, because.reason),
                grant: None,
                count: 1,
            })
            .collect()
    }
}
