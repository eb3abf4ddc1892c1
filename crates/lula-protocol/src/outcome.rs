//! What came of a tool call.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalChallenge;
use crate::code::Code;
use crate::denial::SandboxDenial;
use crate::id::EffectId;
use crate::output::ToolOutput;
use crate::receipt::SandboxReceipt;
use crate::version::ProtocolVersion;

/// The answer to one [`ToolCall`](crate::ToolCall).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// Version of the protocol that the runner speaks.
    pub protocol: ProtocolVersion,
    /// The effect this answers.
    pub effect: EffectId,
    pub outcome: ToolOutcome,
    /// What stood around the command, where one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<SandboxReceipt>,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolOutcome {
    /// The call was carried out.
    Done {
        /// What the tool returned.
        output: ToolOutput,
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
        denials: Vec<SandboxDenial>,
    },
    /// A person has to agree first; nothing was done.
    NeedsApproval {
        /// What they are asked.
        challenge: ApprovalChallenge,
    },
}
