//! The commands of `lula audit`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify that the audit log is complete and unchanged
    #[command(
        after_help = "Examples:\n  lula audit verify\n  lula audit verify --bundle audit.jsonl --key $(cat seal.pub)\n\nExit status: 0 intact, 1 changed."
    )]
    Verify {
        /// Verify an exported log, instead of the one in the state directory
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
        /// Public key to verify with, instead of the one stored beside the log
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
        /// Known head of the log, as SEQ:HASH; detects a log that was cut off
        #[arg(long, value_name = "SEQ:HASH", conflicts_with = "bundle")]
        head: Option<String>,
    },
    /// List audit entries
    #[command(
        after_help = "This command does not verify the log; `lula audit verify` does.\n\nExample:\n  lula audit show --tool exec --last 20"
    )]
    Show {
        /// Only entries of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only entries of this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Only the newest COUNT entries
        #[arg(long, value_name = "COUNT")]
        last: Option<usize>,
    },
    /// Export the audit log as one file that can be verified offline
    Export {
        /// File to write; without it, standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}
