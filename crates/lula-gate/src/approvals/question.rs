//! What is asked, and what is kept of it.

use lula_protocol::approval::ApprovalSubject;
use lula_protocol::{
    ApprovalChallenge, ApprovalDecision, ApprovalId, Digest, EffectClass, Principal,
};
use serde::Serialize;

use super::state::{Approval, ApprovalStanding};
use super::terms::ApprovalTerms;

/// A question to be put to people.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalQuestion<'a> {
    /// What the answer will be bound to.
    pub subject: &'a ApprovalSubject,
    /// Exactly what is shown. Its digest must be the subject's.
    pub rendered: &'a [u8],
    /// What the act does to the world.
    pub class: EffectClass,
    /// Why a person is asked, in one sentence.
    pub reason: &'a str,
    /// What has to be true of the answers.
    pub terms: &'a ApprovalTerms,
    /// Who wants the act, from a verified identity.
    pub requester: &'a Principal,
}

/// The answer of one approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalVote {
    pub approver: Principal,
    /// The role in which the person answers.
    pub role: String,
    pub decision: ApprovalDecision,
}

/// A question as it is kept, with everything a person needs to answer it.
#[derive(Debug, Clone)]
pub struct StoredApproval {
    /// The question on the wire.
    pub challenge: ApprovalChallenge,
    /// What the answer is bound to.
    pub subject: ApprovalSubject,
    /// Exactly what was shown.
    pub rendered: Vec<u8>,
    /// When it was asked, in Unix milliseconds.
    pub asked_ms: u64,
    /// The state machine with all votes.
    pub approval: Approval,
}

impl StoredApproval {
    /// Identity of the question.
    pub const fn id(&self) -> &ApprovalId {
        &self.challenge.id
    }

    /// Where it stands at a time.
    pub fn standing(&self, now_ms: u64) -> ApprovalStanding {
        self.approval.standing(now_ms)
    }

    /// Whether what was shown still has the digest that is approved. Rows can be edited; this
    /// tells before a person signs.
    pub fn is_intact(&self) -> bool {
        Digest::of_bytes(&self.rendered) == self.subject.diff
            && self.subject.digest().ok() == Some(self.challenge.digest)
    }
}
