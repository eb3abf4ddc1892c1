//! How processes learn of each other's end, with a descriptor for a process or, where the kernel makes
//! none, with a pipe that only the other one keeps open.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::namespaces::LentResources;
use super::{BuildStepContext, BuildStepFailure};
use crate::frames::SetupStage;
use crate::sys::ways::is_missing;

/// Every init looks at it after tying its life to this process's.
pub(super) struct Lifeline {
    /// Something happens to it once this process has died.
    pub(super) watched: OwnedFd,
    /// What keeps a pipe open until then.
    pub(super) held: Option<OwnedFd>,
}

impl Lifeline {
    pub(super) fn of_this_process() -> io::Result<Self> {
        match pidfd_open(getpid(), PidfdFlags::empty()) {
            Ok(watched) => Ok(Self {
                watched,
                held: None,
            }),
            Err(error) if is_missing(&error.into()) => {
                let (watched, held) = pipe_with(PipeFlags::CLOEXEC)?;
                Ok(Self {
                    watched,
                    held: Some(held),
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What the engine holds a first process by that has no descriptor of its own: a pipe that is closed when it
/// is reaped, together with everything else it was lent. Made after it, so that it has no copy.
pub(super) fn hold_by_its_end(lent: &mut LentResources) -> Result<OwnedFd, BuildStepFailure> {
    let (watched, held) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(io::Error::from)
        .during(SetupStage::Lifeline, || "a pipe for its end".to_owned())?;
    lent.end = Some(held);
    Ok(watched)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::session::gone;
    use crate::sys::ways::keep_back;

    #[test]
    fn without_descriptors_for_processes_a_pipe_tells_of_the_end() {
        let now = Duration::from_millis(1);
        for errno in [38, 1] {
            let thread = std::thread::spawn(move || {
                keep_back(&["pidfd_open"], errno).unwrap();
                Lifeline::of_this_process().unwrap()
            });
            let lifeline = thread.join().unwrap();
            assert!(!gone::wait(&lifeline.watched, now));
            drop(lifeline.held.unwrap());
            assert!(gone::wait(&lifeline.watched, now));
        }
    }

    #[test]
    fn a_first_process_is_gone_when_what_it_was_lent_is_taken_back() {
        let mut lent = LentResources::default();
        let held = hold_by_its_end(&mut lent).unwrap();
        assert!(!gone::wait(&held, Duration::from_millis(1)));
        drop(lent);
        assert!(gone::wait(&held, Duration::from_millis(1)));
    }
}
