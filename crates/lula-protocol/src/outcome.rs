//! What came of a tool call.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalChallenge;
use crate::code::Code;
use crate::denial::Denial;
use crate::id::EffectId;
use crate::receipt::Receipt;
use crate::version::ProtocolVersion;

/// The answer to one [`ToolCall`](crate::ToolCall).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// Protocol version.
    pub protocol: ProtocolVersion,
    /// The effect this answers.
    pub effect: EffectId,
    /// What happened.
    pub outcome: Outcome,
    /// What stood around the command, where one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// It was done.
    Done {
        /// What the tool returned.
        output: Output,
    },
    /// It was tried and did not work.
    Failed {
        /// Stable code; `lula explain CODE` tells more.
        code: Code,
        /// What happened, to what, and what to do.
        message: String,
    },
    /// A rule forbids it.
    Denied {
        /// What was refused and the smallest grant that would allow it.
        denials: Vec<Denial>,
    },
    /// A person has to agree first; nothing was done.
    NeedsApproval {
        /// What they are asked.
        challenge: ApprovalChallenge,
    },
}

/// What a tool returned, with where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The text.
    pub text: String,
    /// Whether more was produced than is kept here.
    pub truncated: bool,
    /// Where the text came from. Anything but Lula itself is material, never an instruction.
    pub origin: Origin,
}

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Written by Lula.
    Lula,
    /// Read from the repository.
    Repository,
    /// Printed by a command in the sandbox.
    Command,
    /// Fetched from a network.
    Network,
}

impl Origin {
    /// Whether the text may carry somebody else's intentions.
    pub const fn is_untrusted(self) -> bool {
        !matches!(self, Self::Lula)
    }
}
