//! Making the first process of a sandbox, by the newest call that is to be had.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;
use super::process::NamespaceFlags;
use super::ways::FirstWay;

/// Which side of [`clone_process`] this is.
pub(crate) enum CloneSide {
    Parent {
        pid: i32,
        /// `None` where the kernel makes none.
        pidfd: Option<OwnedFd>,
    },
    Child {
        /// Whether it was born in the control group asked for. If not, it has to join before it does
        /// anything else.
        in_group: bool,
    },
}

/// The new process, or `None` in the new process itself.
type NewProcess = Option<(i32, Option<OwnedFd>)>;

/// A copy of this process that shares no memory with it, born in the namespaces and, where the kernel can
/// do that, in the control group asked for. The caller must be single-threaded: only then may the child run
/// ordinary code.
pub(crate) fn clone_process(
    apart: NamespaceFlags,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<CloneSide> {
    /// Missing below the profiles of Docker and containerd: a filter cannot see flags behind a pointer.
    static CLONE3: FirstWay = FirstWay::new();
    // What the child sees of it is what was set before it was made.
    let in_group = Cell::new(cgroup.is_some());
    let first = || match clone3(apart, cgroup) {
        // A kernel before 5.7 does not know how to make one in a group.
        Err(error) if in_group.get() && is_unknown(&error) => {
            in_group.set(false);
            clone3(apart, None)
        }
        other => other,
    };
    let second = || {
        in_group.set(false);
        clone(apart, libc::CLONE_PIDFD).or_else(|error| match error.raw_os_error() {
            // Before Linux 5.2 there are no descriptors for processes.
            Some(libc::EINVAL) => clone(apart, 0),
            _ => Err(error),
        })
    };
    Ok(match CLONE3.or_else(first, second)? {
        None => CloneSide::Child {
            in_group: in_group.get(),
        },
        Some((pid, pidfd)) => CloneSide::Parent { pid, pidfd },
    })
}

/// Whether the kernel did not understand what it was asked.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::E2BIG))
}

fn clone3(apart: NamespaceFlags, cgroup: Option<BorrowedFd<'_>>) -> io::Result<NewProcess> {
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all-zero is a valid `clone_args`: every field is an integer.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = apart.bits() | libc::CLONE_PIDFD as u64;
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    #[allow(clippy::cast_sign_loss)]
    {
        args.exit_signal = libc::SIGCHLD as u64;
    }
    if let Some(group) = cgroup {
        args.flags |= INTO_CGROUP;
        #[allow(clippy::cast_sign_loss)]
        {
            args.cgroup = group.as_raw_fd() as u64;
        }
    }
    // SAFETY: `args` outlives the call and has the size passed; memory is copied, not shared, and no
    // stack is given, so the child returns here on its own copy of this stack.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    })?;
    Ok(new_process(pid, pidfd))
}

/// The older call takes the same flags in a register. On every processor that there are rules for, its first
/// three arguments are flags, stack and the place of the descriptor.
fn clone(apart: NamespaceFlags, pidfd: libc::c_int) -> io::Result<NewProcess> {
    let flags = i64::try_from(apart.bits()).map_err(io::Error::other)?
        | i64::from(pidfd)
        | i64::from(libc::SIGCHLD);
    let mut held: libc::c_int = -1;
    // SAFETY: `held` outlives the call; memory is copied, not shared, and no stack is given, so the child
    // returns here on its own copy of this stack.
    let pid = check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            0_usize,
            &raw mut held,
            0_usize,
            0_usize,
        )
    })?;
    Ok(new_process(pid, held))
}

fn new_process(pid: libc::c_long, pidfd: libc::c_int) -> NewProcess {
    if pid == 0 {
        return None;
    }
    // SAFETY: a number that is there was stored by the kernel as a new descriptor; no other value owns it.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    #[allow(clippy::cast_possible_truncation)]
    Some((pid as i32, pidfd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::{exit_now, wait_for};
    use crate::sys::ways::keep_back;

    /// Clones a process that ends with status 0 if it is a child that has to join, on a thread of its own.
    fn cloned(kept_back: &'static [&'static str], errno: u16) -> bool {
        let thread = std::thread::spawn(move || {
            keep_back(kept_back, errno).unwrap();
            // The copy only ends: it may be one of a process with threads.
            match clone_process(NamespaceFlags::NOTHING, None).unwrap() {
                CloneSide::Child { .. } => exit_now(0),
                CloneSide::Parent { pid, pidfd } => {
                    wait_for(pid).unwrap();
                    pidfd.is_some()
                }
            }
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_process_is_made_and_held_without_clone3() {
        for errno in [38, 1] {
            assert!(cloned(&["clone3"], errno), "errno {errno}");
        }
    }
}
