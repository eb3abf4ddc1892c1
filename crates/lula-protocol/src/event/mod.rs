//! Run events: the one append-only log that the terminal, the API, metrics and the audit read.
//!
//! Each event carries the digest of the one before it, so that a log cannot be shortened,
//! reordered or edited without showing where. What a graph itself says stands in payloads; the
//! log knows the shape of a run, not its meaning.

mod body;
mod chain;

use serde::{Deserialize, Serialize};

pub use body::{EffectResult, EventBody, ParentRun, ResultSource, RunEnding};
pub use chain::{BrokenLogChain, LogChain, origin, verify_chain};

use crate::canonical::{self, CanonicalError};
use crate::digest::{Digest, DigestDomain};
use crate::id::RunId;
use crate::version::ProtocolVersion;

/// The shape of [`EventBody`] this build writes. Older shapes are read through upcasters.
pub const EVENT_SCHEMA: u32 = 1;

/// One entry of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEvent {
    pub protocol: ProtocolVersion,
    /// Shape of the body.
    pub schema: u32,
    pub run: RunId,
    /// Position in the log, from 0 without gaps.
    pub seq: u64,
    /// Which owner of the run wrote it. Never goes down along a log.
    pub epoch: u64,
    /// Unix time in milliseconds when it was appended.
    pub at_ms: u64,
    /// Digest of the entry before; of no bytes for the first.
    pub previous: Digest,
    pub body: EventBody,
}

/// The fields around a body, for taking an event's digest from the body's canonical bytes.
#[derive(Debug, Clone, Copy)]
pub struct EventEnvelope<'a> {
    /// Shape of the body.
    pub schema: u32,
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

impl EventEnvelope<'_> {
    /// The digest of the event with this body. The same as [`LogEvent::digest`], without building
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
            DigestDomain::Event,
            &[before.as_bytes(), canonical_body, after.as_bytes()],
        )
    }
}

impl LogEvent {
    /// Digest of this entry, which the next one carries.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(DigestDomain::Event, self)
    }

    /// The fields around the body.
    pub const fn envelope(&self) -> EventEnvelope<'_> {
        EventEnvelope {
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
