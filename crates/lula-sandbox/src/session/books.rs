//! The books about the commands of one session: pure, so that every event can be tested.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use lula_protocol::SandboxDenial;
use lula_protocol::denial::DeniedAttempt;

use super::CapturedStream;
use super::process::OutputChunk;
use crate::cgroup::CgroupLimitEvents;
use crate::error::SandboxError;
use crate::frames::{
    ExecFrameDecoder, ExecServerEvent, ExecServerRequest, ExitCause, KernelPosture, OutputStream,
    SetupStage, StreamCredit, StreamCreditError, UnavailableProtection, WINDOW,
};

/// How long a killed tree may take before the whole sandbox is ended.
const PATIENCE: Duration = Duration::from_secs(2);
/// Different refusals remembered for one command.
const MOST_DENIALS: usize = 64;

#[derive(Default)]
pub(super) struct SessionState {
    pub(super) leading: bool,
    pub(super) decoder: ExecFrameDecoder,
    pub(super) ready: Option<(KernelPosture, Vec<UnavailableProtection>)>,
    pub(super) setup_failure: Option<(SetupStage, String, u32)>,
    pub(super) ended: Option<String>,
    pub(super) commands: HashMap<u32, SessionCommandEntry>,
    pub(super) last: u32,
    pub(super) pumped: bool,
    /// Refused calls so far.
    pub(super) refusals: u64,
    /// Ways to an address that were missed so far.
    pub(super) unrouted: u64,
    /// Blocked connections that were seen since, each of which the kernel counts as such a miss.
    pub(super) connections: u64,
    /// Whether such misses are counted: the host's network has misses of its own.
    pub(super) on_host_network: bool,
}

/// Why a command was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandCutoff {
    /// Its time ran out.
    Deadline,
    /// The workspace grew too large.
    Disk,
}

pub(super) struct SessionCommandEntry {
    pub(super) program: String,
    pub(super) names: Vec<String>,
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
    pub(super) timeout_ms: u64,
    pub(super) killed_at: Option<Instant>,
    /// Why it was ended, where it did not end by itself.
    pub(super) cut_short: Option<CommandCutoff>,
    pub(super) streamed: bool,
    pub(super) started: Option<(u32, KernelPosture)>,
    pub(super) not_started: Option<(String, u32)>,
    pub(super) input: StreamCredit,
    pub(super) captured: [CapturedStream; 2],
    pub(super) credit: [StreamCredit; 2],
    /// Bytes taken from the queue and not yet granted again.
    pub(super) owed: [u64; 2],
    pub(super) queue: VecDeque<OutputChunk>,
    pub(super) exited: Option<CommandExit>,
    pub(super) denials: Vec<SandboxDenial>,
    /// Whether nothing else ran in the session at the same time.
    pub(super) alone: bool,
    pub(super) before: (Option<u64>, CgroupLimitEvents),
    /// Where the door's record was when it began.
    pub(super) door_mark: u64,
}

pub(super) struct CommandExit {
    pub(super) how: ExitCause,
    pub(super) cpu_us: u64,
    pub(super) peak_memory_bytes: u64,
    pub(super) scratch_left: Option<u64>,
    pub(super) at: Instant,
}

pub(super) const fn index(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}

impl SessionCommandEntry {
    pub(super) fn is_over(&self) -> bool {
        self.exited.is_some() || self.not_started.is_some()
    }

    /// Takes note that a piece of output was taken. Returns the credit to give back for it: half a
    /// window at a time, so that a conversation in small pieces costs no message beside its own.
    pub(super) fn taken(
        &mut self,
        output: &OutputChunk,
    ) -> Result<Option<ExecServerRequest>, StreamCreditError> {
        let stream = index(output.stream);
        self.owed[stream] += output.bytes.len() as u64;
        if self.owed[stream] < WINDOW / 2 {
            return Ok(None);
        }
        self.give_back(output.stream)
    }

    /// Gives back what is owed of a stream.
    pub(super) fn give_back(
        &mut self,
        stream: OutputStream,
    ) -> Result<Option<ExecServerRequest>, StreamCreditError> {
        let owed = std::mem::take(&mut self.owed[index(stream)]);
        if owed == 0 {
            return Ok(None);
        }
        self.credit[index(stream)].grant(owed)?;
        Ok(Some(ExecServerRequest::Credit(stream, owed)))
    }

    /// When something has to be done about it, if nothing is heard before.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.is_over() {
            return None;
        }
        Some(self.killed_at.map_or(self.deadline, |at| at + PATIENCE))
    }
}

pub(super) enum OverdueLimit {
    NoCommand,
    Kill(Vec<u32>),
    EndAll,
}

impl SessionState {
    /// Books a refused call. It counts for every command that runs: a caller that left its parent
    /// cannot be told apart.
    pub(super) fn book_refusal(&mut self, denial: &SandboxDenial) {
        self.refusals += 1;
        self.book_denial(denial);
    }

