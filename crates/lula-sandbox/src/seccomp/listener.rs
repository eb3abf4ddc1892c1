//! Answering refused calls, and remembering them.
//!
//! A program compiled with [`Refusals::Notify`](super::Refusals::Notify) sends its refusals here
//! instead of answering by itself. The answer is the same error either way; what is gained is a
//! record made where the decision is made. Nothing is ever let through: the memory behind a call's
//! pointers may change while one looks at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lula_protocol::Denial;
use rustix::event::{PollFd, PollFlags, poll};

use super::{Abi, Call, Rules, Verdict, refused};
use crate::sys::refusals;

/// Holds the kernel's end of a program's refusals.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
    abi: Abi,
    rules: Rules,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// The caller, as numbered in the listener's pid namespace.
    pub pid: u32,
    /// The record.
    pub denial: Denial,
}

impl Listener {
    /// Listens on the descriptor that came with the installed program. The rules must be those the
    /// program was compiled from.
    pub const fn new(descriptor: OwnedFd, abi: Abi, rules: Rules) -> Self {
        Self {
            descriptor,
            abi,
            rules,
        }
    }

    /// Waits for the next refused call and answers it. `None` once nobody is left who could make
    /// one.
    pub fn next(&self) -> io::Result<Option<RefusedCall>> {
        loop {
            let mut ready = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let events = ready[0].revents();
            if !events.contains(PollFlags::IN) {
                return Ok(None);
            }
            let waiting = match refusals::receive(&self.descriptor) {
                Ok(waiting) => waiting,
                Err(error) if gone(&error) => continue,
                Err(error) => return Err(error),
            };
            let call = Call {
                arch: waiting.arch,
                number: waiting.number,
                args: waiting.args,
            };
            let errno = match self.rules.decide(self.abi, &call) {
                Verdict::Errno(errno) => errno,
                // The program asked although the rules allow: they differ, so neither is trusted.
                Verdict::Allow => 1,
            };
            match refusals::refuse(&self.descriptor, waiting.id, errno) {
                Ok(()) => {}
                Err(error) if gone(&error) => {}
                Err(error) => return Err(error),
            }
            let denial = refused(self.abi, &call);
            return Ok(Some(RefusedCall {
                pid: waiting.pid,
                denial,
            }));
        }
    }
}

impl AsFd for Listener {
    /// Readable when a call waits for its answer.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The caller died, or was interrupted and will ask again.
fn gone(error: &io::Error) -> bool {
    let code = error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error);
    matches!(
        code,
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::INTR | rustix::io::Errno::INPROGRESS)
    )
}
