//! The end of a sandbox, asked for or forced.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Link;
use crate::cgroup::Limits;
use crate::error::SandboxError;
use crate::frames::Request;
use crate::session::books::Entry;

impl Link {
    /// Has the sandbox end by itself once no command is left in it.
    pub(crate) fn end_with_last(&self) -> Result<(), SandboxError> {
        self.send(0, &Request::EndWithLast)
    }

    /// Whether nothing will ever run here again.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Whether a command runs.
    pub(crate) fn is_busy(&self) -> bool {
        !self.state().commands.values().all(Entry::is_over)
    }

    /// Ends every command that runs because the workspace has grown too large.
    pub(crate) fn end_for_disk(&self) {
        let filled = self.state().fill_disk();
        for id in filled {
            self.send_or_note(id, &Request::Kill);
        }
    }

    /// Ends every process of the sandbox.
    pub(super) fn end_by_force(&self) {
        if !self.own_pids {
            // Its first process knows its family; it kills it when the line goes dead.
            let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
            self.wait_gone(Duration::from_millis(500));
        }
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
        if let Some(leaf) = &*leaf
            && !self.own_pids
        {
            let _ = leaf.kill();
        }
    }

    fn wait_gone(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else {
                return false;
            };
            let mut waiting = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match rustix::event::poll(&mut waiting, Some(&left)) {
                Ok(count) => return count > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends the sandbox and removes what is left of it.
    pub(crate) fn close(&self) -> Result<(), SandboxError> {
        self.end_by_force();
        let gone = self.wait_gone(Duration::from_secs(5));
        {
            let mut state = self.state();
            state
                .ended
                .get_or_insert_with(|| "its session was closed".to_owned());
        }
        let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
        self.changed.notify_all();
        let leaf = self
            .leaf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(leaf) = leaf {
            let limits = Limits::from(&self.context.granted);
            self.keep.groups.discard(leaf, limits);
        }
        if gone {
            Ok(())
        } else {
            Err(SandboxError::Io {
                act: "cannot end the sandbox",
                source: io::ErrorKind::TimedOut.into(),
            })
        }
    }
}
