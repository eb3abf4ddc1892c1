//! Starting a program: a file without copying memory, or a function of this one in a copy of it.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::descriptors::close_from;

/// Everything the new process needs, made before it exists: between clone and exec it shares our
/// memory and may only make system calls.
pub(crate) struct ProcessLaunch {
    /// Paths to try, in order.
    pub(crate) candidates: Vec<CString>,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) place: ProcessPlacement,
}

/// Where a new process finds itself.
pub(crate) struct ProcessPlacement {
    pub(crate) directory: CString,
    /// What becomes descriptors 0, 1 and 2.
    pub(crate) streams: [RawFd; 3],
    /// Whether descriptor 0 becomes the controlling terminal.
    pub(crate) terminal: bool,
    /// Whether the program dies with this process.
    pub(crate) die_with_parent: bool,
}

/// Where a launch failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchStep {
    Clone = 1,
    Session = 2,
    Streams = 3,
    Directory = 4,
    Program = 5,
    BuiltIn = 6,
}

impl LaunchStep {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Session => "session",
            Self::Streams => "streams",
            Self::Directory => "directory",
            Self::Program => "program",
            Self::BuiltIn => "built-in",
        }
    }

    fn from_number(number: u8) -> Self {
        match number {
            2 => Self::Session,
            3 => Self::Streams,
            4 => Self::Directory,
            _ => Self::Clone,
        }
    }
}

struct LaunchContext<'a> {
    candidates: &'a [*const c_char],
    arguments: &'a [*const c_char],
    environment: &'a [*const c_char],
    place: &'a ProcessPlacement,
    failure: Option<(LaunchStep, c_int)>,
}

const STACK: usize = 64 * 1024;

/// Starts the program and returns its pid once `exec` has succeeded.
pub(crate) fn launch(launch: &ProcessLaunch) -> Result<i32, (LaunchStep, io::Error)> {
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        list.iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let arguments = pointers(&launch.arguments);
    let environment = pointers(&launch.environment);
    let candidates: Vec<_> = launch.candidates.iter().map(|path| path.as_ptr()).collect();
    let mut shared = LaunchContext {
        candidates: &candidates,
        arguments: &arguments,
        environment: &environment,
        place: &launch.place,
        failure: None,
    };
    let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
    // SAFETY: the stack is live and 16-aligned at its end; CLONE_VFORK suspends us until the child
    // has exec'd or exited, so `shared` and the stack outlive its use of them; the child makes
    // system calls only. Signals stay blocked as they are until the child resets them.
    let pid = unsafe {
        let top = stack.as_mut_ptr().cast::<u8>().add(STACK);
        libc::clone(
            child,
            top.cast::<c_void>(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut shared).cast::<c_void>(),
        )
    };
    if pid < 0 {
        return Err((LaunchStep::Clone, io::Error::last_os_error()));
    }
    if let Some((step, errno)) = shared.failure {
        // The failed child is reaped here: it never was a command.
        let _ = super::process::wait_for(pid);
        return Err((step, io::Error::from_raw_os_error(errno)));
    }
    Ok(pid)
}

extern "C" fn child(argument: *mut c_void) -> c_int {
    // SAFETY: the parent passed a live `LaunchContext` and is suspended, so this is the only reference.
    let shared = unsafe { &mut *argument.cast::<LaunchContext<'_>>() };
    let failure = run_child(shared);
    shared.failure = Some(failure);
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread is always readable.
    unsafe { *libc::__errno_location() }
}

/// Moves this new process to its place, all but the descriptors above the three streams. Makes
/// system calls only.
fn settle(place: &ProcessPlacement) -> Result<(), (LaunchStep, c_int)> {
    // SAFETY: system calls on numbers and on memory prepared by the parent; no allocation, no lock.
    unsafe {
        // The one signal the exec server ignores; the rest already have their default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());

        if libc::setsid() < 0 {
            return Err((LaunchStep::Session, errno()));
        }
        if place.die_with_parent
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) < 0
        {
            return Err((LaunchStep::Session, errno()));
        }
        for (wanted, given) in place.streams.iter().enumerate() {
            // Given descriptors are all above 2, so no step overwrites a later one.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            if libc::dup2(*given, wanted as c_int) < 0 {
                return Err((LaunchStep::Streams, errno()));
            }
        }
        if place.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return Err((LaunchStep::Session, errno()));
        }
        if libc::chdir(place.directory.as_ptr()) < 0 {
            return Err((LaunchStep::Directory, errno()));
        }
    }
    Ok(())
}

