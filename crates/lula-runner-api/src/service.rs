//! What a runner is, whether it is well, and why it did not do what was asked.

use std::collections::BTreeMap;

use lula_protocol::{Code, Digest, IsolationTier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request was not done, where no tool result says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerProblem {
    /// Stable code; `lula explain CODE` tells more.
    pub code: Code,
    /// What happened, to what, and what to do.
    pub message: String,
}

/// What this runner is and gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerCapabilities {
    /// Version of the program.
    pub version: String,
    /// The tier its workspaces run in.
    pub tier: IsolationTier,
    /// Names of the tools.
    pub tools: Vec<String>,
    /// Directories below which workspaces can be opened.
    pub roots: Vec<String>,
    /// Digest of the sandbox policy.
    pub policy: Digest,
    /// Digest of the rules that decide when to ask.
    pub rules: Digest,
    /// How much it takes and gives, by name.
    pub limits: BTreeMap<String, u64>,
}

/// Whether the runner is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerHealth {
    /// `ok`, or `draining` while it shuts down.
    pub status: String,
}
