//! The tasks as a person runs them, through the program.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    reason = "what a test relies on and lacks is its failure"
)]

mod architecture;
mod counting;
mod servers;

use std::process::Command;

/// The program that `cargo xtask` runs.
fn xtask() -> Command {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
}
