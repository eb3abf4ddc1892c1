//! The clock a run is measured by.

use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time. What nodes see of it is journaled.
pub trait WallClock: Send + Sync + 'static {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> u64;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
