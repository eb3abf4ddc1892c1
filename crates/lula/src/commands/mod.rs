//! The commands, one file or folder each, with their arguments in `flags.rs`.

pub(crate) mod approvals;
mod attack;
pub(crate) mod audit;
mod background;
pub(crate) mod chat;
pub(crate) mod config;
mod detect;
pub(crate) mod doctor;
mod drive;
pub(crate) mod env;
pub(crate) mod exec;
mod explain;
mod generate;
pub(crate) mod guidelines;
mod heal;
pub(crate) mod index;
pub(crate) mod lessons;
mod logs;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod net;
pub(crate) mod policy;
mod records;
pub(crate) mod repair;
pub(crate) mod review;
mod run;
pub(crate) mod runner;
mod runs;
pub(crate) mod serve;
mod steer;
mod store;
mod trace;
pub(crate) mod try_it;

use lula_protocol::{ApprovalDecision, RunExit, RunId};
use lula_sandbox::EarlyHelper;

use crate::cli::{Cli, CliCommand};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::status::ProcessExitStatus;
use approvals::flags::AnswerFlags;
use serve::flags::ServerCommand;

/// Runs the command that was asked for, with the sandbox's helper where one was made ready for it.
pub(crate) fn run(
    cli: Cli,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let exit = match cli.command {
        CliCommand::Try(flags) => try_it::run(&flags, session),
        CliCommand::Run(flags) => run::run(&flags, session),
        CliCommand::Chat(flags) => chat::run(&flags, session),
        CliCommand::Resume(flags) => run::resume(&flags, session),
        CliCommand::Runs => runs::list(session),
        CliCommand::Show(flags) => runs::show(&flags, session),
        CliCommand::Logs(flags) => logs::run(&flags, session),
        CliCommand::Trace(flags) => trace::run(&flags, session),
        CliCommand::Steer(flags) => steer::steer(&flags, session),
        CliCommand::Cancel(flags) => steer::cancel(&flags, session),
        CliCommand::Replay(flags) => records::replay(&flags, session),
        CliCommand::Fork(flags) => records::fork(&flags, session),
        CliCommand::Export(flags) => records::export(&flags, session),
        CliCommand::Verify { file } => records::verify(&file, session),
        CliCommand::Store(command) => store::run(&command, session),
        CliCommand::Repair(flags) => repair::run(&flags, session),
        CliCommand::Heal(flags) => heal::run(&flags, session),
        CliCommand::Detect => detect::run(session),
        CliCommand::Index(command) => index::run(command, session),
        CliCommand::Exec(flags) => return exec::run(&flags, session, helper),
        CliCommand::Env(command) => return env::run(&command, session, helper),
        CliCommand::Net(command) => return net::run(&command, session, helper),
        CliCommand::Grant(flags) => net::grant(&flags, session),
        CliCommand::Diff(flags) => match run_named(flags.what.first(), session)? {
            Some(run) => runs::diff(&run, session),
            None => review::diff(&flags, session),
        },
        CliCommand::Commit(flags) => review::commit(&flags, session),
        CliCommand::Discard(flags) => review::discard(&flags, session),
        CliCommand::Undo(flags) => match run_named(flags.id.as_ref(), session)? {
            Some(run) => runs::undo(&run, session),
            None => review::undo(&flags, session),
        },
        CliCommand::Redo(flags) => review::redo(&flags, session),
        CliCommand::Workspaces(flags) => match &flags.archive {
            Some(run) => review::archive(run, session),
            None if flags.branches => review::branches(session),
            None => review::list(session),
        },
        CliCommand::Runner(flags) => runner::run(&flags, session),
        CliCommand::Serve => serve::run(session),
        CliCommand::Mcp(command) => mcp::run(command, session),
        CliCommand::Server(ServerCommand::Keys(command)) => serve::keys(command, session),
        CliCommand::Doctor(flags) if flags.attack => attack::run(flags.tier, session),
        CliCommand::Doctor(_) => doctor::run(session),
        CliCommand::Models(command) => models::run(command, session),
        CliCommand::Config(command) => config::run(command, session),
        CliCommand::Policy(command) => policy::run(command, session),
        CliCommand::Lessons(command) => lessons::run(&command, session),
        CliCommand::Guidelines(command) => guidelines::run(command, session),
        CliCommand::Approvals { command } => approvals::run(command, session),
        CliCommand::Approve(flags) => answer(&flags, ApprovalDecision::Approve, session),
        CliCommand::Reject(flags) => answer(&flags, ApprovalDecision::Reject, session),
        CliCommand::Audit(command) => audit::run(command, session),
        CliCommand::Explain { code } => explain::run(code.as_deref(), session),
        CliCommand::Completions { shell } => generate::completions(shell),
        CliCommand::Man { dir } => generate::man(dir.as_deref(), session),
    };
    exit.map(ProcessExitStatus::from)
}

/// The run that a word means, by its name or by what it asks; nothing where the word means a
/// workspace, a path or a question of the runner.
fn run_named(word: Option<&String>, session: &CliSession) -> Result<Option<RunId>, CommandFailure> {
    match word {
        Some(word) if word != "last" && review::store(session)?.find(word).is_ok() => Ok(None),
        Some(word) => runs::run_meant(word, session),
        None => Ok(None),
    }
}

/// Answers a question of the runner, or the one a run waits with.
fn answer(
    flags: &AnswerFlags,
    decision: ApprovalDecision,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    if let Some(answered) = approvals::answer_elsewhere(flags, decision, session)? {
        return Ok(answered);
    }
    match run_named(Some(&flags.id), session)? {
        Some(run) => runs::answer(&run, decision, flags.yes, session),
        None => approvals::answer(flags, decision, session),
    }
}
