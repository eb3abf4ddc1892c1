//! The arguments of `lula approvals`, `lula approve` and `lula reject`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lula_protocol::Principal;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show a pending approval with the exact bytes it covers
    Show {
        /// Approval id, from `lula approvals`
        id: String,
    },
    /// List, add, rotate or retire approval keys
    #[command(
        after_help = "Examples:\n  lula approvals keys\n  lula approvals keys add alice --role maintainer --file alice.key\n  lula approvals keys rotate\n  lula approvals keys retire k_0123456789abcdef"
    )]
    Keys {
        #[command(subcommand)]
        command: Option<KeysCommand>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create an approval key for another person and write it to a private file
    Add {
        /// Owner of the key, such as alice
        who: Principal,
        /// Role of the owner; repeatable
        #[arg(long = "role", value_name = "NAME", required = true)]
        roles: Vec<String>,
        /// Key file to write; must not exist
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Replace your own signing key; old keys stay valid until retired
    Rotate,
    /// Revoke a key and every answer it signed
    Retire {
        /// Key id, from `lula approvals keys`
        id: String,
    },
}

pub(crate) const ANSWER_HELP: &str = include_str!("../../cli/help/answer.txt");

#[derive(Debug, Args)]
pub(crate) struct AnswerFlags {
    /// Approval id, from `lula approvals`, or the run that waits for it
    pub(crate) id: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Sign with the approval key in this file, as its owner
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Answer through the runner at unix:PATH or HOST:PORT, instead of the state directory
    #[arg(long, value_name = "ADDRESS", requires = "key")]
    pub(crate) runner: Option<String>,
}
