//! Commands that are listened to while they run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_protocol::{
    Action, Origin, Outcome, Output, Principal, ToolCall, ToolResult, WorkspaceId,
};
use lula_sandbox::frames::Stream;
use lula_sandbox::{Next, Process};
use tokio::sync::Notify;

use super::effect::Gone;
use super::exec;
use super::refusal::Refusal;
use super::room::Room;
use super::{Hands, result};
use crate::api::{
    SessionControl, SessionEvent, SessionList, SessionView, StartSession, StreamName, TerminalSize,
};

/// Most commands at one time.
const SESSIONS: usize = 128;
/// Output that is kept for whoever listens later, in bytes.
const KEPT: usize = 1 << 20;
/// Longest input at one time, in bytes.
const INPUT: usize = 1 << 20;

/// What came of starting a command.
#[derive(Debug)]
pub enum Started {
    /// It runs.
    Running(Heard),
    /// It does not: it was done before, or it cannot be.
    Over(Box<ToolResult>),
}

/// Every command by its name.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<BTreeMap<String, Arc<Running>>>);

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn get(&self, name: &str) -> Result<Arc<Running>, Refusal> {
        let all = self.all();
        let unknown = || Refusal::NoSession(name.chars().take(100).collect());
        all.get(name).map(Arc::clone).ok_or_else(unknown)
    }
}

/// A command that was started.
#[derive(Debug)]
pub(super) struct Running {
    name: String,
    workspace: WorkspaceId,
    argv: Vec<String>,
    process: Process,
    log: Mutex<Log>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Log {
    pieces: VecDeque<(StreamName, String)>,
    /// How many pieces were let go.
    forgotten: usize,
    bytes: usize,
    ended: Option<Box<ToolResult>>,
    listeners: usize,
}

impl Running {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, stream: StreamName, text: String) {
        let mut log = self.log();
        log.bytes += text.len();
        log.pieces.push_back((stream, text));
        while log.bytes > KEPT {
            let Some((_, text)) = log.pieces.pop_front() else {
                break;
            };
            log.bytes -= text.len();
            log.forgotten += 1;
        }
        drop(log);
        self.news.notify_waiters();
    }

    fn end(&self, result: ToolResult) {
        self.log().ended = Some(Box::new(result));
        self.news.notify_waiters();
    }

    fn view(&self) -> SessionView {
        let log = self.log();
        SessionView {
            session: self.name.clone(),
            workspace: self.workspace.clone(),
            argv: self.argv.clone(),
            ended: log.ended.is_some(),
            attached: log.listeners > 0,
        }
    }

    /// Takes its output in until it ends.
    fn pump(&self) -> Result<(), Refusal> {
        let mut halves = [Halves::default(), Halves::default()];
        loop {
            let next = self
                .process
                .next_output_within(std::time::Duration::from_hours(1))?;
            match next {
                Next::NothingYet => {}
                Next::End => break,
                Next::Output(output) => {
                    let (stream, halves) = match output.stream {
                        Stream::Stdout => (StreamName::Stdout, &mut halves[0]),
                        Stream::Stderr => (StreamName::Stderr, &mut halves[1]),
                    };
                    let text = halves.text(&output.bytes);
                    if !text.is_empty() {
                        self.add(stream, text);
                    }
                }
            }
        }
        for (stream, halves) in [StreamName::Stdout, StreamName::Stderr]
            .into_iter()
            .zip(halves)
        {
            if !halves.0.is_empty() {
                self.add(stream, String::from_utf8_lossy(&halves.0).into_owned());
            }
        }
        Ok(())
    }
}

/// The first bytes of a character whose rest has not arrived.
#[derive(Debug, Default)]
struct Halves(Vec<u8>);

impl Halves {
    fn text(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.0) {
            // Unfinished at the very end: it may become one.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.0.len(),
        };
        let rest = self.0.split_off(whole);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

/// Somebody who listens to a command.
#[derive(Debug)]
pub struct Heard {
    running: Arc<Running>,
    hands: Arc<Hands>,
    greeted: bool,
    /// The next piece, counted from the first there ever was.
    at: usize,
    over: bool,
    owned: bool,
}

impl Heard {
    fn new(running: Arc<Running>, hands: Arc<Hands>) -> Self {
        running.log().listeners += 1;
        Self {
            running,
            hands,
            greeted: false,
            at: 0,
            over: false,
            owned: false,
        }
    }

