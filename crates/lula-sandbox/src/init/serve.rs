//! The exec server: one loop over the connection, the pipes of every command, and their endings.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::command::{InitCommand, OutputReadResult};
use super::numbers::ProcessNumbers;
use super::{family, readback, routes};
use crate::buffer::Buffer;
use crate::built_in::BuiltInProgram;
use crate::frames::{
    CHUNK, ExecFrameDecoder, ExecFrameError, ExecRequest, ExecServerEvent, ExecServerRequest,
    ExitCause, WINDOW,
};
use crate::landlock::EnforcedLandlock;
use crate::sys::{process, scheduling, signal, socket};

/// More waiting output than this, and commands are not read any further.
const ENOUGH: usize = 1024 * 1024;
/// How long the news that a command runs may wait for more: a quick command's end goes with it, and
/// the runner, which waits for that, is woken once.
const A_MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// More commands at once than this are refused.
const MOST_COMMANDS: usize = 1024;

/// What every command gets from this process.
pub(super) struct CommandInheritance {
    pub(super) enforced: Option<EnforcedLandlock>,
    pub(super) tier: IsolationTier,
    pub(super) numbers: ProcessNumbers,
    pub(super) built_ins: &'static [BuiltInProgram],
}

pub(super) struct ExecServer {
    connection: OwnedFd,
    endings: OwnedFd,
    inherited: CommandInheritance,
    decoder: ExecFrameDecoder,
    out: Vec<u8>,
    /// Whether something in it must not wait.
    urgent: bool,
    commands: BTreeMap<u32, InitCommand>,
    /// Pipes of ended commands that something they started still holds: read and dropped, so that
    /// it is not killed by a broken pipe.
    leftovers: Vec<OwnedFd>,
    /// Whether to end with the last command.
    ending: bool,
    buffer: Buffer,
}

/// What a poll result is about.
enum Source {
    Connection,
    Endings,
    Stdin(u32),
    Output(u32),
    Leftover,
}

/// Says something about the sandbox as a whole, with descriptors along.
pub(super) fn tell(
    connection: &OwnedFd,
    event: &ExecServerEvent,
    along: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = Vec::new();
    event
        .frame(0)
        .encode_into(&mut bytes)
        .map_err(io::Error::other)?;
    socket::send(connection, &bytes, along)
}

impl ExecServer {
    pub(super) fn new(
        connection: OwnedFd,
        ready: &ExecServerEvent,
        refusals: Option<OwnedFd>,
        inherited: CommandInheritance,
    ) -> io::Result<Self> {
        // The descriptor goes with the first words, before anything else runs in here; afterwards
        // the runner takes none.
        let along: Vec<_> = refusals.iter().map(AsFd::as_fd).collect();
        tell(&connection, ready, &along)?;
        drop(refusals);
        rustix::io::ioctl_fionbio(&connection, true)?;
        Ok(Self {
            connection,
            endings: signal::child_endings()?,
            inherited,
            decoder: ExecFrameDecoder::new(),
            out: Vec::new(),
            urgent: false,
            commands: BTreeMap::new(),
            leftovers: Vec::new(),
            ending: false,
            buffer: Buffer::up_to(CHUNK),
        })
    }

    /// Serves until the runner is gone or talks nonsense.
    pub(super) fn serve(mut self) -> io::Result<()> {
        loop {
            self.flush()?;
            if self.ending && self.commands.is_empty() && self.out.is_empty() {
                // The engine has just been told and may be waiting for this very processor. It does not
                // wait for what this process has left to do.
                if self.own_namespace() {
                    scheduling::set_sched_idle();
                }
                scheduling::sched_yield();
                return self.leave();
            }
            let due = self.wait()?;
            for source in due {
                match source {
                    Source::Connection => {
                        if !self.listen()? {
                            return self.leave();
                        }
                    }
                    Source::Endings => self.reap()?,
                    Source::Stdin(id) => self.feed(id)?,
                    Source::Output(id) => self.draw(id)?,
                    Source::Leftover => self.drop_leftovers(),
                }
            }
            self.finish()?;
        }
    }

    /// Ends everything: with a pid namespace, this process's own end does.
    fn leave(&mut self) -> io::Result<()> {
        if self.own_namespace() {
            return Ok(());
        }
        self.kill_all_but(&HashSet::new())
    }

    fn own_namespace(&self) -> bool {
        self.inherited.tier == IsolationTier::Namespace
    }

    fn say(&mut self, command: u32, event: &ExecServerEvent) -> Result<(), ExecFrameError> {
        self.urgent = true;
        self.mention(command, event)
    }

