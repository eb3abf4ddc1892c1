//! Run bundles: one file with everything that was recorded of a run, which every reader can check on
//! another machine with no store and no network.
//!
//! The format is lines of JSON, compressed: a heading, every event exactly as it was hashed with
//! its digest, and every blob. It holds no more than the log does, so no secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};

use lula_protocol::event::LogChain;
use lula_protocol::{Digest, EventBody, EventPayload, RunId, canonical};
use lula_store::{LogRecord, RunStore, StoreError, ValueRetention};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::seal::verify_seal;

/// The format this program writes and reads.
const FORMAT: u32 = 1;
/// A line longer than this is not read.
const MAX_LINE: u64 = 512 << 20;

#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Heading {
        format: u32,
        run: RunId,
        events: u64,
        head: Digest,
    },
    Event {
        seq: u64,
        epoch: u64,
        at_ms: u64,
        schema: u32,
        hash: Digest,
        body: Value,
    },
    Blob {
        digest: Digest,
        /// Canonical JSON, as it was hashed.
        value: Value,
    },
    /// A value that was dropped to make room before the bundle was made.
    Dropped { digest: Digest },
}

/// What is wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It cannot be read or written.
    #[error("the bundle cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The store or the log is broken.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not a bundle.
    #[error("line {line} of the bundle is not readable: {why}")]
    Line {
        /// The line of the bundle that is not readable.
        line: u64,
        why: String,
    },
    /// Something in it was changed, or is missing.
    #[error("the bundle was changed or is not complete: {0}")]
    Changed(String),
}

/// What a bundle was found to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifiedBundle {
    /// The run that the bundle is of.
    pub run: RunId,
    /// Events, whose chain is whole.
    pub events: u64,
    /// Blobs, which have the bytes they are named by.
    pub blobs: u64,
    /// Values that were dropped to make room: the events name them, they are not stored any more.
    pub dropped: u64,
    /// Digest of the last event.
    pub head: Digest,
    /// Keys that sealed the log, with the last position each vouches for. Whose keys they are, the
    /// reader has to know.
    pub seals: BTreeMap<String, u64>,
    /// How the run ended, in one sentence.
    pub summary: Option<String>,
}

/// What an export wrote to the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportedBundle {
    /// Digest of the last event.
    pub head: Digest,
    /// Values that were dropped to make room and so are not in the bundle.
    pub dropped: u64,
}

/// The values that events name, and whether each is kept for ever.
#[derive(Default)]
struct Values {
    retention: ValueRetention,
    digests: BTreeMap<Digest, bool>,
}

impl Values {
    fn named_by(&mut self, body: &EventBody) {
        let keeps = self.retention.keeps(body);
        for reference in body.payloads().into_iter().filter_map(EventPayload::blob) {
            *self.digests.entry(reference.digest).or_default() |= keeps;
        }
    }
}

/// Writes everything that was recorded of a run.
pub async fn export(
    store: &dyn RunStore,
    run: &RunId,
    out: impl Write,
) -> Result<ExportedBundle, BundleError> {
    let mut records: Vec<LogRecord> = Vec::new();
    loop {
        let page = store.read(run, records.len() as u64, 512).await?;
        if page.is_empty() {
            break;
        }
        records.extend(page);
    }
    let mut chain = LogChain::start(run.clone());
    LogRecord::verify(&mut chain, &records)?;
    let mut out = zstd::stream::Encoder::new(out, 3)?;
    let mut write = |line: &Line| -> Result<(), BundleError> {
        serde_json::to_writer(&mut out, line).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(())
    };
    write(&Line::Heading {
        format: FORMAT,
        run: run.clone(),
        events: chain.len(),
        head: chain.head(),
    })?;
    let unreadable = |seq: u64| BundleError::Changed(format!("event {seq} is not JSON"));
    let mut values = Values::default();
    for record in &records {
        values.named_by(&record.read_body()?);
        write(&Line::Event {
            seq: record.seq,
            epoch: record.epoch,
            at_ms: record.at_ms,
            schema: record.schema,
            hash: record.hash,
            body: serde_json::from_slice(&record.body).map_err(|_| unreadable(record.seq))?,
        })?;
    }
    let mut dropped = 0;
    for (digest, kept) in values.digests {
        let bytes = match store.blob(&digest).await {
            Err(StoreError::Dropped(_)) if !kept => {
                write(&Line::Dropped { digest })?;
                dropped += 1;
                continue;
            }
            other => other?,
        };
        let value = serde_json::from_slice(&bytes)
            .map_err(|_| BundleError::Changed(format!("blob {digest} is not JSON")))?;
        write(&Line::Blob { digest, value })?;
    }
    out.finish()?.flush()?;
    Ok(ExportedBundle {
        head: chain.head(),
        dropped,
    })
}

