//! The version of the wire protocol.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Protocol version 1, the only one there is. It is written into every call and event; a reader
/// that meets another number refuses the message instead of guessing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ProtocolVersion;

impl ProtocolVersion {
    /// The number on the wire.
    pub const NUMBER: u32 = 1;
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::NUMBER)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if number == Self::NUMBER {
            Ok(Self)
        } else {
            Err(serde::de::Error::custom(format_args!(
                "protocol version {number} is not supported: this build speaks version {}",
                Self::NUMBER
            )))
        }
    }
}