    /// Says something that may wait for a moment.
    fn mention(&mut self, command: u32, event: &ExecServerEvent) -> Result<(), ExecFrameError> {
        event.frame(command).encode_into(&mut self.out)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.urgent {
            return Ok(());
        }
        let mut sent = 0;
        while sent < self.out.len() {
            match rustix::net::send(
                &self.connection,
                &self.out[sent..],
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.out.drain(..sent);
        self.urgent = !self.out.is_empty();
        Ok(())
    }

    fn wait(&mut self) -> io::Result<Vec<Source>> {
        let mut waiting = Vec::with_capacity(2 + 3 * self.commands.len());
        let mut sources = Vec::with_capacity(waiting.capacity());
        let mut interest = PollFlags::IN;
        if self.urgent {
            interest |= PollFlags::OUT;
        }
        let moment = (!self.urgent && !self.out.is_empty()).then_some(&A_MOMENT);
        waiting.push(PollFd::new(&self.connection, interest));
        sources.push(Source::Connection);
        waiting.push(PollFd::new(&self.endings, PollFlags::IN));
        sources.push(Source::Endings);
        for (id, command) in &self.commands {
            if let (Some(stdin), false) = (&command.stdin, command.pending.is_empty()) {
                waiting.push(PollFd::new(stdin, PollFlags::OUT));
                sources.push(Source::Stdin(*id));
            }
            if self.out.len() < ENOUGH {
                for output in &command.outputs {
                    if output.credit.left() > 0 {
                        waiting.push(PollFd::new(&output.from, PollFlags::IN));
                        sources.push(Source::Output(*id));
                    }
                }
            }
        }
        for leftover in &self.leftovers {
            waiting.push(PollFd::new(leftover, PollFlags::IN));
            sources.push(Source::Leftover);
        }
        match rustix::event::poll(&mut waiting, moment) {
            Ok(0) => self.urgent = true,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(waiting
            .iter()
            .zip(sources)
            .filter(|(polled, source)| {
                let events = polled.revents();
                match source {
                    // Room to write is what `flush` looks at.
                    Source::Connection => events.intersects(!PollFlags::OUT),
                    _ => !events.is_empty(),
                }
            })
            .map(|(_, source)| source)
            .collect())
    }

    /// Reads and carries out requests. `false` once the runner is gone.
    fn listen(&mut self) -> io::Result<bool> {
        let count = match rustix::io::read(&self.connection, self.buffer.space()) {
            Ok(0) | Err(Errno::CONNRESET) => return Ok(false),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.decoder.push(self.buffer.filled(count));
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            let request = ExecServerRequest::from_frame(&frame).map_err(io::Error::other)?;
            self.carry_out(frame.command, request)?;
        }
        Ok(true)
    }

    fn carry_out(&mut self, id: u32, request: ExecServerRequest) -> io::Result<()> {
        if let ExecServerRequest::Exec(exec) = request {
            return self.start(id, &exec);
        }
        if request == ExecServerRequest::EndWithLast {
            self.ending = true;
            return Ok(());
        }
        // A request may cross the command's ending on the way: nothing to do then.
        let Some(command) = self.commands.get_mut(&id) else {
            return Ok(());
        };
        match request {
            ExecServerRequest::Exec(_) | ExecServerRequest::EndWithLast => {}
            ExecServerRequest::Stdin(bytes) => {
                if (command.pending.len() + bytes.len()) as u64 > WINDOW {
                    return Err(io::Error::other("more input than was granted"));
                }
                command.pending.extend(bytes);
                self.feed(id)?;
            }
            ExecServerRequest::StdinEnd => {
                command.stdin_ends = true;
                self.feed(id)?;
            }
            ExecServerRequest::Signal(number) => {
                if command.ended.is_none() {
                    let _ = signal::send_group(command.pid, number);
                }
            }
            ExecServerRequest::Resize(size) => command.resize(size),
            ExecServerRequest::Credit(stream, bytes) => {
                for output in &mut command.outputs {
                    if output.stream == stream {
                        output.credit.grant(bytes).map_err(io::Error::other)?;
                    }
                }
                self.draw(id)?;
            }
            ExecServerRequest::Kill => {
                command.killed = command.ended.is_none();
                let spared = self
                    .commands
                    .iter()
                    .filter(|(other, running)| **other != id && running.ended.is_none())
                    .map(|(_, running)| running.pid)
                    .collect();
                self.kill_all_but(&spared)?;
            }
        }
        Ok(())
    }

    /// Kills and reaps: when this returns, what was to die is dead, unless it is beyond killing for
    /// longer than the runner would wait.
    fn kill_all_but(&mut self, spared: &HashSet<i32>) -> io::Result<()> {
        let patience = Instant::now() + Duration::from_secs(1);
        loop {
            let numbers = self.inherited.numbers;
            family::kill_below(numbers, spared, self.own_namespace());
            self.reap()?;
            if !family::any_below(numbers, spared) || Instant::now() > patience {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn start(&mut self, id: u32, request: &ExecRequest) -> io::Result<()> {
        if id == 0 || self.commands.contains_key(&id) {
            return Err(io::Error::other("a command number was used twice"));
        }
        let started = if self.commands.len() < MOST_COMMANDS {
            InitCommand::start(request, !self.own_namespace(), self.inherited.built_ins)
        } else {
            Err((
                crate::sys::exec::LaunchStep::Clone,
                io::Error::from_raw_os_error(libc::EAGAIN),
            ))
        };
        let said = match started {
            Ok(running) => {
                let pid = running.pid;
                self.commands.insert(id, running);
                let event =
                    ExecServerEvent::Started {
                        pid: pid.cast_unsigned(),
                        // It cannot be gone: no process but this one reaps it.
                        posture: self.inherited.numbers.name_of(pid).and_then(|name| {
                            readback::of_process(&name, self.inherited.enforced)
                        })?,
                    };
                self.mention(id, &event)
            }
            Err((step, error)) => {
                let event = ExecServerEvent::NotStarted {
                    step: step.name().to_owned(),
                    errno: error.raw_os_error().map_or(0, i32::cast_unsigned),
                };
                self.say(id, &event)
            }
        };
        said.map_err(io::Error::other)
    }

    fn feed(&mut self, id: u32) -> io::Result<()> {
        let Some(command) = self.commands.get_mut(&id) else {
            return Ok(());
        };
        if let Some(credit) = command.feed() {
            self.say(id, &ExecServerEvent::StdinCredit(credit))
                .map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Passes on what a command has written, as far as credit goes.
    fn draw(&mut self, id: u32) -> io::Result<()> {
        let Some(command) = self.commands.get_mut(&id) else {
            return Ok(());
        };
        let mut index = 0;
        while let Some(output) = command.outputs.get_mut(index) {
            match output.draw(&mut self.buffer) {
                OutputReadResult::Bytes(bytes) => {
                    self.urgent = true;
                    ExecServerEvent::Output(output.stream, bytes)
                        .frame(id)
                        .encode_into(&mut self.out)
                        .map_err(io::Error::other)?;
                    if self.out.len() >= ENOUGH {
                        return Ok(());
                    }
                }
                OutputReadResult::NothingYet => index += 1,
                OutputReadResult::End => drop(command.outputs.remove(index)),
            }
        }
        Ok(())
    }

    fn reap(&mut self) -> io::Result<()> {
        signal::drain(self.endings.as_fd());
        while let Some(reaped) = process::reap()? {
            let command = self
                .commands
                .values_mut()
                .find(|running| running.pid == reaped.pid && running.ended.is_none());
            if let Some(command) = command {
                command.ended = Some(reaped);
            }
        }
        Ok(())
    }

    /// Reports commands that have ended once everything they wrote before is on its way.
    fn finish(&mut self) -> io::Result<()> {
        let ended: Vec<u32> = self
            .commands
            .iter()
            .filter(|(_, running)| running.ended.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.draw(id)?;
            let Some(running) = self.commands.get(&id) else {
                continue;
            };
            // Without credit it is not known whether more is waiting.
            if running
                .outputs
                .iter()
                .any(|output| output.credit.left() == 0)
                || self.out.len() >= ENOUGH
            {
                continue;
            }
            let Some(running) = self.commands.remove(&id) else {
                continue;
            };
            let Some(reaped) = running.ended else {
                continue;
            };
            let how = match (reaped.status, reaped.signal) {
                (Some(status), _) => ExitCause::Status(status),
                (None, signal) => ExitCause::Signal(signal.unwrap_or(0)),
            };
            let event = ExecServerEvent::Exited {
                how,
                cpu_us: reaped.cpu_us,
                peak_memory_bytes: reaped.peak_memory_bytes,
                killed: running.killed,
                scratch_left: self.scratch_left(),
                unrouted: self
                    .own_namespace()
                    .then(|| routes::missed(how != ExitCause::Status(0)))
                    .flatten(),
            };
            self.say(id, &event).map_err(io::Error::other)?;
            self.leftovers
                .extend(running.outputs.into_iter().map(|output| output.from));
        }
        Ok(())
    }

    fn scratch_left(&self) -> Option<u64> {
        if !self.own_namespace() {
            return None;
        }
        let stats = rustix::fs::statfs("/tmp").ok()?;
        Some(stats.f_bavail * u64::try_from(stats.f_bsize).ok()?)
    }

    fn drop_leftovers(&mut self) {
        let buffer = &mut self.buffer;
        self.leftovers.retain(|leftover| {
            // Bounded: a flood must not keep the server from the other commands.
            for _ in 0..16 {
                match rustix::io::read(leftover, buffer.space()) {
                    Ok(0) => return false,
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return true,
                    Err(_) => return false,
                }
            }
            true
        });
    }
}