    /// Ends the command when nobody listens to it any more, and forgets it when it has ended.
    #[must_use]
    pub fn owned(mut self) -> Self {
        self.owned = true;
        self
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            // Asked for before looking: news in between is not missed.
            let running = Arc::clone(&self.running);
            let news = running.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(event) = self.ready() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            news.await;
        }
    }

    fn ready(&mut self) -> Option<SessionEvent> {
        if !self.greeted {
            self.greeted = true;
            return Some(SessionEvent::Started {
                session: self.running.name.clone(),
            });
        }
        let log = self.running.log();
        if self.at < log.forgotten {
            let text = format!("[{} pieces left out]\n", log.forgotten - self.at);
            self.at = log.forgotten;
            let stream = StreamName::Stderr;
            return Some(SessionEvent::Output { stream, text });
        }
        if let Some((stream, text)) = log.pieces.get(self.at - log.forgotten) {
            self.at += 1;
            return Some(SessionEvent::Output {
                stream: *stream,
                text: text.clone(),
            });
        }
        if let (Some(result), false) = (&log.ended, self.over) {
            self.over = true;
            return Some(SessionEvent::Ended {
                result: result.clone(),
            });
        }
        None
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.running.log().listeners -= 1;
        if self.owned {
            if !self.over {
                let _ = self.running.process.kill();
            }
            self.hands.sessions.all().remove(&self.running.name);
        }
    }
}

impl Hands {
    /// Starts a command to be listened to.
    pub fn start_session(
        self: &Arc<Self>,
        who: &Principal,
        asked: StartSession,
    ) -> Result<Started, Refusal> {
        if !matches!(asked.call.action, Action::Exec(_)) {
            let message = "a session runs a call of exec".to_owned();
            return Err(Refusal::BadRequest(message));
        }
        if let Some(size) = asked.terminal {
            check_size(size)?;
        }
        if self.sessions.count() >= SESSIONS {
            return Err(Refusal::Busy(format!("{SESSIONS} sessions are open")));
        }
        let room = self.room(&asked.call.workspace)?;
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let (hands, who) = (Arc::clone(self), who.clone());
        // A thread of its own: it has the workspace's turn as long as the command runs.
        std::thread::Builder::new()
            .name("lula-session".to_owned())
            .spawn(move || hands.run_session(&room, &who, &asked, &answer))
            .map_err(|error| Refusal::Internal(format!("cannot start a thread: {error}")))?;
        let gone = |_| Refusal::Internal("the session's thread broke".to_owned());
        answered.recv().map_err(gone)?
    }

    fn run_session(
        self: &Arc<Self>,
        room: &Arc<Room>,
        who: &Principal,
        asked: &StartSession,
        answer: &std::sync::mpsc::SyncSender<Result<Started, Refusal>>,
    ) {
        let turn = match room.turn() {
            Ok(turn) => turn,
            Err(refusal) => {
                let _ = answer.send(Err(refusal));
                return;
            }
        };
        let begun = match self.begin_call(room, who, &asked.call) {
            Ok(Gone::Over(result)) => {
                let _ = answer.send(Ok(Started::Over(Box::new(result))));
                return;
            }
            Ok(Gone::On(begun)) => begun,
            Err(refusal) => {
                let _ = answer.send(Err(refusal));
                return;
            }
        };
        let running = match self.launch(room, asked) {
            Ok(Ok(running)) => running,
            Ok(Err(outcome)) => {
                let finished = self.finish_call(room, &asked.call, outcome, None, &begun);
                let _ = answer.send(finished.map(|result| Started::Over(Box::new(result))));
                return;
            }
            Err(refusal) => {
                let refusal = self
                    .abandon_call(room, &asked.call, &begun)
                    .err()
                    .unwrap_or(refusal);
                let _ = answer.send(Err(refusal));
                return;
            }
        };
        let heard = Heard::new(Arc::clone(&running), Arc::clone(self));
        if asked.background {
            // Its effect is that it was started; what it does from now on is its own.
            let output = Output::new(format!("started {}\n", running.name), Origin::Lula);
            let outcome = Outcome::Done { output };
            let stored = self.finish_call(room, &asked.call, outcome, None, &begun);
            drop(turn);
            let _ = answer.send(stored.map(|_| Started::Running(heard)));
            let ended = running.pump().and_then(|()| Ok(running.process.wait()?));
            running.end(match ended {
                Ok(finished) => {
                    let (outcome, receipt) = exec::told(&finished);
                    result(&asked.call, outcome, receipt)
                }
                Err(refusal) => broken(&asked.call, &refusal),
            });
            return;
        }
        let _ = answer.send(Ok(Started::Running(heard)));
        let ended = running.pump().and_then(|()| Ok(running.process.wait()?));
        let told = match ended {
            Ok(finished) => {
                let (outcome, receipt) = exec::told(&finished);
                self.finish_call(room, &asked.call, outcome, receipt, &begun)
            }
            Err(refusal) => match self.abandon_call(room, &asked.call, &begun) {
                Ok(()) => Err(refusal),
                Err(worse) => Err(worse),
            },
        };
        running.end(told.unwrap_or_else(|refusal| broken(&asked.call, &refusal)));
    }

