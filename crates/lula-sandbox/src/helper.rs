//! The helper process: which program it is, and how it knows that it is one.
//!
//! A helper is normally started anew. `EarlyHelper` is the exception, for a program that runs one
//! command and ends (`lula exec`): it is a copy of the process, made first of all, with one thread
//! and nothing opened or read. That is as safe as a new start, because what a copy has in addition
//! is gone before it acts: it overwrites the arguments and the environment where the kernel put
//! them, and closes every descriptor but one. It still shares the layout of the address space with
//! the process that waits for it; the commands it starts get a layout of their own by `exec`. If
//! the process already has a second thread, the helper is started anew.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::built_in::BuiltInProgram;
use crate::error::SandboxError;
use crate::sys::descriptors::{close_from, nothing, place_descriptor};
use crate::sys::origin::ProcessMemoryOrigin;
use crate::sys::process::{exit_now, fork, own_number};
use crate::sys::scheduling::CpuAffinity;
use crate::sys::socket::packet_pair;
use crate::sys::ways::is_missing;
use crate::zygote;

/// What the helper is called, in place of a program name. No shell and no person starts a program
/// under this name by accident.
const NAME: &str = "lula-sandbox-zygote";

/// Asks the helper to move into namespaces of its own before the first request.
const NAMESPACES: &str = "namespaces";

/// The program that becomes the helper. It must call [`helper_main_if_asked`] first thing in its
/// `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperProgram(PathBuf);

impl HelperProgram {
    /// The program that calls this, under its own file.
    pub fn this_program() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Starts it, with the other end of the socket returned as its standard input and nothing else
    /// of ours: no variables, no streams. The standard library does this without forking.
    pub(crate) fn start(&self, namespaces: bool) -> Result<(HelperChild, OwnedFd), SandboxError> {
        use std::os::unix::process::CommandExt;
        let failed = |source| SandboxError::Helper {
            program: self.0.clone(),
            source,
        };
        let (ours, theirs) = packet_pair().map_err(failed)?;
        let child = Command::new(&self.0)
            .arg0(NAME)
            .args(namespaces.then_some(NAMESPACES))
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let child = HelperChild::of(Pid::from_child(&child)).map_err(failed)?;
        Ok((child, ours))
    }
}

/// The helper as a child of this process, which nothing but this waits for: until then its number is its
/// own.
#[derive(Debug)]
pub(crate) struct HelperChild {
    pid: Pid,
    /// `None` where the kernel holds no processes by descriptor, as gVisor's.
    held: Option<OwnedFd>,
}

impl HelperChild {
    /// A child that was not waited for yet.
    fn of(pid: Pid) -> io::Result<Self> {
        let held = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) => Some(held),
            Err(error) if is_missing(&error.into()) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { pid, held })
    }

    pub(crate) fn kill(&self) {
        let killed = self
            .held
            .as_ref()
            .map(|held| rustix::process::pidfd_send_signal(held, Signal::KILL));
        if killed.is_none_or(|killed| killed.is_err_and(|error| is_missing(&error.into()))) {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
    }

    pub(crate) fn wait(&self) {
        let ended = || rustix::process::waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED);
        while matches!(ended(), Err(rustix::io::Errno::INTR)) {}
    }
}

/// A helper that is a copy of this very process, made before it was anything: for a program that
/// runs one command and ends, which would wait as long for a second start of itself as for the
/// command.
///
/// As good as one that was started: at that moment there is one thread, no file of ours is open, and
/// nothing was read. What a copy has and a started program has not, the arguments, the environment
/// and whatever descriptors the parent left open, it forgets before it does anything else.
#[derive(Debug)]
pub struct EarlyHelper {
    pub(crate) child: HelperChild,
    pub(crate) control: OwnedFd,
}

impl EarlyHelper {
    /// Must be called right after [`helper_main_if_asked`], with the same programs. `None` where a
    /// copy would not be as good, or cannot be made; an engine then starts its helper as usual.
    pub fn start(built_ins: &'static [BuiltInProgram]) -> Option<Self> {
        let origin = ProcessMemoryOrigin::of_this_process().ok()?;
        if !origin.is_single_threaded() {
            return None;
        }
        let (ours, theirs) = packet_pair().ok()?;
        let affinity = CpuAffinity::of_this_process();
        let Some(child) = fork().ok()? else {
            origin.forget(NAME);
            let served = keep_only(theirs)
                .and_then(|control| zygote::serve(control, true, affinity, built_ins));
            exit_now(i32::from(served.is_err()))
        };
        if let Some(affinity) = affinity {
            affinity.put_apart(child);
        }
        Some(Self {
            child: HelperChild::of(child).ok()?,
            control: ours,
        })
    }
}

/// Lets go of every descriptor but one, with nothing for the standard streams.
fn keep_only(line: OwnedFd) -> io::Result<OwnedFd> {
    const LINE: i32 = 3;
    // Out of the way of the places they are going to.
    let held = rustix::io::fcntl_dupfd_cloexec(&line, 64)?;
    drop(line);
    let null = nothing(64)?;
    for stream in 0..LINE {
        place_descriptor(null.as_raw_fd(), stream, true)?;
    }
    place_descriptor(held.as_raw_fd(), LINE, false)?;
    // Closed by number; no owner may close what the number means next.
    std::mem::forget((held, null));
    close_from(LINE + 1)?;
    own_number(LINE)
}

/// Becomes the sandbox helper if this process was started as one, and then never returns. Must be
/// called first thing in `main`, before any thread exists.
///
/// `built_ins` are programs that sandboxes can run without a file; see
/// [`crate::SandboxCommand::built_in`].
pub fn helper_main_if_asked(built_ins: &'static [BuiltInProgram]) {
    crate::probes::run_body_if_asked();
    if std::env::args_os().next().is_none_or(|name| name != NAME) {
        return;
    }
    let prepare = std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == NAMESPACES);
    let served = own_number(0).and_then(|control| zygote::serve(control, prepare, None, built_ins));
    std::process::exit(i32::from(served.is_err()))
}
