//! The flags of the commands that decide about held changes.

use clap::Args;
use lula_protocol::Digest;

const ID: &str = "\
ID is the id of a workspace, or enough of it to be the only one; `lula workspaces` lists them. Without
it the latest one of this directory that waits for a decision is meant.";

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nExamples:\n  lula diff\n  lula diff --stat\n  lula diff src/main.rs\n  lula diff apr_01jd3x…   what a question would approve, byte for byte\n  lula diff last          what the last run changed, for `git apply`\n  lula diff --json | jq -r .digest"))]
pub(crate) struct DiffFlags {
    /// List the changes without their content
    #[arg(long)]
    pub(crate) stat: bool,
    /// Also files that git ignores and does not track, such as build output
    #[arg(long)]
    pub(crate) all: bool,
    /// The workspace, then paths to show, everything when left out; or a run (run_…, or last)
    #[arg(value_name = "ID|PATH")]
    pub(crate) what: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nAll chosen changes are made, or none. Where your files changed meanwhile nothing is made and the\nexit status is 1. Devices, pipes and sockets are never committed, set-id bits and file capabilities\nnever kept, and changes inside .git only with --allow-git (exit status 3 if nothing else is left).\nNothing is committed while a chosen change adds a secret, unless --allow-secrets (exit status 3).\n\nExamples:\n  lula commit\n  lula commit --path src --path README.md\n  lula commit --digest \"$(lula diff --json | jq -r .digest)\""))]
pub(crate) struct CommitFlags {
    /// The workspace
    pub(crate) id: Option<String>,
    /// Only this path and what is below it; can be given several times
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Also files that git ignores and does not track, such as build output
    #[arg(long)]
    pub(crate) all: bool,
    /// Also changes inside .git, where hooks and configuration run programs
    #[arg(long)]
    pub(crate) allow_git: bool,
    /// Also changes that add what looks like a key, token or password
    #[arg(long)]
    pub(crate) allow_secrets: bool,
    /// Only if the changes are those reviewed under this digest
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<Digest>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nYour files are not touched. What was discarded can be brought back with `lula undo ID` until its\nspace is needed.\n\nExamples:\n  lula discard\n  lula discard --now ws_01jd3x"))]
pub(crate) struct DiscardFlags {
    /// The workspace
    pub(crate) id: Option<String>,
    /// Remove it from disk at once, for good
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without ID the last commit to this directory is meant. Where you changed one of its files since, nothing\nis changed and the exit status is 1. `lula redo` takes an undo back.\n\nExamples:\n  lula undo\n  lula undo ws_01jd3x\n  lula undo last          what the last run delivered"
)]
pub(crate) struct UndoFlags {
    /// The workspace whose last commit is undone, or which was discarded; or a run (run_…, or last)
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without ID the last undone commit to this directory is meant.\n\nExample:\n  lula redo"
)]
pub(crate) struct RedoFlags {
    /// The workspace whose last undone commit is made again
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula workspaces\n  lula workspaces --lines\n  lula workspaces --archive run_01jd3x00000000000000000000"
)]
pub(crate) struct WorkspacesFlags {
    /// List what the agents of runs build on together, and what lay about and was set aside
    #[arg(long)]
    pub(crate) lines: bool,
    /// Put all that the agents of a run produced into one file, and give the rest of its space back
    #[arg(long, value_name = "RUN", conflicts_with = "lines")]
    pub(crate) archive: Option<String>,
}
