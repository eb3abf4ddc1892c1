//! The clock and randomness that ids are made of.

use std::time::{SystemTime, UNIX_EPOCH};

use lula_protocol::EffectId;

/// The time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A fresh id for an effect.
pub fn new_effect() -> Result<EffectId, getrandom::Error> {
    let mut random = [0; 10];
    getrandom::fill(&mut random)?;
    Ok(EffectId::from_parts(now_ms(), random))
}
