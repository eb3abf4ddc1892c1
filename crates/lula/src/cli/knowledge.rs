//! The commands of `lula index`, `lula lessons` and `lula guidelines`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Print a project map: the most relevant definitions within a token budget
    #[command(
        after_help = "Definitions are ranked by their uses and by the words of the task. Files that git ignores are left\nout. The project is not changed.\n\nExamples:\n  lula index map\n  lula index map --task 'the discount is applied twice' --tokens 2000\n  lula index map ~/src/project --json"
    )]
    Map {
        /// Project directory, instead of the repository around this directory
        path: Option<PathBuf>,
        /// Task that the map is for
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
        /// Maximum size of the map in tokens (estimated)
        #[arg(long, value_name = "N", default_value_t = 4096)]
        tokens: u64,
    },
    /// Find where a symbol is defined
    #[command(
        after_help = "Examples:\n  lula index symbols ShoppingCart\n  lula index symbols 'apply discount' --json\n\nExit status: 1 if nothing matches."
    )]
    Symbols {
        /// Name, beginning of a name, or words of it; without it, every symbol
        query: Option<String>,
        /// Project directory, instead of the repository around this directory
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// Maximum number of definitions to print
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Lessons are derived from the logs of this repository's runs. A coder sees at most five, as untrusted\nnotes; one in ten is held out to measure whether lessons help."
)]
pub(crate) enum LessonsCommand {
    /// List lessons, the most recently seen first
    List {
        /// Repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Show a lesson with its evidence and its effect
    Show {
        /// Lesson id, or the beginning of it
        id: String,
        /// Repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Never use a lesson again
    Forget {
        /// Lesson id, or the beginning of it
        id: String,
        /// Repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
}

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
