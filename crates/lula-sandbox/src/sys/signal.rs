//! Signals as a descriptor that can be polled.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// What this process puts behind the arguments of `kill`, where a filter asks it for that.
static KEY: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// A key of this process's own, made of chance.
pub(crate) fn key() -> [u32; 3] {
    static CHANCE: OnceLock<[u32; 3]> = OnceLock::new();
    *CHANCE.get_or_init(|| {
        // Each is keyed by the kernel's chance.
        let chance = || RandomState::new().hash_one(std::process::id());
        let word = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let (first, second) = (chance(), chance());
        // Never all zeroes, which stands for none.
        [word(first), word(first >> 32), word(second) | 1]
    })
}

/// Has every later signal of this process carry the key; all zeroes for none.
pub(crate) fn carry_key(key: [u32; 3]) {
    for (place, word) in KEY.iter().zip(key) {
        place.store(word, Ordering::Relaxed);
    }
}

/// Sends a signal to one process.
pub(crate) fn send(pid: i32, signal: u8) -> io::Result<()> {
    let [first, second, third] = [0, 1, 2].map(|at: usize| KEY[at].load(Ordering::Relaxed));
    // SAFETY: takes numbers only, and the kernel looks at the first two.
    check(unsafe {
        libc::syscall(
            libc::SYS_kill,
            pid,
            i32::from(signal),
            0,
            first,
            second,
            third,
        )
    })
    .map(drop)
}

/// Sends a signal to a process group.
pub(crate) fn send_group(leader: i32, signal: u8) -> io::Result<()> {
    send(-leader, signal)
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
