//! Digests: BLAKE3 over a domain name and the canonical bytes of a value.
//!
//! Everything that is signed, approved or audited is named by a digest. The bytes are the RFC 8785
//! encoding of the value (`canonical/`); numbers that JSON readers could round are refused, not
//! rounded. Wire types that reach a gate reject unknown fields, and no field of a tool call speaks
//! about approval or policy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::canonical::{self, CanonicalError};

/// What a digest speaks about. Two values of different domains never share a digest, whatever
/// their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestDomain {
    /// Plain bytes: file content, blobs, output. No prefix, so `b3sum FILE` prints the same.
    Bytes,
    Call,
    /// What an approver is asked to agree to.
    Approval,
    Receipt,
    /// An event of a run.
    Event,
    /// A policy of the sandbox.
    Policy,
    /// What an effect of a run asks for.
    Effect,
    /// The state a run's events lead to.
    State,
    /// What the signature on a log covers.
    Seal,
    /// The changes of a workspace, as they were reviewed.
    Diff,
    /// An entry of the audit log.
    Audit,
    /// Everything that goes into an environment.
    Environment,
}

impl DigestDomain {
    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Bytes => b"",
            Self::Call => b"lula/call/v1\0",
            Self::Approval => b"lula/approval/v1\0",
            Self::Receipt => b"lula/receipt/v1\0",
            Self::Event => b"lula/event/v1\0",
            Self::Policy => b"lula/policy/v1\0",
            Self::Effect => b"lula/effect/v1\0",
            Self::State => b"lula/state/v1\0",
            Self::Seal => b"lula/seal/v1\0",
            Self::Diff => b"lula/diff/v1\0",
            Self::Audit => b"lula/audit/v1\0",
            Self::Environment => b"lula/environment/v1\0",
        }
    }
}

/// 32 bytes of BLAKE3, written `b3:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a string is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: expected b3: and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest(String);

impl Digest {
    /// The digest of raw bytes, equal to what `b3sum` prints.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of a value: its domain, then its canonical bytes.
    pub fn of<T: Serialize + ?Sized>(
        domain: DigestDomain,
        value: &T,
    ) -> Result<Self, CanonicalError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(domain.prefix());
        hasher.update(&canonical::to_vec(value)?);
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// The digest of a value whose canonical bytes the caller already has, in pieces.
    pub fn of_canonical(domain: DigestDomain, pieces: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(domain.prefix());
        for piece in pieces {
            hasher.update(piece);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// A digest read back from where its 32 bytes were stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Digests stand in every entry of a log: they are spelled without formatting byte by byte.
    fn spelled(&self) -> [u8; 67] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 67];
        text[..3].copy_from_slice(b"b3:");
        for (pair, byte) in text[3..].chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }

    /// The first twelve hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[3..15].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.spelled()).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;
    fn from_str(given: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(given.chars().take(80).collect());
        let hex = given.strip_prefix("b3:").ok_or_else(invalid)?.as_bytes();
        if hex.len() != 64 {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let high = hex_digit(pair[0]).ok_or_else(invalid)?;
            let low = hex_digit(pair[1]).ok_or_else(invalid)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

/// Lower case only: one value has one spelling.
const fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(str::from_utf8(&self.spelled()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_digest_of_bytes_is_what_b3sum_prints() {
        let published = "b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of_bytes(b"").to_string(), published);
    }

    #[test]
    fn equal_values_in_different_domains_have_different_digests() {
        let value = serde_json::json!({"a": 1});
        let call = Digest::of(DigestDomain::Call, &value).unwrap();
        let approval = Digest::of(DigestDomain::Approval, &value).unwrap();
        assert_ne!(call, approval);
    }

    #[test]
    fn upper_case_is_not_a_second_spelling() {
        let text = Digest::of_bytes(b"x").to_string();
        assert!(text.to_uppercase().parse::<Digest>().is_err());
        assert!(text.replace('a', "A").parse::<Digest>().is_err());
    }

    proptest! {
        #[test]
        fn digests_parse_back(bytes: Vec<u8>) {
            let digest = Digest::of_bytes(&bytes);
            prop_assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        }

        #[test]
        fn hostile_text_never_panics(text in ".{0,80}") {
            let _ = text.parse::<Digest>();
        }
    }
}
