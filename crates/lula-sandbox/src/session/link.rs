//! The connection to one sandbox and the books kept about it.
//!
//! There is no thread: whoever waits for something reads for everybody. One waiter leads (it polls
//! and takes frames in), the others sleep until the leader has news or steps down.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::denial::{Attempt, Denial};
use lula_protocol::receipt::Layer;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Captured;
use super::command::{Command, Finished};
use super::engine::Keep;
use super::process::{Output, Process, ProcessId};
use crate::cgroup::{Events, Leaf};
use crate::error::SandboxError;
use crate::frames::{
    Credit, Decoder, Event, ExecRequest, ExitHow, HeldBack, Posture, Request, SetupStage, Stream,
    WINDOW,
};
use crate::receipt::{self, Context, Outcome};

/// How long a killed tree may take before the whole sandbox is ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// One sandbox with the commands in it. Dropping it ends everything inside.
#[derive(Debug)]
pub struct Session {
    pub(crate) link: Arc<Link>,
}

pub(crate) struct Link {
    connection: OwnedFd,
    pidfd: OwnedFd,
    writing: Mutex<()>,
    incoming: Mutex<Vec<u8>>,
    state: Mutex<State>,
    changed: Condvar,
    leaf: Mutex<Option<Leaf>>,
    pub(crate) context: Context,
    environment: Vec<(String, String)>,
    workspace: PathBuf,
    /// Whether ending the first process ends all of them.
    own_pids: bool,
    keep: Keep,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("tier", &self.context.tier)
            .finish_non_exhaustive()
    }
}

/// What a link is made of.
pub(crate) struct Parts {
    pub(crate) connection: OwnedFd,
    pub(crate) pidfd: OwnedFd,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) context: Context,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) workspace: PathBuf,
    pub(crate) own_pids: bool,
    pub(crate) keep: Keep,
}

#[derive(Default)]
struct State {
    leading: bool,
    decoder: Decoder,
    ready: Option<(Posture, Vec<HeldBack>)>,
    setup_failure: Option<(SetupStage, String, u32)>,
    ended: Option<String>,
    commands: HashMap<u32, Entry>,
    last: u32,
    pumped: bool,
}

struct Entry {
    program: String,
    names: Vec<String>,
    begun: Instant,
    deadline: Instant,
    timeout_ms: u64,
    killed_at: Option<Instant>,
    timed_out: bool,
    streamed: bool,
    started: Option<(u32, Posture)>,
    not_started: Option<(String, u32)>,
    input: Credit,
    captured: [Captured; 2],
    credit: [Credit; 2],
    queue: VecDeque<Output>,
    exited: Option<Exit>,
    /// Whether nothing else ran in the session at the same time.
    alone: bool,
    before: (Option<u64>, Events),
}

struct Exit {
    how: ExitHow,
    cpu_us: u64,
    peak_memory_bytes: u64,
    scratch_left: Option<u64>,
    at: Instant,
}

const fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

impl Entry {
    fn is_over(&self) -> bool {
        self.exited.is_some() || self.not_started.is_some()
    }

    /// When something has to be done about it, if nothing is heard before.
    fn due(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        Some(self.killed_at.map_or(self.deadline, |at| at + PATIENCE))
    }
}

