//! Signals as a descriptor that can be polled.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

fn child_set() -> libc::sigset_t {
    // SAFETY: `sigemptyset` initialises the set before `sigaddset` reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        set
    }
}

/// Blocks SIGCHLD and returns a descriptor that is readable whenever a child has ended.
pub(crate) fn child_endings() -> io::Result<OwnedFd> {
    let set = child_set();
    // SAFETY: `set` is initialised and live; a null old set is allowed.
    unsafe {
        check(libc::c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        )))?;
        let descriptor = check(libc::c_long::from(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )))?;
        #[allow(clippy::cast_possible_truncation)]
        Ok(OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// Empties the descriptor of [`child_endings`].
pub(crate) fn drain(endings: BorrowedFd<'_>) {
    let mut buffer = [0_u8; 128 * 4];
    // SAFETY: reads into a live buffer of the length given; the descriptor does not block.
    while unsafe {
        libc::read(
            endings.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    } > 0
    {}
}

/// Sends a signal to one process.
pub(crate) fn send(pid: i32, signal: u8) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(libc::c_long::from(unsafe {
        libc::kill(pid, i32::from(signal))
    }))
    .map(drop)
}

/// Sends a signal to a process group.
pub(crate) fn send_group(leader: i32, signal: u8) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(libc::c_long::from(unsafe {
        libc::kill(-leader, i32::from(signal))
    }))
    .map(drop)
}

/// Kills every process of the namespace this process is pid 1 of. Refuses anywhere else.
pub(crate) fn kill_everyone_else() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    // SAFETY: takes numbers only; as pid 1, -1 means the rest of this namespace.
    check(libc::c_long::from(unsafe { libc::kill(-1, libc::SIGKILL) })).map(drop)
}

/// Every signal does what it does by default, except that a broken pipe is an error, not an end:
/// a helper may have been started by a process that ignored some.
pub(crate) fn reset_dispositions() {
    for signal in 1..=64 {
        let action = if signal == libc::SIGPIPE {
            libc::SIG_IGN
        } else {
            libc::SIG_DFL
        };
        // SAFETY: takes numbers only; the ones that cannot be changed refuse.
        unsafe { libc::signal(signal, action) };
    }
}
