//! What a visit has done so far, and what the run waits for: the values [`Progress`] keeps.
//!
//! [`Progress`]: crate::progress::Progress

use std::collections::BTreeMap;

use lula_protocol::event::{EffectResult, Ending};
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{
    Amounts, Answer, ApprovalId, Digest, Dimension, EffectClass, EffectId, Exit, Interrupt,
    Principal,
};
use serde::{Deserialize, Serialize};

use crate::approval::Ballot;

/// One journaled call of the current visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// The clock was read.
    Clock(u64),
    /// What the log held was asked for.
    Head(Digest),
    /// What people had said was heard.
    Heard(Vec<Note>),
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
    Effect(Box<EffectEntry>),
    /// A budget did not allow it.
    Refused {
        /// What would have been done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// Why.
        over: (Dimension, u64, u64),
    },
    /// The run waited.
    Wait {
        /// For what.
        interrupt: Interrupt,
        /// How it ended.
        answer: Option<Answer>,
    },
}

/// Something a person said to whoever works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who.
    pub by: Principal,
    /// What.
    pub text: String,
}

/// An effect in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectEntry {
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
    pub reserve: Amounts,
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
pub struct Pending {
    /// Sequence number of the event that asked.
    pub seq: u64,
    /// Position in the visit's journal.
    pub ordinal: u32,
    /// For what.
    pub interrupt: Interrupt,
}

/// An approval the run asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Digest of what was asked.
    pub digest: Digest,
    /// Who has to agree.
    pub rule: ApprovalRule,
    /// Who said what.
    pub votes: BTreeMap<Principal, Ballot>,
    /// What it came to.
    pub answer: Option<Answer>,
    /// Whether an effect used it up.
    pub used: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// In which way.
    pub ending: Ending,
    /// With which result.
    pub exit: Exit,
    /// In one sentence.
    pub summary: String,
}
