//! Making, identifying and reaping processes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

/// What a new process does not share with its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamespaceFlags(u64);

impl NamespaceFlags {
    pub(crate) const NOTHING: Self = Self(0);
    pub(crate) const USER: Self = Self(libc::CLONE_NEWUSER as u64);
    pub(crate) const MOUNT: Self = Self(libc::CLONE_NEWNS as u64);
    pub(crate) const PID: Self = Self(libc::CLONE_NEWPID as u64);
    pub(crate) const IPC: Self = Self(libc::CLONE_NEWIPC as u64);
    pub(crate) const UTS: Self = Self(libc::CLONE_NEWUTS as u64);
    pub(crate) const NET: Self = Self(libc::CLONE_NEWNET as u64);
    pub(crate) const CGROUP: Self = Self(libc::CLONE_NEWCGROUP as u64);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

/// A process that was told to end and runs on memory of this one until it has: dropping this waits
/// for it.
#[derive(Debug)]
pub(crate) struct EndingProcess {
    /// `None` once it was waited for.
    pid: Option<i32>,
    _stack: Vec<u128>,
}

impl EndingProcess {
    /// Takes note that a child was reaped, which may have been this one.
    pub(crate) fn reaped(&mut self, pid: i32) {
        self.pid = self.pid.filter(|own| *own != pid);
    }
}

impl EndingProcess {
    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) {
        if let Some(pid) = self.pid.take() {
            // The only failure is that it is no child any more, and so is gone.
            let _ = wait_for(pid);
        }
    }
}

impl Drop for EndingProcess {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Does something with a process that only waits to be looked at, in the namespaces asked for, and
/// tells it to end. It shares this process's memory, which is much quicker than copying it, and ends by
/// itself where this process dies. Its end need not be waited for at once: on a busy machine that takes
/// longer than everything else here.
pub(crate) fn with_bystander<T>(
    apart: NamespaceFlags,
    act: impl FnOnce(i32) -> io::Result<T>,
) -> io::Result<(T, EndingProcess)> {
    extern "C" fn wait(line: *mut libc::c_void) -> libc::c_int {
        let mut end = 0_u8;
        let line = line.addr();
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        let (hears, says) = ((line >> 16) as libc::c_int, (line & 0xffff) as libc::c_int);
        // SAFETY: the parent passed two numbers; its descriptors were copied, so only the copy of the
        // writing end is closed. Nothing here fails, so the error number that this process shares with
        // its parent is not touched.
        unsafe {
            libc::close(says);
            libc::read(hears, (&raw mut end).cast(), 1);
            libc::_exit(0)
        }
    }
    let (hears, says) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // As a number: the parent's stack may have moved on before the new process looks.
    let number = |end: &OwnedFd| u16::try_from(end.as_raw_fd()).map_err(io::Error::other);
    let line = usize::from(number(&hears)?) << 16 | usize::from(number(&says)?);
    let (pid, leaving) = beside(apart, wait, line)?;
    let done = act(pid);
    drop(says);
    Ok((done?, leaving))
}

/// Has another process, on this one's memory, let go of everything that is mounted where this process
/// is, and does not wait: the kernel takes its time over the last step, after which no process could notice
/// any difference.
pub(crate) fn unmount_behind() -> io::Result<EndingProcess> {
    extern "C" fn unmount(_: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the path is a constant. Only a failure touches the error number that this process
        // shares with its maker, who looks at what was done and not at that.
        unsafe {
            let failed = libc::umount2(c".".as_ptr(), libc::MNT_DETACH);
            libc::_exit(i32::from(failed != 0))
        }
    }
    Ok(beside(NamespaceFlags::NOTHING, unmount, 0)?.1)
}

/// Whether something that only makes system calls ends with status 0, in a process that is waited for and
/// runs on this one's memory.
pub(super) fn beside_succeeds(run: extern "C" fn(*mut libc::c_void) -> libc::c_int) -> bool {
    let Ok((pid, mut process)) = beside(NamespaceFlags::NOTHING, run, 0) else {
        return false;
    };
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
    process.reaped(pid);
    status == 0
}

/// Starts a process on this one's memory. What it runs may do nothing but make system calls.
fn beside(
    apart: NamespaceFlags,
    run: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    given: usize,
) -> io::Result<(i32, EndingProcess)> {
    /// Enough for one function that makes three system calls.
    const STACK: usize = 16 * 1024;
    let flags = i32::try_from(apart.0).map_err(io::Error::other)?;
    let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
    // SAFETY: the stack, 16-aligned at its end, is live until the process was waited for, by
    // `EndingProcess`; what runs there makes system calls only, and is given a number.
    let pid = unsafe {
        let top = stack.as_mut_ptr().cast::<u8>().add(STACK);
        libc::clone(
            run,
            top.cast(),
            libc::CLONE_VM | libc::SIGCHLD | flags,
            std::ptr::without_provenance_mut(given),
        )
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let leaving = EndingProcess {
        pid: Some(pid),
        _stack: stack,
    };
    Ok((pid, leaving))
}

/// A copy of this process as the C library makes one: where the copy is to live on as if it had been
/// started anew. The caller must be single-threaded: only then may the child run ordinary code.
pub(crate) fn fork() -> io::Result<Option<rustix::process::Pid>> {
    // SAFETY: takes nothing; memory is copied, not shared.
    let pid = check(libc::c_long::from(unsafe { libc::fork() }))?;
    Ok(i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw))
}

/// Holds the mount namespace of a process. Kernels before 6.11 cannot.
pub(crate) fn mount_namespace(process: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    /// The number of `PIDFD_GET_MNT_NAMESPACE` among the requests of `ioctl`.
    const GET: libc::Ioctl = 0xff03;
    // SAFETY: takes a live descriptor and no argument.
    let held = check(libc::c_long::from(unsafe {
        libc::ioctl(process.as_raw_fd(), GET, 0)
    }))?;
    #[allow(clippy::cast_possible_truncation)]
    // SAFETY: the kernel made a new descriptor that no other value owns.
    Ok(unsafe { OwnedFd::from_raw_fd(held as i32) })
}

/// Leaves the namespaces named, for new ones.
pub(crate) fn unshare(apart: NamespaceFlags) -> io::Result<()> {
    // SAFETY: takes flags only.
    check(unsafe { libc::syscall(libc::SYS_unshare, apart.0) }).map(drop)
}

/// Enters the namespace behind a descriptor.
pub(crate) fn enter(namespace: BorrowedFd<'_>, kind: NamespaceFlags) -> io::Result<()> {
    // SAFETY: takes a live descriptor and flags.
    check(unsafe { libc::syscall(libc::SYS_setns, namespace.as_raw_fd(), kind.0) }).map(drop)
}

/// How a process ended, and what it and the children it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReapedProcess {
    pub(crate) pid: i32,
    /// Exit status, or `None` with a signal.
    pub(crate) status: Option<u8>,
    pub(crate) signal: Option<u8>,
    pub(crate) cpu_us: u64,
    pub(crate) peak_memory_bytes: u64,
}

