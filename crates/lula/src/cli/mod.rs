//! Every command and flag. Help, completions and man pages are generated from it;
//! the flags of configuration keys come from the table of keys.

#[cfg(test)]
mod documented;
mod groups;
mod reading;
pub(crate) mod runs;
pub(crate) mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::approvals::flags::{ANSWER_HELP, AnswerFlags, ApprovalsCommand};
use crate::commands::audit::flags::AuditCommand;
use crate::commands::chat::flags::ChatFlags;
use crate::commands::config::flags::ConfigCommand;
use crate::commands::doctor::flags::DoctorFlags;
use crate::commands::env::flags::EnvironmentCommand;
use crate::commands::exec::flags::ExecFlags;
use crate::commands::guidelines::flags::GuidelinesCommand;
use crate::commands::index::flags::IndexCommand;
use crate::commands::lessons::flags::LessonsCommand;
use crate::commands::mcp::flags::McpCommand;
use crate::commands::models::flags::ModelsCommand;
use crate::commands::net::flags::{GrantFlags, NetCommand};
use crate::commands::policy::flags::PolicyCommand;
use crate::commands::repair::flags::RepairFlags;
use crate::commands::review::flags::{
    CommitFlags, DiffFlags, DiscardFlags, RedoFlags, UndoFlags, WorkspacesFlags,
};
use crate::commands::runner::flags::RunnerFlags;
use crate::commands::serve::flags::{SERVE_HELP, ServerCommand};
use crate::commands::try_it::flags::TryFlags;

pub(crate) use reading::{command, long_form, meant, read, settings};
use runs::{
    CancelFlags, ExportFlags, ForkFlags, HealFlags, LogsFlags, ReplayFlags, ResumeFlags, RunFlags,
    ShowFlags, SteerFlags, StoreCommand, TraceFlags,
};

const ABOUT: &str = "Hand a coding task to agents you do not have to trust";

const EXAMPLES: &str = include_str!("help/lula.txt");

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "lula", version, about = ABOUT, after_help = EXAMPLES)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputFlags {
    /// Print the result as one JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more detail and the diagnostic log; -vv logs effects, requests and model calls
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run the whole workflow on a bundled sample project
    Try(TryFlags),
    /// Work on a task: plan, change, verify, deliver
    Run(RunFlags),
    /// Talk with a model that works in the sandbox, turn by turn
    Chat(ChatFlags),
    /// Resume a run that was interrupted or is waiting
    Resume(ResumeFlags),
    /// List runs
    Runs,
    /// Show what a run did and why
    Show(ShowFlags),
    /// Print or follow the event log of a run
    Logs(LogsFlags),
    /// Show a timeline of a run, with its cost, as text, HTML or SVG
    Trace(TraceFlags),
    /// Send a note to the model that works on a run
    Steer(SteerFlags),
    /// Cancel a run for good
    Cancel(CancelFlags),
    /// Replay a run from its log and compare every event
    Replay(ReplayFlags),
    /// Start a new run from an earlier event of a run
    Fork(ForkFlags),
    /// Export a run as a bundle: one file with its whole record
    Export(ExportFlags),
    /// Verify an exported run bundle offline
    Verify {
        /// The bundle that `lula export` wrote
        file: PathBuf,
    },
    /// Back up, restore, check, compact or migrate the run store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Fix failing tests by search, with no model
    Repair(RepairFlags),
    /// Run the tests and start a run to fix them if they fail
    Heal(HealFlags),
    /// Detect which tests a project has and how to run them
    Detect,
    /// Search the symbol index: project map and definitions
    #[command(subcommand)]
    Index(IndexCommand),
    /// Run a command in the sandbox and hold its changes
    Exec(ExecFlags),
    /// Build, check and manage the environments that tests run in
    #[command(subcommand)]
    Env(EnvironmentCommand),
    /// Show, learn and explain what sandboxes reach over the network
    #[command(subcommand)]
    Net(NetCommand),
    /// Let a sandbox that runs reach one more name, or take it back
    Grant(GrantFlags),
    /// Show held changes, or the change of a run
    Diff(DiffFlags),
    /// Apply held changes to your files
    Commit(CommitFlags),
    /// Drop held changes
    Discard(DiscardFlags),
    /// Undo the last `lula commit`, or the delivery of a run
    Undo(UndoFlags),
    /// Redo an undone `lula commit`
    Redo(RedoFlags),
    /// List workspaces: state, held changes, disk space
    Workspaces(WorkspacesFlags),
    /// Serve sandboxed tools for your own agent over HTTP
    Runner(RunnerFlags),
    /// Serve the API: runs, live events and approvals over HTTP
    #[command(after_help = SERVE_HELP)]
    Serve,
    /// Give your own agent the sandbox as tools, over MCP
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Manage the server's bearer keys
    #[command(subcommand)]
    Server(ServerCommand),
    /// Check what works on this machine, and attack the sandbox
    Doctor(DoctorFlags),
    /// List, test and choose models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Check commands against the policy rules; test or list rules
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// List, test and explain guidelines that rate a change
    #[command(subcommand)]
    Guidelines(GuidelinesCommand),
    /// List, show or forget lessons from failed attempts
    #[command(subcommand)]
    Lessons(LessonsCommand),
    /// List pending approvals; manage approval keys
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Approve a pending approval
    #[command(after_help = ANSWER_HELP)]
    Approve(AnswerFlags),
    /// Reject a pending approval
    #[command(after_help = ANSWER_HELP)]
    Reject(AnswerFlags),
    /// Verify, show or export the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show or change the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Explain an error code
    #[command(after_help = "Example:\n  lula explain L0101")]
    Explain {
        /// Error code such as L0101; without it, list all codes
        code: Option<String>,
    },
    /// Generate shell completions
    #[command(
        after_help = "Example:\n  lula completions bash > ~/.local/share/bash-completion/completions/lula"
    )]
    Completions {
        /// Shell to generate for
        shell: clap_complete::Shell,
    },
    /// Generate man pages
    #[command(after_help = "Example:\n  lula man --dir ~/.local/share/man/man1")]
    Man {
        /// Write all pages into this directory; without it, print the main page
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

impl CliCommand {
    /// Whether it prints built-in text only.
    pub(crate) const fn works_without_configuration(&self) -> bool {
        matches!(
            self,
            Self::Explain { .. } | Self::Completions { .. } | Self::Man { .. }
        )
    }

    /// Whether it can be about the runs of a server.
    pub(crate) fn is_about_runs(&self) -> bool {
        match self {
            Self::Run(_)
            | Self::Resume(_)
            | Self::Runs
            | Self::Show(_)
            | Self::Logs(_)
            | Self::Trace(_)
            | Self::Steer(_)
            | Self::Cancel(_)
            | Self::Fork(_)
            | Self::Export(_)
            | Self::Config(_) => true,
            Self::Approve(flags) | Self::Reject(flags) => flags.runner.is_none(),
            Self::Approvals { command } => !matches!(command, Some(ApprovalsCommand::Keys { .. })),
            Self::Diff(flags) => !flags.what.is_empty(),
            Self::Undo(flags) => flags.id.is_some(),
            _ => false,
        }
    }
}
