//! Starting a program without copying memory.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;

use super::check;

/// Everything the new process needs, made before it exists: between clone and exec it shares our
/// memory and may only make system calls.
pub(crate) struct Launch {
    /// Paths to try, in order.
    pub(crate) candidates: Vec<CString>,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
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
}

impl LaunchStep {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Session => "session",
            Self::Streams => "streams",
            Self::Directory => "directory",
            Self::Program => "program",
        }
    }
}

struct Shared<'a> {
    candidates: &'a [*const c_char],
    arguments: &'a [*const c_char],
    environment: &'a [*const c_char],
    directory: *const c_char,
    streams: [RawFd; 3],
    terminal: bool,
    die_with_parent: bool,
    failure: Option<(LaunchStep, c_int)>,
}

const STACK: usize = 64 * 1024;

/// Starts the program and returns its pid once `exec` has succeeded.
pub(crate) fn launch(launch: &Launch) -> Result<i32, (LaunchStep, io::Error)> {
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        list.iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let arguments = pointers(&launch.arguments);
    let environment = pointers(&launch.environment);
    let candidates: Vec<_> = launch.candidates.iter().map(|path| path.as_ptr()).collect();
    let mut shared = Shared {
        candidates: &candidates,
        arguments: &arguments,
        environment: &environment,
        directory: launch.directory.as_ptr(),
        streams: launch.streams,
        terminal: launch.terminal,
        die_with_parent: launch.die_with_parent,
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
    // SAFETY: the parent passed a live `Shared` and is suspended, so this is the only reference.
    let shared = unsafe { &mut *argument.cast::<Shared<'_>>() };
    let failure = run_child(shared);
    shared.failure = Some(failure);
    // SAFETY: ends the child without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread is always readable.
    unsafe { *libc::__errno_location() }
}

/// Returns only on failure.
fn run_child(shared: &Shared<'_>) -> (LaunchStep, c_int) {
    // SAFETY: system calls on numbers and on memory prepared by the parent; no allocation, no lock.
    unsafe {
        // The one signal the exec server ignores; the rest already have their default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());

        if libc::setsid() < 0 {
            return (LaunchStep::Session, errno());
        }
        if shared.die_with_parent
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) < 0
        {
            return (LaunchStep::Session, errno());
        }
        for (wanted, given) in shared.streams.iter().enumerate() {
            // Given descriptors are all above 2, so no step overwrites a later one.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            if libc::dup2(*given, wanted as c_int) < 0 {
                return (LaunchStep::Streams, errno());
            }
        }
        if shared.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return (LaunchStep::Session, errno());
        }
        if check(libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            0,
        ))
        .is_err()
        {
            return (LaunchStep::Streams, errno());
        }
        if libc::chdir(shared.directory) < 0 {
            return (LaunchStep::Directory, errno());
        }
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
