//! How much a sandbox may send, receive and open.

use serde::{Deserialize, Serialize};

/// Bounds on what goes through one engine, over its whole life. What would go beyond one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressLimits {
    /// Connections of the sandbox open at once.
    pub connections: u32,
    /// Connections that it may begin in a second.
    pub connects_per_second: u32,
    /// Names that it may ask for in a second.
    pub names_per_second: u32,
    /// Bytes from the sandbox to the network.
    pub bytes_up: u64,
    /// Bytes from the network to the sandbox.
    pub bytes_down: u64,
    /// Time in which a connection has to say whom it wants: a TLS hello, the head of a request.
    pub header_timeout_ms: u64,
    /// Time without a byte in either direction after which a connection is closed.
    pub idle_timeout_ms: u64,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connects_per_second: 256,
            names_per_second: 256,
            bytes_up: 2 << 30,
            bytes_down: 64 << 30,
            header_timeout_ms: 10_000,
            idle_timeout_ms: 600_000,
        }
    }
}

/// Limits that a repository asks for; each counts only where it is lower.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressNarrowingLimits {
    pub connections: Option<u32>,
    pub connects_per_second: Option<u32>,
    pub names_per_second: Option<u32>,
    pub bytes_up: Option<u64>,
    pub bytes_down: Option<u64>,
    pub header_timeout_ms: Option<u64>,
    pub idle_timeout_ms: Option<u64>,
}

impl EgressLimits {
    /// The lower of each.
    #[must_use]
    pub fn narrowed(&self, asked: &EgressNarrowingLimits) -> Self {
        fn lower<T: Ord + Copy>(own: T, asked: Option<T>) -> T {
            asked.map_or(own, |asked| own.min(asked))
        }
        Self {
            connections: lower(self.connections, asked.connections),
            connects_per_second: lower(self.connects_per_second, asked.connects_per_second),
            names_per_second: lower(self.names_per_second, asked.names_per_second),
            bytes_up: lower(self.bytes_up, asked.bytes_up),
            bytes_down: lower(self.bytes_down, asked.bytes_down),
            header_timeout_ms: lower(self.header_timeout_ms, asked.header_timeout_ms),
            idle_timeout_ms: lower(self.idle_timeout_ms, asked.idle_timeout_ms),
        }
    }
}
