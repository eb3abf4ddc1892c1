//! End to end: the `lula` binary as a person or a script meets it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says no by panicking"
)]

mod command_line;
mod configuration;
mod doctor;
mod exec;
mod lula;
mod models;
mod repair;
mod run;
mod runs;
mod try_it;
