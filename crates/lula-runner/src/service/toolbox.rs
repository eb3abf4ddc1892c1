//! The runner's end of a toolbox. What comes back is hostile until it is decoded.

use std::time::{Duration, Instant};

use lula_sandbox::frames::OutputStream;
use lula_sandbox::{NextOutput, SandboxCommand, SandboxProcess, SandboxSession};

use super::refusal::RequestRefusal;
use crate::toolbox::frame::{self, ToolboxAnswer, ToolboxQuestion, ToolboxReply, ToolboxRequest};
use crate::toolbox::{NAME, ToolFailure, limits};

/// How long one request may take. Walks and searches end by themselves well before.
const WITHIN: Duration = Duration::from_secs(30);

/// One toolbox in one sandbox.
#[derive(Debug)]
pub(super) struct ToolboxLink {
    process: SandboxProcess,
    buffer: Vec<u8>,
}

impl ToolboxLink {
    pub(super) fn start(session: &SandboxSession, workspace: &str) -> Result<Self, RequestRefusal> {
        let command = SandboxCommand::built_in(NAME)
            .arguments([workspace])
            .open_input()
            .streamed();
        Ok(Self {
            process: session.start(&command)?,
            buffer: Vec::new(),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.process.has_ended().unwrap_or(true)
    }

    /// Asks, and waits for the answer to just this. After an error the toolbox is not to be used
    /// again.
    pub(super) fn ask(
        &mut self,
        ask: ToolboxQuestion,
    ) -> Result<Result<ToolboxAnswer, ToolFailure>, RequestRefusal> {
        let broke = |why: String| RequestRefusal::ToolBroke(format!("the file tools broke: {why}"));
        // Something in the sandbox could send a reply of its own; it cannot know this number.
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| broke(error.to_string()))?;
        let number = u64::from_le_bytes(random);
        let request =
            frame::encode(&ToolboxRequest { number, ask }, limits::REQUEST).map_err(|error| {
                RequestRefusal::BadRequest(format!("the call is too large: {error}"))
            })?;
        self.process.write_input(&request)?;
        let until = Instant::now() + WITHIN;
        loop {
            let reply = frame::decode::<ToolboxReply>(&mut self.buffer, limits::REPLY)
                .map_err(|error| broke(format!("an answer that is none ({error})")))?;
            if let Some(reply) = reply {
                return if reply.number == number && self.buffer.is_empty() {
                    Ok(reply.answer)
                } else {
                    Err(broke("an answer to no request".to_owned()))
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(broke("no answer in time".to_owned()));
            }
            match self.process.next_output_within(left)? {
                NextOutput::Output(output) if output.stream == OutputStream::Stdout => {
                    self.buffer.extend_from_slice(&output.bytes);
                }
                NextOutput::Output(_) | NextOutput::NothingYet => {}
                NextOutput::End => return Err(broke("they ended".to_owned())),
            }
        }
    }

    /// Ends it, if it still runs.
    pub(super) fn end(self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
