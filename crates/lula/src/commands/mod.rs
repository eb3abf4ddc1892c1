//! The commands, one file each.

mod approvals;
mod attack;
mod audit;
mod config;
mod detect;
mod doctor;
mod exec;
mod explain;
mod generate;
mod index;
mod models;
mod policy;
mod records;
mod repair;
pub(crate) mod review;
mod run;
mod runner;
mod runs;
mod store;
mod try_it;

use lula_protocol::Decision;
use lula_sandbox::EarlyHelper;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::session::Session;
use crate::status::Status;

/// Runs the command that was asked for, with the sandbox's helper where one was made ready for it.
pub(crate) fn run(
    cli: Cli,
    session: &Session,
    helper: Option<EarlyHelper>,
) -> Result<Status, Failure> {
    let exit = match cli.command {
        Command::Try(flags) => try_it::run(&flags, session),
        Command::Run(flags) => run::run(&flags, session),
        Command::Resume(flags) => run::resume(&flags, session),
        Command::Runs => runs::list(session),
        Command::Show(flags) => runs::show(&flags, session),
        Command::Replay(flags) => records::replay(&flags, session),
        Command::Fork(flags) => records::fork(&flags, session),
        Command::Export(flags) => records::export(&flags, session),
        Command::Verify { file } => records::verify(&file, session),
        Command::Store(command) => store::run(&command, session),
        Command::Repair(flags) => repair::run(&flags, session),
        Command::Detect => detect::run(session),
        Command::Index(command) => index::run(command, session),
        Command::Exec(flags) => return exec::run(&flags, session, helper),
        Command::Diff(flags) => review::diff(&flags, session),
        Command::Commit(flags) => review::commit(&flags, session),
        Command::Discard(flags) => review::discard(&flags, session),
        Command::Undo(flags) => match flags.id.as_deref() {
            Some(run) if run == "last" || run.starts_with("run_") => runs::undo(run, session),
            _ => review::undo(&flags, session),
        },
        Command::Redo(flags) => review::redo(&flags, session),
        Command::Workspaces => review::list(session),
        Command::Runner(flags) => runner::run(&flags, session),
        Command::Doctor(flags) if flags.attack => attack::run(flags.tier, session),
        Command::Doctor(_) => doctor::run(session),
        Command::Models(command) => models::run(command, session),
        Command::Config(command) => config::run(command, session),
        Command::Policy(command) => policy::run(command, session),
        Command::Approvals { command } => approvals::run(command, session),
        Command::Approve(flags) => approvals::answer(&flags, Decision::Approve, session),
        Command::Reject(flags) => approvals::answer(&flags, Decision::Reject, session),
        Command::Audit(command) => audit::run(command, session),
        Command::Explain { code } => explain::run(code.as_deref(), session),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { dir } => generate::man(dir.as_deref(), session),
    };
    exit.map(Status::from)
}
