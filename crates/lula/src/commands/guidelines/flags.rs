//! The arguments of `lula guidelines`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum GuidelinesCommand {
    /// List guards and guidelines, and how many decisions confidence is based on
    List,
    /// Run the examples in a guidelines file
    #[command(
        after_help = "Without a file, tests every guidelines file in force, including the built-in one.\n\nExit status: 0 all examples hold, 1 some do not, 2 the file is invalid."
    )]
    Test {
        /// Guidelines file to test
        file: Option<PathBuf>,
    },
    /// Explain a guideline, the rating of a run, or how guards judge a command
    #[command(
        after_help = "Examples:\n  lula guidelines explain last\n  lula guidelines explain no-disabled-tests\n  lula guidelines explain -- git -c alias.p='push -f' p"
    )]
    Explain {
        /// Guideline name, or run id, the end of one, or `last`
        #[arg(value_name = "WHAT", required_unless_present = "command")]
        what: Option<String>,
        /// Command and its arguments
        #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
        command: Vec<String>,
    },
}
