//! What came of a tool call.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalChallenge;
use crate::code::Code;
use crate::denial::Denial;
use crate::id::EffectId;
use crate::output::Output;
use crate::receipt::Receipt;
use crate::version::ProtocolVersion;

/// The answer to one [`ToolCall`](crate::ToolCall).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