    /// Starts the process, or tells why the call cannot be one.
    fn launch(
        &self,
        room: &Room,
        asked: &StartSession,
    ) -> Result<Result<Arc<Running>, Outcome>, Refusal> {
        let Action::Exec(wanted) = &asked.call.action else {
            return Err(Refusal::Internal("no command".to_owned()));
        };
        let live = room.live()?;
        let mut command = match exec::command(wanted, &live) {
            Ok(command) => command.streamed(),
            Err(outcome) => return Ok(Err(outcome)),
        };
        if let Some(size) = asked.terminal {
            command = command.terminal(size.rows, size.columns);
        } else if asked.open_input {
            command = command.open_input();
        }
        let process = match live.session.start(&command) {
            Ok(process) => process,
            Err(error) => return exec::not_started(error).map(Err),
        };
        if asked.open_input
            && let Some(input) = &wanted.stdin
        {
            process.write_input(input.as_bytes())?;
        }
        if let Err(error) = process.pid() {
            return exec::not_started(error).map(Err);
        }
        let running = Arc::new(Running {
            name: asked.call.effect.as_str().replacen("eff_", "ses_", 1),
            workspace: room.id.clone(),
            argv: wanted.argv.clone(),
            process,
            log: Mutex::default(),
            news: Notify::new(),
        });
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

    /// One of them.
    pub fn session(&self, name: &str) -> Result<SessionView, Refusal> {
        Ok(self.sessions.get(name)?.view())
    }

    /// Listens to a command, from what is still kept of its output.
    pub fn listen(self: &Arc<Self>, name: &str) -> Result<Heard, Refusal> {
        Ok(Heard::new(self.sessions.get(name)?, Arc::clone(self)))
    }

    /// Sends it input, a signal or a size.
    pub fn control(&self, name: &str, control: &SessionControl) -> Result<(), Refusal> {
        let running = self.sessions.get(name)?;
        match control {
            SessionControl::Input { text } if text.len() > INPUT => Err(Refusal::BadRequest(
                format!("input has at most {INPUT} bytes at one time"),
            )),
            SessionControl::Input { text } => Ok(running.process.write_input(text.as_bytes())?),
            SessionControl::EndInput => Ok(running.process.close_input()?),
            SessionControl::Signal { signal } if !(1..=64).contains(signal) => Err(
                Refusal::BadRequest("a signal is a number from 1 to 64".to_owned()),
            ),
            SessionControl::Signal { signal } => Ok(running.process.signal(*signal)?),
            SessionControl::Resize { size } => {
                check_size(*size)?;
                Ok(running.process.resize(size.rows, size.columns)?)
            }
        }
    }

    /// Ends it with everything it started.
    pub fn close_session(&self, name: &str) -> Result<(), Refusal> {
        let running = self.sessions.get(name)?;
        // One that has ended needs no killing.
        let _ = running.process.kill();
        self.sessions.all().remove(name);
        Ok(())
    }
}

fn check_size(size: TerminalSize) -> Result<(), Refusal> {
    let fits = |length: u16| (1..=1000).contains(&length);
    if fits(size.rows) && fits(size.columns) {
        return Ok(());
    }
    let message = "a terminal has 1 to 1000 rows and columns".to_owned();
    Err(Refusal::BadRequest(message))
}

fn broken(call: &ToolCall, refusal: &Refusal) -> ToolResult {
    let problem = refusal.problem();
    result(call, exec::failed(problem.code, problem.message), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_arrives_in_two_pieces_is_one() {
        let mut halves = Halves::default();
        let bytes = "aé€".as_bytes();
        let text: String = bytes.iter().map(|byte| halves.text(&[*byte])).collect();
        assert_eq!(text, "aé€");
        assert_eq!(halves.text(&[0xff, b'b']), "\u{fffd}b");
    }
}
