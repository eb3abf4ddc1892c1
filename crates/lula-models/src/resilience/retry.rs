//! Whether to try again, and after how long.

use std::time::Duration;

use crate::wire::ServerFailureKind;

/// How often and how patiently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often it is tried in all, the first time included.
    pub tries: u32,
    /// Retries after an answer that broke off.
    pub cuts: u32,
    /// The longest first wait; it doubles with each try.
    pub base: Duration,
    /// No own wait is longer.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 5,
            cuts: 1,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
        }
    }
}

/// What went wrong with a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryFailure {
    /// The server was not reached.
    Unreachable,
    /// The server refused: in which way, and how long it asks to wait.
    Refused(ServerFailureKind, Option<Duration>),
    /// The answer broke off, stood still or made no sense.
    Cut,
    /// Nothing that trying again could change.
    Final,
}

/// How long to wait before the next try; `None` where there is none.
///
/// `tried` counts the tries so far, `cuts` those of them that broke off, `roll` is a draw from
/// 0 to 1: the wait is spread over its whole range, so that many clients do not return at once.
pub fn next_wait(
    policy: &RetryPolicy,
    trouble: TryFailure,
    tried: u32,
    cuts: u32,
    roll: f64,
) -> Option<Duration> {
    if tried >= policy.tries {
        return None;
    }
    let asked = match trouble {
        TryFailure::Final => return None,
        TryFailure::Refused(kind, _) if !kind.is_passing() => return None,
        TryFailure::Cut if cuts > policy.cuts => return None,
        TryFailure::Refused(_, asked) => asked,
        TryFailure::Unreachable | TryFailure::Cut => None,
    };
    let doubled = policy
        .base
        .saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1).min(16)));
    let own = doubled.min(policy.cap).mul_f64(roll.clamp(0.0, 1.0));
    // A server's wish is a least wait, never a shorter one than ours.
    Some(asked.map_or(own, |asked| asked.saturating_add(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: fn() -> RetryPolicy = RetryPolicy::default;

    #[test]
    fn waits_double_up_to_the_cap() {
        let waits: Vec<_> = (1..5)
            .map(|tried| {
                next_wait(&P(), TryFailure::Unreachable, tried, 0, 1.0)
                    .unwrap()
                    .as_millis()
            })
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000]);
        let patient = RetryPolicy { tries: 100, ..P() };
        let late = next_wait(&patient, TryFailure::Unreachable, 60, 0, 1.0).unwrap();
        assert_eq!(late, Duration::from_secs(30));
    }

    #[test]
    fn a_servers_wish_is_honoured() {
        let asked = Some(Duration::from_secs(7));
        let trouble = TryFailure::Refused(ServerFailureKind::RateLimited, asked);
        assert_eq!(next_wait(&P(), trouble, 1, 0, 0.0), asked);
    }

    #[test]
    fn what_cannot_pass_is_not_tried_again() {
        for kind in [
            ServerFailureKind::Unauthorized,
            ServerFailureKind::NotFound,
            ServerFailureKind::BadRequest,
            ServerFailureKind::ContextOverflow,
            ServerFailureKind::Filtered,
            ServerFailureKind::Unpaid,
        ] {
            assert_eq!(
                next_wait(&P(), TryFailure::Refused(kind, None), 1, 0, 0.5),
                None
            );
        }
        assert_eq!(next_wait(&P(), TryFailure::Final, 1, 0, 0.5), None);
    }

    #[test]
    fn an_answer_that_broke_off_is_tried_once_more() {
        assert!(next_wait(&P(), TryFailure::Cut, 1, 1, 0.5).is_some());
        assert_eq!(next_wait(&P(), TryFailure::Cut, 2, 2, 0.5), None);
    }

    proptest! {
        #[test]
        fn tries_are_bounded_whatever_happens(tried in 5_u32.., cuts: u32, roll: f64) {
            prop_assert_eq!(next_wait(&P(), TryFailure::Unreachable, tried, cuts, roll), None);
        }

        #[test]
        fn own_waits_are_within_the_cap(tried in 1_u32..200, roll: f64) {
            let policy = RetryPolicy { tries: 1000, ..P() };
            let wait = next_wait(&policy, TryFailure::Unreachable, tried, 0, roll).unwrap();
            prop_assert!(wait <= policy.cap);
        }
    }
}
