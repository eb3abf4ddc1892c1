//! So many in a second. Pure but for its lock.

use std::sync::Mutex;
use std::time::Instant;

use super::locked;

/// A bucket of tokens that fills within a second.
#[derive(Debug)]
pub(crate) struct Rate {
    most: f64,
    state: Mutex<Option<(f64, Instant)>>,
}

impl Rate {
    pub(crate) fn per_second(most: u32) -> Self {
        Self {
            most: f64::from(most),
            state: Mutex::new(None),
        }
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut state = locked(&self.state);
        let (left, then) = state.unwrap_or((self.most, now));
        let filled = now.saturating_duration_since(then).as_secs_f64() * self.most;
        let left = (left + filled).min(self.most);
        let taken = left >= 1.0;
        *state = Some((if taken { left - 1.0 } else { left }, now));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_has_so_many() {
        let rate = Rate::per_second(3);
        let start = Instant::now();
        let taken = |at: Duration| (0..9).filter(|_| rate.take(start + at)).count();
        assert_eq!(taken(Duration::ZERO), 3);
        assert_eq!(taken(Duration::from_millis(400)), 1);
        assert_eq!(taken(Duration::from_secs(10)), 3);
    }

    #[test]
    fn none_is_none() {
        assert!(!Rate::per_second(0).take(Instant::now()));
    }
}
