//! The commands of `lula audit`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Find out whether the record was changed, and where
    #[command(
        after_help = "Examples:\n  lula audit verify\n  lula audit verify --bundle audit.jsonl --key $(cat seal.pub)\n\nExit status: 0 intact, 1 changed."
    )]
    Verify {
        /// An exported log, instead of the one in the state directory
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
        /// The public key you know, instead of the one beside the log
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
        /// An end of the log that you know, as SEQ:HASH
        #[arg(long, value_name = "SEQ:HASH", conflicts_with = "bundle")]
        head: Option<String>,
    },
    /// List what was done
    #[command(
        after_help = "Showing checks nothing: `lula audit verify` does.\n\nExample:\n  lula audit show --tool exec --last 20"
    )]
    Show {
        /// Only this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Only the newest
        #[arg(long, value_name = "COUNT")]
        last: Option<usize>,
    },
    /// Write the whole record into one file that can be checked alone
    Export {
        /// The file; standard output when left out
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}
