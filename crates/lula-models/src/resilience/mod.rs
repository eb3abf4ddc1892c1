//! Decisions about trying again, as pure functions of what happened, the time and a draw.

mod breaker;
mod bucket;
mod retry;

pub use breaker::{BreakerPolicy, CircuitBreaker, ModelHealth};
pub use bucket::{BucketPolicy, RateBucket};
pub use retry::{RetryPolicy, TryFailure, next_wait};
