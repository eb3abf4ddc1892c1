//! A handle on one command in a sandbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::command::FinishedCommand;
use super::link::HelperLink;
use crate::error::SandboxError;
use crate::frames::{CHUNK, ExecServerRequest, OutputStream, PtySize};

/// The number of a command in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SandboxProcessId(pub(crate) u32);

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Where it was written.
    pub stream: OutputStream,
    pub bytes: Vec<u8>,
}

/// What there is to take of a streamed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextOutput {
    /// A piece of output.
    Output(OutputChunk),
    /// Nothing within the time given.
    NothingYet,
    /// It has ended and everything was taken.
    End,
}

/// A command in a sandbox. Dropping the handle leaves the command running; it can be had again from
/// [`super::SandboxSession::process`], and ends with its session at the latest.
#[derive(Debug, Clone)]
pub struct SandboxProcess {
    pub(crate) link: Arc<HelperLink>,
    pub(crate) id: SandboxProcessId,
}

impl SandboxProcess {
    /// Its number in the session.
    pub fn id(&self) -> SandboxProcessId {
        self.id
    }

    /// Its pid inside the sandbox.
    pub fn pid(&self) -> Result<u32, SandboxError> {
        self.link.started(self.id)
    }

    /// Writes to its standard input, waiting while it does not read.
    pub fn write_input(&self, bytes: &[u8]) -> Result<(), SandboxError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = rest.len().min(CHUNK);
            let granted = self.link.spend_input(self.id, most)?;
            if granted == 0 {
                return Ok(()); // it has ended: what it did not read goes nowhere
            }
            let (now, later) = rest.split_at(granted);
            self.link
                .ask(self.id, &ExecServerRequest::Stdin(now.to_vec()))?;
            rest = later;
        }
        Ok(())
    }

    /// Ends its standard input.
    pub fn close_input(&self) -> Result<(), SandboxError> {
        self.link.ask(self.id, &ExecServerRequest::StdinEnd)
    }

    /// Sends a signal to it and its process group.
    pub fn signal(&self, signal: u8) -> Result<(), SandboxError> {
        self.link.ask(self.id, &ExecServerRequest::Signal(signal))
    }

    /// Gives its terminal another size.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), SandboxError> {
        self.link.ask(
            self.id,
            &ExecServerRequest::Resize(PtySize { rows, columns }),
        )
    }

    /// Kills it with everything it started. Daemons that lost their parent go too, whichever command started
    /// them; other commands of the session stay.
    pub fn kill(&self) -> Result<(), SandboxError> {
        self.link.ask(self.id, &ExecServerRequest::Kill)
    }

    /// The next piece of output of a command started with [`super::SandboxCommand::streamed`], or `None`
    /// once it has ended and everything was taken.
    pub fn next_output(&self) -> Result<Option<OutputChunk>, SandboxError> {
        match self.link.next_output(self.id, None)? {
            NextOutput::Output(output) => Ok(Some(output)),
            NextOutput::NothingYet | NextOutput::End => Ok(None),
        }
    }

    /// As [`SandboxProcess::next_output`], within a time.
    pub fn next_output_within(&self, time: Duration) -> Result<NextOutput, SandboxError> {
        self.link.next_output(self.id, Some(Instant::now() + time))
    }

    /// Whether it has ended, from what has arrived so far. Does not wait.
    pub fn has_ended(&self) -> Result<bool, SandboxError> {
        self.link.take_ready()?;
        Ok(self.link.has_ended(self.id))
    }

    /// Waits until it has ended. A second call for the same command gives
    /// [`SandboxError::Ended`].
    pub fn wait(&self) -> Result<FinishedCommand, SandboxError> {
        self.link.wait(self.id)
    }
}