/// Closes everything but the three streams: a new process owns nothing above them.
fn close_the_rest() -> Result<(), (LaunchStep, c_int)> {
    close_from(3).map_err(|error| (LaunchStep::Streams, error.raw_os_error().unwrap_or(0)))
}

/// Returns only on failure.
fn run_child(shared: &LaunchContext<'_>) -> (LaunchStep, c_int) {
    if let Err(failure) = settle(shared.place).and_then(|()| close_the_rest()) {
        return failure;
    }
    // SAFETY: system calls on memory prepared by the parent; no allocation, no lock.
    unsafe {
        let mut failure = libc::ENOENT;
        for path in shared.candidates {
            libc::execve(
                *path,
                shared.arguments.as_ptr(),
                shared.environment.as_ptr(),
            );
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                // A later directory of the search path may hold one that may be run.
                libc::EACCES => failure = libc::EACCES,
                other => return (LaunchStep::Program, other),
            }
        }
        (LaunchStep::Program, failure)
    }
}

/// Which side of [`fork_into`] this is.
pub(crate) enum ForkSide {
    Parent(i32),
    Child,
}

/// Forks. The child is at its place, holds nothing but the three streams, has exactly the variables
/// given, and goes on running this program's code; the parent returns once it is there.
///
/// The caller must be single-threaded: only then may the child run ordinary code.
pub(crate) fn fork_into<'a>(
    place: &ProcessPlacement,
    environment: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
) -> Result<ForkSide, (LaunchStep, io::Error)> {
    let (said, say) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| (LaunchStep::Streams, error.into()))?;
    // The C library's own fork: it makes its books about threads true again in the child, which may
    // then start some.
    // SAFETY: one thread, so no lock is held by a thread that is not there any more.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err((LaunchStep::Clone, io::Error::last_os_error()));
    }
    if pid == 0 {
        if let Err((step, errno)) = settle(place) {
            tell_failure(say.as_raw_fd(), step, errno);
        }
        // Numbers closed below must not be closed again when their owners go.
        std::mem::forget((said, say));
        if close_the_rest().is_err() {
            // Nothing may run with descriptors it should not have, even where its parent is not told why.
            super::process::exit_now(127);
        }
        replace_environment(environment);
        return Ok(ForkSide::Child);
    }
    drop(say);
    let mut failure = [0; 5];
    let heard = loop {
        match rustix::io::read(&said, &mut failure) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.unwrap_or(0),
        }
    };
    if heard == failure.len() {
        let _ = super::process::wait_for(pid);
        let [step, errno @ ..] = failure;
        return Err((
            LaunchStep::from_number(step),
            io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
        ));
    }
    Ok(ForkSide::Parent(pid))
}

fn tell_failure(to: RawFd, step: LaunchStep, errno: c_int) -> ! {
    let mut said = [step as u8; 5];
    said[1..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: writes from a live buffer; the parent hears of a failure to write as a child that ended.
    unsafe { libc::write(to, said.as_ptr().cast(), said.len()) };
    super::process::exit_now(127)
}

fn replace_environment<'a>(environment: impl Iterator<Item = (&'a OsStr, &'a OsStr)>) {
    // SAFETY: this process has one thread; the C library frees what it allocated itself.
    unsafe {
        libc::clearenv();
        for (name, value) in environment {
            std::env::set_var(name, value);
        }
    }
}
