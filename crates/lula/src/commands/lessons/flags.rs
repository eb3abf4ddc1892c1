//! The arguments of `lula lessons`.

use std::path::PathBuf;

use clap::Subcommand;

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
