//! Waiting for the end of a process that is held.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// How long the first process of a sandbox may take to be gone once it was killed.
pub(crate) const AT_MOST: Duration = Duration::from_secs(5);

/// Waits until a process has ended. `false` if it has not within that time.
pub(crate) fn wait(process: impl AsFd, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else {
            return false;
        };
        let mut waiting = [PollFd::new(&process, PollFlags::IN)];
        match rustix::event::poll(&mut waiting, Some(&left)) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
