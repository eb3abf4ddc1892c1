//! The kernel's side of a seccomp listener: refused calls come in, errors go out.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use super::check;
use super::process::beside_succeeds;
use crate::seccomp::BpfInstruction;

const NEW_LISTENER: libc::c_ulong = 1 << 3;
/// While the listener thinks, only death interrupts the caller: otherwise each timer signal would
/// make it ask again.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
const RECEIVE: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingSyscall {
    pub(crate) id: u64,
    pub(crate) pid: u32,
    pub(crate) arch: u32,
    pub(crate) number: u32,
    pub(crate) args: [u64; 6],
}

/// Installs a seccomp program whose refusals are answered through the returned descriptor. Needs
/// `no_new_privs`. With the descriptor closed everywhere, refused calls fail with `ENOSYS`.
pub(crate) fn install_with_listener(program: &[BpfInstruction]) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "seccomp program too long"))?;
    let filter = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: `BpfInstruction` has the layout of `sock_filter`; the kernel copies the program
        // and checks it.
        check(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const filter,
            )
        })
    };
    let descriptor = match install(NEW_LISTENER | WAIT_KILLABLE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(NEW_LISTENER),
        other => other,
    }?;
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the kernel returned a new descriptor that no other value owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Whether refusals can be answered by a listener. Not where the kernel has none (gVisor), and not below
/// an outer program that has one already, as inside another sandbox of ours. Found out once.
pub(crate) fn can_be_heard() -> bool {
    static HEARD: OnceLock<bool> = OnceLock::new();
    *HEARD.get_or_init(|| {
        has_notifications() && (!super::lockdown::is_filtered() || beside_succeeds(try_to_listen))
    })
}

/// Whether the kernel knows the action that a listener is told by.
fn has_notifications() -> bool {
    const IS_AVAILABLE: libc::c_uint = 2;
    static NOTIFY: u32 = 0x7fc0_0000;
    // SAFETY: the kernel reads one number, which is live.
    let asked = unsafe { libc::syscall(libc::SYS_seccomp, IS_AVAILABLE, 0, &raw const NOTIFY) };
    asked == 0
}

/// Installs a program that allows everything, with a listener, in a process that then ends: with status 0
/// if it could. Makes system calls only.
extern "C" fn try_to_listen(_: *mut libc::c_void) -> libc::c_int {
    static ALLOW_ALL: [libc::sock_filter; 1] = [libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0x7fff_0000,
    }];
    let filter = libc::sock_fprog {
        len: 1,
        filter: ALLOW_ALL.as_ptr().cast_mut(),
    };
    // SAFETY: the program is a constant that the kernel copies; this process is no thread of its maker's,
    // so what it gives up its maker keeps.
    unsafe {
        libc::syscall(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            NEW_LISTENER,
            &raw const filter,
        );
        libc::_exit(i32::from(listener < 0))
    }
}

/// Takes the next refused call. `ENOENT` where its caller died meanwhile.
pub(crate) fn receive(listener: impl AsFd) -> io::Result<PendingSyscall> {
    // SAFETY: all-zero is a valid `seccomp_notif`, and the kernel demands it.
    let mut call: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: the request writes one `seccomp_notif`, which is live.
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), RECEIVE, &raw mut call) };
    check(done.into())?;
    Ok(PendingSyscall {
        id: call.id,
        pid: call.pid,
        arch: call.data.arch,
        #[expect(clippy::cast_sign_loss, reason = "numbers are unsigned to the filter")]
        number: call.data.nr as u32,
        args: call.data.args,
    })
}

/// Answers a call with an error.
pub(crate) fn refuse(listener: impl AsFd, id: u64, errno: u16) -> io::Result<()> {
    let error = -i32::from(errno);
    answer(listener, id, error, 0)
}

/// Lets a call go ahead as if it had not been looked at: only for one that the rules allow whatever its
/// pointers lead to.
pub(crate) fn let_go(listener: impl AsFd, id: u64) -> io::Result<()> {
    /// The value of `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
    const CONTINUE: u32 = 1;
    answer(listener, id, 0, CONTINUE)
}

fn answer(listener: impl AsFd, id: u64, error: i32, flags: u32) -> io::Result<()> {
    let mut answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags,
    };
    // SAFETY: the request reads one `seccomp_notif_resp`, which is live.
    let done = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SEND, &raw mut answer) };
    check(done.into()).map(drop)
}
