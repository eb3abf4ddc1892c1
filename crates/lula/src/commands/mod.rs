//! The commands, one file each.

mod approvals;
mod attack;
mod audit;
mod background;
mod config;
mod detect;
mod doctor;
mod drive;
mod exec;
mod explain;
mod folder;
mod generate;
mod guidelines;
mod heal;
mod index;
mod lessons;
mod logs;
mod models;
mod policy;
mod records;
mod repair;
pub(crate) mod review;
mod run;
mod runner;
mod runs;
mod steer;
mod store;
mod trace;
mod try_it;

use lula_protocol::{Decision, Exit, RunId};
use lula_sandbox::EarlyHelper;

use crate::cli::{AnswerFlags, Cli, Command};
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
        Command::Logs(flags) => logs::run(&flags, session),
        Command::Trace(flags) => trace::run(&flags, session),
        Command::Steer(flags) => steer::steer(&flags, session),
        Command::Cancel(flags) => steer::cancel(&flags, session),
        Command::Replay(flags) => records::replay(&flags, session),
        Command::Fork(flags) => records::fork(&flags, session),
        Command::Export(flags) => records::export(&flags, session),
        Command::Verify { file } => records::verify(&file, session),
        Command::Store(command) => store::run(&command, session),
        Command::Repair(flags) => repair::run(&flags, session),
        Command::Heal(flags) => heal::run(&flags, session),
        Command::Detect => detect::run(session),
        Command::Index(command) => index::run(command, session),
        Command::Exec(flags) => return exec::run(&flags, session, helper),
        Command::Diff(flags) => match run_named(flags.what.first(), session)? {
            Some(run) => runs::diff(&run, session),
            None => review::diff(&flags, session),
        },
        Command::Commit(flags) => review::commit(&flags, session),
        Command::Discard(flags) => review::discard(&flags, session),
        Command::Undo(flags) => match run_named(flags.id.as_ref(), session)? {
            Some(run) => runs::undo(&run, session),
            None => review::undo(&flags, session),
        },
        Command::Redo(flags) => review::redo(&flags, session),
        Command::Workspaces(flags) => match &flags.archive {
            Some(run) => review::archive(run, session),
            None if flags.lines => review::lines(session),
            None => review::list(session),
        },
        Command::Runner(flags) => runner::run(&flags, session),
        Command::Doctor(flags) if flags.attack => attack::run(flags.tier, session),
        Command::Doctor(_) => doctor::run(session),
        Command::Models(command) => models::run(command, session),
        Command::Config(command) => config::run(command, session),
        Command::Policy(command) => policy::run(command, session),
        Command::Lessons(command) => lessons::run(&command, session),
        Command::Guidelines(command) => guidelines::run(command, session),
        Command::Approvals { command } => approvals::run(command, session),
        Command::Approve(flags) => answer(&flags, Decision::Approve, session),
        Command::Reject(flags) => answer(&flags, Decision::Reject, session),
        Command::Audit(command) => audit::run(command, session),
        Command::Explain { code } => explain::run(code.as_deref(), session),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { dir } => generate::man(dir.as_deref(), session),
    };
    exit.map(Status::from)
}

/// The run that a word means, by its name or by what it asks; nothing where the word means a
/// workspace, a path or a question of the hands.
fn run_named(word: Option<&String>, session: &Session) -> Result<Option<RunId>, Failure> {
    match word {
        Some(word) if word != "last" && review::store(session)?.find(word).is_ok() => Ok(None),
        Some(word) => runs::run_meant(word, session),
        None => Ok(None),
    }
}

/// Answers a question of the hands, or the one a run waits with.
fn answer(flags: &AnswerFlags, decision: Decision, session: &Session) -> Result<Exit, Failure> {
    match run_named(Some(&flags.id), session)? {
        Some(run) => runs::answer(&run, decision, flags.yes, session),
        None => approvals::answer(flags, decision, session),
    }
}
