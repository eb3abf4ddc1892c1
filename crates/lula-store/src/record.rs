//! Log entries as they are stored: an envelope, and the canonical bytes of the body.

use lula_protocol::canonical;
use lula_protocol::event::{EVENT_SCHEMA, EventEnvelope, LogChain, origin};
use lula_protocol::version::ProtocolVersion;
use lula_protocol::{Digest, EventBody, LogEvent, RunId};
use serde::Serialize;

use crate::error::{StoreError, StoreResult};
use crate::upcast;

/// The end of a log: how many entries there are and the digest of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LogHead {
    /// Sequence number of the next entry.
    pub next: u64,
    /// Digest of the last entry; of no bytes where there is none.
    pub hash: Digest,
}

impl LogHead {
    /// A log with no entry.
    pub fn empty() -> Self {
        Self {
            next: 0,
            hash: origin(),
        }
    }
}

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// The run whose log it is in.
    pub run: RunId,
    /// Position in the log.
    pub seq: u64,
    /// Which owner wrote it.
    pub epoch: u64,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Shape of the body.
    pub schema: u32,
    /// Digest of the entry before.
    pub previous: Digest,
    /// Digest of this entry.
    pub hash: Digest,
    /// Canonical bytes of the body.
    pub body: Vec<u8>,
}

impl LogRecord {
    /// Continues a log: each body becomes an entry after the one before it.
    pub fn continue_log(
        run: &RunId,
        head: LogHead,
        epoch: u64,
        at_ms: u64,
        bodies: &[EventBody],
    ) -> StoreResult<(Vec<Self>, LogHead)> {
        let mut head = head;
        let mut records = Vec::with_capacity(bodies.len());
        for body in bodies {
            let body =
                canonical::to_vec(body).map_err(|error| StoreError::Payload(error.into()))?;
            let mut record = Self {
                run: run.clone(),
                seq: head.next,
                epoch,
                at_ms,
                schema: EVENT_SCHEMA,
                previous: head.hash,
                hash: head.hash,
                body,
            };
            record.hash = record.envelope().digest(&record.body);
            head = LogHead {
                next: head.next + 1,
                hash: record.hash,
            };
            records.push(record);
        }
        Ok((records, head))
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

    /// The body in today's shape.
    pub fn read_body(&self) -> StoreResult<EventBody> {
        let corrupt = |why: String| StoreError::CorruptEvent {
            run: self.run.clone(),
            seq: self.seq,
            why,
        };
        if self.schema == EVENT_SCHEMA {
            return serde_json::from_slice(&self.body).map_err(|error| corrupt(error.to_string()));
        }
        let old = serde_json::from_slice(&self.body).map_err(|error| corrupt(error.to_string()))?;
        let value = upcast::to_current(self.schema, old)?;
        serde_json::from_value(value).map_err(|error| corrupt(error.to_string()))
    }

    /// The entry as it goes over the wire. An entry of an older shape is shown in today's, so its
    /// digest is `hash`, not the digest of what is returned.
    pub fn event(&self) -> StoreResult<LogEvent> {
        Ok(LogEvent {
            protocol: ProtocolVersion,
            schema: self.schema,
            run: self.run.clone(),
            seq: self.seq,
            epoch: self.epoch,
            at_ms: self.at_ms,
            previous: self.previous,
            body: self.read_body()?,
        })
    }

    /// Checks that records continue a chain and carry the digests they should.
    pub fn verify(chain: &mut LogChain, records: &[Self]) -> StoreResult<()> {
        for record in records {
            let hash = chain
                .follow(&record.envelope(), &record.body)
                .map_err(|source| StoreError::BrokenLog {
                    run: record.run.clone(),
                    source,
                })?;
            if hash != record.hash {
                return Err(StoreError::CorruptEvent {
                    run: record.run.clone(),
                    seq: record.seq,
                    why: "its bytes do not have the digest stored with them".to_owned(),
                });
            }
        }
        Ok(())
    }
}
