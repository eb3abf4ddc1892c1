//! Who runs first: every place where a sandbox's processes tell the scheduler of the kernel what is waited
//! for. All of it is advice. Where the kernel refuses, a sandbox is slower and nothing else.
//!
//! | when | what |
//! |---|---|
//! | a sandbox is kept in stock, or its zygote only hears of ends from now on | [`set_sched_batch`] |
//! | the first process of a sandbox has told its end and only cleans up | [`set_sched_idle`] |
//! | a zygote builds its second sandbox, so that more will follow | [`set_sched_other`] |
//! | another process was just made or told something, and may wait for this processor | [`sched_yield`] |
//! | the helper has copied itself | [`CpuAffinity::put_apart`], then [`CpuAffinity::restore`] |

use std::io;

use rustix::process::Pid;
pub(crate) use rustix::thread::sched_yield;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// `SCHED_BATCH`: when this thread is woken it waits until the running thread has done. For work that
/// no other thread waits for.
pub(crate) fn set_sched_batch() {
    set_scheduler(libc::SCHED_BATCH);
}

/// `SCHED_IDLE`: this thread runs only while no other thread wants its processor. For an end that is not
/// waited for.
pub(crate) fn set_sched_idle() {
    set_scheduler(libc::SCHED_IDLE);
}

/// `SCHED_OTHER`: this thread takes turns with others, as it does to begin with.
pub(crate) fn set_sched_other() {
    set_scheduler(libc::SCHED_OTHER);
}

fn set_scheduler(policy: libc::c_int) {
    // SAFETY: all-zero is a valid `sched_param`.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameters` outlives the call; 0 is this thread. Every thread may ask for these three.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            policy,
            &raw const parameters,
        );
    }
}

/// The processors that a process which makes a copy of itself may run on.
#[derive(Debug)]
pub(crate) struct CpuAffinity(CpuSet);

impl CpuAffinity {
    /// Those this process may use. `None` where that cannot be said.
    pub(crate) fn of_this_process() -> Option<Self> {
        sched_getaffinity(None).ok().map(Self)
    }

    /// Puts a copy of this process on any processor but the one this process runs on, where there is
    /// one. The kernel likes to leave it where it was made, and there it does nothing until its maker
    /// sleeps, however idle the others are.
    ///
    /// The copy has to [`restore`](Self::restore) them afterwards: whatever it makes has its processors.
    pub(crate) fn put_apart(&self, copy: Pid) {
        let mut others = self.0;
        others.unset(sched_getcpu());
        if others.count() > 0 {
            let _ = sched_setaffinity(Some(copy), &others);
        }
    }

    /// Lets this process run on all of them.
    pub(crate) fn restore(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }
}