impl Link {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            connection: parts.connection,
            pidfd: parts.pidfd,
            writing: Mutex::new(()),
            incoming: Mutex::new(vec![0; 2 * crate::frames::CHUNK]),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            leaf: Mutex::new(parts.leaf),
            context: parts.context,
            environment: parts.environment,
            workspace: parts.workspace,
            own_pids: parts.own_pids,
            keep: parts.keep,
        }
    }

    // A waiter that panicked left consistent books: every change is made in one step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, id: u32, request: &Request) -> Result<(), SandboxError> {
        let mut bytes = Vec::new();
        request.frame(id).encode_into(&mut bytes)?;
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::net::send(&self.connection, rest, rustix::net::SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    return Err(SandboxError::Ended { reason: None });
                }
                Err(error) => {
                    return Err(SandboxError::Io {
                        act: "cannot talk to the sandbox",
                        source: error.into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Waits until `check` has an answer. `Ok(None)` means that the time ran out.
    fn wait_until<T>(
        &self,
        until: Option<Instant>,
        mut check: impl FnMut(&mut State) -> Option<Result<T, SandboxError>>,
    ) -> Result<Option<T>, SandboxError> {
        let mut state = self.state();
        loop {
            if let Some(answer) = check(&mut state) {
                return answer.map(Some);
            }
            if let Some(reason) = &state.ended {
                return Err(SandboxError::Ended {
                    reason: Some(reason.clone()),
                });
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
            if state.leading {
                let nap = until.map_or(Duration::from_secs(60), |until| until - now);
                state = self
                    .changed
                    .wait_timeout(state, nap)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            state = self.lead(state, until)?;
        }
    }

    /// Takes in what arrives next, for everybody.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> Result<MutexGuard<'a, State>, SandboxError> {
        state.leading = true;
        let due = state
            .commands
            .values()
            .filter_map(Entry::due)
            .chain(until)
            .min();
        drop(state);
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        let received = self.receive(&mut incoming, due);
        let mut state = self.state();
        state.leading = false;
        let replies = match received {
            Ok(Received::Bytes(count)) => state.take_in(&incoming[..count]),
            Ok(Received::Nothing) => Ok(Vec::new()),
            Ok(Received::End) => {
                state
                    .ended
                    .get_or_insert_with(|| "its first process ended".to_owned());
                Ok(Vec::new())
            }
            Err(source) => {
                state.ended = Some(source.to_string());
                Ok(Vec::new())
            }
        };
        drop(incoming);
        let replies = match replies {
            Ok(replies) => replies,
            Err(broken) => {
                // Whatever speaks nonsense on this line is not trusted any further.
                state.ended = Some(broken.to_string());
                self.changed.notify_all();
                drop(state);
                self.end_by_force();
                return Err(broken);
            }
        };
        let overdue = state.overdue();
        self.changed.notify_all();
        drop(state);
        for (id, request) in replies {
            self.send_or_note(id, &request);
        }
        match overdue {
            Overdue::Nobody => {}
            Overdue::Kill(ids) => {
                for id in ids {
                    self.send_or_note(id, &Request::Kill);
                }
            }
            Overdue::EndAll => {
                self.end_by_force();
                self.state().ended = Some("a command outlived its deadline".to_owned());
            }
        }
        Ok(self.state())
    }

    /// A sandbox that hangs up while being answered has ended; the next read says so.
    fn send_or_note(&self, id: u32, request: &Request) {
        let _ = self.send(id, request);
    }

    fn receive(&self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<Received> {
        loop {
            match rustix::net::recv(
                &self.connection,
                &mut *buffer,
                rustix::net::RecvFlags::DONTWAIT,
            ) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(Received::End),
                Ok((count, _)) => return Ok(Received::Bytes(count)),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            let left = match until {
                None => None,
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(Received::Nothing);
                    }
                    Some(Timespec::try_from(left).map_err(io::Error::other)?)
                }
            };
            let mut waiting = [PollFd::new(&self.connection, PollFlags::IN)];
            match rustix::event::poll(&mut waiting, left.as_ref()) {
                Ok(0) => return Ok(Received::Nothing),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes in whatever has arrived, without waiting.
    pub(crate) fn take_ready(&self) -> Result<(), SandboxError> {
        self.wait_until(Some(Instant::now() + Duration::from_nanos(1)), |_| {
            None::<Result<(), _>>
        })
        .map(drop)
        .or_else(|error| match error {
            SandboxError::Ended { .. } => Ok(()),
            other => Err(other),
        })
    }

    /// Waits until the sandbox stands.
    pub(crate) fn wait_ready(
        &self,
        within: Duration,
    ) -> Result<(Posture, Vec<HeldBack>), SandboxError> {
        let answer = self.wait_until(Some(Instant::now() + within), |state| {
            if let Some((stage, detail, errno)) = state.setup_failure.take() {
                return Some(Err(setup_error(stage, detail, errno)));
            }
            state.ready.clone().map(Ok)
        })?;
        answer.ok_or_else(|| SandboxError::Ended {
            reason: Some("it was not ready in time".to_owned()),
        })
    }

    pub(crate) fn start(&self, command: &Command) -> Result<ProcessId, SandboxError> {
        let (exec, names) = self.request(command);
        let wall = Duration::from_millis(self.context.granted.wall_ms);
        let timeout = command.timeout.map_or(wall, |timeout| timeout.min(wall));
        let begun = Instant::now();
        let before = self.measure();
        let limit = self.context.granted.output_bytes;
        let mut state = self.state();
        state.last += 1;
        let id = state.last;
        let alone = state.commands.values().all(Entry::is_over);
        if !alone {
            for entry in state.commands.values_mut() {
                entry.alone &= entry.is_over();
            }
        }
        state.commands.insert(
            id,
            Entry {
                program: command
                    .arguments
                    .first()
                    .map(|program| program.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                names,
                begun,
                deadline: begun + timeout,
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                killed_at: None,
                timed_out: false,
                streamed: command.streamed,
                started: None,
                not_started: None,
                input: Credit::default(),
                captured: [Captured::within(limit), Captured::within(limit)],
                credit: [Credit::default(); 2],
                queue: VecDeque::new(),
                exited: None,
                alone,
                before,
            },
        );
        drop(state);
        self.send(id, &Request::Exec(exec))?;
        Ok(ProcessId(id))
    }

    fn request(&self, command: &Command) -> (ExecRequest, Vec<String>) {
        use std::os::unix::ffi::OsStrExt;
        let mut variables: HashMap<Vec<u8>, Vec<u8>> = self
            .environment
            .iter()
            .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()))
            .collect();
        if command.terminal.is_some() {
            variables.insert(b"TERM".to_vec(), b"xterm-256color".to_vec());
        }
        for (name, value) in &command.environment {
            variables.insert(name.as_bytes().to_vec(), value.as_bytes().to_vec());
        }
        let mut names: Vec<String> = variables
            .keys()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        names.sort();
        let directory = command.directory.as_ref().unwrap_or(&self.workspace);
        let request = ExecRequest {
            arguments: command
                .arguments
                .iter()
                .map(|argument| argument.as_bytes().to_vec())
                .collect(),
            environment: variables
                .into_iter()
                .map(|(name, value)| [&name[..], b"=", &value].concat())
                .collect(),
            directory: directory.as_os_str().as_bytes().to_vec(),
            terminal: command.terminal,
        };
        (request, names)
    }

    /// Waits until the command runs, and gives its pid inside.
    pub(crate) fn started(&self, id: ProcessId) -> Result<u32, SandboxError> {
        let answer = self.wait_until(None, |state| {
            let Some(entry) = state.commands.get(&id.0) else {
                return Some(Err(SandboxError::Ended { reason: None }));
            };
            if let Some((step, errno)) = &entry.not_started {
                return Some(Err(not_started(&entry.program, step, *errno)));
            }
            entry.started.as_ref().map(|(pid, _)| Ok(*pid))
        })?;
        answer.ok_or(SandboxError::Ended { reason: None })
    }

    pub(crate) fn ask(&self, id: ProcessId, request: &Request) -> Result<(), SandboxError> {
        self.send(id.0, request)
    }

    /// Waits for credit and spends up to `most` of it. Zero once the command has ended.
    pub(crate) fn spend_input(&self, id: ProcessId, most: usize) -> Result<usize, SandboxError> {
        let answer = self.wait_until(None, |state| {
            let Some(entry) = state.commands.get_mut(&id.0) else {
                return Some(Ok(0));
            };
            if entry.is_over() {
                return Some(Ok(0));
            }
            let left = usize::try_from(entry.input.left()).unwrap_or(usize::MAX);
            let now = left.min(most);
            if now == 0 {
                return None;
            }
            Some(
                entry
                    .input
                    .spend(now as u64)
                    .map(|()| now)
                    .map_err(SandboxError::from),
            )
        })?;
        Ok(answer.unwrap_or(0))
    }

    pub(crate) fn next_output(
        &self,
        id: ProcessId,
        until: Option<Instant>,
    ) -> Result<Option<Option<Output>>, SandboxError> {
        let answer = self.wait_until(until, |state| {
            let Some(entry) = state.commands.get_mut(&id.0) else {
                return Some(Ok(None));
            };
            if let Some(output) = entry.queue.pop_front() {
                let bytes = output.bytes.len() as u64;
                let grant = entry.credit[index(output.stream)].grant(bytes);
                return Some(match grant {
                    Ok(()) => Ok(Some((output, bytes))),
                    Err(error) => Err(error.into()),
                });
            }
            entry.is_over().then_some(Ok(None))
        })?;
        let Some(answer) = answer else {
            return Ok(None);
        };
        if let Some((output, bytes)) = &answer {
            self.send_or_note(id.0, &Request::Credit(output.stream, *bytes));
        }
        Ok(Some(answer.map(|(output, _)| output)))
    }

    pub(crate) fn has_ended(&self, id: ProcessId) -> bool {
        let state = self.state();
        state.ended.is_some() || state.commands.get(&id.0).is_none_or(Entry::is_over)
    }

    pub(crate) fn wait(&self, id: ProcessId) -> Result<Finished, SandboxError> {
        let waited = self.wait_until(None, |state| match state.commands.get_mut(&id.0) {
            None => Some(Err(SandboxError::Ended {
                reason: Some("this command was already waited for".to_owned()),
            })),
            Some(entry) => {
                // Who waits for the end does not want the pieces any more.
                if entry.streamed {
                    entry.streamed = false;
                    let owed = std::mem::take(&mut entry.queue);
                    return Some(Ok(Some(owed)));
                }
                entry.is_over().then_some(Ok(None))
            }
        });
        match waited {
            Ok(Some(Some(owed))) => {
                self.forgive(id, owed)?;
                return self.wait(id);
            }
            Ok(_) | Err(SandboxError::Ended { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut state = self.state();
        let Some(entry) = state.commands.remove(&id.0) else {
            return Err(SandboxError::Ended {
                reason: Some("this command was already waited for".to_owned()),
            });
        };
        let ended = state.ended.clone();
        let sandbox = state.ready.clone().map(|(posture, _)| posture);
        drop(state);
        self.finish(entry, sandbox, ended)
    }

    /// Gives back the credit of pieces nobody will take.
    fn forgive(&self, id: ProcessId, owed: VecDeque<Output>) -> Result<(), SandboxError> {
        for output in owed {
            let bytes = output.bytes.len() as u64;
            if let Some(entry) = self.state().commands.get_mut(&id.0) {
                entry.credit[index(output.stream)].grant(bytes)?;
            }
            self.send_or_note(id.0, &Request::Credit(output.stream, bytes));
        }
        Ok(())
    }

    fn measure(&self) -> (Option<u64>, Events) {
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        leaf.as_ref().map_or((None, Events::default()), |leaf| {
            (leaf.usage().cpu_us, leaf.events())
        })
    }

    fn finish(
        &self,
        entry: Entry,
        sandbox: Option<Posture>,
        ended: Option<String>,
    ) -> Result<Finished, SandboxError> {
        if let Some((step, errno)) = &entry.not_started {
            return Err(not_started(&entry.program, step, *errno));
        }
        let (cpu_now, events_now) = self.measure();
        let peak = {
            let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
            leaf.as_ref()
                .and_then(|leaf| leaf.usage().peak_memory_bytes)
        };
        let (cpu_before, events_before) = entry.before;
        let whole_tree = cpu_now.zip(cpu_before).map(|(now, before)| now - before);
        let exit = entry.exited.as_ref();
        let outcome = Outcome {
            how: exit.map(|exit| exit.how),
            timed_out: entry.timed_out,
            timeout_ms: entry.timeout_ms,
            wall_us: micros(exit.map_or_else(Instant::now, |exit| exit.at) - entry.begun),
            cpu_us: if entry.alone { whole_tree } else { None }.or(exit.map(|exit| exit.cpu_us)),
            peak_memory_bytes: if entry.alone { peak } else { None }
                .or(exit.map(|exit| exit.peak_memory_bytes)),
            events: Events {
                oom_kills: events_now.oom_kills.saturating_sub(events_before.oom_kills),
                pids_refused: events_now
                    .pids_refused
                    .saturating_sub(events_before.pids_refused),
            },
            stdout: (entry.captured[0].total(), entry.captured[0].dropped()),
            stderr: (entry.captured[1].total(), entry.captured[1].dropped()),
            scratch_full: exit.and_then(|exit| exit.scratch_left) == Some(0),
        };
        let (Some(end), Some(sandbox)) = (receipt::ended(&outcome), sandbox) else {
            return Err(SandboxError::Ended { reason: ended });
        };
        let command = entry
            .started
            .map(|(_, posture)| posture)
            .unwrap_or_default();
        let layers = self.context.layers(&sandbox, &command, &entry.names);
        let [stdout, stderr] = entry.captured;
        Ok(Finished {
            stdout,
            stderr,
            receipt: receipt::receipt(&self.context, layers, &outcome, end),
        })
    }

    /// The layers a command would have now, from what the sandbox said of itself.
    pub(crate) fn standing_layers(&self, posture: &Posture) -> Vec<Layer> {
        let names: Vec<String> = self
            .environment
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.context.layers(posture, posture, &names)
    }

    /// Ends every process of the sandbox.
    fn end_by_force(&self) {
        if !self.own_pids {
            // Its first process knows its family; it kills it when the line goes dead.
            let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
            self.wait_gone(Duration::from_millis(500));
        }
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
        if let Some(leaf) = &*leaf
            && !self.own_pids
        {
            let _ = leaf.kill();
        }
    }

    fn wait_gone(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else {
                return false;
            };
            let mut waiting = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match rustix::event::poll(&mut waiting, Some(&left)) {
                Ok(count) => return count > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the sandbox and removes what is left of it.
    pub(crate) fn close(&self) -> Result<(), SandboxError> {
        self.end_by_force();
        self.wait_gone(Duration::from_secs(5));
        {
            let mut state = self.state();
            state
                .ended
                .get_or_insert_with(|| "its session was closed".to_owned());
        }
        let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
        self.changed.notify_all();
        let leaf = self
            .leaf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(leaf) = leaf {
            self.keep.groups.discard(leaf);
        }
        Ok(())
    }
}

enum Received {
    Bytes(usize),
    Nothing,
    End,
}

enum Overdue {
    Nobody,
    Kill(Vec<u32>),
    EndAll,
}

impl State {
    /// Books what has arrived. Returns what must be answered.
    fn take_in(&mut self, bytes: &[u8]) -> Result<Vec<(u32, Request)>, SandboxError> {
        let mut replies = Vec::new();
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next_frame()? {
            let event = Event::from_frame(&frame)?;
            if let Some(request) = self.book(frame.command, event)? {
                replies.push((frame.command, request));
            }
        }
        Ok(replies)
    }

    fn book(&mut self, id: u32, event: Event) -> Result<Option<Request>, SandboxError> {
        match event {
            Event::Ready { posture, held_back } => {
                self.ready = Some((posture, held_back));
                return Ok(None);
            }
            Event::SetupFailed {
                stage,
                detail,
                errno,
            } => {
                self.setup_failure = Some((stage, detail, errno));
                return Ok(None);
            }
            _ => {}
        }
        let Some(entry) = self.commands.get_mut(&id) else {
            return Ok(None);
        };
        match event {
            Event::Ready { .. } | Event::SetupFailed { .. } => {}
            Event::Started { pid, posture } => entry.started = Some((pid, posture)),
            Event::NotStarted { step, errno } => entry.not_started = Some((step, errno)),
            Event::StdinCredit(bytes) => entry.input.grant(bytes)?,
            Event::Output(stream, bytes) => {
                let credit = &mut entry.credit[index(stream)];
                credit.spend(bytes.len() as u64)?;
                entry.captured[index(stream)].add(&bytes);
                if entry.streamed {
                    entry.queue.push_back(Output { stream, bytes });
                } else if credit.left() <= WINDOW / 2 {
                    let owed = WINDOW - credit.left();
                    credit.grant(owed)?;
                    return Ok(Some(Request::Credit(stream, owed)));
                }
            }
            Event::Exited {
                how,
                cpu_us,
                peak_memory_bytes,
                killed: _,
                scratch_left,
            } => {
                entry.exited = Some(Exit {
                    how,
                    cpu_us,
                    peak_memory_bytes,
                    scratch_left,
                    at: Instant::now(),
                });
            }
        }
        Ok(None)
    }

    /// Who has outlived a deadline, and what that calls for.
    fn overdue(&mut self) -> Overdue {
        let now = Instant::now();
        let mut kill = Vec::new();
        for (id, entry) in &mut self.commands {
            if entry.due().is_none_or(|due| due > now) {
                continue;
            }
            if entry.killed_at.is_some() {
                return Overdue::EndAll;
            }
            entry.timed_out = true;
            entry.killed_at = Some(now);
            kill.push(*id);
        }
        if kill.is_empty() {
            Overdue::Nobody
        } else {
            Overdue::Kill(kill)
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn setup_error(stage: SetupStage, detail: String, errno: u32) -> SandboxError {
    SandboxError::Setup {
        stage,
        detail,
        source: os_error(errno),
        remedy: crate::tiers::remedy(stage, errno),
    }
}

fn os_error(errno: u32) -> io::Error {
    match i32::try_from(errno) {
        Ok(0) | Err(_) => io::Error::other("refused"),
        Ok(errno) => io::Error::from_raw_os_error(errno),
    }
}

fn not_started(program: &str, step: &str, errno: u32) -> SandboxError {
    SandboxError::NotStarted {
        program: program.to_owned(),
        step: step.to_owned(),
        source: os_error(errno),
        denial: Box::new(Denial {
            attempt: Attempt::Execute {
                program: program.to_owned(),
            },
            rule: format!("exec ({step})"),
            grant: program
                .starts_with('/')
                .then(|| format!("paths.read = [\"{program}\"]")),
            count: 1,
        }),
    }
}

impl Session {
    /// Starts a command.
    pub fn start(&self, command: &Command) -> Result<Process, SandboxError> {
        let id = self.link.start(command)?;
        let process = Process {
            link: Arc::clone(&self.link),
            id,
        };
        if let Some(input) = &command.stdin {
            // Small inputs fit the first window and cost no waiting.
            process.write_input(input)?;
            process.close_input()?;
        }
        Ok(process)
    }

    /// Starts a command that goes on while nobody waits for it: a thread keeps taking its output in
    /// and watches its deadline.
    pub fn start_in_background(&self, command: &Command) -> Result<Process, SandboxError> {
        let process = self.start(command)?;
        let mut state = self.link.state();
        if !state.pumped {
            state.pumped = true;
            let link = Arc::clone(&self.link);
            std::thread::Builder::new()
                .name("lula-sandbox-pump".to_owned())
                .spawn(move || {
                    // Ends when the sandbox does: that is an error to every waiter.
                    let _ = link.wait_until(None, |_| None::<Result<(), _>>);
                })
                .map_err(SandboxError::io("cannot start a thread"))?;
        }
        Ok(process)
    }

    /// Runs a command to its end.
    pub fn run(&self, command: &Command) -> Result<Finished, SandboxError> {
        self.start(command)?.wait()
    }

    /// The command of that number, running or ended, unless it was waited for.
    pub fn process(&self, id: ProcessId) -> Option<Process> {
        self.link
            .state()
            .commands
            .contains_key(&id.0)
            .then(|| Process {
                link: Arc::clone(&self.link),
                id,
            })
    }

    /// Numbers of the commands not yet waited for.
    pub fn processes(&self) -> Vec<ProcessId> {
        let mut ids: Vec<_> = self
            .link
            .state()
            .commands
            .keys()
            .copied()
            .map(ProcessId)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// The layers around every command of this session, read back from its first process.
    pub fn layers(&self) -> Vec<Layer> {
        let posture = self.link.state().ready.clone();
        posture.map_or_else(Vec::new, |(posture, _)| self.link.standing_layers(&posture))
    }

    /// The tier it runs in.
    pub fn tier(&self) -> lula_protocol::Tier {
        self.link.context.tier
    }

    /// Takes in what has arrived, without waiting. To be called when [`Session::as_fd`] is readable.
    pub fn take_ready(&self) -> Result<(), SandboxError> {
        self.link.take_ready()
    }

    /// Ends everything in the sandbox and removes what is left of it. Dropping does the same and
    /// keeps quiet about failures.
    pub fn close(self) -> Result<(), SandboxError> {
        self.link.close()
    }
}

impl AsFd for Session {
    /// Readable when there is something to take in.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.connection.as_fd()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.link.close();
    }
}
