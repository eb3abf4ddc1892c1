//! What is known about a project and what was learned in it: `lula index`, `lula lessons` and
//! `lula guidelines`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Print the map of a project: the definitions that matter, within a budget
    #[command(
        after_help = "Definitions are ranked by who uses them, pulled towards the words of the task.\nIgnored files are left out; nothing in the project is changed.\n\nExamples:\n  lula index map\n  lula index map --task 'the discount is applied twice' --tokens 2000\n  lula index map ~/src/project --json"
    )]
    Map {
        /// The project, instead of the repository around this directory
        path: Option<PathBuf>,
        /// What is to be done, in your words
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
        /// Most tokens the map may have, by a careful estimate
        #[arg(long, value_name = "N", default_value_t = 4096)]
        tokens: u64,
    },
    /// Look up where something is defined
    #[command(
        after_help = "Examples:\n  lula index symbols ShoppingCart\n  lula index symbols 'apply discount' --json\n\nExit status: 1 when nothing answers the query."
    )]
    Symbols {
        /// A name, its beginning or words of it; everything when left out
        query: Option<String>,
        /// The project, instead of the repository around this directory
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// Most definitions to print
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Lessons are derived from the logs of this repository's runs. Coders see at most five, as untrusted\nnotes; one in ten is held back, so that it can be told whether they help."
)]
pub(crate) enum LessonsCommand {
    /// List them, those seen last first
    List {
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Show one, with what shows it and whether it helps
    Show {
        /// Its name, or the beginning of it
        id: String,
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
    /// Never show one again
    Forget {
        /// Its name, or the beginning of it
        id: String,
        /// The repository, instead of the one around this directory
        #[arg(long, value_name = "DIR")]
        repo: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuidelinesCommand {
    /// List guards and guidelines, and how many labels confidence was learned from
    List,
    /// Run the examples of a file of guidelines
    #[command(
        after_help = "Without a file, every file in force is tested, the built-in one too.\n\nExit status: 0 all examples hold, 1 some do not, 2 the file is wrong."
    )]
    Test {
        /// The file
        file: Option<PathBuf>,
    },
    /// Tell what a guideline says, how a run was rated, or what guards say about a command
    #[command(
        after_help = "Examples:\n  lula guidelines explain last\n  lula guidelines explain no-disabled-tests\n  lula guidelines explain -- git -c alias.p='push -f' p"
    )]
    Explain {
        /// The name of a guideline or of a run: its id, the end of it, or last
        #[arg(value_name = "WHAT", required_unless_present = "command")]
        what: Option<String>,
        /// A command and its arguments
        #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
        command: Vec<String>,
    },
}
