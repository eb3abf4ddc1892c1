//! The state machine of one approval. Pure: the clock is an argument.

use lula_protocol::{ApprovalDecision, Digest, EffectClass, Principal};
use serde::Serialize;

use super::question::ApprovalVote;
use super::terms::ApprovalTerms;

/// One question and its answers so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Digest of what is approved.
    pub digest: Digest,
    /// What the act does to the world.
    pub class: EffectClass,
    /// What has to be true of the answers.
    pub terms: ApprovalTerms,
    /// Who wants the act.
    pub requester: Principal,
    /// When the question closes, in Unix milliseconds.
    pub expires_ms: u64,
    /// The answers, in the order they came.
    pub votes: Vec<ApprovalVote>,
    /// How it ended, once it has.
    pub settled: Option<SettledApproval>,
}

/// An end that nothing changes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledApproval {
    /// It was spent on the act it was for.
    Used,
    /// What would have been done was no longer what was shown.
    Void,
    /// An approver said no.
    Rejected,
    /// Too few said yes in time.
    Expired,
}

/// Where an approval stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ApprovalStanding {
    /// People are still asked.
    Pending {
        approvals: u32,
        /// How many approvers have to agree.
        needed: u32,
    },
    /// The act may happen, once.
    Approved {
        /// Whether silence agreed, not people.
        by_silence: bool,
    },
    /// No answer can change it any more.
    Over { end: SettledApproval },
}

/// Why an act may not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRefusal {
    /// What would be done is not what was approved.
    #[error(
        "what would be done now is not what was shown: the approval is void, ask again with the new diff"
    )]
    Void,
    #[error("the approval has expired: run the task again to ask anew")]
    Expired,
    #[error("the approval was used already: each is good for one act")]
    Used,
    /// Not enough answers yet.
    #[error("{approvals} of {needed} approvals are there: wait for the others")]
    NotYet {
        approvals: u32,
        /// How many approvers have to agree.
        needed: u32,
    },
    /// An approver said no.
    #[error("the act was rejected")]
    Rejected,
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoteRefusal {
    /// The question is no longer open.
    #[error("the question is settled already: {0:?}")]
    Settled(SettledApproval),
    /// The same principal answered before.
    #[error("{0} has answered already: a quorum counts different people")]
    AlreadyVoted(Principal),
    /// The principal who asked may not agree.
    #[error("{0} made the request and cannot approve it: another person has to")]
    OwnRequest(Principal),
    /// Another role is asked for.
    #[error("the role {required:?} is asked for, not {given:?}")]
    WrongRole {
        /// The role asked for.
        required: String,
        /// The role of the answer.
        given: String,
    },
}

impl Approval {
    /// Where it stands at a time. Time alone can settle it: no vote is needed for that.
    pub fn standing(&self, now_ms: u64) -> ApprovalStanding {
        if let Some(end) = self.settled {
            return ApprovalStanding::Over { end };
        }
        let approvals = self.agreed();
        let needed = self.terms.quorum.get();
        let open = now_ms < self.expires_ms;
        if open && approvals >= needed {
            return ApprovalStanding::Approved { by_silence: false };
        }
        if open {
            return ApprovalStanding::Pending { approvals, needed };
        }
        // Consent by silence lasts as long as the question was open.
        let lapses = self.expires_ms.saturating_add(self.terms.open_ms);
        if self.terms.silence_agrees(self.class) && now_ms < lapses {
            return ApprovalStanding::Approved { by_silence: true };
        }
        ApprovalStanding::Over {
            end: SettledApproval::Expired,
        }
    }

    fn agreed(&self) -> u32 {
        let agreed = self.votes.iter().filter(|vote| self.counts(vote)).count();
        u32::try_from(agreed).unwrap_or(u32::MAX)
    }

    fn counts(&self, vote: &ApprovalVote) -> bool {
        vote.decision == ApprovalDecision::Approve && self.check_approver(vote).is_ok()
    }

    fn check_approver(&self, vote: &ApprovalVote) -> Result<(), VoteRefusal> {
        if self.terms.four_eyes && vote.approver == self.requester {
            return Err(VoteRefusal::OwnRequest(vote.approver.clone()));
        }
        match &self.terms.role {
            Some(required) if *required != vote.role => Err(VoteRefusal::WrongRole {
                required: required.clone(),
                given: vote.role.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Takes an answer. A no is final, also after a yes of the same person, until the act happened.
    pub fn apply(
        &mut self,
        vote: ApprovalVote,
        now_ms: u64,
    ) -> Result<ApprovalStanding, VoteRefusal> {
        if let ApprovalStanding::Over { end } = self.standing(now_ms) {
            return Err(VoteRefusal::Settled(end));
        }
        match vote.decision {
            ApprovalDecision::Reject => self.settled = Some(SettledApproval::Rejected),
            ApprovalDecision::Approve => {
                self.check_approver(&vote)?;
                if self.votes.iter().any(|cast| cast.approver == vote.approver) {
                    return Err(VoteRefusal::AlreadyVoted(vote.approver));
                }
            }
        }
        self.votes.push(vote);
        Ok(self.standing(now_ms))
    }

    /// Spends the approval on an act whose digest was computed just now.
    pub fn redeem(&mut self, digest_now: &Digest, now_ms: u64) -> Result<(), ApprovalRefusal> {
        match self.standing(now_ms) {
            ApprovalStanding::Over { end } => Err(match end {
                SettledApproval::Used => ApprovalRefusal::Used,
                SettledApproval::Void => ApprovalRefusal::Void,
                SettledApproval::Rejected => ApprovalRefusal::Rejected,
                SettledApproval::Expired => {
                    self.settled = Some(SettledApproval::Expired);
                    ApprovalRefusal::Expired
                }
            }),
            _ if *digest_now != self.digest => {
                self.settled = Some(SettledApproval::Void);
                Err(ApprovalRefusal::Void)
            }
            ApprovalStanding::Pending { approvals, needed } => {
                Err(ApprovalRefusal::NotYet { approvals, needed })
            }
            ApprovalStanding::Approved { .. } => {
                self.settled = Some(SettledApproval::Used);
                Ok(())
            }
        }
    }
}

impl SettledApproval {
    /// The name it is stored under.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Void => "void",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Used, Self::Void, Self::Rejected, Self::Expired]
            .into_iter()
            .find(|end| end.name() == name)
    }
}
