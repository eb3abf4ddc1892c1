//! A command that runs, and the callers that listen to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_protocol::{ToolResult, WorkspaceId};
use lula_sandbox::frames::OutputStream;
use lula_sandbox::{FinishedCommand, NextOutput, SandboxProcess};
use tokio::sync::Notify;

use super::RunnerService;
use super::refusal::RequestRefusal;
use lula_runner_api::{SessionEvent, SessionView, StreamName};

/// Output that is kept for those who listen later, in bytes.
const KEPT: usize = 1 << 20;

/// A command that was started.
#[derive(Debug)]
pub(super) struct RunningCommand {
    pub(super) name: String,
    workspace: WorkspaceId,
    argv: Vec<String>,
    pub(super) process: SandboxProcess,
    log: Mutex<Log>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Log {
    pieces: VecDeque<(StreamName, String)>,
    /// How many pieces were let go, and how many bytes they had.
    forgotten: usize,
    forgotten_bytes: u64,
    bytes: usize,
    ended: Option<Box<ToolResult>>,
    listeners: usize,
}

impl RunningCommand {
    pub(super) fn new(
        name: String,
        workspace: WorkspaceId,
        argv: Vec<String>,
        process: SandboxProcess,
    ) -> Self {
        Self {
            name,
            workspace,
            argv,
            process,
            log: Mutex::default(),
            news: Notify::new(),
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, stream: StreamName, text: String) {
        let mut log = self.log();
        log.bytes += text.len();
        log.pieces.push_back((stream, text));
        while log.bytes > KEPT {
            let Some((_, text)) = log.pieces.pop_front() else {
                break;
            };
            log.bytes -= text.len();
            log.forgotten += 1;
            log.forgotten_bytes += text.len() as u64;
        }
        drop(log);
        self.news.notify_waiters();
    }

    pub(super) fn end(&self, result: ToolResult) {
        self.log().ended = Some(Box::new(result));
        self.news.notify_waiters();
    }

    /// What it ended with, once it has.
    pub(super) fn ended(&self) -> Option<ToolResult> {
        self.log().ended.as_deref().cloned()
    }

    pub(super) fn argv(&self) -> &[String] {
        &self.argv
    }

    /// How many bytes it wrote so far.
    pub(super) fn written(&self) -> u64 {
        let log = self.log();
        log.forgotten_bytes + log.bytes as u64
    }

    /// What it wrote from a byte on, both streams as they came; how many bytes of that are not kept
    /// any more; and how many it wrote in all.
    pub(super) fn since(&self, from: u64) -> (String, u64, u64) {
        let log = self.log();
        let mut at = log.forgotten_bytes;
        let mut text = String::new();
        for (_, piece) in &log.pieces {
            let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
            text.push_str(piece.get(skipped.min(piece.len())..).unwrap_or(piece));
            at += piece.len() as u64;
        }
        (text, log.forgotten_bytes.saturating_sub(from), at)
    }

    pub(super) fn view(&self) -> SessionView {
        let log = self.log();
        SessionView {
            session: self.name.clone(),
            workspace: self.workspace.clone(),
            argv: self.argv.clone(),
            ended: log.ended.is_some(),
            attached: log.listeners > 0,
        }
    }

    /// Takes its output in until it ends, and tells how it did.
    pub(super) fn finish(&self) -> Result<FinishedCommand, RequestRefusal> {
        self.pump()?;
        Ok(self.process.wait()?)
    }

    fn pump(&self) -> Result<(), RequestRefusal> {
        let mut halves = [PartialCharacter::default(), PartialCharacter::default()];
        loop {
            let next = self
                .process
                .next_output_within(std::time::Duration::from_hours(1))?;
            match next {
                NextOutput::NothingYet => {}
                NextOutput::End => break,
                NextOutput::Output(output) => {
                    let (stream, halves) = match output.stream {
                        OutputStream::Stdout => (StreamName::Stdout, &mut halves[0]),
                        OutputStream::Stderr => (StreamName::Stderr, &mut halves[1]),
                    };
                    let text = halves.text(&output.bytes);
                    if !text.is_empty() {
                        self.add(stream, text);
                    }
                }
            }
        }
        for (stream, halves) in [StreamName::Stdout, StreamName::Stderr]
            .into_iter()
            .zip(halves)
        {
            if !halves.0.is_empty() {
                self.add(stream, String::from_utf8_lossy(&halves.0).into_owned());
            }
        }
        Ok(())
    }
}

/// The first bytes of a character whose rest has not arrived.
#[derive(Debug, Default)]
struct PartialCharacter(Vec<u8>);

impl PartialCharacter {
    fn text(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.0) {
            // Unfinished at the very end: it may become one.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.0.len(),
        };
        let rest = self.0.split_off(whole);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

/// A caller that listens to a command.
#[derive(Debug)]
pub struct CommandListener {
    running: Arc<RunningCommand>,
    service: Arc<RunnerService>,
    greeted: bool,
    /// The next piece, counted from the first there ever was.
    at: usize,
    over: bool,
    owned: bool,
}

impl CommandListener {
    pub(super) fn new(running: Arc<RunningCommand>, service: Arc<RunnerService>) -> Self {
        running.log().listeners += 1;
        Self {
            running,
            service,
            greeted: false,
            at: 0,
            over: false,
            owned: false,
        }
    }

    /// Ends the command when this caller stops listening, and forgets it when it has ended.
    #[must_use]
    pub fn owned(mut self) -> Self {
        self.owned = true;
        self
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            // Asked for before looking: news in between is not missed.
            let running = Arc::clone(&self.running);
            let news = running.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(event) = self.ready() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            news.await;
        }
    }

    fn ready(&mut self) -> Option<SessionEvent> {
        if !self.greeted {
            self.greeted = true;
            return Some(SessionEvent::Started {
                session: self.running.name.clone(),
            });
        }
        let log = self.running.log();
        if self.at < log.forgotten {
            let text = format!("[{} pieces left out]\n", log.forgotten - self.at);
            self.at = log.forgotten;
            let stream = StreamName::Stderr;
            return Some(SessionEvent::Output { stream, text });
        }
        if let Some((stream, text)) = log.pieces.get(self.at - log.forgotten) {
            self.at += 1;
            return Some(SessionEvent::Output {
                stream: *stream,
                text: text.clone(),
            });
        }
        if let (Some(result), false) = (&log.ended, self.over) {
            self.over = true;
            return Some(SessionEvent::Ended {
                result: result.clone(),
            });
        }
        None
    }
}

impl Drop for CommandListener {
    fn drop(&mut self) {
        self.running.log().listeners -= 1;
        if self.owned {
            if !self.over {
                let _ = self.running.process.kill();
            }
            self.service.sessions.all().remove(&self.running.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_arrives_in_two_pieces_is_one() {
        let mut halves = PartialCharacter::default();
        let bytes = "aé€".as_bytes();
        let text: String = bytes.iter().map(|byte| halves.text(&[*byte])).collect();
        assert_eq!(text, "aé€");
        assert_eq!(halves.text(&[0xff, b'b']), "\u{fffd}b");
    }
}
