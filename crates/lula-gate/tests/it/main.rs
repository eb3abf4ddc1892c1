//! The gate as its users meet it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says no by panicking and tells how good detectors are"
)]

mod corpus;
