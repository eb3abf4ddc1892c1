//! Names of things: runs, effects, workspaces, approvals, principals.
//!
//! Generated ids look like `run_01jd3x…`: a prefix that says what it names, then 26 characters of
//! Crockford base32 holding 48 bits of time and 80 random bits, so that they sort by age. This
//! crate has no clock and no randomness; the caller brings both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BODY_LEN: usize = 26;
const SHORT_LEN: usize = 10;

/// Why a string is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not {kind}: expected {expected}")]
pub struct InvalidId {
    kind: &'static str,
    given: String,
    expected: String,
}

fn encode_body(unix_ms: u64, random: [u8; 10]) -> String {
    let mut bytes = [0_u8; 16];
    bytes[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    let value = u128::from_be_bytes(bytes);
    (0..BODY_LEN)
        .rev()
        .map(|position| char::from(ALPHABET[((value >> (position * 5)) & 31) as usize]))
        .collect()
}

fn check_body(body: &str) -> bool {
    // The first character carries only three bits of a 128-bit number.
    body.len() == BODY_LEN
        && body.bytes().all(|byte| ALPHABET.contains(&byte))
        && body.as_bytes()[0] <= b'7'
}

macro_rules! generated_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Makes an id from the caller's clock and randomness.
            pub fn from_parts(unix_ms: u64, random: [u8; 10]) -> Self {
                Self(format!(concat!($prefix, "_{}"), encode_body(unix_ms, random)))
            }

            /// The id as it is written everywhere.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The end of it: random where the beginning is the time, so enough to tell ids of
            /// one machine apart.
            pub fn short(&self) -> &str {
                let from = self.0.len().saturating_sub(SHORT_LEN);
                self.0.get(from..).unwrap_or(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(given: &str) -> Result<Self, InvalidId> {
                match given.strip_prefix(concat!($prefix, "_")) {
                    Some(body) if check_body(body) => Ok(Self(given.to_owned())),
                    _ => Err(InvalidId {
                        kind: $kind,
                        given: given.chars().take(64).collect(),
                        expected: format!(
                            concat!($prefix, "_ and {} characters of 0-9a-z without i, l, o, u"),
                            BODY_LEN
                        ),
                    }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

generated_id!(
    /// One task handed to Lula, from start to report.
    RunId, "run", "a run id"
);
generated_id!(
    /// One thing done to the world. Repeating a call with the same effect id repeats nothing.
    EffectId, "eff", "an effect id"
);
generated_id!(
    /// One transactional view of a directory.
    WorkspaceId, "ws", "a workspace id"
);
generated_id!(
    /// One question put to a person.
    ApprovalId, "apr", "an approval id"
);

/// Who asks or approves: a person or a service, as the identity check established it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Principal(String);

impl Principal {
    /// Longest name that is taken, in bytes.
    pub const MAX_LEN: usize = 128;

    /// The name as it was verified.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Principal {
    type Err = InvalidId;
    fn from_str(given: &str) -> Result<Self, InvalidId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:/+".contains(c);
        if !given.is_empty() && given.len() <= Self::MAX_LEN && given.chars().all(plain) {
            Ok(Self(given.to_owned()))
        } else {
            Err(InvalidId {
                kind: "a principal",
                given: given.chars().take(64).collect(),
                expected: format!("1 to {} characters of A-Za-z0-9 and ._-@:/+", Self::MAX_LEN),
            })
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Principal {
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
    fn ids_name_their_kind_and_sort_by_age() {
        let older = RunId::from_parts(1_700_000_000_000, [255; 10]);
        let newer = RunId::from_parts(1_700_000_000_001, [0; 10]);
        assert!(older.as_str().starts_with("run_"));
        assert!(older < newer);
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let effect = EffectId::from_parts(1, [1; 10]);
        let error = effect.as_str().parse::<RunId>().unwrap_err();
        assert!(error.to_string().contains("is not a run id"), "{error}");
    }

    #[test]
    fn a_principal_cannot_hide_control_characters() {
        assert!("alice@example.org".parse::<Principal>().is_ok());
        for bad in ["", "a b", "a\nb", "a\u{202e}b", &"x".repeat(129)] {
            assert!(bad.parse::<Principal>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn generated_ids_parse_back(ms in 0_u64..(1 << 48), random: [u8; 10]) {
            let id = RunId::from_parts(ms, random);
            prop_assert_eq!(id.as_str().parse::<RunId>().unwrap(), id);
        }

        #[test]
        fn any_text_either_fails_or_prints_back(text in ".{0,40}") {
            if let Ok(id) = text.parse::<RunId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
