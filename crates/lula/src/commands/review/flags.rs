//! The flags of the commands that decide about held changes.

use clap::Args;
use lula_protocol::Digest;

const ID: &str = "\
ID is a workspace id or a unique beginning of one; `lula workspaces` lists them. Without ID the command
uses the latest workspace of this directory that holds changes.";

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nExamples:\n  lula diff\n  lula diff --stat\n  lula diff src/main.rs\n  lula diff apr_01jd3x…   the exact bytes that an approval covers\n  lula diff last          the change of the last run, for `git apply`\n  lula diff --json | jq -r .digest"))]
pub(crate) struct DiffFlags {
    /// List changed files without their content
    #[arg(long)]
    pub(crate) stat: bool,
    /// Include files that git ignores and does not track, such as build output
    #[arg(long)]
    pub(crate) all: bool,
    /// Workspace id and paths to show; or a run (run_…, or `last`). Without paths, show everything
    #[arg(value_name = "ID|PATH")]
    pub(crate) what: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nApplies all selected changes or none. If your files changed meanwhile it applies nothing and exits\nwith 1. It never applies devices, pipes, sockets, set-id bits or file capabilities, and changes inside\n.git only with --allow-git (exit status 3 if nothing else is left). It applies nothing if a selected\nchange adds a secret, unless --allow-secrets is given (exit status 3).\n\nExamples:\n  lula commit\n  lula commit --path src --path README.md\n  lula commit --digest \"$(lula diff --json | jq -r .digest)\""))]
pub(crate) struct CommitFlags {
    /// Workspace id
    pub(crate) id: Option<String>,
    /// Apply only this path and everything below it; repeatable
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Include files that git ignores and does not track, such as build output
    #[arg(long)]
    pub(crate) all: bool,
    /// Include changes inside .git, where hooks and configuration can run programs
    #[arg(long)]
    pub(crate) allow_git: bool,
    /// Include changes that add what looks like a key, token or password
    #[arg(long)]
    pub(crate) allow_secrets: bool,
    /// Apply only if the changes have this digest, from `lula diff --json`
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<Digest>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{ID}\n\nYour files are not touched. `lula undo ID` restores discarded changes until their disk space is\nneeded.\n\nExamples:\n  lula discard\n  lula discard --now ws_01jd3x"))]
pub(crate) struct DiscardFlags {
    /// Workspace id
    pub(crate) id: Option<String>,
    /// Delete the workspace at once; it cannot be restored
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without ID, undoes the last commit to this directory. If you changed one of its files since, it changes\nnothing and exits with 1. `lula redo` reverts an undo.\n\nExamples:\n  lula undo\n  lula undo ws_01jd3x\n  lula undo last          the delivery of the last run"
)]
pub(crate) struct UndoFlags {
    /// Workspace id, committed or discarded; or a run (run_…, or `last`)
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without ID, redoes the last undone commit to this directory.\n\nExample:\n  lula redo"
)]
pub(crate) struct RedoFlags {
    /// Workspace id
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula workspaces\n  lula workspaces --branches\n  lula workspaces --archive run_01jd3x00000000000000000000"
)]
pub(crate) struct WorkspacesFlags {
    /// List the integration branches of runs with several agents, and leftovers that were set aside
    #[arg(long, alias = "lines")]
    pub(crate) branches: bool,
    /// Archive the commits of a run's agents in one file and free the rest of its disk space
    #[arg(long, value_name = "RUN", conflicts_with = "branches")]
    pub(crate) archive: Option<String>,
}
