//! Values carried by events that the log itself does not interpret.
//!
//! A small value stands in the event; a large one stands beside it, named by the digest of its
//! canonical bytes. Either way the event's digest fixes it. Floating-point numbers are refused:
//! what is decided by a run must be the same on every machine.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{self, CanonicalError};
use crate::digest::Digest;

/// A value inside an event, or the name of one beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventPayload {
    Inline(Value),
    /// The value is stored as a blob.
    Blob(BlobRef),
}

/// The name of a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// Digest of the bytes.
    pub digest: Digest,
    /// Length of the value's bytes.
    pub size: u64,
}

/// A payload with the bytes that have to be stored beside it, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedPayload {
    /// What stands in the event.
    pub payload: EventPayload,
    /// What stands beside it.
    pub blob: Option<(Digest, Vec<u8>)>,
}

/// Why a value cannot be carried.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// It has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// It contains a floating-point number.
    #[error(
        "the value contains the floating-point number {0}: use whole numbers (thousandths, \
         micro-dollars) or text"
    )]
    Float(String),
    /// It is not what the reader expects.
    #[error("the value is not what was expected here: {0}")]
    Shape(#[from] serde_json::Error),
    /// It stands beside the event and was not brought.
    #[error("the value is stored as {0} and was not loaded")]
    NotLoaded(Digest),
}

impl EventPayload {
    /// Canonical size above which a value is stored beside its event.
    pub const INLINE_LIMIT: usize = 4096;

    /// Packs a value, as a blob where it is longer than [`Self::INLINE_LIMIT`].
    pub fn pack<T: Serialize + ?Sized>(value: &T) -> Result<PackedPayload, PayloadError> {
        let value = serde_json::to_value(value).map_err(CanonicalError::NotJson)?;
        refuse_floats(&value)?;
        if quick_size(&value) <= Self::INLINE_LIMIT {
            return Ok(PackedPayload {
                payload: Self::Inline(value),
                blob: None,
            });
        }
        let bytes = canonical::to_vec(&value)?;
        if bytes.len() <= Self::INLINE_LIMIT {
            return Ok(PackedPayload {
                payload: Self::Inline(value),
                blob: None,
            });
        }
        let digest = Digest::of_bytes(&bytes);
        let reference = BlobRef {
            digest,
            size: bytes.len() as u64,
        };
        Ok(PackedPayload {
            payload: Self::Blob(reference),
            blob: Some((digest, bytes)),
        })
    }

    /// The blob this names, if it is not inline.
    pub const fn blob(&self) -> Option<BlobRef> {
        match self {
            Self::Inline(_) => None,
            Self::Blob(reference) => Some(*reference),
        }
    }

    /// Reads an inline value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        match self {
            Self::Inline(value) => Ok(T::deserialize(value)?),
            Self::Blob(reference) => Err(PayloadError::NotLoaded(reference.digest)),
        }
    }
}

fn refuse_floats(value: &Value) -> Result<(), PayloadError> {
    match value {
        Value::Number(number) if number.is_f64() => Err(PayloadError::Float(number.to_string())),
        Value::Array(items) => items.iter().try_for_each(refuse_floats),
        Value::Object(fields) => fields.values().try_for_each(refuse_floats),
        _ => Ok(()),
    }
}

/// An upper bound of the canonical size that needs no encoding.
fn quick_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 20,
        Value::String(text) => quick_len(text) + 2,
        Value::Array(items) => 2 + items.iter().map(|item| quick_size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let field = |(name, field): (&String, &Value)| quick_len(name) + quick_size(field) + 4;
            2 + fields.iter().map(field).sum::<usize>()
        }
    }
}

/// An upper bound of a text's length when written: what may be escaped counts as the longest
/// escape.
fn quick_len(text: &str) -> usize {
    let escaped = |byte: &u8| matches!(byte, 0..=0x1f | b'"' | b'\\');
    text.len() + 5 * text.bytes().filter(|byte| escaped(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_value_with_a_float_is_refused_however_deep() {
        let error = EventPayload::pack(&json!({"a": [{"price": 0.1}]})).unwrap_err();
        assert!(error.to_string().contains("0.1"), "{error}");
    }

    #[test]
    fn a_large_value_stands_beside_the_event_under_the_digest_of_its_bytes() {
        let packed = EventPayload::pack(&"x".repeat(5000)).unwrap();
        let (digest, bytes) = packed.blob.unwrap();
        assert_eq!(Digest::of_bytes(&bytes), digest);
        assert_eq!(packed.payload.blob().unwrap().digest, digest);
        assert!(packed.payload.read::<String>().is_err());
    }

    proptest! {
        #[test]
        fn a_value_is_inline_exactly_when_its_canonical_bytes_fit(text in ".{0,3000}") {
            let packed = EventPayload::pack(&text).unwrap();
            let fits = canonical::to_vec(&text).unwrap().len() <= EventPayload::INLINE_LIMIT;
            prop_assert_eq!(packed.blob.is_none(), fits);
            if fits {
                prop_assert_eq!(packed.payload.read::<String>().unwrap(), text);
            }
        }
    }
}
