//! Questions put to people, and what a denial says where they did not agree.

use lula_protocol::approval::ApprovalSubject;
use lula_protocol::{ApprovalChallenge, ApprovalDecision, Digest, Principal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a denial says where people did not agree.
pub const REJECTED: &str = "the act was rejected";
/// What it says where no approver answered in time.
pub const EXPIRED: &str = "nobody agreed in time";

/// A question put to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalView {
    /// The question; its digest is what is approved.
    pub challenge: ApprovalChallenge,
    /// What that digest is taken over; `diff` is the digest of `rendered`.
    pub subject: ApprovalSubject,
    /// The role that has to answer, where one is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `pending`, `approved`, `used`, `void`, `rejected` or `expired`.
    pub standing: String,
    /// How many approvers agreed so far.
    pub approvals: u32,
    /// How many approvers have to agree.
    pub needed: u32,
    /// Exactly what would be done, as it is shown.
    pub rendered: String,
    /// The person or process that asked for the act.
    pub requester: Principal,
    /// Every answer so far, with its approver.
    pub votes: Vec<VoteView>,
}

impl ApprovalView {
    /// Whether what is shown is what an answer would be about.
    pub fn is_intact(&self) -> bool {
        Digest::of_bytes(self.rendered.as_bytes()) == self.subject.diff
            && self.subject.digest().ok() == Some(self.challenge.digest)
    }
}

/// The answer of one approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoteView {
    pub approver: Principal,
    /// The role in which the approver answered.
    pub role: String,
    pub decision: ApprovalDecision,
}

/// Every question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalList {
    /// In order, the oldest first.
    pub approvals: Vec<ApprovalView>,
}
