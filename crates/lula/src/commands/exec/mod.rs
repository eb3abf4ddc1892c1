//! `lula exec`: like the command itself, with a fence around it.

pub(crate) mod flags;
mod streams;

use std::io;

use lula_host::exec::{
    self, AttendedCommand, ExecAttendant, ExecError, ExecInvocation, ExecNetwork, ExecReport,
    ReviewableChanges,
};
use lula_host::network;
use lula_host::output::write_document;
use lula_host::sandbox::{self, Line};
use lula_protocol::SandboxReceipt;
use lula_sandbox::{
    EarlyHelper, FinishedCommand, Sandbox, SandboxCommand, SandboxEngine, SandboxError,
};

use crate::commands::review;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::status::ProcessExitStatus;
use crate::term::{DIM, TerminalScreen, TextTable, WARN, paint};
use flags::ExecFlags;

use streams::TerminalStreams;

pub(super) fn run(
    flags: &ExecFlags,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    execute(flags, &flags.request(), session, helper)
}

/// Runs a command to find out which names it needs.
pub(super) fn learn(
    flags: &ExecFlags,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let request = ExecInvocation {
        network: ExecNetwork::Learned,
        ..flags.request()
    };
    execute(flags, &request, session, helper)
}

fn execute(
    flags: &ExecFlags,
    request: &ExecInvocation<'_>,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let learned = request.network == ExecNetwork::Learned;
    let settled = match exec::execute(request, &session.screen, helper, &session.host) {
        Ok(settled) => settled,
        Err(error) => return ended(error, session),
    };
    let told = match (settled.ran, settled.changes) {
        (Ok(finished), Ok(changes)) => Ok(report(flags, learned, session, &finished)
            .and_then(|()| tell(session, &finished, &changes))
            .map(|()| ProcessExitStatus::of_command(finished.shell_status()))),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    if let Some(engine) = settled.engine {
        engine.leave();
    }
    settled.recorded?;
    told.unwrap_or_else(|error| ended(error, session))
}

/// What is said, and with which status, where there is none of the command's own.
fn ended(error: ExecError, session: &CliSession) -> Result<ProcessExitStatus, CommandFailure> {
    match error {
        ExecError::Refused(error) => {
            let status = refusal_status(&error);
            session.screen.failure(&error.into());
            Ok(status)
        }
        ExecError::Streams(error) => Err(error.into()),
        ExecError::Failed(error) => Err(error.into()),
    }
}

fn refusal_status(error: &SandboxError) -> ProcessExitStatus {
    match error {
        SandboxError::NotStarted { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            ProcessExitStatus::NOT_FOUND
        }
        SandboxError::NotStarted { .. } => ProcessExitStatus::NOT_EXECUTABLE,
        _ => ProcessExitStatus::REFUSED,
    }
}

/// Connects a command with our own streams, unless they are for a document.
impl ExecAttendant for TerminalScreen {
    fn warning(&self, text: &str) {
        self.warn(text);
    }

    fn attend(
        &self,
        engine: &SandboxEngine,
        sandbox: &Sandbox,
        command: SandboxCommand,
        meanwhile: &mut dyn FnMut(),
    ) -> AttendedCommand {
        let streams = if self.is_json() {
            Ok((None, command))
        } else {
            TerminalStreams::connect(command).map(|(streams, command)| (Some(streams), command))
        };
        let (streams, command) = match streams {
            Ok(connected) => connected,
            Err(error) => return (Err(error.into()), None),
        };
        match engine.start_alone_with(sandbox, &command, meanwhile) {
            Ok((session, process)) => {
                self.detail(&format!("{} tier", session.tier()));
                for at in session.published() {
                    self.note(&format!("published: {at}"));
                }
                let ended = match streams {
                    Some(streams) => streams.pass_through(&process),
                    None => process.wait(),
                };
                (ended.map_err(ExecError::from), Some(session))
            }
            Err(error) => (Err(error.into()), None),
        }
    }
}

/// Tells what the command would change, and everything else where a document is wanted.
fn tell(
    session: &CliSession,
    finished: &FinishedCommand,
    changes: &ReviewableChanges,
) -> Result<(), CommandFailure> {
    if session.screen.is_json() {
        return session.screen.document(&ExecReport::new(finished, changes));
    }
    match changes {
        Some((workspace, diff, aside)) if !diff.is_empty() => {
            review::announce(session, workspace, diff, aside);
        }
        Some((_, _, aside)) if aside.files() > 0 => {
            let told = review::left_aside(aside);
            let told = format!("{told} and not kept; --write direct keeps them");
            session.screen.note(&paint(DIM, told));
        }
        _ => {}
    }
    Ok(())
}

/// Writes the receipt where it was asked for, and says what stood around the command.
fn report(
    flags: &ExecFlags,
    learned: bool,
    session: &CliSession,
    finished: &FinishedCommand,
) -> Result<(), CommandFailure> {
    if let Some(path) = &flags.receipt {
        write_document(path, &finished.receipt)?;
    }
    let screen = &session.screen;
    if screen.is_verbose() {
        screen.detail(posture(&finished.receipt).render(2).trim_end());
    } else if flags.explain {
        for line in sandbox::denials(&finished.receipt) {
            screen.note(&line);
        }
    } else {
        for line in network::denials(&finished.receipt) {
            screen.note(&line);
        }
    }
    if learned {
        screen.note(&network::proposal(&finished.receipt));
    }
    Ok(())
}

/// A receipt for people.
fn posture(receipt: &SandboxReceipt) -> TextTable {
    let mut table = TextTable::default();
    for line in sandbox::posture(receipt) {
        match line {
            Line::Fact(name, text) => table.row([name, text]),
            Line::Warning(name, text) => table.row([paint(WARN, name), text]),
            Line::Aside(name, text) => table.row([paint(DIM, name), paint(DIM, text)]),
        }
    }
    table
}
