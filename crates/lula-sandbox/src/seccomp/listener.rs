//! Answering refused calls, and remembering them.
//!
//! A program compiled with [`Refusals::Notify`](super::Refusals::Notify) sends its refusals here
//! instead of answering by itself. The answer is the same error either way; what is gained is a
//! record made where the decision is made. No refusal ever becomes a permission: the memory behind a
//! call's pointers may change while one looks at it. Calls that are watched go ahead whatever is found
//! out about them.

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

/// A call that the listener was told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It was refused, by these rules.
    Refused(Denial),
    /// It went ahead; what the one who was asked made of it.
    Watched(Option<Denial>),
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

    /// Waits for the next call and answers it. `None` once nobody is left who could make one. One that
    /// is watched waits until `look` has seen it, with the caller as numbered in this process's pid
    /// namespace.
    pub fn next(
        &self,
        mut look: impl FnMut(u32, &Call) -> Option<Denial>,
    ) -> io::Result<Option<Heard>> {
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
            let (heard, answered) = match self.rules.decide(self.abi, &call) {
                Verdict::Watch => {
                    let seen = look(waiting.pid, &call);
                    let answered = refusals::let_go(&self.descriptor, waiting.id);
                    (Heard::Watched(seen), answered)
                }
                refusal => {
                    let errno = match refusal {
                        Verdict::Errno(errno) => errno,
                        // The program asked although the rules allow: they differ, so neither is
                        // trusted.
                        Verdict::Allow | Verdict::Watch => 1,
                    };
                    let answered = refusals::refuse(&self.descriptor, waiting.id, errno);
                    (Heard::Refused(refused(self.abi, &call)), answered)
                }
            };
            return match (answered, heard) {
                // Its number may have been another process's while it was looked at.
                (Err(error), Heard::Watched(_)) if gone(&error) => Ok(Some(Heard::Watched(None))),
                (Err(error), _) if !gone(&error) => Err(error),
                (_, heard) => Ok(Some(heard)),
            };
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
