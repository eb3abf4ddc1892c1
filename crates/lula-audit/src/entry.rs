//! What is recorded of an act.

use lula_protocol::{ApprovalId, Digest, EffectId, Principal, RunId};
use serde::{Deserialize, Serialize};

/// One act of an agent or a person, as the log records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// When it was recorded, in Unix milliseconds.
    pub time_ms: u64,
    /// On whose behalf it was done.
    pub principal: Principal,
    /// On behalf of which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The effect it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectId>,
    /// The tool or command.
    pub tool: String,
    /// What it was about, for people. Redacted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Digest of the canonical call.
    pub call: Digest,
    /// Why it was allowed to happen, or was not.
    pub decision: AuditDecision,
    pub outcome: AuditEnding,
    /// Digest of the posture receipt, where a command ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Digest>,
    /// Digest of the change of the workspace, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Digest>,
}

/// Why an act was allowed to happen, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditDecision {
    pub verdict: AuditVerdict,
    /// The rule that decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The approval that was spent or is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// What was decided about an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// A person ran it directly: no approver had to be asked.
    Direct,
    /// The rules allow it without asking.
    Allowed,
    /// People agreed to it.
    Approved,
    /// The operator who started the work agreed to it beforehand, as a rule lets them.
    Beforehand,
    /// Approvers are asked before it happens.
    Asked,
    /// People said no, or too few said yes in time.
    Rejected,
    /// A rule forbids it.
    Denied,
}

/// How an act ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum AuditEnding {
    Done {
        /// Exit status, where a command ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u8>,
    },
    /// It was tried and did not work.
    Failed {
        /// Stable code; `lula explain CODE` tells more.
        code: String,
    },
    /// It was not tried, and nothing was changed.
    NotDone,
}

/// Longest text kept of a field.
const MAX_FIELD: usize = 4096;

impl AuditEntry {
    /// The entry with every free text redacted and bounded.
    pub(crate) fn clean(mut self, redact: fn(&str) -> String) -> Self {
        let tidy = |text: &str| {
            let clean = redact(text);
            clean[..clean.floor_char_boundary(MAX_FIELD.min(clean.len()))].to_owned()
        };
        self.tool = tidy(&self.tool);
        self.about = tidy(&self.about);
        self.decision.rule = self.decision.rule.as_deref().map(tidy);
        if let AuditEnding::Failed { code } = &mut self.outcome {
            *code = tidy(code);
        }
        self
    }
}
