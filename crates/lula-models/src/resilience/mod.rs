//! Decisions about trying again, as pure functions of what happened, the time and a draw.

mod breaker;
mod bucket;
mod retry;

pub use breaker::{Breaker, BreakerPolicy, Health};
pub use bucket::{Bucket, BucketPolicy};
pub use retry::{RetryPolicy, Trouble, next_wait};
