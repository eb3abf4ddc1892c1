//! The connection to one sandbox and the books kept about it.
//!
//! There is no thread: a thread that waits for something reads for all. One waiter leads (it polls
//! and takes frames in), the others sleep until the leader has news or steps down.

mod commands;
mod ending;
mod outcome;
mod standing;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::books::{OverdueLimit, SessionCommandEntry, SessionState};
use super::disk::{self, MeasuredDirectory};
use super::first_process::FirstProcess;
use super::resources::SandboxResources;
use crate::buffer::Buffer;
use crate::cgroup::CgroupLeaf;
use crate::error::SandboxError;
use crate::frames::{CHUNK, ExecServerRequest};
use crate::policy::Network;
use crate::receipt::ReceiptContext;
use crate::seccomp::{SeccompListener, SeccompNotification, SeccompRules, SyscallAbi};
use crate::sys::socket;
use crate::watch::DenialWatcher;

pub(crate) use outcome::setup_error;
use standing::SandboxReadiness;

/// Refused calls after which every further one is answered slowly.
const MANY_REFUSALS: u64 = 20_000;

pub(crate) struct HelperLink {
    this: Weak<Self>,
    connection: OwnedFd,
    first: FirstProcess,
    writing: Mutex<()>,
    incoming: Mutex<Buffer>,
    state: Mutex<SessionState>,
    changed: Condvar,
    leaf: Mutex<Option<CgroupLeaf>>,
    /// The rules the sandbox's program was made from, and where its refusals arrive.
    rules: SeccompRules,
    watch: DenialWatcher,
    listener: OnceLock<SeccompListener>,
    /// What is known once the sandbox stands.
    standing: OnceLock<SandboxReadiness>,
    pub(crate) context: ReceiptContext,
    environment: Vec<(String, String)>,
    workspace: PathBuf,
    /// Whether ending the first process ends all of them.
    own_pids: bool,
    /// Whether it was told to end with its last command.
    ending: AtomicBool,
    /// Whether the caller has closed it.
    closed: AtomicBool,
    /// A directory whose size is not watched yet, and when a watch has to begin.
    unwatched: Mutex<Option<(Instant, MeasuredDirectory)>>,
    keep: SandboxResources,
}

impl std::fmt::Debug for HelperLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("tier", &self.context.tier)
            .finish_non_exhaustive()
    }
}

/// What a link is made of.
pub(crate) struct HelperLinkParts {
    pub(crate) connection: OwnedFd,
    pub(crate) first: FirstProcess,
    pub(crate) leaf: Option<CgroupLeaf>,
    pub(crate) rules: SeccompRules,
    pub(crate) watch: DenialWatcher,
    pub(crate) context: ReceiptContext,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) workspace: PathBuf,
    pub(crate) own_pids: bool,
    pub(crate) measured: Option<MeasuredDirectory>,
    pub(crate) keep: SandboxResources,
}

