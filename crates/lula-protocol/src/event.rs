//! Run events: the one append-only log that the terminal, the API, metrics and the audit read.
//!
//! Each event carries the digest of the one before it, so that a log cannot be shortened,
//! reordered or edited without showing where. What a graph itself says stands in payloads; the
//! log knows the shape of a run, not its meaning.

use serde::{Deserialize, Serialize};

use crate::approval::Decision;
use crate::budget::{Amounts, Dimension};
use crate::canonical::{self, CanonicalError};
use crate::digest::{Digest, Domain};
use crate::effect::EffectClass;
use crate::exit::Exit;
use crate::id::{ApprovalId, EffectId, Principal, RunId};
use crate::interrupt::{Answer, Interrupt};
use crate::payload::Payload;
use crate::version::ProtocolVersion;

/// The shape of [`EventBody`] this build writes. Older shapes are read through upcasters.
pub const EVENT_SCHEMA: u32 = 1;

/// One entry of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Protocol version.
    pub protocol: ProtocolVersion,
    /// Shape of the body.
    pub schema: u32,
    /// The run.
    pub run: RunId,
    /// Position in the log, from 0 without gaps.
    pub seq: u64,
    /// Which owner of the run wrote it. Never goes down along a log.
    pub epoch: u64,
    /// Unix time in milliseconds when it was appended.
    pub at_ms: u64,
    /// Digest of the entry before; of no bytes for the first.
    pub previous: Digest,
    /// What happened.
    pub body: EventBody,
}

