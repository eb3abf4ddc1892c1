//! A breaker for each model of each provider: what keeps failing is left alone for a while.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Answers whose time is remembered.
const REMEMBERED: usize = 20;
/// Answers needed before slowness is judged.
const ENOUGH: usize = 10;

/// When to open, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open before one call may try.
    pub rest: Duration,
    /// The slowest bearable answer, as the 95th percentile.
    pub slow: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failures: 5,
            rest: Duration::from_secs(30),
            slow: Duration::from_mins(5),
        }
    }
}

/// What is known of a model's health; recorded as an event before it decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelHealth {
    /// It answers, or nothing is known against it.
    #[default]
    Well,
    /// One call may try whether it answers again.
    Trying,
    /// It is left alone.
    Resting,
}

/// The memory of one model. All times are a [`crate::MonotonicClock`]'s.
#[derive(Debug, Clone, Default)]
pub struct CircuitBreaker {
    failures: u32,
    open_until: Option<Duration>,
    probing: bool,
    times: VecDeque<Duration>,
}

impl CircuitBreaker {
    /// Lets a call through, or says until when to leave the model alone.
    pub fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        match self.open_until {
            None => Ok(()),
            Some(until) if now < until || self.probing => Err(until),
            Some(_) => {
                self.probing = true;
                Ok(())
            }
        }
    }

    /// The model answered after this time.
    pub fn succeeded(&mut self, policy: &BreakerPolicy, now: Duration, took: Duration) {
        self.failures = 0;
        self.probing = false;
        self.open_until = None;
        self.times.push_back(took);
        if self.times.len() > REMEMBERED {
            self.times.pop_front();
        }
        if self.times.len() >= ENOUGH && self.slowest() > policy.slow {
            self.times.clear();
            self.open_until = Some(now.saturating_add(policy.rest));
        }
    }

    /// The model failed. What no retry can mend opens the breaker at once.
    pub fn failed(&mut self, policy: &BreakerPolicy, now: Duration, beyond_retry: bool) {
        self.failures = self.failures.saturating_add(1);
        if beyond_retry || self.probing || self.failures >= policy.failures {
            self.open_until = Some(now.saturating_add(policy.rest));
        }
        self.probing = false;
    }

    /// A call that was let through ended without saying anything of the model.
    pub fn abandoned(&mut self) {
        self.probing = false;
    }

    /// How it is now.
    pub fn health(&self, now: Duration) -> ModelHealth {
        match self.open_until {
            None => ModelHealth::Well,
            Some(until) if now < until || self.probing => ModelHealth::Resting,
            Some(_) => ModelHealth::Trying,
        }
    }

    /// The 95th percentile of the remembered times.
    fn slowest(&self) -> Duration {
        let mut times: Vec<_> = self.times.iter().copied().collect();
        times.sort_unstable();
        let index = (times.len() * 95).div_ceil(100).saturating_sub(1);
        times.get(index).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BreakerPolicy = BreakerPolicy {
        failures: 5,
        rest: Duration::from_secs(30),
        slow: Duration::from_mins(1),
    };

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_one_probe_closes_it() {
        let mut breaker = CircuitBreaker::default();
        for second in 0..4 {
            breaker.failed(&POLICY, at(second), false);
            assert_eq!(breaker.health(at(second)), ModelHealth::Well);
        }
        breaker.failed(&POLICY, at(4), false);
        assert_eq!(breaker.admit(at(33)), Err(at(34)));
        assert_eq!(breaker.health(at(34)), ModelHealth::Trying);
        assert_eq!(breaker.admit(at(34)), Ok(()));
        assert!(breaker.admit(at(34)).is_err(), "one probe at a time");
        breaker.succeeded(&POLICY, at(35), at(1));
        assert_eq!(breaker.health(at(35)), ModelHealth::Well);
    }

    #[test]
    fn a_probe_that_fails_opens_it_again() {
        let mut breaker = CircuitBreaker::default();
        breaker.failed(&POLICY, at(0), true);
        assert_eq!(breaker.admit(at(30)), Ok(()));
        breaker.failed(&POLICY, at(31), false);
        assert_eq!(breaker.admit(at(32)), Err(at(61)));
    }

    #[test]
    fn a_success_between_failures_counts() {
        let mut breaker = CircuitBreaker::default();
        for second in 0..20 {
            breaker.failed(&POLICY, at(second), false);
            if second % 3 == 0 {
                breaker.succeeded(&POLICY, at(second), at(1));
            }
        }
        assert_eq!(breaker.health(at(20)), ModelHealth::Well);
    }

    #[test]
    fn a_model_that_became_too_slow_rests() {
        let mut breaker = CircuitBreaker::default();
        for second in 0..9 {
            breaker.succeeded(&POLICY, at(second), at(61));
        }
        assert_eq!(breaker.health(at(9)), ModelHealth::Well);
        breaker.succeeded(&POLICY, at(9), at(61));
        assert_eq!(breaker.health(at(9)), ModelHealth::Resting);
    }
}
