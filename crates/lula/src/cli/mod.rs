//! Every command and flag, in one room. Help, completions and man pages are generated from it;
//! the flags of configuration keys come from the table of keys.

mod approval;
mod audit;
mod config;
mod doctor;
mod exec;
mod knowledge;
mod models;
mod reading;
mod repair;
mod runner;
pub(crate) mod runs;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::review::flags::{
    CommitFlags, DiffFlags, DiscardFlags, RedoFlags, UndoFlags, WorkspacesFlags,
};

use approval::ANSWER_HELP;
pub(crate) use approval::{AnswerFlags, ApprovalsCommand, KeysCommand, PolicyCommand};
pub(crate) use audit::AuditCommand;
pub(crate) use config::{ConfigCommand, FileLayer};
pub(crate) use doctor::DoctorFlags;
pub(crate) use exec::{ExecFlags, Write};
pub(crate) use knowledge::{GuidelinesCommand, IndexCommand, LessonsCommand};
pub(crate) use models::ModelsCommand;
pub(crate) use reading::{command, read, settings};
pub(crate) use repair::{RepairFlags, TryFlags};
pub(crate) use runner::RunnerFlags;
use runs::{
    CancelFlags, ExportFlags, ForkFlags, HealFlags, LogsFlags, ReplayFlags, ResumeFlags, RunFlags,
    ShowFlags, SteerFlags, StoreCommand, TraceFlags,
};

const ABOUT: &str = "Hand a coding task to agents you do not have to trust";

const EXAMPLES: &str = "\
Examples:
  lula try                       see it work on a bundled sample project
  lula run -t 'fix the tests'    hand over a task, get a verified branch
  lula repair                    make this project's failing tests pass
  lula index map --task TEXT     what matters in this project for a task
  lula exec -- pytest -q         run a command in the sandbox; its changes wait for you
  lula diff                      look at them; `lula commit` takes them, `lula discard` not
  lula doctor                    what works on this machine, and why not
  lula doctor --attack           attack the sandbox and see what holds
  lula config explain KEY        which layer a setting comes from
  lula explain L0101             what an error code means

Every configuration key is also a flag: sandbox.timeout is --sandbox-timeout.
Exit status: 0 verified, 1 failed, 2 usage, 3 waiting for approval, 4 budget,
5 inconclusive, 6 this machine cannot do it.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "lula", version, about = ABOUT, after_help = EXAMPLES)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputFlags {
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See the whole story on a bundled sample project
    Try(TryFlags),
    /// Hand over a task: plan, change, verify, deliver
    Run(RunFlags),
    /// Go on with a run that was interrupted or waits
    Resume(ResumeFlags),
    /// List runs
    Runs,
    /// Show a run
    Show(ShowFlags),
    /// Tell what happened in a run, line by line
    Logs(LogsFlags),
    /// Show where the time and the money of a run went, as text or as a page
    Trace(TraceFlags),
    /// Say something to whoever works on a run
    Steer(SteerFlags),
    /// End a run for good
    Cancel(CancelFlags),
    /// Derive a run again from its log
    Replay(ReplayFlags),
    /// Begin another run with the first events of one
    Fork(ForkFlags),
    /// Write everything that was recorded of a run into one file
    Export(ExportFlags),
    /// Check such a file, with nothing but the file
    Verify {
        /// The file
        file: PathBuf,
    },
    /// Look after the place where runs are kept
    #[command(subcommand)]
    Store(StoreCommand),
    /// Make failing tests pass by search, with no model
    Repair(RepairFlags),
    /// Look whether the tests pass, and begin a run where they do not
    Heal(HealFlags),
    /// Tell which tests a project has and how they are run
    Detect,
    /// Show what matters in a project, and where things are defined
    #[command(subcommand)]
    Index(IndexCommand),
    /// Run a command in the sandbox, in this directory
    Exec(ExecFlags),
    /// Show the changes that wait for a decision
    Diff(DiffFlags),
    /// Take waiting changes over into your files
    Commit(CommitFlags),
    /// Turn waiting changes down
    Discard(DiscardFlags),
    /// Take back the last commit, or what a run delivered
    Undo(UndoFlags),
    /// Make an undone commit again
    Redo(RedoFlags),
    /// List workspaces: what waits, what was decided, what it takes
    Workspaces(WorkspacesFlags),
    /// Serve tools in sandboxed workspaces, over HTTP
    Runner(RunnerFlags),
    /// Tell what works on this machine, and why not
    Doctor(DoctorFlags),
    /// Find, try out and choose models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Ask the policy rules, test them, show them
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show what is never done, what a good change looks like, and what that came to
    #[command(subcommand)]
    Guidelines(GuidelinesCommand),
    /// Show or forget what failed attempts showed
    #[command(subcommand)]
    Lessons(LessonsCommand),
    /// Show what waits for an answer
    Approvals {
        #[command(subcommand)]
        command: Option<ApprovalsCommand>,
    },
    /// Agree to exactly what a question shows
    #[command(after_help = ANSWER_HELP)]
    Approve(AnswerFlags),
    /// Say no to a question, for good
    #[command(after_help = ANSWER_HELP)]
    Reject(AnswerFlags),
    /// Check, show or export the record of what was done
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show or change configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Tell what an error code means
    #[command(after_help = "Example:\n  lula explain L0101")]
    Explain {
        /// A code such as L0101; all codes when left out
        code: Option<String>,
    },
    /// Print shell completions
    #[command(
        after_help = "Example:\n  lula completions bash > ~/.local/share/bash-completion/completions/lula"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages
    #[command(after_help = "Example:\n  lula man --dir ~/.local/share/man/man1")]
    Man {
        /// Directory for all pages; without it the main page goes to standard output
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether it only tells what is built in.
    pub(crate) const fn works_without_configuration(&self) -> bool {
        matches!(
            self,
            Self::Explain { .. } | Self::Completions { .. } | Self::Man { .. }
        )
    }
}
