//! What goes on, as it happens: one event on each line.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use lula_protocol::ToolResult;
use serde::de::DeserializeOwned;

use super::error::RunnerClientError;
use crate::{SessionEvent, TestRunEvent};

/// Longest line of a stream.
const LINE: usize = 64 << 20;

/// The events of one command, to its end.
pub type SessionEvents = RunnerEventStream<SessionEvent>;
/// The events of one test run, to its end.
pub type TestRunEvents = RunnerEventStream<TestRunEvent>;

/// A stream of events, to its end.
#[derive(Debug)]
pub struct RunnerEventStream<T> {
    /// Keeps the connection; dropping it tells the runner that this caller no longer listens.
    _sender: Option<SendRequest<Full<Bytes>>>,
    body: Option<Incoming>,
    buffer: Vec<u8>,
    ready: VecDeque<T>,
}

impl<T: DeserializeOwned> RunnerEventStream<T> {
    pub(super) fn new(sender: SendRequest<Full<Bytes>>, body: Incoming) -> Self {
        Self {
            _sender: Some(sender),
            body: Some(body),
            buffer: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<T>, RunnerClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            match body.frame().await {
                None => {
                    self.body = None;
                    if !self.buffer.is_empty() {
                        return Err(RunnerClientError::Broken(
                            "the stream ended in a line".to_owned(),
                        ));
                    }
                }
                Some(Err(error)) => return Err(RunnerClientError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.take(&data)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, data: &[u8]) -> Result<(), RunnerClientError> {
        if self.buffer.len() + data.len() > LINE {
            return Err(RunnerClientError::Nonsense("a line without end".to_owned()));
        }
        self.buffer.extend_from_slice(data);
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            // Blank lines keep an idle connection alive.
            if line.len() > 1 {
                let event = serde_json::from_slice(&line)
                    .map_err(|error| RunnerClientError::Nonsense(error.to_string()))?;
                self.ready.push_back(event);
            }
        }
        Ok(())
    }
}

impl SessionEvents {
    /// A stream that is over before it began.
    pub(super) fn ended(result: ToolResult) -> Self {
        let result = Box::new(result);
        Self {
            _sender: None,
            body: None,
            buffer: Vec::new(),
            ready: VecDeque::from([SessionEvent::Ended { result }]),
        }
    }

    /// Listens to the end and keeps only what came of it.
    pub async fn finish(mut self) -> Result<ToolResult, RunnerClientError> {
        while let Some(event) = self.next().await? {
            if let SessionEvent::Ended { result } = event {
                return Ok(*result);
            }
        }
        Err(RunnerClientError::Broken(
            "the stream ended before the command".to_owned(),
        ))
    }
}
