//! How much one person may ask for: requests in a second, and requests at one time. What is more is
//! refused at once, with the time after which it may be tried again; nothing is kept waiting.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use lula_protocol::Principal;

use crate::problem::{ApiRefusal, ApiResult};

/// Requests of one person that are worked on at one time, streams aside.
const AT_ONCE: usize = 32;
/// So many people are remembered before those who were quiet are forgotten.
const REMEMBERED: usize = 4096;

/// The limits of a server, and how far they are used.
pub(crate) struct RequestLimits {
    rate: DefaultKeyedRateLimiter<Principal>,
    clock: DefaultClock,
    under_way: Arc<Mutex<HashMap<Principal, usize>>>,
    streams: Arc<Mutex<usize>>,
    most_streams: usize,
}

/// A place among the requests that are worked on; it is free again when this is dropped.
pub(crate) struct RequestPlace {
    under_way: Arc<Mutex<HashMap<Principal, usize>>>,
    who: Principal,
}

/// A place among the open streams.
pub(crate) struct StreamPlace(Arc<Mutex<usize>>);

impl RequestLimits {
    pub(crate) fn new(rate: u32, most_streams: usize) -> Self {
        let rate = NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        Self {
            rate: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            under_way: Arc::default(),
            streams: Arc::default(),
            most_streams,
        }
    }

    /// Takes a place for a request.
    pub(crate) fn enter(&self, who: &Principal) -> ApiResult<RequestPlace> {
        if self.rate.len() > REMEMBERED {
            self.rate.retain_recent();
        }
        if let Err(not_until) = self.rate.check_key(who) {
            let wait = not_until.wait_time_from(self.clock.now());
            let text = "you send more requests than server.rate allows";
            return Err(ApiRefusal::busy(429, text, seconds(wait)));
        }
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mine = under_way.entry(who.clone()).or_default();
        if *mine >= AT_ONCE {
            let text = format!("{AT_ONCE} of your requests are under way");
            return Err(ApiRefusal::busy(429, text, 1));
        }
        *mine += 1;
        drop(under_way);
        Ok(RequestPlace {
            under_way: Arc::clone(&self.under_way),
            who: who.clone(),
        })
    }

    /// Takes a place for a stream.
    pub(crate) fn open_stream(&self) -> ApiResult<StreamPlace> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if *streams >= self.most_streams {
            let text = "as many event streams are open as server.streams allows";
            return Err(ApiRefusal::busy(503, text, 5));
        }
        *streams += 1;
        drop(streams);
        Ok(StreamPlace(Arc::clone(&self.streams)))
    }

    pub(crate) fn streams(&self) -> usize {
        *self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A burst may be so many times as large as a second's requests.
const TWICE: NonZeroU32 = NonZeroU32::new(2).unwrap();

fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = under_way.get_mut(&self.who) {
            *mine -= 1;
            if *mine == 0 {
                under_way.remove(&self.who);
            }
        }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str) -> Principal {
        name.parse().unwrap()
    }

    #[test]
    fn one_person_is_slowed_down_and_another_is_not() {
        let limits = RequestLimits::new(1, 1);
        assert!(limits.enter(&who("ada")).is_ok());
        assert!(limits.enter(&who("ada")).is_ok());
        let refusal = limits.enter(&who("ada")).err().unwrap();
        assert_eq!(refusal.status(), 429);
        assert!(limits.enter(&who("bob")).is_ok());
    }

    #[test]
    fn a_place_is_free_again_when_its_request_is_done() {
        let limits = RequestLimits::new(10_000, 1);
        let places: Vec<_> = (0..AT_ONCE)
            .map(|_| limits.enter(&who("ada")).ok())
            .collect();
        assert!(places.iter().all(Option::is_some));
        assert!(limits.enter(&who("ada")).is_err());
        drop(places);
        assert!(limits.enter(&who("ada")).is_ok());
        let stream = limits.open_stream().ok().unwrap();
        assert_eq!(limits.open_stream().err().unwrap().status(), 503);
        drop(stream);
        assert!(limits.open_stream().is_ok());
    }
}