impl HelperLink {
    pub(crate) fn new(parts: HelperLinkParts) -> Arc<Self> {
        let begin = Instant::now() + disk::INTERVAL;
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            connection: parts.connection,
            first: parts.first,
            writing: Mutex::new(()),
            incoming: Mutex::new(Buffer::up_to(2 * CHUNK)),
            state: Mutex::new(SessionState {
                on_host_network: parts.watch.network == Network::Host,
                ..SessionState::default()
            }),
            changed: Condvar::new(),
            leaf: Mutex::new(parts.leaf),
            rules: parts.rules,
            watch: parts.watch,
            listener: OnceLock::new(),
            standing: OnceLock::new(),
            context: parts.context,
            environment: parts.environment,
            workspace: parts.workspace,
            own_pids: parts.own_pids,
            ending: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            unwatched: Mutex::new(parts.measured.map(|measured| (begin, measured))),
            keep: parts.keep,
        })
    }

    /// Has the size of the workspace watched from now on, where it is limited.
    pub(crate) fn watch_disk(&self) -> Result<(), SandboxError> {
        let mut unwatched = self
            .unwatched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match unwatched.take() {
            Some((_, measured)) => disk::watch(self.this.clone(), measured),
            None => Ok(()),
        }
    }

    /// When the size of the workspace has to be watched at the latest. A command that is quicker than
    /// the first look at it costs no thread.
    fn watch_due(&self) -> Option<Instant> {
        let unwatched = self
            .unwatched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unwatched.as_ref().map(|(begin, _)| *begin)
    }

    // A waiter that panicked left consistent books: every change is made in one step.
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, id: u32, request: &ExecServerRequest) -> Result<(), SandboxError> {
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
        mut check: impl FnMut(&mut SessionState) -> Option<Result<T, SandboxError>>,
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

    /// Takes in what arrives next, for every command.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, SessionState>,
        until: Option<Instant>,
    ) -> Result<MutexGuard<'a, SessionState>, SandboxError> {
        state.leading = true;
        let watch = self.watch_due();
        let due = state
            .commands
            .values()
            .filter_map(SessionCommandEntry::due)
            .chain(until)
            .chain(watch)
            .min();
        drop(state);
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        let received = self.receive(incoming.space(), due);
        let mut state = self.state();
        state.leading = false;
        let replies = match received {
            Ok(LinkInput::Bytes(count)) => state.take_in(incoming.filled(count)),
            Ok(LinkInput::Nothing) => Ok(Vec::new()),
            Ok(LinkInput::Refused(denial)) => {
                state.book_refusal(&denial);
                if state.refusals > MANY_REFUSALS {
                    // A command asks for nothing but refusals: they come at a walking pace now.
                    drop(state);
                    std::thread::sleep(Duration::from_millis(1));
                    state = self.state();
                }
                Ok(Vec::new())
            }
            Ok(LinkInput::Seen(denial)) => {
                state.book_seen(&self.named(denial));
                Ok(Vec::new())
            }
            Ok(LinkInput::End) => {
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
        if watch.is_some_and(|watch| watch <= Instant::now()) {
            self.watch_disk()?;
        }
        match overdue {
            OverdueLimit::NoCommand => {}
            OverdueLimit::Kill(ids) => {
                for id in ids {
                    self.send_or_note(id, &ExecServerRequest::Kill);
                }
            }
            OverdueLimit::EndAll => {
                self.end_by_force();
                self.state().ended = Some("a command outlived its deadline".to_owned());
            }
        }
        Ok(self.state())
    }

    /// A denied connection by the name that its address stands for, and with what would grant it.
    fn named(&self, mut denial: SandboxDenial) -> SandboxDenial {
        if let (Some(door), DeniedAttempt::Connect { host, port }) =
            (self.keep.door(), &mut denial.attempt)
            && let Some(name) = host.parse().ok().and_then(|address| door.name_of(address))
        {
            denial.grant = Some(format!("--net {name}:{port}"));
            *host = name;
        }
        denial
    }

    /// A sandbox that hangs up while being answered has ended; the next read says so.
    fn send_or_note(&self, id: u32, request: &ExecServerRequest) {
        let _ = self.send(id, request);
    }

    fn receive(&self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<LinkInput> {
        loop {
            match socket::receive_now(&self.connection, buffer) {
                Ok((0, _)) => return Ok(LinkInput::End),
                Ok((count, descriptors)) => {
                    // One comes with the first words, from a process that nothing has touched yet.
                    // Any later one is dropped.
                    if let (Some(one), Some(abi)) =
                        (descriptors.into_iter().next(), SyscallAbi::native())
                    {
                        let _ = self
                            .listener
                            .set(SeccompListener::new(one, abi, self.rules));
                    }
                    return Ok(LinkInput::Bytes(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(LinkInput::End);
                }
                Err(error) => return Err(error),
            }
            let left = match until {
                None => None,
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(LinkInput::Nothing);
                    }
                    Some(Timespec::try_from(left).map_err(io::Error::other)?)
                }
            };
            let mut waiting = vec![PollFd::new(&self.connection, PollFlags::IN)];
            let listener = self.listener.get();
            waiting.extend(listener.map(|one| PollFd::new(one, PollFlags::IN)));
            match rustix::event::poll(&mut waiting, left.as_ref()) {
                Ok(0) => return Ok(LinkInput::Nothing),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let (Some(listener), Some(polled)) = (listener, waiting.get(1))
                && polled.revents().contains(PollFlags::IN)
                && let Some(heard) = listener.next(
                    |pid, call| self.watch.look(pid, call),
                    |pid, call| self.watch.signal_target(pid, call),
                )?
            {
                match heard {
                    SeccompNotification::Refused(denial) => return Ok(LinkInput::Refused(denial)),
                    SeccompNotification::Watched(Some(denial)) => {
                        return Ok(LinkInput::Seen(denial));
                    }
                    SeccompNotification::Watched(None) => {}
                }
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

    /// What has to be watched to know when [`Link::take_ready`] has something to do.
    pub(super) fn descriptors(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        (
            self.connection.as_fd(),
            self.listener.get().map(AsFd::as_fd),
        )
    }

    /// Reads for every command until the sandbox ends.
    pub(super) fn pump(&self) {
        // The end is an error to every waiter, and to this one the sign to stop.
        let _ = self.wait_until(None, |_| None::<Result<(), _>>);
    }
}

enum LinkInput {
    Bytes(usize),
    Refused(SandboxDenial),
    Seen(SandboxDenial),
    Nothing,
    End,
}
