//! Answering refused calls, and remembering them.
//!
//! A program compiled with [`RefusedCallReply::Notify`](super::RefusedCallReply::Notify) sends its refusals here
//! instead of answering by itself. The answer is the same error either way; what is gained is a
//! record made where the decision is made. No refusal ever becomes a permission: the memory behind a
//! call's pointers may change while one looks at it. Calls that are watched go ahead whatever is found
//! out about them. Calls that are judged name what they are about by numbers, which cannot change.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lula_protocol::SandboxDenial;
use rustix::event::{PollFd, PollFlags, poll};

use super::{SeccompCall, SeccompRules, SeccompVerdict, SyscallAbi, refused};
use crate::sys::refusals;

/// `EPERM` and `ESRCH`, as numbers of the kernel.
const NOT_PERMITTED: u16 = 1;
const NO_SUCH_PROCESS: u16 = 3;

/// Holds the kernel's end of a program's refusals.
#[derive(Debug)]
pub struct SeccompListener {
    descriptor: OwnedFd,
    abi: SyscallAbi,
    rules: SeccompRules,
}

/// A call that the listener was told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeccompNotification {
    /// It was refused, by these rules.
    Refused(SandboxDenial),
    /// It went ahead; what the one who was asked made of it.
    Watched(Option<SandboxDenial>),
}

/// What a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// Processes of the sandbox, and no other.
    Inside,
    Outside,
    /// Nothing has that number.
    Gone,
}

impl SeccompListener {
    /// Listens on the descriptor that came with the installed program. The rules must be those the
    /// program was compiled from.
    pub const fn new(descriptor: OwnedFd, abi: SyscallAbi, rules: SeccompRules) -> Self {
        Self {
            descriptor,
            abi,
            rules,
        }
    }

    /// Waits for the next call and answers it. `None` once no process is left that could make one. One that
    /// is watched waits until `look` has seen it, with the caller as numbered in this process's pid
    /// namespace; one that is judged goes ahead if what `judge` finds is inside.
    pub fn next(
        &self,
        mut look: impl FnMut(u32, &SeccompCall) -> Option<SandboxDenial>,
        mut judge: impl FnMut(u32, &SeccompCall) -> SignalTarget,
    ) -> io::Result<Option<SeccompNotification>> {
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
            let call = SeccompCall {
                arch: waiting.arch,
                number: waiting.number,
                args: waiting.args,
            };
            let (heard, answered) = match self.rules.decide(self.abi, &call) {
                SeccompVerdict::Watch => {
                    let seen = look(waiting.pid, &call);
                    let answered = refusals::let_go(&self.descriptor, waiting.id);
                    (SeccompNotification::Watched(seen), answered)
                }
                SeccompVerdict::Judge => {
                    let target = judge(waiting.pid, &call);
                    let answered = match target {
                        SignalTarget::Inside => refusals::let_go(&self.descriptor, waiting.id),
                        SignalTarget::Gone => {
                            refusals::refuse(&self.descriptor, waiting.id, NO_SUCH_PROCESS)
                        }
                        SignalTarget::Outside => {
                            refusals::refuse(&self.descriptor, waiting.id, NOT_PERMITTED)
                        }
                    };
                    let heard = if target == SignalTarget::Outside {
                        SeccompNotification::Refused(refused(self.abi, &call))
                    } else {
                        SeccompNotification::Watched(None)
                    };
                    (heard, answered)
                }
                refusal => {
                    let errno = match refusal {
                        SeccompVerdict::Errno(errno) => errno,
                        // The program asked although the rules allow: they differ, so neither is
                        // trusted.
                        SeccompVerdict::Allow | SeccompVerdict::Watch | SeccompVerdict::Judge => {
                            NOT_PERMITTED
                        }
                    };
                    let answered = refusals::refuse(&self.descriptor, waiting.id, errno);
                    (
                        SeccompNotification::Refused(refused(self.abi, &call)),
                        answered,
                    )
                }
            };
            return match (answered, heard) {
                // Its number may have been another process's while it was looked at.
                (Err(error), SeccompNotification::Watched(_)) if gone(&error) => {
                    Ok(Some(SeccompNotification::Watched(None)))
                }
                (Err(error), _) if !gone(&error) => Err(error),
                (_, heard) => Ok(Some(heard)),
            };
        }
    }
}

impl AsFd for SeccompListener {
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