/// The run and position another run was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// Last entry that was taken over.
    pub seq: u64,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectResult {
    /// It was done and returned this.
    Done(Payload),
    /// It was tried and did not work.
    Failed(String),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How the result of an effect became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// It was executed and answered.
    Executed,
    /// After a crash, evidence was found that it had been done.
    Found,
    /// A person said so.
    Operator,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The graph came to its end.
    Completed,
    /// The engine stopped it: stuck, out of visits, given up.
    Halted,
    /// Somebody stopped it.
    Cancelled,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventBody {
    /// A task was taken.
    RunStarted {
        /// Name of the graph.
        graph: String,
        /// Version of the graph, which the run keeps.
        graph_version: u32,
        /// Version of the program that started it.
        engine: String,
        /// What random numbers are derived from, in hexadecimal digits.
        seed: String,
        /// What it may spend.
        limits: Amounts,
        /// After how many node visits it is stopped.
        max_visits: u64,
        /// The task.
        input: Payload,
        /// Where it was forked from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
    },
    /// Another worker went on with the run.
    RunTaken {
        /// Which.
        worker: String,
    },
    /// A node of the graph began. Not written for a visit that journals nothing before its end.
    NodeEntered {
        /// Name of the node.
        node: String,
        /// How often it was entered before.
        visit: u32,
    },
    /// A node looked at the clock.
    ClockRead {
        /// Position in the visit's journal.
        ordinal: u32,
        /// Unix time in milliseconds.
        now_ms: u64,
    },
    /// A node asked what the log held so far.
    HeadRead {
        /// Position in the visit's journal.
        ordinal: u32,
        /// Digest of the entry before this one.
        head: Digest,
    },
    /// A node heard what people had said.
    Heard {
        /// Position in the visit's journal.
        ordinal: u32,
        /// How many of the notes that nobody had heard, the oldest first.
        count: u32,
    },
    /// A node looked at the world.
    ReadDone {
        /// Position in the visit's journal.
        ordinal: u32,
        /// What was done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// What came of it.
        result: EffectResult,
        /// How long it took, in milliseconds: a look is committed with what follows it, and so
        /// says nothing of its time by when it was.
        #[serde(default, skip_serializing_if = "is_zero")]
        took_ms: u64,
    },
    /// An effect is about to be tried.
    EffectIntended {
        /// Position in the visit's journal.
        ordinal: u32,
        /// Its identity.
        effect: EffectId,
        /// What may be done again.
        class: EffectClass,
        /// What is done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// The workspace before, for a [`EffectClass::Tree`] effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pre_tree: Option<Digest>,
        /// The most it may cost.
        #[serde(default, skip_serializing_if = "Amounts::is_empty")]
        reserve: Amounts,
        /// The approval it uses up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
    },
    /// An effect is about to be tried again after a crash.
    EffectRetried {
        /// Its identity.
        effect: EffectId,
        /// How often it was tried before.
        attempt: u32,
        /// What the lost try may have cost stays charged; this is reserved anew.
        #[serde(default, skip_serializing_if = "Amounts::is_empty")]
        reserve: Amounts,
    },
    /// An effect ended.
    EffectSettled {
        /// Its identity.
        effect: EffectId,
        /// How that is known.
        via: Via,
        /// What it cost.
        #[serde(default, skip_serializing_if = "Amounts::is_empty")]
        spent: Amounts,
        /// What came of it.
        result: EffectResult,
    },
    /// An effect was not tried because a budget does not allow it.
    EffectRefused {
        /// Position in the visit's journal.
        ordinal: u32,
        /// What would have been done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// The limit in the way.
        dimension: Dimension,
        /// How much it might have needed.
        asked: u64,
        /// How much was left.
        free: u64,
    },
    /// The run waits.
    Suspended {
        /// Position in the visit's journal.
        ordinal: u32,
        /// For what.
        interrupt: Interrupt,
    },
    /// The wait ended.
    Resolved {
        /// Sequence number of the event that asked.
        interrupt: u64,
        /// How.
        answer: Answer,
    },
    /// Somebody voted.
    Voted {
        /// The question.
        approval: ApprovalId,
        /// Who.
        by: Principal,
        /// In which role.
        role: String,
        /// What they said.
        decision: Decision,
    },
    /// A limit was raised.
    LimitRaised {
        /// Which.
        dimension: Dimension,
        /// To what.
        to: u64,
        /// By whom.
        by: Principal,
    },
    /// Something was sent to the run that did not fit.
    SignalIgnored {
        /// Why.
        reason: String,
    },
    /// Somebody said something to whoever works on it.
    Steered {
        /// Who.
        by: Principal,
        /// What they said.
        text: String,
    },
    /// Somebody asked the run to stop.
    CancelRequested {
        /// Who.
        by: Principal,
        /// Why.
        reason: String,
    },
    /// A node ended.
    NodeLeft {
        /// Name of the node.
        node: String,
        /// How often it was entered before.
        visit: u32,
        /// Which way out.
        outcome: String,
        /// What the graph has to say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<Payload>,
    },
    /// The run does the same thing again and again.
    StuckDetected {
        /// Where.
        node: String,
        /// How often that was seen in this run.
        strikes: u32,
    },
    /// A fork changed something before going on.
    Overridden {
        /// What the graph has to say.
        events: Vec<Payload>,
    },
    /// The run moved to another version of its graph.
    Migrated {
        /// From this version.
        from: u32,
        /// To this one.
        to: u32,
    },
    /// Somebody vouches for every entry before this one.
    Sealed {
        /// Ed25519 public key, in hexadecimal digits.
        key: String,
        /// Ed25519 signature over the digest of the entry before, in hexadecimal digits.
        signature: String,
    },
    /// The run ended.
    RunEnded {
        /// In which way.
        ending: Ending,
        /// With which result.
        exit: Exit,
        /// In one sentence.
        summary: String,
    },
}

impl EventBody {
    /// The name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::RunTaken { .. } => "run_taken",
            Self::NodeEntered { .. } => "node_entered",
            Self::ClockRead { .. } => "clock_read",
            Self::HeadRead { .. } => "head_read",
            Self::Heard { .. } => "heard",
            Self::ReadDone { .. } => "read_done",
            Self::EffectIntended { .. } => "effect_intended",
            Self::EffectRetried { .. } => "effect_retried",
            Self::EffectSettled { .. } => "effect_settled",
            Self::EffectRefused { .. } => "effect_refused",
            Self::Suspended { .. } => "suspended",
            Self::Resolved { .. } => "resolved",
            Self::Voted { .. } => "voted",
            Self::LimitRaised { .. } => "limit_raised",
            Self::SignalIgnored { .. } => "signal_ignored",
            Self::Steered { .. } => "steered",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::NodeLeft { .. } => "node_left",
            Self::StuckDetected { .. } => "stuck_detected",
            Self::Overridden { .. } => "overridden",
            Self::Migrated { .. } => "migrated",
            Self::Sealed { .. } => "sealed",
            Self::RunEnded { .. } => "run_ended",
        }
    }

    /// Every payload the event carries.
    pub fn payloads(&self) -> Vec<&Payload> {
        match self {
            Self::RunStarted { input, .. } => vec![input],
            Self::ReadDone { result, .. } | Self::EffectSettled { result, .. } => match result {
                EffectResult::Done(payload) => vec![payload],
                EffectResult::Failed(_) => Vec::new(),
            },
            Self::NodeLeft { events, .. } | Self::Overridden { events } => events.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// The fields around a body, for taking an event's digest from the body's canonical bytes.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Shape of the body.
    pub schema: u32,
    /// The run.
    pub run: &'a RunId,
    /// Position in the log.
    pub seq: u64,
    /// Which owner wrote it.
    pub epoch: u64,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Digest of the entry before.
    pub previous: Digest,
}

impl Envelope<'_> {
    /// The digest of the event with this body. The same as [`Event::digest`], without building
    /// the event: the canonical form of a record is its sorted fields, joined.
    pub fn digest(&self, canonical_body: &[u8]) -> Digest {
        let before = format!("{{\"at_ms\":{},\"body\":", self.at_ms);
        let after = format!(
            ",\"epoch\":{},\"previous\":\"{}\",\"protocol\":{},\"run\":\"{}\",\"schema\":{},\"seq\":{}}}",
            self.epoch,
            self.previous,
            ProtocolVersion::NUMBER,
            self.run,
            self.schema,
            self.seq
        );
        Digest::of_canonical(
            Domain::Event,
            &[before.as_bytes(), canonical_body, after.as_bytes()],
        )
    }
}

