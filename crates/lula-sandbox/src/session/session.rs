//! One sandbox as its owner sees it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use lula_protocol::receipt::{ProtectionLayer, UnappliedProtection};

use super::command::{FinishedCommand, SandboxCommand};
use super::link::HelperLink;
use super::process::{SandboxProcess, SandboxProcessId};
use crate::error::SandboxError;

/// One sandbox with the commands in it. Dropping it ends everything inside.
#[derive(Debug)]
pub struct SandboxSession {
    pub(crate) link: Arc<HelperLink>,
}

impl SandboxSession {
    /// Starts a command. The caller has to wait for something of this session while it runs: output
    /// beyond the first quarter of a mebibyte, refused system calls and deadlines are dealt with by
    /// that wait. [`SandboxSession::start_in_background`] has a thread for that.
    pub fn start(&self, command: &SandboxCommand) -> Result<SandboxProcess, SandboxError> {
        let id = self.link.start(command)?;
        let process = SandboxProcess {
            link: Arc::clone(&self.link),
            id,
        };
        if let Some(input) = &command.stdin {
            // Small inputs fit the first window and cost no waiting.
            process.write_input(input)?;
            process.close_input()?;
        }
        Ok(process)
    }

    /// Starts a command that goes on while no caller waits for it: a thread keeps taking its output in
    /// and watches its deadline.
    pub fn start_in_background(
        &self,
        command: &SandboxCommand,
    ) -> Result<SandboxProcess, SandboxError> {
        let process = self.start(command)?;
        let mut state = self.link.state();
        if !state.pumped {
            state.pumped = true;
            let link = Arc::clone(&self.link);
            std::thread::Builder::new()
                .name("lula-sandbox-pump".to_owned())
                .spawn(move || link.pump())
                .map_err(SandboxError::io("cannot start a thread"))?;
        }
        Ok(process)
    }

    /// The servers inside that its door publishes, as `127.0.0.1:3000 -> 8080`.
    pub fn published(&self) -> &[String] {
        let door = self.link.context.door.as_ref();
        door.map_or(&[], |door| &door.published)
    }

    /// Runs a command to its end.
    pub fn run(&self, command: &SandboxCommand) -> Result<FinishedCommand, SandboxError> {
        self.start(command)?.wait()
    }

    /// The command of that number, running or ended, unless it was waited for.
    pub fn process(&self, id: SandboxProcessId) -> Option<SandboxProcess> {
        self.link
            .state()
            .commands
            .contains_key(&id.0)
            .then(|| SandboxProcess {
                link: Arc::clone(&self.link),
                id,
            })
    }

    /// Numbers of the commands not yet waited for.
    pub fn processes(&self) -> Vec<SandboxProcessId> {
        let mut ids: Vec<_> = self
            .link
            .state()
            .commands
            .keys()
            .copied()
            .map(SandboxProcessId)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// The layers around every command of this session, read back from its first process.
    pub fn layers(&self) -> Vec<ProtectionLayer> {
        let posture = self.link.state().ready.clone();
        posture.map_or_else(Vec::new, |(posture, _)| self.link.standing_layers(&posture))
    }

    /// What was asked for and is not in force.
    pub(crate) fn not_applied(&self) -> impl Iterator<Item = &UnappliedProtection> {
        let found_out = self.link.held_back();
        self.link.context.not_applied.iter().chain(found_out)
    }

    /// The tier it runs in.
    pub fn tier(&self) -> lula_protocol::IsolationTier {
        self.link.context.tier
    }

    /// What an event loop watches: when one of them is readable, [`SandboxSession::take_ready`] has
    /// something to do. The first carries frames; the second, where there is one, system calls that
    /// wait for their refusal.
    pub fn descriptors(&self) -> (BorrowedFd<'_>, Option<BorrowedFd<'_>>) {
        self.link.descriptors()
    }

    /// Takes in what has arrived, without waiting.
    pub fn take_ready(&self) -> Result<(), SandboxError> {
        self.link.take_ready()
    }

    /// Ends everything in the sandbox and removes what is left of it. Dropping does the same and
    /// keeps quiet about failures.
    pub fn close(self) -> Result<(), SandboxError> {
        self.link.close()
    }
}

impl Drop for SandboxSession {
    fn drop(&mut self) {
        let _ = self.link.close();
    }
}