/// Checks a bundle with nothing but its bytes.
pub fn verify(bundle: impl Read) -> Result<VerifiedBundle, BundleError> {
    let mut reader = BufReader::new(zstd::stream::Decoder::new(bundle)?);
    let mut number = 0;
    let mut next_line = || -> Result<Option<Line>, BundleError> {
        number += 1;
        let mut text = Vec::new();
        (&mut reader).take(MAX_LINE).read_until(b'\n', &mut text)?;
        if text.is_empty() {
            return Ok(None);
        }
        let line = serde_json::from_slice(&text).map_err(|error| BundleError::Line {
            line: number,
            why: error.to_string(),
        })?;
        Ok(Some(line))
    };
    let Some(Line::Heading {
        format: FORMAT,
        run,
        events,
        head,
    }) = next_line()?
    else {
        let why = "it does not begin with a heading of a known format";
        return Err(BundleError::Changed(why.to_owned()));
    };
    let mut found = VerifiedBundle {
        run: run.clone(),
        events: 0,
        blobs: 0,
        dropped: 0,
        head,
        seals: BTreeMap::new(),
        summary: None,
    };
    let mut chain = LogChain::start(run.clone());
    let mut values = Values::default();
    let mut there = BTreeSet::new();
    while let Some(line) = next_line()? {
        match line {
            Line::Heading { .. } => {
                return Err(BundleError::Changed("it has two headings".to_owned()));
            }
            Line::Event {
                seq,
                epoch,
                at_ms,
                schema,
                hash,
                body,
            } => {
                let record = LogRecord {
                    run: run.clone(),
                    seq,
                    epoch,
                    at_ms,
                    schema,
                    previous: chain.head(),
                    hash,
                    body: canonical::to_vec(&body)
                        .map_err(|error| BundleError::Changed(error.to_string()))?,
                };
                LogRecord::verify(&mut chain, std::slice::from_ref(&record))?;
                look_at(&record, &mut found, &mut values)?;
            }
            Line::Blob { digest, value } => {
                let bytes = canonical::to_vec(&value)
                    .map_err(|error| BundleError::Changed(error.to_string()))?;
                if Digest::of_bytes(&bytes) != digest {
                    return Err(StoreError::CorruptBlob(digest).into());
                }
                there.insert(digest);
                found.blobs += 1;
            }
            Line::Dropped { digest } => {
                // Only what is not kept for ever can have been dropped.
                if values.digests.get(&digest) == Some(&false) && there.insert(digest) {
                    found.dropped += 1;
                }
            }
        }
    }
    found.events = chain.len();
    if chain.len() != events || chain.head() != head {
        return Err(BundleError::Changed(format!(
            "it announces {events} events up to {head} and holds {} up to {}",
            chain.len(),
            chain.head()
        )));
    }
    if let Some(missing) = values.digests.keys().find(|digest| !there.contains(digest)) {
        return Err(StoreError::NoBlob(*missing).into());
    }
    Ok(found)
}

fn look_at(
    record: &LogRecord,
    found: &mut VerifiedBundle,
    values: &mut Values,
) -> Result<(), BundleError> {
    let body = record.read_body()?;
    values.named_by(&body);
    match body {
        EventBody::Sealed { key, signature } => {
            if !verify_seal(&key, &signature, &record.previous) {
                return Err(BundleError::Changed(format!(
                    "the seal at event {} does not fit",
                    record.seq
                )));
            }
            found.seals.insert(key, record.seq.saturating_sub(1));
        }
        EventBody::RunEnded { summary, .. } => found.summary = Some(summary),
        _ => {}
    }
    Ok(())
}
