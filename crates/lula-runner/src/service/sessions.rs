//! Commands that are listened to while they run.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_protocol::call::ExecCommand;
use lula_protocol::{
    Digest, Principal, TextOrigin, ToolAction, ToolCall, ToolOutcome, ToolOutput, ToolResult,
};

use super::call::ToolCallEffect;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPreparation, EffectSubject, GatedAct,
    PerformedEffect, RunnerEffect,
};
use super::exec;
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::running::{CommandListener, RunningCommand};
use super::{RunnerService, result};
use lula_runner_api::{SessionControl, SessionList, SessionView, StartSession, TerminalSize};

/// Most commands at one time.
const SESSIONS: usize = 128;
/// Longest input at one time, in bytes.
const INPUT: usize = 1 << 20;

/// What came of starting a command.
#[derive(Debug)]
pub enum StartedCommand {
    /// The command runs, and this hears its output.
    Running(CommandListener),
    /// It does not: it was done before, or it cannot be.
    Over(Box<ToolResult>),
}

/// Where the caller of a session waits for what came of its start.
type Answer = SyncSender<Result<StartedCommand, RequestRefusal>>;

/// A command that is listened to, as an effect: its end, or in the background its start.
struct Command<'a> {
    call: ToolCallEffect<'a>,
    service: &'a Arc<RunnerService>,
    asked: &'a StartSession,
    answer: &'a Answer,
    /// Where it was started.
    started: Option<Start>,
}

/// A command that was started for a session.
enum Start {
    /// Its end is its effect, and the caller listens already.
    Foreground(Arc<RunningCommand>),
    /// Its start is its effect; what it does from then on is its own.
    Background(Arc<RunningCommand>, CommandListener),
}

impl RunnerEffect for Command<'_> {
    type Output = ToolResult;
    type Plan = Option<Digest>;

    fn request(&self) -> &EffectCallerRequest {
        self.call.request()
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        self.call.room()
    }

    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, ToolResult>, RequestRefusal> {
        self.call.prepare(service)
    }

    fn perform(
        &mut self,
        service: &RunnerService,
        diff: Option<Digest>,
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<ToolResult>, EffectFailure> {
        subject.diff = diff;
        let running = match service.launch(self.call.in_room(), self.asked)? {
            Ok(running) => running,
            Err(outcome) => return Ok(self.call.performed(outcome, None)),
        };
        let heard = CommandListener::new(Arc::clone(&running), Arc::clone(self.service));
        if self.asked.background {
            let output = ToolOutput::new(format!("started {}\n", running.name), TextOrigin::Lula);
            self.started = Some(Start::Background(running, heard));
            return Ok(self.call.performed(ToolOutcome::Done { output }, None));
        }
        self.started = Some(Start::Foreground(Arc::clone(&running)));
        let _ = self.answer.send(Ok(StartedCommand::Running(heard)));
        let (outcome, receipt) = exec::command_outcome(&running.finish()?);
        Ok(self.call.performed(outcome, receipt))
    }
}

/// Every command by its name.
#[derive(Debug, Default)]
pub(super) struct CommandSessions(Mutex<BTreeMap<String, Arc<RunningCommand>>>);

impl CommandSessions {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<RunningCommand>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn get(&self, name: &str) -> Result<Arc<RunningCommand>, RequestRefusal> {
        let all = self.all();
        let unknown = || RequestRefusal::NoSession(name.chars().take(100).collect());
        all.get(name).map(Arc::clone).ok_or_else(unknown)
    }
}

impl RunnerService {
    /// Starts a command to be listened to.
    pub fn start_session(
        self: &Arc<Self>,
        who: &Principal,
        asked: StartSession,
    ) -> Result<StartedCommand, RequestRefusal> {
        if !matches!(asked.call.action, ToolAction::Exec(_)) {
            let message = "a session runs a call of exec".to_owned();
            return Err(RequestRefusal::BadRequest(message));
        }
        if let Some(size) = asked.terminal {
            check_size(size)?;
        }
        if self.sessions.count() >= SESSIONS {
            return Err(RequestRefusal::Busy(format!(
                "{SESSIONS} sessions are open"
            )));
        }
        let room = self.room(&asked.call.workspace)?;
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let (service, who) = (Arc::clone(self), who.clone());
        // A thread of its own: it has the workspace's turn as long as the command runs.
        std::thread::Builder::new()
            .name("lula-session".to_owned())
            .spawn(move || service.run_session(&room, &who, &asked, &answer))
            .map_err(|error| RequestRefusal::Internal(format!("cannot start a thread: {error}")))?;
        let gone = |_| RequestRefusal::Internal("the session's thread broke".to_owned());
        answered.recv().map_err(gone)?
    }

