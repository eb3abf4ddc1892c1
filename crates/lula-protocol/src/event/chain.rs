//! A log is whole when each entry continues the one before it.

use super::{EventEnvelope, LogEvent};
use crate::canonical::CanonicalError;
use crate::digest::Digest;
use crate::id::RunId;

/// What the first entry of a log names as the one before it.
pub fn origin() -> Digest {
    Digest::of_bytes(b"")
}

/// Where a log breaks.
#[derive(Debug, thiserror::Error)]
pub enum BrokenLogChain {
    /// An entry is missing, doubled or out of place.
    #[error(
        "entry {position} carries sequence number {found}: an entry is missing or out of order"
    )]
    Sequence {
        /// Position in the log.
        position: u64,
        /// The sequence number that stands there.
        found: u64,
    },
    /// An entry does not follow from the one before.
    #[error("entry {position} does not continue the entry before it: one of the two was changed")]
    Chain {
        /// Position in the log.
        position: u64,
    },
    /// An entry was written by an owner that had already been replaced.
    #[error("entry {position} was written by owner {found}, after owner {latest} had taken over")]
    Epoch {
        /// Position in the log.
        position: u64,
        /// The owner that wrote it.
        found: u64,
        /// The owner at that time.
        latest: u64,
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

/// Follows a log entry by entry.
#[derive(Debug, Clone)]
pub struct LogChain {
    run: RunId,
    next: u64,
    epoch: u64,
    head: Digest,
}

impl LogChain {
    /// A log with no entry yet.
    pub fn start(run: RunId) -> Self {
        Self {
            run,
            next: 0,
            epoch: 0,
            head: origin(),
        }
    }

    /// A log whose entries up to a trusted position are not looked at again.
    pub const fn resume(run: RunId, next: u64, epoch: u64, head: Digest) -> Self {
        Self {
            run,
            next,
            epoch,
            head,
        }
    }

    /// Checks the next entry from the canonical bytes of its body and returns its digest.
    pub fn follow(
        &mut self,
        envelope: &EventEnvelope<'_>,
        canonical_body: &[u8],
    ) -> Result<Digest, BrokenLogChain> {
        let position = self.next;
        if envelope.seq != position {
            return Err(BrokenLogChain::Sequence {
                position,
                found: envelope.seq,
            });
        }
        if *envelope.run != self.run {
            return Err(BrokenLogChain::OtherRun {
                position,
                found: envelope.run.clone(),
            });
        }
        if envelope.previous != self.head {
            return Err(BrokenLogChain::Chain { position });
        }
        if envelope.epoch < self.epoch {
            return Err(BrokenLogChain::Epoch {
                position,
                found: envelope.epoch,
                latest: self.epoch,
            });
        }
        self.next += 1;
        self.epoch = envelope.epoch;
        self.head = envelope.digest(canonical_body);
        Ok(self.head)
    }

    /// Digest of the last entry.
    pub const fn head(&self) -> Digest {
        self.head
    }

    /// How many entries there are.
    pub const fn len(&self) -> u64 {
        self.next
    }

    /// Whether there is no entry yet.
    pub const fn is_empty(&self) -> bool {
        self.next == 0
    }
}

/// Checks that a log is whole and returns the digest of its last entry.
pub fn verify_chain(events: &[LogEvent]) -> Result<Digest, BrokenLogChain> {
    let Some(first) = events.first() else {
        return Ok(origin());
    };
    let mut chain = LogChain::start(first.run.clone());
    for event in events {
        chain.follow(&event.envelope(), &event.canonical_body()?)?;
    }
    Ok(chain.head())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EVENT_SCHEMA, EventBody};
    use crate::version::ProtocolVersion;
    use proptest::prelude::*;

    fn log(length: u64) -> Vec<LogEvent> {
        let mut previous = origin();
        (0..length)
            .map(|seq| {
                let event = LogEvent {
                    protocol: ProtocolVersion,
                    schema: EVENT_SCHEMA,
                    run: RunId::from_parts(1, [7; 10]),
                    seq,
                    epoch: 1,
                    at_ms: 1_000 + seq,
                    previous,
                    body: EventBody::NodeEntered {
                        node: "coder \u{20ac}\n".to_owned(),
                        visit: 0,
                    },
                };
                previous = event.digest().unwrap();
                event
            })
            .collect()
    }

    fn broken_at(broken: &BrokenLogChain) -> u64 {
        match broken {
            BrokenLogChain::Sequence { position, .. }
            | BrokenLogChain::Chain { position }
            | BrokenLogChain::Epoch { position, .. }
            | BrokenLogChain::OtherRun { position, .. } => *position,
            BrokenLogChain::Canonical(error) => panic!("{error}"),
        }
    }

    #[test]
    fn an_owner_that_was_replaced_cannot_have_written_later() {
        let mut events = log(3);
        events[1].epoch = 2;
        events[2].previous = events[1].digest().unwrap();
        let broken = verify_chain(&events).unwrap_err();
        assert!(
            matches!(broken, BrokenLogChain::Epoch { position: 2, .. }),
            "{broken}"
        );
    }

    proptest! {
        #[test]
        fn a_whole_log_verifies(length in 0_u64..20) {
            verify_chain(&log(length)).unwrap();
        }

        #[test]
        fn the_digest_from_pieces_is_the_digest_of_the_whole(
            seq in 0_u64..1_000, epoch in 0_u64..1_000, at_ms in 0_u64..(1 << 50), text in ".{0,60}",
        ) {
            let event = LogEvent {
                seq,
                epoch,
                at_ms,
                body: EventBody::SignalIgnored { reason: text },
                ..log(1).remove(0)
            };
            let pieces = event.envelope().digest(&event.canonical_body().unwrap());
            prop_assert_eq!(pieces, event.digest().unwrap());
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
