//! Commands of one sandbox: starting them, feeding them, taking what they write.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::HelperLink;
use super::outcome::not_started;
use crate::error::SandboxError;
use crate::frames::{ExecRequest, ExecServerRequest, OutputStream, StreamCredit};
use crate::session::CapturedStream;
use crate::session::books::SessionCommandEntry;
use crate::session::command::{FinishedCommand, SandboxCommand};
use crate::session::process::{NextOutput, OutputChunk, SandboxProcessId};

impl HelperLink {
    pub(crate) fn start(&self, command: &SandboxCommand) -> Result<SandboxProcessId, SandboxError> {
        let (exec, names) = self.request(command);
        let wall = Duration::from_millis(self.context.granted.wall_ms);
        let timeout = command.timeout.map_or(wall, |timeout| timeout.min(wall));
        let begun = Instant::now();
        let (used, events) = self.measure();
        let before = (used.cpu_us, events);
        let limit = self.context.granted.output_bytes;
        let program = command.arguments.first();
        let program = program.map(|program| program.to_string_lossy().into_owned());
        let program = program.unwrap_or_default();
        let door = self.keep.door();
        let door_mark = door.map_or(0, |door| door.command_begins(&program));
        let mut state = self.state();
        state.last += 1;
        let id = state.last;
        let alone = state.commands.values().all(SessionCommandEntry::is_over);
        if !alone {
            for entry in state.commands.values_mut() {
                entry.alone &= entry.is_over();
            }
        }
        state.commands.insert(
            id,
            SessionCommandEntry {
                program,
                names,
                begun,
                deadline: begun + timeout,
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                killed_at: None,
                cut_short: None,
                streamed: command.streamed,
                started: None,
                not_started: None,
                input: StreamCredit::default(),
                captured: [CapturedStream::within(limit), CapturedStream::within(limit)],
                credit: [StreamCredit::default(); 2],
                owed: [0; 2],
                queue: VecDeque::new(),
                exited: None,
                denials: Vec::new(),
                alone,
                before,
                door_mark,
            },
        );
        drop(state);
        self.send(id, &ExecServerRequest::Exec(exec))?;
        Ok(SandboxProcessId(id))
    }

    fn request(&self, command: &SandboxCommand) -> (ExecRequest, Vec<String>) {
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
    pub(crate) fn started(&self, id: SandboxProcessId) -> Result<u32, SandboxError> {
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

    pub(crate) fn ask(
        &self,
        id: SandboxProcessId,
        request: &ExecServerRequest,
    ) -> Result<(), SandboxError> {
        self.send(id.0, request)
    }

    /// Waits for credit and spends up to `most` of it. Zero once the command has ended.
    pub(crate) fn spend_input(
        &self,
        id: SandboxProcessId,
        most: usize,
    ) -> Result<usize, SandboxError> {
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
        id: SandboxProcessId,
        until: Option<Instant>,
    ) -> Result<NextOutput, SandboxError> {
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
                NextOutput::Output(output)
            }
            Some(None) => NextOutput::End,
            None => NextOutput::NothingYet,
        })
    }

    pub(crate) fn has_ended(&self, id: SandboxProcessId) -> bool {
        let state = self.state();
        state.ended.is_some()
            || state
                .commands
                .get(&id.0)
                .is_none_or(SessionCommandEntry::is_over)
    }

    pub(crate) fn wait(&self, id: SandboxProcessId) -> Result<FinishedCommand, SandboxError> {
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

    /// Gives back the credit of pieces that will not be taken.
    fn forgive(
        &self,
        id: SandboxProcessId,
        owed: VecDeque<OutputChunk>,
    ) -> Result<(), SandboxError> {
        let mut credits = Vec::new();
        if let Some(entry) = self.state().commands.get_mut(&id.0) {
            for output in owed {
                credits.extend(entry.taken(&output)?);
            }
            for stream in [OutputStream::Stdout, OutputStream::Stderr] {
                credits.extend(entry.give_back(stream)?);
            }
        }
        for credit in credits {
            self.send_or_note(id.0, &credit);
        }
        Ok(())
    }
}
