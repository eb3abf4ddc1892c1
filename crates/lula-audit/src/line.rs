//! One line of the log: a number, the hash before it, what it says, its own hash.

use lula_protocol::Digest;
use lula_protocol::canonical::{self, CanonicalError};
use lula_protocol::digest::DigestDomain;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::AuditEntry;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AuditLineBody {
    Act {
        entry: Box<AuditEntry>,
    },
    /// A signature over everything before.
    Seal {
        /// Ed25519 public key, in hexadecimal digits.
        key: String,
        /// Ed25519, in hexadecimal digits.
        signature: String,
    },
    /// The end of a line that a crash tore off, put aside.
    Recovered {
        /// When, in Unix milliseconds.
        time_ms: u64,
        /// Length of what was put aside.
        bytes: u64,
        /// Digest of what was put aside.
        digest: Digest,
        /// The file they lie in.
        kept_in: String,
    },
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditHead {
    /// Number of the last line.
    pub seq: u64,
    pub hash: Digest,
}

/// The hash before the first line.
pub(crate) const GENESIS: Digest = Digest::from_bytes([0; 32]);

/// A line as it was read, with nothing believed yet.
#[derive(Debug, Clone)]
pub(crate) struct UncheckedAuditLine {
    pub(crate) seq: u64,
    pub(crate) prev: Digest,
    pub(crate) hash: Digest,
    pub(crate) body: Value,
}

fn hash(seq: u64, prev: &Digest, body: &Value) -> Result<Digest, CanonicalError> {
    let content = canonical::to_vec(&serde_json::json!({"seq": seq, "body": body}))?;
    Ok(Digest::of_canonical(
        DigestDomain::Audit,
        &[prev.as_bytes(), &content],
    ))
}

/// The bytes of the next line, and the head it makes.
pub(crate) fn write(
    after: Option<AuditHead>,
    body: &AuditLineBody,
) -> Result<(Vec<u8>, AuditHead), CanonicalError> {
    let (seq, prev) = next(after);
    let body = serde_json::to_value(body)?;
    let hash = hash(seq, &prev, &body)?;
    let mut bytes = canonical::to_vec(&serde_json::json!({
        "seq": seq, "prev": prev, "body": body, "hash": hash,
    }))?;
    bytes.push(b'\n');
    Ok((bytes, AuditHead { seq, hash }))
}

/// Number of the next line, and the hash it names.
pub(crate) fn next(after: Option<AuditHead>) -> (u64, Digest) {
    after.map_or((0, GENESIS), |head| (head.seq + 1, head.hash))
}

impl UncheckedAuditLine {
    /// Reads a line. Only the canonical bytes are a line: nothing can hide beside them.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        if canonical::to_vec(&value).ok()? != bytes {
            return None;
        }
        let fields = value.as_object_mut()?;
        if fields.len() != 4 {
            return None;
        }
        Some(Self {
            seq: fields.get("seq")?.as_u64()?,
            prev: fields.get("prev")?.as_str()?.parse().ok()?,
            hash: fields.get("hash")?.as_str()?.parse().ok()?,
            body: fields.remove("body")?,
        })
    }

    /// Whether its hash is the hash of what it says.
    pub(crate) fn is_whole(&self) -> bool {
        hash(self.seq, &self.prev, &self.body).is_ok_and(|hash| hash == self.hash)
    }

    pub(crate) fn body(&self) -> Option<AuditLineBody> {
        serde_json::from_value(self.body.clone()).ok()
    }

    pub(crate) const fn head(&self) -> AuditHead {
        AuditHead {
            seq: self.seq,
            hash: self.hash,
        }
    }
}
