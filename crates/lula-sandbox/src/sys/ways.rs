//! Calls that are not to be had everywhere: an older kernel, gVisor, or the seccomp profile of a container
//! engine answers as if they did not exist. Which ones, is found out by trying, once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// A call that has a second way.
#[derive(Debug)]
pub(crate) struct FirstWay {
    missing: AtomicBool,
}

impl FirstWay {
    pub(crate) const fn new() -> Self {
        Self {
            missing: AtomicBool::new(false),
        }
    }

    /// Goes the first way, or the second one where the first is not to be had.
    ///
    /// `ENOSYS` says so at once. `EPERM` says it only if the second way is free, because it may as well be
    /// the kernel's answer to what was asked: then it is the second way's answer, too.
    pub(crate) fn or_else<T>(
        &self,
        first: impl FnOnce() -> io::Result<T>,
        second: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        if self.missing.load(Ordering::Relaxed) {
            return second();
        }
        match first() {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                self.missing.store(true, Ordering::Relaxed);
                second()
            }
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                let done = second();
                if done.is_ok() {
                    self.missing.store(true, Ordering::Relaxed);
                }
                done
            }
            other => other,
        }
    }
}

/// Whether an error says that the call does not exist here, or that an outer filter keeps it back.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

/// Makes calls answer with an error for this thread and everything that it starts from now on, as the
/// filter of a container engine does: for tests of the second ways.
#[cfg(any(test, feature = "test-switches"))]
pub(crate) fn keep_back(calls: &[&str], errno: u16) -> io::Result<()> {
    use crate::seccomp::{BpfInstruction, SyscallAbi};
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let abi = SyscallAbi::native().ok_or(io::ErrorKind::Unsupported)?;
    let line = |code, jt, jf, k| BpfInstruction { code, jt, jf, k };
    let mut program = vec![line(LOAD_WORD, 0, 0, 0)];
    for name in calls {
        let number = abi.number_of(name).ok_or(io::ErrorKind::NotFound)?;
        program.push(line(JUMP_IF_EQUAL, 0, 1, number));
        program.push(line(RETURN, 0, 0, ERRNO | u32::from(errno)));
    }
    program.push(line(RETURN, 0, 0, ALLOW));
    super::lockdown::no_new_privileges()?;
    super::lockdown::install_seccomp(&program)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn refused<T>(errno: i32) -> io::Result<T> {
        Err(io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_call_that_does_not_exist_is_tried_once() {
        let (way, tried) = (FirstWay::new(), Cell::new(0));
        for _ in 0..3 {
            let first = || {
                tried.set(tried.get() + 1);
                refused(libc::ENOSYS)
            };
            assert_eq!(way.or_else(first, || Ok(7)).unwrap(), 7);
        }
        assert_eq!(tried.get(), 1);
    }

    #[test]
    fn a_refusal_that_both_ways_get_is_about_what_was_asked() {
        let way = FirstWay::new();
        let asked: io::Result<()> = way.or_else(|| refused(libc::EPERM), || refused(libc::EPERM));
        assert_eq!(asked.unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(way.or_else(|| Ok(1), || Ok(2)).unwrap(), 1);
        assert_eq!(way.or_else(|| refused(libc::EPERM), || Ok(2)).unwrap(), 2);
        assert_eq!(way.or_else(|| Ok(1), || Ok(2)).unwrap(), 2);
    }

    #[test]
    fn any_other_error_is_the_answer() {
        let way = FirstWay::new();
        let asked = way.or_else(|| refused(libc::EAGAIN), || Ok(()));
        assert_eq!(asked.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    }
}
