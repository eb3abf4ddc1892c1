//! The end of a sandbox, asked for or forced.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::HelperLink;
use crate::cgroup::{CgroupLeaf, CgroupLimits};
use crate::error::SandboxError;
use crate::frames::ExecServerRequest;
use crate::session::books::SessionCommandEntry;
use crate::session::gone;

impl HelperLink {
    /// Has the sandbox end by itself once no command is left in it.
    pub(crate) fn end_with_last(&self) -> Result<(), SandboxError> {
        self.ending.store(true, Ordering::Relaxed);
        self.send(0, &ExecServerRequest::EndWithLast)
    }

    /// Whether nothing will ever run here again.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Whether a command runs.
    pub(crate) fn is_busy(&self) -> bool {
        !self
            .state()
            .commands
            .values()
            .all(SessionCommandEntry::is_over)
    }

    /// Ends every command that runs because the workspace has grown too large.
    pub(crate) fn end_for_disk(&self) {
        let filled = self.state().fill_disk();
        for id in filled {
            self.send_or_note(id, &ExecServerRequest::Kill);
        }
    }

    /// Ends every process of the sandbox.
    pub(super) fn end_by_force(&self) {
        if !self.own_pids {
            // Its first process knows its family; it kills it when the line goes dead.
            let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
            gone::wait(&self.first, Duration::from_millis(500));
        }
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        self.first.kill();
        if let Some(leaf) = &*leaf
            && !self.own_pids
        {
            let _ = leaf.kill();
        }
    }

    /// Whether no process is left in a sandbox that was to end with its last command, but for its first
    /// process, which has just been killed: it makes no other any more. By the kernel's count, not by
    /// what that process says.
    fn is_deserted(&self) -> bool {
        let leaf = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        self.own_pids
            && self.ending.load(Ordering::Relaxed)
            && !self.is_busy()
            && leaf
                .as_ref()
                .and_then(CgroupLeaf::members)
                .is_some_and(|all| all <= 1)
    }

    /// Ends the sandbox and removes what is left of it. Nothing more to do the second time.
    pub(crate) fn close(&self) -> Result<(), SandboxError> {
        if self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.end_by_force();
        let deserted = self.is_deserted();
        let gone = deserted || gone::wait(&self.first, gone::AT_MOST);
        {
            let mut state = self.state();
            state
                .ended
                .get_or_insert_with(|| "its session was closed".to_owned());
        }
        let _ = rustix::net::shutdown(&self.connection, rustix::net::Shutdown::Both);
        self.keep.shut();
        self.changed.notify_all();
        let leaf = self
            .leaf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(leaf) = leaf {
            let limits = CgroupLimits::from(&self.context.granted);
            let leaving = self.first.end().ok().filter(|_| deserted);
            self.keep.groups.discard(leaf, limits, leaving);
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
