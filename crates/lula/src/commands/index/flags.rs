//! The arguments of `lula index`.

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
