//! Tests as evidence.
//!
//! A test run is described here, not started: a [`TestCommand`] says what to execute inside a
//! sandbox, and [`TestCommand::read`] turns what came out of it into a [`TestReport`]. Output is
//! hostile; a report exists only where the runner that we bring in vouches for it, never because a
//! text looks like success.
//!
//! This crate does no I/O.
#![forbid(unsafe_code)]

pub mod report;
pub mod unittest;

pub use report::{Outcome, TestCase, TestReport};
pub use unittest::TestCommand;
