//! Every backend against the conformance kit, and the faults each has of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod canary;
mod postgres;
mod redis;
mod sqlite;