impl Event {
    /// Digest of this entry, which the next one carries.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(Domain::Event, self)
    }

    /// The fields around the body.
    pub const fn envelope(&self) -> Envelope<'_> {
        Envelope {
            schema: self.schema,
            run: &self.run,
            seq: self.seq,
            epoch: self.epoch,
            at_ms: self.at_ms,
            previous: self.previous,
        }
    }

    /// The canonical bytes of the body.
    pub fn canonical_body(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec(&self.body)
    }
}

/// What the first entry of a log names as the one before it.
pub fn origin() -> Digest {
    Digest::of_bytes(b"")
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
pub struct Chain {
    run: RunId,
    next: u64,
    epoch: u64,
    head: Digest,
}

impl Chain {
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
        envelope: &Envelope<'_>,
        canonical_body: &[u8],
    ) -> Result<Digest, BrokenLog> {
        let position = self.next;
        if envelope.seq != position {
            return Err(BrokenLog::Sequence {
                position,
                found: envelope.seq,
            });
        }
        if *envelope.run != self.run {
            return Err(BrokenLog::OtherRun {
                position,
                found: envelope.run.clone(),
            });
        }
        if envelope.previous != self.head {
            return Err(BrokenLog::Chain { position });
        }
        if envelope.epoch < self.epoch {
            return Err(BrokenLog::Epoch {
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
pub fn verify_chain(events: &[Event]) -> Result<Digest, BrokenLog> {
    let Some(first) = events.first() else {
        return Ok(origin());
    };
    let mut chain = Chain::start(first.run.clone());
    for event in events {
        chain.follow(&event.envelope(), &event.canonical_body()?)?;
    }
    Ok(chain.head())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log(length: u64) -> Vec<Event> {
        let mut previous = origin();
        (0..length)
            .map(|seq| {
                let event = Event {
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

    fn broken_at(broken: &BrokenLog) -> u64 {
        match broken {
            BrokenLog::Sequence { position, .. }
            | BrokenLog::Chain { position }
            | BrokenLog::Epoch { position, .. }
            | BrokenLog::OtherRun { position, .. } => *position,
            BrokenLog::Canonical(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_name_of_a_kind_is_the_one_on_the_wire() {
        let body = EventBody::RunTaken {
            worker: "w".to_owned(),
        };
        assert_eq!(serde_json::to_value(&body).unwrap()["kind"], body.kind());
    }

    #[test]
    fn an_owner_that_was_replaced_cannot_have_written_later() {
        let mut events = log(3);
        events[1].epoch = 2;
        events[2].previous = events[1].digest().unwrap();
        let broken = verify_chain(&events).unwrap_err();
        assert!(
            matches!(broken, BrokenLog::Epoch { position: 2, .. }),
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
            let event = Event {
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
