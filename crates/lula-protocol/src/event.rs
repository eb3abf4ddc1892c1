//! Run events: the one append-only log that the terminal, the API, metrics and the audit read.
//!
//! Each event carries the digest of the one before it, so that a log cannot be shortened,
//! reordered or edited without showing where.

use serde::{Deserialize, Serialize};

use crate::canonical::CanonicalError;
use crate::digest::{Digest, Domain};
use crate::exit::Exit;
use crate::id::{ApprovalId, EffectId, RunId};
use crate::version::ProtocolVersion;

/// One entry of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Protocol version.
    pub protocol: ProtocolVersion,
    /// The run.
    pub run: RunId,
    /// Position in the log, from 0 without gaps.
    pub seq: u64,
    /// Unix time in milliseconds when it was appended.
    pub at_ms: u64,
    /// Digest of the entry before; of no bytes for the first.
    pub previous: Digest,
    /// What happened.
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventBody {
    /// A task was taken.
    RunStarted {
        /// The task in the user's words.
        task: String,
    },
    /// A node of the graph began.
    NodeEntered {
        /// Name of the node.
        node: String,
        /// How often it was entered before.
        visit: u32,
    },
    /// An effect is about to be tried.
    EffectIntended {
        /// Its identity.
        effect: EffectId,
        /// Name of the tool.
        tool: String,
        /// Digest of the call.
        request: Digest,
    },
    /// An effect ended.
    EffectSettled {
        /// Its identity.
        effect: EffectId,
        /// Digest of the result.
        result: Digest,
    },
    /// The run waits for a person.
    ApprovalRequested {
        /// The question.
        approval: ApprovalId,
        /// Digest of what is asked.
        digest: Digest,
    },
    /// The run ended.
    RunEnded {
        /// How.
        exit: Exit,
        /// In one sentence.
        summary: String,
    },
}

impl Event {
    /// Digest of this entry, which the next one carries.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(Domain::Event, self)
    }
}

/// Where a log breaks.
#[derive(Debug, thiserror::Error)]
pub enum BrokenLog {
    /// An entry is missing, doubled or out of place.
    #[error(
        "entry {position} carries sequence number {found}: an entry is missing or out of order"
    )]
    Sequence {
        /// Position in the log.
        position: u64,
        /// Number found there.
        found: u64,
    },
    /// An entry does not follow from the one before.
    #[error("entry {position} does not continue the entry before it: one of the two was changed")]
    Chain {
        /// Position in the log.
        position: u64,
    },
    /// An entry belongs to another run.
    #[error("entry {position} belongs to {found}, not to this run")]
    OtherRun {
        /// Position in the log.
        position: u64,
        /// The run it names.
        found: RunId,
    },
    /// An entry cannot be encoded.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// Checks that a log is whole and returns the digest of its last entry.
pub fn verify_chain(events: &[Event]) -> Result<Digest, BrokenLog> {
    let mut previous = Digest::of_bytes(b"");
    for (position, event) in (0_u64..).zip(events) {
        if event.seq != position {
            return Err(BrokenLog::Sequence {
                position,
                found: event.seq,
            });
        }
        if event.run != events[0].run {
            return Err(BrokenLog::OtherRun {
                position,
                found: event.run.clone(),
            });
        }
        if event.previous != previous {
            return Err(BrokenLog::Chain { position });
        }
        previous = event.digest()?;
    }
    Ok(previous)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log(length: u64) -> Vec<Event> {
        let mut previous = Digest::of_bytes(b"");
        (0..length)
            .map(|seq| {
                let event = Event {
                    protocol: ProtocolVersion,
                    run: RunId::from_parts(1, [7; 10]),
                    seq,
                    at_ms: 1_000 + seq,
                    previous,
                    body: EventBody::NodeEntered {
                        node: "coder".to_owned(),
                        visit: 0,
                    },
                };
                previous = event.digest().unwrap();
                event
            })
            .collect()
    }

    fn broken_at(broken: &BrokenLog) -> u64 {
        match broken {
            BrokenLog::Sequence { position, .. }
            | BrokenLog::Chain { position }
            | BrokenLog::OtherRun { position, .. } => *position,
            BrokenLog::Canonical(error) => panic!("{error}"),
        }
    }

    proptest! {
        #[test]
        fn a_whole_log_verifies(length in 0_u64..20) {
            verify_chain(&log(length)).unwrap();
        }

        #[test]
        fn an_edited_entry_is_located(length in 2_u64..20, at in any::<prop::sample::Index>()) {
            let mut events = log(length);
            let at = at.index(events.len() - 1);
            events[at].at_ms += 1;
            let broken = verify_chain(&events).unwrap_err();
            prop_assert_eq!(broken_at(&broken), at as u64 + 1, "{}", broken);
        }

        #[test]
        fn a_removed_entry_is_located(length in 2_u64..20, at in any::<prop::sample::Index>()) {
            let mut events = log(length);
            let at = at.index(events.len() - 1);
            events.remove(at);
            let broken = verify_chain(&events).unwrap_err();
            prop_assert_eq!(broken_at(&broken), at as u64, "{}", broken);
        }
    }
}
