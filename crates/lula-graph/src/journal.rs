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
        /// What was done.
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
        /// Why.
        over: (BudgetDimension, u64, u64),
    },
    /// The run waited.
    Wait {
        /// For what.
        interrupt: RunInterrupt,
        /// How it ended.
        answer: Option<InterruptAnswer>,
    },
}

/// Something a person said to the agent that works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorNote {
    /// Who.
    pub by: Principal,
    /// What.
    pub text: String,
}

/// An effect in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEffect {
    /// Its identity.
    pub effect: EffectId,
    /// Sequence number of the event that announced it.
    pub intent_seq: u64,
    /// What may be done again.
    pub class: EffectClass,
    /// What is done.
    pub name: String,
    /// Digest of the request.
    pub request: Digest,
    /// The workspace before.
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
    /// For what.
    pub interrupt: RunInterrupt,
}

/// An approval the run asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedApproval {
    /// Digest of what was asked.
    pub digest: Digest,
    /// Who has to agree.
    pub rule: ApprovalRule,
    /// Who said what.
    pub votes: BTreeMap<Principal, ApprovalBallot>,
    /// What it came to.
    pub answer: Option<InterruptAnswer>,
    /// Whether an effect used it up.
    pub used: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// In which way.
    pub ending: RunEnding,
    /// With which result.
    pub exit: RunExit,
    /// In one sentence.
    pub summary: String,
}