    /// Books what a watched call was going to be refused.
    pub(super) fn book_seen(&mut self, denial: &SandboxDenial) {
        if matches!(denial.attempt, DeniedAttempt::Connect { .. }) {
            self.connections += 1;
        }
        self.book_denial(denial);
    }

    fn book_denial(&mut self, denial: &SandboxDenial) {
        for entry in self.commands.values_mut().filter(|entry| !entry.is_over()) {
            let same = |known: &SandboxDenial| {
                (&known.attempt, &known.rule) == (&denial.attempt, &denial.rule)
            };
            match entry.denials.iter().position(same) {
                Some(known) => entry.denials[known].count += denial.count,
                None if entry.denials.len() < MOST_DENIALS => entry.denials.push(denial.clone()),
                None => {}
            }
        }
    }

    /// Books what the private network kept in since the last look. It counts for every command that
    /// runs, as a refused call does.
    fn book_unrouted(&mut self, count: u64) {
        if self.on_host_network {
            return;
        }
        let seen = std::mem::take(&mut self.connections);
        let more = count.saturating_sub(self.unrouted).saturating_sub(seen);
        self.unrouted = self.unrouted.max(count);
        if more > 0 {
            self.book_denial(&SandboxDenial {
                attempt: DeniedAttempt::Network,
                rule: "network = \"none\"".to_owned(),
                grant: None,
                count: more,
            });
        }
    }

    /// Books what has arrived. Returns what must be answered.
    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
    ) -> Result<Vec<(u32, ExecServerRequest)>, SandboxError> {
        let mut replies = Vec::new();
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next_frame()? {
            let event = ExecServerEvent::from_frame(&frame)?;
            if let Some(request) = self.book(frame.command, event)? {
                replies.push((frame.command, request));
            }
        }
        Ok(replies)
    }

    fn book(
        &mut self,
        id: u32,
        event: ExecServerEvent,
    ) -> Result<Option<ExecServerRequest>, SandboxError> {
        match event {
            ExecServerEvent::Locked => return Ok(None),
            ExecServerEvent::Ready { posture, held_back } => {
                self.ready = Some((posture, held_back));
                return Ok(None);
            }
            ExecServerEvent::SetupFailed {
                stage,
                detail,
                errno,
            } => {
                self.setup_failure = Some((stage, detail, errno));
                return Ok(None);
            }
            _ => {}
        }
        if let ExecServerEvent::Exited {
            unrouted: Some(count),
            ..
        } = event
        {
            self.book_unrouted(count);
        }
        let Some(entry) = self.commands.get_mut(&id) else {
            return Ok(None);
        };
        match event {
            ExecServerEvent::Locked
            | ExecServerEvent::Ready { .. }
            | ExecServerEvent::SetupFailed { .. } => {}
            ExecServerEvent::Started { pid, posture } => entry.started = Some((pid, posture)),
            ExecServerEvent::NotStarted { step, errno } => entry.not_started = Some((step, errno)),
            ExecServerEvent::StdinCredit(bytes) => entry.input.grant(bytes)?,
            ExecServerEvent::Output(stream, bytes) => {
                let credit = &mut entry.credit[index(stream)];
                credit.spend(bytes.len() as u64)?;
                entry.captured[index(stream)].add(&bytes);
                if entry.streamed {
                    entry.queue.push_back(OutputChunk { stream, bytes });
                } else if credit.left() <= WINDOW / 2 {
                    let owed = WINDOW - credit.left();
                    credit.grant(owed)?;
                    return Ok(Some(ExecServerRequest::Credit(stream, owed)));
                }
            }
            ExecServerEvent::Exited {
                how,
                cpu_us,
                peak_memory_bytes,
                killed: _,
                scratch_left,
                unrouted: _,
            } => {
                entry.exited = Some(CommandExit {
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

    /// Marks every command that runs as one that filled the disk: who of them did cannot be told.
    pub(super) fn fill_disk(&mut self) -> Vec<u32> {
        let mut kill = Vec::new();
        for (id, entry) in &mut self.commands {
            if !entry.is_over() && entry.killed_at.is_none() {
                entry.cut_short = Some(CommandCutoff::Disk);
                entry.killed_at = Some(Instant::now());
                kill.push(*id);
            }
        }
        kill
    }

    /// Who has outlived a deadline, and what that calls for.
    pub(super) fn overdue(&mut self) -> OverdueLimit {
        let now = Instant::now();
        let mut kill = Vec::new();
        for (id, entry) in &mut self.commands {
            if entry.due().is_none_or(|due| due > now) {
                continue;
            }
            if entry.killed_at.is_some() {
                return OverdueLimit::EndAll;
            }
            entry.cut_short = Some(CommandCutoff::Deadline);
            entry.killed_at = Some(now);
            kill.push(*id);
        }
        if kill.is_empty() {
            OverdueLimit::NoCommand
        } else {
            OverdueLimit::Kill(kill)
        }
    }
}
