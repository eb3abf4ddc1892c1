//! The arguments of `lula repair`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::values::parse_duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the patch on standard output and changes none of your files.\n\nExamples:\n  lula repair\n  lula repair --tests 'pytest -q tests/unit' --budget 5m\n  lula repair -q | git apply\n\nExit status: 0 fixed or nothing failing, 1 the search ended without a patch, 4 no patch\nwithin the time limit, 5 only flaky tests, 6 the tests cannot run."
)]
pub(crate) struct RepairFlags {
    /// Test command, instead of the detected one
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// Time limit for the search, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Search for every patch instead of stopping soon after the first
    #[arg(long)]
    pub(crate) all: bool,
    /// Directory to repair, instead of the repository around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}