/// Reaps one ended child if there is one.
pub(crate) fn reap() -> io::Result<Option<ReapedProcess>> {
    let mut status: libc::c_int = 0;
    // SAFETY: all-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-pointers are live for the call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    if pid < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) {
            Ok(None)
        } else {
            Err(error)
        };
    }
    if pid == 0 {
        return Ok(None);
    }
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    let exited = libc::WIFEXITED(status);
    Ok(Some(ReapedProcess {
        pid,
        status: exited.then(|| u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX)),
        signal: (!exited).then(|| u8::try_from(libc::WTERMSIG(status)).unwrap_or(u8::MAX)),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

/// Waits for one particular child.
pub(crate) fn wait_for(pid: i32) -> io::Result<()> {
    loop {
        // SAFETY: a null status pointer is allowed.
        let done = unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        if done == pid {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Leads a session of its own from here on, unless it leads a group already. gVisor answers with a number
/// that no process has, so the answer is not looked at.
pub(crate) fn lead_session() {
    // SAFETY: takes nothing.
    unsafe { libc::setsid() };
}

/// Ends this process now: no destructors, no exit handlers of a copied parent.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(status) }
}

/// Takes the ids given, real, effective and saved, with no other group. Keeps capabilities.
pub(crate) fn become_ids(uid: u32, gid: u32) -> io::Result<()> {
    // Raw calls: the C library's own change every thread it believes in, and this process was
    // cloned without telling it.
    // SAFETY: an empty group list needs no memory; the rest take numbers only.
    unsafe {
        check(libc::syscall(
            libc::SYS_setgroups,
            0,
            std::ptr::null::<u32>(),
        ))?;
        check(libc::syscall(
            libc::SYS_prctl,
            libc::PR_SET_KEEPCAPS,
            1,
            0,
            0,
            0,
        ))?;
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
    }
    Ok(())
}

/// Whether the user namespace of this process has that user, found by owning files as it for a moment. Only
/// for a process that may take any id.
pub(crate) fn is_known_user(uid: u32) -> bool {
    // SAFETY: takes a number only, and gives the id of before back, also where it changes nothing.
    let own = |uid: u32| unsafe { libc::syscall(libc::SYS_setfsuid, uid) };
    let before = own(uid);
    let Ok(before) = u32::try_from(before) else {
        return false;
    };
    own(before) == libc::c_long::from(uid)
}

/// Does something as another owner of files, with the same privileges.
pub(crate) fn with_file_ids<T>(
    uid: u32,
    gid: u32,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let take = |uid: u32, gid: u32| {
        // SAFETY: take numbers only. They report no failure; a privileged caller has none.
        unsafe {
            libc::syscall(libc::SYS_setfsgid, gid);
            libc::syscall(libc::SYS_setfsuid, uid);
        }
        // Leaving user 0 takes the file capabilities out of effect, not away.
        super::lockdown::raise_permitted()
    };
    let own = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    take(uid, gid)?;
    let done = act();
    take(own.0, own.1)?;
    done
}

/// Writes to a descriptor by number, for reporting a failure whose owner may already be gone.
pub(crate) fn write_number(descriptor: i32, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `bytes` is live; a number that is no open socket gives an error. MSG_NOSIGNAL makes a
    // closed peer an error too.
    let sent = check(unsafe {
        libc::send(
            descriptor,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    } as libc::c_long)?;
    if usize::try_from(sent) == Ok(bytes.len()) {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero))
    }
}

/// Takes ownership of a descriptor by number.
pub(crate) fn own_number(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes no memory.
    check(libc::c_long::from(unsafe {
        libc::fcntl(descriptor, libc::F_GETFD)
    }))?;
    // SAFETY: it is open, and the callers have just placed it there for themselves.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
