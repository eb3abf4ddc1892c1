//! What a visit has done so far, and what the run waits for: the values [`RunProgress`] keeps.
//!
//! [`RunProgress`]: crate::progress::RunProgress

use std::collections::BTreeMap;

use lula_protocol::event::{EffectResult, RunEnding};
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{
    ApprovalId, BudgetAmounts, BudgetDimension, Digest, EffectClass, EffectId, InterruptAnswer,
    Principal, RunExit, RunInterrupt,
};
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalBallot;

/// One journaled call of the current visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalEntry {
    /// The clock was read.
    Clock(u64),
    /// What the log held was asked for.
    Head(Digest),
    /// What people had said was heard.
    Heard(Vec<OperatorNote>),
    /// The world was looked at.
    Read {
        /// Name of the look, as the log has it.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// What came of it.
        result: EffectResult,
    },
    /// Something was done, or is about to be.
    Effect(Box<JournalEffect>),
    /// A budget did not allow it.
    Refused {
        /// What would have been done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// The limit in the way, how much was asked and how much was left.
        over: (BudgetDimension, u64, u64),
    },
    Wait {
        interrupt: RunInterrupt,
        /// How the wait ended; none while it lasts.
        answer: Option<InterruptAnswer>,
    },
}

/// Something a person said to the agent that works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorNote {
    pub by: Principal,
    pub text: String,
}

/// An effect in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEffect {
    pub effect: EffectId,
    /// Sequence number of the event that announced it.
    pub intent_seq: u64,
    /// What may be done again.
    pub class: EffectClass,
    pub name: String,
    /// Digest of the request.
    pub request: Digest,
    /// The workspace before, for a [`EffectClass::Tree`] effect.
    pub pre_tree: Option<Digest>,
    /// The most it may cost.
    pub reserve: BudgetAmounts,
    /// The approval it used up.
    pub approval: Option<ApprovalId>,
    /// How often it was tried before.
    pub attempt: u32,
    /// What came of it.
    pub result: Option<EffectResult>,
    /// What a person said about it.
    pub verdict: Option<String>,
}

/// A wait that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingWait {
    /// Sequence number of the event that asked.
    pub seq: u64,
    /// Position in the visit's journal.
    pub ordinal: u32,
    pub interrupt: RunInterrupt,
}

/// An approval the run asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedApproval {
    /// Digest of what was asked.
    pub digest: Digest,
    /// Who has to agree.
    pub rule: ApprovalRule,
    /// The votes so far, by approver.
    pub votes: BTreeMap<Principal, ApprovalBallot>,
    /// What it came to.
    pub answer: Option<InterruptAnswer>,
    /// Whether an effect used it up.
    pub used: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    pub ending: RunEnding,
    pub exit: RunExit,
    /// The result in one sentence, for people.
    pub summary: String,
}