    fn run_session(
        self: &Arc<Self>,
        room: &RunnerWorkspace,
        who: &Principal,
        asked: &StartSession,
        answer: &Answer,
    ) {
        let over = |told: Result<ToolResult, RequestRefusal>| {
            let _ = answer.send(told.map(|result| StartedCommand::Over(Box::new(result))));
        };
        let turn = match room.turn() {
            Ok(turn) => turn,
            Err(refusal) => return over(Err(refusal)),
        };
        let call = match ToolCallEffect::new(self, room, who, &asked.call) {
            Ok(call) => call,
            Err(refusal) => return over(Err(refusal)),
        };
        let mut command = Command {
            call,
            service: self,
            asked,
            answer,
            started: None,
        };
        let told = self.run_effect(&mut command).map(GatedAct::into_result);
        match command.started {
            None => over(told),
            Some(Start::Foreground(running)) => {
                running.end(told.unwrap_or_else(|refusal| broken(&asked.call, &refusal)));
            }
            Some(Start::Background(running, heard)) => {
                drop(turn);
                let _ = answer.send(told.map(|_| StartedCommand::Running(heard)));
                running.end(match running.finish() {
                    Ok(finished) => {
                        let (outcome, receipt) = exec::command_outcome(&finished);
                        result(&asked.call, outcome, receipt)
                    }
                    Err(refusal) => broken(&asked.call, &refusal),
                });
            }
        }
    }

    /// Starts the process of a session, or tells why the call cannot be one.
    fn launch(
        &self,
        room: &RunnerWorkspace,
        asked: &StartSession,
    ) -> Result<Result<Arc<RunningCommand>, ToolOutcome>, RequestRefusal> {
        let ToolAction::Exec(wanted) = &asked.call.action else {
            return Err(RequestRefusal::Internal("no command".to_owned()));
        };
        let name = asked.call.effect.as_str().replacen("eff_", "ses_", 1);
        let running = match started(room, wanted, name, asked.terminal, asked.open_input)? {
            Ok(running) => running,
            Err(outcome) => return Ok(Err(outcome)),
        };
        self.sessions
            .all()
            .insert(running.name.clone(), Arc::clone(&running));
        Ok(Ok(running))
    }

    /// Every command that was started and not closed.
    pub fn sessions(&self) -> SessionList {
        let all = self.sessions.all();
        SessionList {
            sessions: all.values().map(|running| running.view()).collect(),
        }
    }

    /// One command that was started and not closed.
    pub fn session(&self, name: &str) -> Result<SessionView, RequestRefusal> {
        Ok(self.sessions.get(name)?.view())
    }

    /// Listens to a command, from what is still kept of its output.
    pub fn listen(self: &Arc<Self>, name: &str) -> Result<CommandListener, RequestRefusal> {
        Ok(CommandListener::new(
            self.sessions.get(name)?,
            Arc::clone(self),
        ))
    }

    /// Sends it input, a signal or a size.
    pub fn control(&self, name: &str, control: &SessionControl) -> Result<(), RequestRefusal> {
        let running = self.sessions.get(name)?;
        match control {
            SessionControl::Input { text } if text.len() > INPUT => Err(
                RequestRefusal::BadRequest(format!("input has at most {INPUT} bytes at one time")),
            ),
            SessionControl::Input { text } => Ok(running.process.write_input(text.as_bytes())?),
            SessionControl::EndInput => Ok(running.process.close_input()?),
            SessionControl::Signal { signal } if !(1..=64).contains(signal) => Err(
                RequestRefusal::BadRequest("a signal is a number from 1 to 64".to_owned()),
            ),
            SessionControl::Signal { signal } => Ok(running.process.signal(*signal)?),
            SessionControl::Resize { size } => {
                check_size(*size)?;
                Ok(running.process.resize(size.rows, size.columns)?)
            }
        }
    }

    /// Ends it with everything it started.
    pub fn close_session(&self, name: &str) -> Result<(), RequestRefusal> {
        let running = self.sessions.get(name)?;
        // One that has ended needs no killing.
        let _ = running.process.kill();
        self.sessions.all().remove(name);
        Ok(())
    }
}

/// Starts a process whose output is listened to, or tells why the command cannot be one.
pub(super) fn started(
    room: &RunnerWorkspace,
    wanted: &ExecCommand,
    name: String,
    terminal: Option<TerminalSize>,
    open_input: bool,
) -> Result<Result<Arc<RunningCommand>, ToolOutcome>, RequestRefusal> {
    let live = room.live()?;
    let mut command = match exec::command(wanted, &live) {
        Ok(command) => command.streamed(),
        Err(outcome) => return Ok(Err(outcome)),
    };
    if let Some(size) = terminal {
        command = command.terminal(size.rows, size.columns);
    } else if open_input {
        command = command.open_input();
    }
    let process = match live.session.start(&command) {
        Ok(process) => process,
        Err(error) => return exec::not_started(error).map(Err),
    };
    if open_input && let Some(input) = &wanted.stdin {
        process.write_input(input.as_bytes())?;
    }
    if let Err(error) = process.pid() {
        return exec::not_started(error).map(Err);
    }
    Ok(Ok(Arc::new(RunningCommand::new(
        name,
        room.id.clone(),
        wanted.argv.clone(),
        process,
    ))))
}

fn check_size(size: TerminalSize) -> Result<(), RequestRefusal> {
    let fits = |length: u16| (1..=1000).contains(&length);
    if fits(size.rows) && fits(size.columns) {
        return Ok(());
    }
    let message = "a terminal has 1 to 1000 rows and columns".to_owned();
    Err(RequestRefusal::BadRequest(message))
}

pub(super) fn broken(call: &ToolCall, refusal: &RequestRefusal) -> ToolResult {
    let problem = refusal.problem();
    result(call, exec::failed(problem.code, problem.message), None)
}
