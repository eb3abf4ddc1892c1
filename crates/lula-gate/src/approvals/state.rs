//! The state machine of one approval. Pure: the clock is an argument.

use lula_protocol::{Decision, Digest, EffectClass, Principal};
use serde::Serialize;

use super::question::Vote;
use super::terms::Terms;

/// One question and its answers so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Digest of what is approved.
    pub digest: Digest,
    /// What the act does to the world.
    pub class: EffectClass,
    /// What has to be true of the answers.
    pub terms: Terms,
    /// Who wants the act.
    pub requester: Principal,
    /// When the question closes, in Unix milliseconds.
    pub expires_ms: u64,
    /// The answers, in the order they came.
    pub votes: Vec<Vote>,
    /// How it ended, once it has.
    pub settled: Option<Settled>,
}

/// An end that nothing changes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It was spent on the act it was for.
    Used,
    /// What would have been done was no longer what was shown.
    Void,
    /// Somebody said no.
    Rejected,
    /// Nobody said enough in time.
    Expired,
}

/// Where an approval stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// People are still asked.
    Pending {
        /// How many agreed.
        approvals: u32,
        /// How many have to.
        needed: u32,
    },
    /// The act may happen, once.
    Approved {
        /// Whether silence agreed, not people.
        by_silence: bool,
    },
    /// It is over.
    Over {
        /// How.
        end: Settled,
    },
}

/// Why an act may not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// What would be done is not what was approved.
    #[error(
        "what would be done now is not what was shown: the approval is void, ask again with the new diff"
    )]
    Void,
    /// Too late.
    #[error("the approval has expired: run the task again to ask anew")]
    Expired,
    /// Already spent.
    #[error("the approval was used already: each is good for one act")]
    Used,
    /// Not enough answers yet.
    #[error("{approvals} of {needed} approvals are there: wait for the others")]
    NotYet {
        /// How many agreed.
        approvals: u32,
        /// How many have to.
        needed: u32,
    },
    /// Somebody said no.
    #[error("the act was rejected")]
    Rejected,
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoteRefused {
    /// The question is no longer open.
    #[error("the question is settled already: {0:?}")]
    Settled(Settled),
    /// The same principal answered before.
    #[error("{0} has answered already: a quorum counts different people")]
    AlreadyVoted(Principal),
    /// Whoever asked may not agree.
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
    /// Where it stands at a time. Time alone can settle it: nobody has to vote for that.
    pub fn standing(&self, now_ms: u64) -> Standing {
        if let Some(end) = self.settled {
            return Standing::Over { end };
        }
        let approvals = self.agreed();
        let needed = self.terms.quorum.get();
        let open = now_ms < self.expires_ms;
        if open && approvals >= needed {
            return Standing::Approved { by_silence: false };
        }
        if open {
            return Standing::Pending { approvals, needed };
        }
        // Consent by silence lasts as long as the question was open.
        let lapses = self.expires_ms.saturating_add(self.terms.open_ms);
        if self.terms.silence_agrees(self.class) && now_ms < lapses {
            return Standing::Approved { by_silence: true };
        }
        Standing::Over {
            end: Settled::Expired,
        }
    }

    fn agreed(&self) -> u32 {
        let agreed = self.votes.iter().filter(|vote| self.counts(vote)).count();
        u32::try_from(agreed).unwrap_or(u32::MAX)
    }

    fn counts(&self, vote: &Vote) -> bool {
        vote.decision == Decision::Approve && self.check_approver(vote).is_ok()
    }

    fn check_approver(&self, vote: &Vote) -> Result<(), VoteRefused> {
        if self.terms.four_eyes && vote.approver == self.requester {
            return Err(VoteRefused::OwnRequest(vote.approver.clone()));
        }
        match &self.terms.role {
            Some(required) if *required != vote.role => Err(VoteRefused::WrongRole {
                required: required.clone(),
                given: vote.role.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Takes an answer. A no is final, also after a yes of the same person, until the act happened.
    pub fn apply(&mut self, vote: Vote, now_ms: u64) -> Result<Standing, VoteRefused> {
        if let Standing::Over { end } = self.standing(now_ms) {
            return Err(VoteRefused::Settled(end));
        }
        match vote.decision {
            Decision::Reject => self.settled = Some(Settled::Rejected),
            Decision::Approve => {
                self.check_approver(&vote)?;
                if self.votes.iter().any(|cast| cast.approver == vote.approver) {
                    return Err(VoteRefused::AlreadyVoted(vote.approver));
                }
            }
        }
        self.votes.push(vote);
        Ok(self.standing(now_ms))
    }

    /// Spends the approval on an act whose digest was computed just now.
    pub fn redeem(&mut self, digest_now: &Digest, now_ms: u64) -> Result<(), Refused> {
        match self.standing(now_ms) {
            Standing::Over { end } => Err(match end {
                Settled::Used => Refused::Used,
                Settled::Void => Refused::Void,
                Settled::Rejected => Refused::Rejected,
                Settled::Expired => {
                    self.settled = Some(Settled::Expired);
                    Refused::Expired
                }
            }),
            _ if *digest_now != self.digest => {
                self.settled = Some(Settled::Void);
                Err(Refused::Void)
            }
            Standing::Pending { approvals, needed } => Err(Refused::NotYet { approvals, needed }),
            Standing::Approved { .. } => {
                self.settled = Some(Settled::Used);
                Ok(())
            }
        }
    }
}

impl Settled {
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
