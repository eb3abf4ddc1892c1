//! Time and chance, injected: everything that waits or draws does it through these.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::transport::BoxedFuture;

/// A clock that only moves forward.
pub trait MonotonicClock: Send + Sync {
    /// Time since the clock's own beginning.
    fn now(&self) -> Duration;
    /// Ends after so much time has passed.
    fn sleep(&self, time: Duration) -> BoxedFuture<'_, ()>;
}

/// The monotonic clock of the machine.
#[derive(Debug)]
pub struct SystemMonotonicClock(Instant);

impl Default for SystemMonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl MonotonicClock for SystemMonotonicClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, time: Duration) -> BoxedFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A source of chance.
pub trait RandomSource: Send + Sync {
    /// A number from 0 up to, not including, 1.
    fn roll(&self) -> f64;
}

/// Random numbers of the operating system.
#[derive(Debug, Default)]
pub struct SystemRandomSource;

impl RandomSource for SystemRandomSource {
    fn roll(&self) -> f64 {
        // Without chance waits are not spread, but still bounded.
        let bits = getrandom::u64().unwrap_or(u64::MAX / 2);
        unit(bits)
    }
}

/// Chance that repeats: the same seed gives the same numbers.
#[derive(Debug)]
pub struct SeededRandomSource(Mutex<u64>);

impl SeededRandomSource {
    /// Dice of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl RandomSource for SeededRandomSource {
    fn roll(&self) -> f64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SplitMix64.
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        unit(z ^ (z >> 31))
    }
}

#[allow(clippy::cast_precision_loss)] // 53 bits fit exactly.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_stay_in_range_and_repeat_by_seed() {
        let rolls = |seed| {
            let dice = SeededRandomSource::new(seed);
            (0..100).map(|_| dice.roll()).collect::<Vec<_>>()
        };
        assert_eq!(rolls(7), rolls(7));
        assert_ne!(rolls(7), rolls(8));
        assert!(rolls(7).iter().all(|roll| (0.0..1.0).contains(roll)));
        assert!((0.0..1.0).contains(&SystemRandomSource.roll()));
    }
}
