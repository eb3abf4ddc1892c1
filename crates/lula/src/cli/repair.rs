//! The flags of `lula try` and `lula repair`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::parse_duration;

#[derive(Debug, Args)]
#[command(
    after_help = "A sample project with a real bug is copied to a throw-away git repository and mended there: found,\nfixed in the sandbox, verified, shown, approved, put on a branch, audited, and undone again. With\na model configured (lula models use) the model writes the fix, otherwise the built-in search. Your\nfiles are not touched; the record of the run stays, for `lula show last`."
)]
pub(crate) struct TryFlags {
    /// Leave the sample repository on disk and tell where
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The patch goes to standard output; nothing in your files is changed.\n\nExamples:\n  lula repair\n  lula repair --tests 'pytest -q tests/unit' --budget 5m\n  lula repair -q | git apply\n\nExit status: 0 fixed or nothing failing, 1 no patch exists, 4 none found in the budget,\n5 only flaky tests, 6 tests cannot run."
)]
pub(crate) struct RepairFlags {
    /// The command that runs the tests, instead of the one detected
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// How long to search, such as 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Look for every patch instead of stopping soon after the first
    #[arg(long)]
    pub(crate) all: bool,
    /// The directory to repair, instead of the repository around this one
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}
