//! A bucket for each provider, shared by all its models: bursts are smoothed, and a provider that
//! asks for a pause gets it from every call at once.

use std::time::Duration;

/// How fast calls may go out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketPolicy {
    /// Calls that may go out at once.
    pub burst: f64,
    /// Calls a second after that.
    pub rate: f64,
}

impl Default for BucketPolicy {
    fn default() -> Self {
        Self {
            burst: 10.0,
            rate: 4.0,
        }
    }
}

/// The state of one bucket. All times are a [`crate::MonotonicClock`]'s.
#[derive(Debug, Clone)]
pub struct RateBucket {
    policy: BucketPolicy,
    left: f64,
    at: Duration,
    paused_until: Duration,
}

impl RateBucket {
    /// A bucket that starts full, so that a burst is possible at once.
    pub const fn new(policy: BucketPolicy) -> Self {
        Self {
            policy,
            left: policy.burst,
            at: Duration::ZERO,
            paused_until: Duration::ZERO,
        }
    }

    /// Takes one call out and says how long it must wait. Waits of later callers add up.
    pub fn take(&mut self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = (self.left + passed * self.policy.rate).min(self.policy.burst) - 1.0;
        let queued = if self.left < 0.0 {
            Duration::try_from_secs_f64(-self.left / self.policy.rate).unwrap_or(Duration::MAX)
        } else {
            Duration::ZERO
        };
        queued.max(self.paused_until.saturating_sub(now))
    }

    /// The provider asks for a pause.
    pub fn pause(&mut self, now: Duration, time: Duration) {
        self.paused_until = self.paused_until.max(now.saturating_add(time));
        self.left = self.left.min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_rest_is_spread() {
        let mut bucket = RateBucket::new(BucketPolicy {
            burst: 2.0,
            rate: 4.0,
        });
        let now = Duration::from_secs(10);
        let waits: Vec<_> = (0..5).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 250, 500, 750]);
        assert_eq!(bucket.take(Duration::from_secs(20)).as_millis(), 0);
    }

    #[test]
    fn a_pause_holds_for_every_call() {
        let mut bucket = RateBucket::new(BucketPolicy::default());
        bucket.pause(Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!(bucket.take(Duration::from_secs(2)), Duration::from_secs(4));
        assert_eq!(bucket.take(Duration::from_secs(6)), Duration::ZERO);
    }
}
