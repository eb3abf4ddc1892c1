//! Answers that tell events as they happen: of commands and of test runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, Response};
use lula_protocol::WorkspaceId;
use lula_runner_api::{TestRunEvent, TestRunRequest, TestRunResult};
use serde::Serialize;
use tracing::Instrument;

use super::Shared;
use super::answer::{self, HttpBody};
use super::dispatch::blocking;
use crate::halt::CommandStopper;
use crate::service::CommandListener;

/// How often an idle stream is kept alive.
const BEAT: Duration = Duration::from_secs(15);

/// Set when the caller of a test run no longer listens.
struct TestRunGuard(Arc<CommandStopper>);

impl Drop for TestRunGuard {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Tells how a test run goes until it ends. It ends early when the caller no longer listens.
pub(super) fn run_tests(
    shared: &Arc<Shared>,
    id: WorkspaceId,
    asked: TestRunRequest,
    events: bool,
) -> Response<HttpBody> {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let stop = Arc::new(CommandStopper::default());
    let unheard = TestRunGuard(Arc::clone(&stop));
    let shared = Arc::clone(shared);
    let work = async move {
        let say = tell.clone();
        let found = blocking(&shared, move |service| {
            let watch = |text: &str| {
                let text = text.to_owned();
                // Fails where the caller no longer listens: `stop` says so too.
                let _ = say.send(TestRunEvent::Progress { text });
            };
            Ok(match service.run_tests(&id, &asked, &watch, stop) {
                Ok(found) => found,
                Err(refusal) => TestRunResult::Failed {
                    message: refusal.problem().message,
                },
            })
        });
        let result = found.await.unwrap_or_else(|_| TestRunResult::Failed {
            message: "the runner is too busy, or broke while it did this".to_owned(),
        });
        let result = Box::new(result);
        let _ = tell.send(TestRunEvent::Ended { result });
    };
    tokio::spawn(work.in_current_span());
    let heard = (told, unheard);
    let pieces = futures_util::stream::unfold(heard, move |(mut told, unheard)| async move {
        match tokio::time::timeout(BEAT, told.recv()).await {
            Ok(Some(event)) => Some((line(&event, events), (told, unheard))),
            Ok(None) => None,
            Err(_) => Some((beat(events), (told, unheard))),
        }
    });
    answer::stream(kind(events), Box::pin(pieces))
}

/// Whether server-sent events are preferred to lines.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"))
}

pub(super) const fn kind(events: bool) -> &'static str {
    if events {
        "text/event-stream"
    } else {
        "application/x-ndjson"
    }
}

/// A blank line; a comment in server-sent events.
const fn beat(events: bool) -> Bytes {
    Bytes::from_static(if events { b":\n\n" } else { b"\n" })
}

pub(super) fn line(event: &impl Serialize, events: bool) -> Bytes {
    let text = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(if events {
        format!("data: {text}\n\n")
    } else {
        format!("{text}\n")
    })
}

/// Tells what a command does until it ends. With `owned`, it ends when the caller no longer listens.
pub(super) fn stream(heard: CommandListener, events: bool, owned: bool) -> Response<HttpBody> {
    let heard = if owned { heard.owned() } else { heard };
    let pieces = futures_util::stream::unfold(heard, move |mut heard| async move {
        match tokio::time::timeout(BEAT, heard.next()).await {
            Ok(Some(event)) => Some((line(&event, events), heard)),
            Ok(None) => None,
            Err(_) => Some((beat(events), heard)),
        }
    });
    answer::stream(kind(events), Box::pin(pieces))
}
