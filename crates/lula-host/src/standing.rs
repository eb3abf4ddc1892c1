//! How a run stands: a word for people, and how good that is.

use lula_protocol::RunExit;
use serde::{Deserialize, Serialize};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStanding {
    /// Its change does what it should.
    Verified,
    /// Nothing shows whether its change is right.
    Unverified,
    /// It waits for a person.
    Waiting,
    /// It came to nothing.
    Failed,
    /// Nothing was tried: something is missing here.
    #[serde(rename = "not possible")]
    NotPossible,
    /// A driver is at it.
    Running,
    /// No driver is at it, and it is not over.
    Interrupted,
    /// An agent's run that is not over.
    Unfinished,
    /// Its log cannot be read.
    Unreadable,
}

/// How good that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingTone {
    Good,
    Bad,
    /// It is under way.
    Active,
    /// That is still open.
    Open,
}

impl RunStanding {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::NotPossible => "not possible",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Unfinished => "unfinished",
            Self::Unreadable => "unreadable",
        }
    }

    /// How good it is.
    pub const fn tone(self) -> StandingTone {
        match self {
            Self::Verified => StandingTone::Good,
            Self::Failed | Self::NotPossible | Self::Unreadable => StandingTone::Bad,
            Self::Running => StandingTone::Active,
            Self::Unverified | Self::Waiting | Self::Interrupted | Self::Unfinished => {
                StandingTone::Open
            }
        }
    }

    /// How a run stands that is over.
    pub const fn ended(exit: RunExit) -> Self {
        match exit {
            RunExit::Verified => Self::Verified,
            RunExit::Inconclusive => Self::Unverified,
            RunExit::Budget | RunExit::WaitingForApproval => Self::Waiting,
            RunExit::Failed | RunExit::Usage => Self::Failed,
            RunExit::Environment => Self::NotPossible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_the_word_that_people_read() {
        for standing in [
            RunStanding::Verified,
            RunStanding::NotPossible,
            RunStanding::Interrupted,
            RunStanding::Unreadable,
        ] {
            assert_eq!(serde_json::json!(standing), standing.word());
        }
    }
}
