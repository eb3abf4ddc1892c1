//! The connection to one sandbox and the books kept about it.
//!
//! There is no thread: whoever waits for something reads for everybody. One waiter leads (it polls
//! and takes frames in), the others sleep until the leader has news or steps down.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::denial::{Attempt, Denial};
use lula_protocol::receipt::{Layer, NotApplied};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Captured;
use super::books::{Entry, Overdue, State};
use super::command::{Command, Finished};
use super::engine::Keep;
use super::process::{Next, Output, ProcessId};
use crate::cgroup::{Events, Leaf};
use crate::error::SandboxError;
use crate::frames::{Credit, ExecRequest, HeldBack, Posture, Request, SetupStage, Stream};
use crate::receipt::{self, Context, Outcome};
use crate::seccomp::{Abi, Listener, Rules};
use crate::sys::exec::LaunchStep;
use crate::sys::socket;

/// Refused calls after which every further one is answered slowly.
const MANY_REFUSALS: u64 = 20_000;

pub(crate) struct Link {
    connection: OwnedFd,
    pidfd: OwnedFd,
    writing: Mutex<()>,
    incoming: Mutex<Vec<u8>>,
    state: Mutex<State>,
    changed: Condvar,
    leaf: Mutex<Option<Leaf>>,
    /// The rules the sandbox's program was made from, and where its refusals arrive.
    rules: Rules,
    listener: OnceLock<Listener>,
    /// What is known once the sandbox stands.
    standing: OnceLock<Standing>,
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

/// How long it took until the sandbox stood, and what it had to do without.
struct Standing {
    setup_us: u64,
    held_back: Vec<NotApplied>,
}

/// What a link is made of.
pub(crate) struct Parts {
    pub(crate) connection: OwnedFd,
    pub(crate) pidfd: OwnedFd,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) rules: Rules,
    pub(crate) context: Context,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) workspace: PathBuf,
    pub(crate) own_pids: bool,
    pub(crate) keep: Keep,
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
            rules: parts.rules,
            listener: OnceLock::new(),
            standing: OnceLock::new(),
            context: parts.context,
            environment: parts.environment,
            workspace: parts.workspace,
            own_pids: parts.own_pids,
            keep: parts.keep,
        }
    }

    // A waiter that panicked left consistent books: every change is made in one step.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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
                let nap = until.map_or(Duration::from_mins(1), |until| until - now);
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
            Ok(Received::Refused(denial)) => {
                state.book_refusal(&denial);
                if state.refusals > MANY_REFUSALS {
                    // Somebody asks for nothing but refusals: they come at a walking pace now.
                    drop(state);
                    std::thread::sleep(Duration::from_millis(1));
                    state = self.state();
                }
                Ok(Vec::new())
            }
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
            match socket::receive_now(&self.connection, buffer) {
                Ok((0, _)) => return Ok(Received::End),
                Ok((count, descriptors)) => {
                    // One comes with the first words, from a process that nothing has touched yet.
                    // Any later one is dropped.
                    if let (Some(one), Some(abi)) = (descriptors.into_iter().next(), Abi::native())
                    {
                        let _ = self.listener.set(Listener::new(one, abi, self.rules));
                    }
                    return Ok(Received::Bytes(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Received::End);
                }
                Err(error) => return Err(error),
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
            let mut waiting = vec![PollFd::new(&self.connection, PollFlags::IN)];
            let listener = self.listener.get();
            waiting.extend(listener.map(|one| PollFd::new(one, PollFlags::IN)));
            match rustix::event::poll(&mut waiting, left.as_ref()) {
                Ok(0) => return Ok(Received::Nothing),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let (Some(listener), Some(polled)) = (listener, waiting.get(1))
                && polled.revents().contains(PollFlags::IN)
                && let Some(call) = listener.next()?
            {
                return Ok(Received::Refused(call.denial));
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

    /// Takes note that the sandbox stands.
    pub(super) fn stands(&self, after: Duration, held_back: Vec<HeldBack>) {
        let held_back = held_back.into_iter().map(|held| NotApplied {
            asked: held.asked,
            reason: held.reason,
        });
        let _ = self.standing.set(Standing {
            setup_us: micros(after),
            held_back: held_back.collect(),
        });
    }

    /// What has to be watched to know when [`Link::take_ready`] has something to do.
    pub(super) fn descriptors(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        (
            self.connection.as_fd(),
            self.listener.get().map(AsFd::as_fd),
        )
    }

    /// Reads for everybody until the sandbox ends.
    pub(super) fn pump(&self) {
        // The end is an error to every waiter, and to this one the sign to stop.
        let _ = self.wait_until(None, |_| None::<Result<(), _>>);
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
                owed: [0; 2],
                queue: VecDeque::new(),
                exited: None,
                denials: Vec::new(),
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
            built_in: command.built_in,
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
    ) -> Result<Next, SandboxError> {
        let answer = self.wait_until(until, |state| {
            let Some(entry) = state.commands.get_mut(&id.0) else {
                return Some(Ok(None));
            };
            if let Some(output) = entry.queue.pop_front() {
                let credit = entry.taken(&output).map_err(SandboxError::from);
                return Some(credit.map(|credit| Some((output, credit))));
            }
            entry.is_over().then_some(Ok(None))
        })?;
        Ok(match answer {
            Some(Some((output, credit))) => {
                if let Some(credit) = credit {
                    self.send_or_note(id.0, &credit);
                }
                Next::Output(output)
            }
            Some(None) => Next::End,
            None => Next::NothingYet,
        })
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
        let mut credits = Vec::new();
        if let Some(entry) = self.state().commands.get_mut(&id.0) {
            for output in owed {
                credits.extend(entry.taken(&output)?);
            }
            for stream in [Stream::Stdout, Stream::Stderr] {
                credits.extend(entry.give_back(stream)?);
            }
        }
        for credit in credits {
            self.send_or_note(id.0, &credit);
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
        let mut receipt = receipt::receipt(&self.context, &sandbox, layers, &outcome, end);
        receipt.denials.extend(entry.denials);
        if let Some(standing) = self.standing.get() {
            receipt.usage.setup_us = standing.setup_us;
            receipt
                .not_applied
                .extend(standing.held_back.iter().cloned());
        }
        Ok(Finished {
            stdout,
            stderr,
            receipt,
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
        let gone = self.wait_gone(Duration::from_secs(5));
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
        if gone {
            Ok(())
        } else {
            Err(SandboxError::Io {
                act: "cannot end the sandbox",
                source: io::ErrorKind::TimedOut.into(),
            })
        }
    }
}

enum Received {
    Bytes(usize),
    Refused(Denial),
    Nothing,
    End,
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
    if step == LaunchStep::BuiltIn.name() {
        return SandboxError::BuiltIn {
            name: program.to_owned(),
            source: os_error(errno),
        };
    }
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
