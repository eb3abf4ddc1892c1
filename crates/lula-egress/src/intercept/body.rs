//! Bodies as they pass: searched for placeholders on the way up, for secrets on the way down.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::HeaderMap;

use super::broker::Misuse;
use super::redact::{Forbidden, Redaction};
use crate::ConnectionRecord;
use crate::credential::PLACEHOLDER_PREFIX;
use crate::engine::Engine;
use crate::record::EgressRefusal;

/// How much of a body is searched for placeholders. They stand in settings and forms, not in archives.
const WINDOW: usize = 1 << 20;

pub(super) type Failure = Box<dyn Error + Send + Sync>;
/// A body on its way.
pub(super) type Passing = UnsyncBoxBody<Bytes, Failure>;

/// A short body of our own.
pub(super) fn text(words: String) -> Passing {
    Full::new(Bytes::from(words))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// What was seen in the body of a request.
#[derive(Debug, Default)]
pub(super) struct Seen {
    bytes: AtomicU64,
    misuse: Mutex<Option<Misuse>>,
}

impl Seen {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn misuse(&self) -> Option<Misuse> {
        self.misuse
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The body of a request. It breaks off where a placeholder begins.
pub(super) struct RequestBody {
    inner: Incoming,
    engine: Arc<Engine>,
    seen: Arc<Seen>,
    /// The end of what was searched: a placeholder can lie across two chunks.
    tail: Vec<u8>,
    searched: usize,
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, engine: Arc<Engine>, seen: Arc<Seen>) -> Self {
        Self {
            inner,
            engine,
            seen,
            tail: Vec::new(),
            searched: 0,
        }
    }

    fn search(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.seen
            .bytes
            .fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if self.searched >= WINDOW {
            return Ok(());
        }
        self.searched += chunk.len();
        let mut text = std::mem::take(&mut self.tail);
        text.extend_from_slice(chunk);
        if let Some(misuse) = self.engine.broker.misplaced(&text, "the body") {
            let why = misuse.to_string();
            *self
                .seen
                .misuse
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(misuse);
            return Err(why.into());
        }
        let keep = text.len().min(PLACEHOLDER_PREFIX.len() - 1);
        self.tail = text.split_off(text.len() - keep);
        Ok(())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        if let Some(chunk) = frame.data_ref() {
            let chunk = chunk.clone();
            self.search(&chunk)?;
        } else if let Some(trailers) = frame.trailers_ref() {
            for value in trailers.values() {
                let value = value.clone();
                self.search(value.as_bytes())?;
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The record of a request, told when its answer is over or given up.
pub(super) struct EndOfRequest {
    engine: Arc<Engine>,
    record: Option<ConnectionRecord>,
    seen: Arc<Seen>,
    started: Instant,
}

impl EndOfRequest {
    pub(super) fn new(
        engine: Arc<Engine>,
        record: ConnectionRecord,
        seen: Arc<Seen>,
        started: Instant,
    ) -> Self {
        Self {
            engine,
            record: Some(record),
            seen,
            started,
        }
    }

    pub(super) fn record(&mut self) -> Option<&mut ConnectionRecord> {
        self.record.as_mut()
    }
}

impl Drop for EndOfRequest {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.bytes_up = self.seen.bytes();
            // Seen after the server had begun to answer.
            if let Some(misuse) = self.seen.misuse()
                && record.denial.is_none()
            {
                record.deny(EgressRefusal::PlaceholderMisused, misuse.to_string(), None);
            }
            self.engine.told(record, self.started);
        }
    }
}

/// The body of an answer, without the secrets it shows.
pub(super) struct AnswerBody {
    inner: Incoming,
    redaction: Option<Redaction>,
    forbidden: Forbidden,
    last: Option<Bytes>,
    over: bool,
    end: EndOfRequest,
}

impl AnswerBody {
    pub(super) fn new(inner: Incoming, forbidden: Forbidden, end: EndOfRequest) -> Self {
        Self {
            inner,
            redaction: (!forbidden.is_empty()).then(|| Redaction::new(forbidden.clone())),
            forbidden,
            last: None,
            over: false,
            end,
        }
    }

    fn count(&mut self, bytes: usize) {
        let found = self.redaction.as_ref().is_some_and(Redaction::found);
        if let Some(record) = self.end.record() {
            record.bytes_down += bytes as u64;
            record.redacted |= found;
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        loop {
            if self.over {
                return Poll::Ready(self.last.take().map(|last| Ok(Frame::data(last))));
            }
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
                self.over = true;
                let held = self
                    .redaction
                    .as_mut()
                    .map(Redaction::finish)
                    .unwrap_or_default();
                self.last = (!held.is_empty()).then(|| Bytes::from(held));
                continue;
            };
            let frame = frame?;
            match frame.into_data() {
                Ok(chunk) => {
                    let length = chunk.len();
                    let chunk = match &mut self.redaction {
                        Some(redaction) => Bytes::from(redaction.push(&chunk)),
                        None => chunk,
                    };
                    self.count(length);
                    if !chunk.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(chunk))));
                    }
                }
                Err(frame) => {
                    let Ok(mut trailers) = frame.into_trailers() else {
                        continue;
                    };
                    // Trailers come last: what was held back has to come before them.
                    let held = self
                        .redaction
                        .as_mut()
                        .map(Redaction::finish)
                        .unwrap_or_default();
                    if held.is_empty() {
                        redact_headers(&self.forbidden, &mut trailers);
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                    self.over = true;
                    self.last = Some(Bytes::from(held));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && self.redaction.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // What is held back was counted when it was read: only before the first chunk is this exact.
        if self.redaction.is_some() && !self.inner.is_end_stream() {
            return self.inner.size_hint();
        }
        if self.redaction.is_some() {
            SizeHint::default()
        } else {
            self.inner.size_hint()
        }
    }
}

/// Overwrites secrets in the values of headers; whether there was one.
pub(super) fn redact_headers(forbidden: &Forbidden, headers: &mut HeaderMap) -> bool {
    let mut found = false;
    for value in headers.values_mut() {
        let mut text = value.as_bytes().to_vec();
        if forbidden.overwrite(&mut text) {
            found = true;
            // Asterisks are allowed wherever the secret's characters were.
            *value = hyper::header::HeaderValue::from_bytes(&text)
                .unwrap_or_else(|_| hyper::header::HeaderValue::from_static("*"));
        }
    }
    found
}
