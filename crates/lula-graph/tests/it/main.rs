//! The engine as its users see it: runs that survive, wait, are replayed, forked and exported.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod backends;
mod bundle;
mod crash;
mod delivery;
mod faults;
mod guards;
mod invariants;
mod kill;
mod linger;
mod people;
mod replay;
mod single;
mod steering;
mod together;
