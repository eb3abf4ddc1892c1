//! Which processors a process may run on, and having a copy of it begin on another one.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors of a process that makes a copy of itself.
#[derive(Debug)]
pub(crate) struct Processors(CpuSet);

impl Processors {
    /// Those this process may use. `None` where that cannot be said.
    pub(crate) fn of_this_process() -> Option<Self> {
        sched_getaffinity(None).ok().map(Self)
    }

    /// Puts a copy of this process on any processor but the one this process runs on, where there is
    /// one. The kernel likes to leave it where it was made, and there it does nothing until its maker
    /// sleeps, however idle the others are.
    ///
    /// The copy has to [`take_all`](Self::take_all) afterwards: whatever it makes has its processors.
    pub(crate) fn put_apart(&self, copy: Pid) {
        let mut others = self.0;
        others.unset(sched_getcpu());
        if others.count() > 0 {
            let _ = sched_setaffinity(Some(copy), &others);
        }
    }

    /// Lets this process run on all of them.
    pub(crate) fn take_all(&self) -> std::io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }
}
