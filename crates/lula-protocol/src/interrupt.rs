//! What a run waits for, and what people send it.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalDecision;
use crate::budget::BudgetDimension;
use crate::digest::Digest;
use crate::id::{ApprovalId, EffectId, Principal};

/// Who has to agree, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// How many different people have to agree. Never below one.
    pub quorum: u32,
    /// Roles whose vote counts; any role where the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Who asked for the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Principal>,
    /// Whether the requester's own vote does not count.
    pub four_eyes: bool,
    /// Unix time in milliseconds after which the answer is no.
    pub expires_ms: u64,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunInterrupt {
    /// People have to agree to exactly this.
    Approval {
        approval: ApprovalId,
        /// Digest of what is asked.
        digest: Digest,
        /// Fresh per question, so that no old token fits.
        nonce: String,
        /// Who has to agree, and until when.
        rule: ApprovalRule,
        /// Why they are asked, in one sentence.
        reason: String,
    },
    /// A person has to choose.
    Operator {
        question: String,
        options: Vec<String>,
    },
    /// A time has to come.
    Timer {
        /// Unix time in milliseconds.
        at_ms: u64,
    },
    /// A limit has to be raised.
    Budget {
        dimension: BudgetDimension,
        /// How much the next effect may need.
        asked: u64,
        /// How much is left.
        free: u64,
    },
    /// It is not known whether an effect outside was done.
    UnknownEffect {
        effect: EffectId,
        /// What it is called.
        name: String,
        /// What is known of the effect, for the operator who decides.
        detail: String,
    },
    /// The runner has a question before it acts: people have to answer there.
    Held {
        /// What is not done yet.
        effect: EffectId,
        /// What it is called.
        name: String,
        /// The question, as the runner names it.
        approval: ApprovalId,
        /// Why they ask, in one sentence.
        reason: String,
    },
    /// The program asks for something else than it asked for the first time.
    NonDeterminism {
        /// Which journaled call of the visit.
        ordinal: u32,
        /// What the journal holds.
        recorded: Digest,
        /// What is asked now.
        found: Digest,
    },
}

/// The choices for an effect of which the end is not known.
pub mod unknown_effect {
    /// The effect was done: go on with it as it is.
    pub const MARK_DONE: &str = "mark-done";
    /// It was not done: do it.
    pub const RETRY: &str = "retry";
    /// Give the run up.
    pub const ABORT: &str = "abort";
    pub const OPTIONS: [&str; 3] = [MARK_DONE, RETRY, ABORT];
}

impl RunInterrupt {
    /// What a person may choose; empty where no choice is asked.
    pub fn options(&self) -> Vec<String> {
        match self {
            Self::Operator { options, .. } => options.clone(),
            Self::UnknownEffect { .. } => unknown_effect::OPTIONS.map(str::to_owned).to_vec(),
            Self::NonDeterminism { .. } => [unknown_effect::RETRY, unknown_effect::ABORT]
                .map(str::to_owned)
                .to_vec(),
            Self::Held { .. } => vec![unknown_effect::RETRY.to_owned()],
            Self::Budget { .. } => vec!["refuse".to_owned()],
            Self::Approval { .. } | Self::Timer { .. } => Vec::new(),
        }
    }

    /// When the run should look again even without an answer.
    pub const fn wake_ms(&self) -> Option<u64> {
        match self {
            Self::Approval { rule, .. } => Some(rule.expires_ms),
            Self::Timer { at_ms } => Some(*at_ms),
            _ => None,
        }
    }
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum InterruptAnswer {
    /// As many approvers agreed as the rule asks for.
    Approved,
    /// An approver said no, or the time ran out.
    Rejected { reason: String },
    Chose {
        /// One of the options.
        choice: String,
        by: Principal,
        /// What else they said.
        note: String,
    },
    /// The time of the timer came.
    Fired,
    /// The limit was raised.
    Raised,
}

/// What a person or another process sends a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunSignal {
    /// A vote, from a verified identity.
    Vote {
        approval: ApprovalId,
        /// Digest of what the voter saw.
        digest: Digest,
        by: Principal,
        role: String,
        decision: ApprovalDecision,
    },
    /// A person's choice among the options of a question.
    Answer {
        /// Sequence number of the event that asked.
        interrupt: u64,
        /// One of the options.
        choice: String,
        by: Principal,
        /// What else they said.
        note: String,
    },
    /// A higher limit of one budget dimension.
    RaiseLimit {
        dimension: BudgetDimension,
        /// The limit from now on, not the difference.
        to: u64,
        by: Principal,
    },
    /// Something a person wants the agent that works on it to know.
    Steer { by: Principal, text: String },
    /// Stop the run at the next safe point.
    Cancel { by: Principal, reason: String },
}
