//! One reader of a run's events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use lula_host::story::follow::RunLogFollower;
use lula_store::RunStore;
use tokio::sync::watch;

use super::feed::{Feed, FeedPosition, NextEvents, frame};
use crate::limits::StreamPlace;
use crate::metrics::ServerMetrics;
use crate::state::ServerState;

/// How often a silent stream says that it is alive.
const BEAT: Duration = Duration::from_secs(15);
/// Most bytes that are handed to a connection at once.
const PIECE: usize = 16 << 10;
/// After so many milliseconds a browser comes back that lost its connection.
const COMES_BACK: &str = "retry: 1000\n\n";

/// Where a reader is.
pub(super) struct EventReader {
    feed: Arc<Feed>,
    position: watch::Receiver<FeedPosition>,
    next: u64,
    /// Whether the stream has begun.
    greeted: bool,
    /// Reads the log itself, until it comes to what the feed keeps.
    catching_up: Option<RunLogFollower>,
    /// Whether it was ever at what the feed keeps: then it does not catch up a second time.
    was_live: bool,
    store: Arc<dyn RunStore>,
    metrics: Arc<ServerMetrics>,
    _place: StreamPlace,
}

impl EventReader {
    pub(super) fn new(feed: Arc<Feed>, next: u64, place: StreamPlace, state: &ServerState) -> Self {
        Self {
            position: feed.watch(),
            feed,
            next,
            greeted: false,
            catching_up: None,
            was_live: false,
            store: Arc::clone(&state.store),
            metrics: Arc::clone(&state.metrics),
            _place: place,
        }
    }

    /// The stream; every piece of it is made when the connection takes it.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            let (piece, goes_on) = reader.piece().await?;
            Some((Ok(piece), goes_on.then_some(reader)))
        })
    }

    /// The next piece, and whether another follows. Nothing where everything was said.
    async fn piece(&mut self) -> Option<(Bytes, bool)> {
        if !self.greeted {
            self.greeted = true;
            return Some((Bytes::from_static(COMES_BACK.as_bytes()), true));
        }
        loop {
            let position = *self.position.borrow_and_update();
            match self.feed.after(self.next, PIECE) {
                NextEvents::Frames(bytes, count) => {
                    self.catching_up = None;
                    self.was_live = true;
                    self.next += count;
                    self.metrics.events_sent.inc_by(count);
                    return Some((bytes, true));
                }
                NextEvents::NotKept if self.was_live => {
                    self.metrics.streams_lagged.inc();
                    let last = self.next.saturating_sub(1);
                    let hint = format!("event: lagged\ndata: {{\"last\":{last}}}\n\n");
                    return Some((Bytes::from(hint), false));
                }
                NextEvents::NotKept => {
                    if let Some(piece) = self.catch_up().await {
                        return Some((piece, true));
                    }
                }
                NextEvents::None if position.is_over && self.next >= position.next => {
                    return Some((Bytes::from_static(b"event: end\ndata: {}\n\n"), false));
                }
                NextEvents::None => {
                    let news = tokio::time::timeout(BEAT, self.position.changed()).await;
                    match news {
                        Ok(Ok(())) => {}
                        // The feed ended without the run's end: the reader comes back.
                        Ok(Err(_)) => return None,
                        Err(_) => return Some((Bytes::from_static(b": alive\n\n"), true)),
                    }
                }
            }
        }
    }

    /// Reads a page of the log. Nothing where none of it is new to the reader, or it cannot be read.
    async fn catch_up(&mut self) -> Option<Bytes> {
        let (feed, store) = (&self.feed, &self.store);
        let begin = || RunLogFollower::new(Arc::clone(store), feed.run.clone());
        let follower = self.catching_up.get_or_insert_with(begin);
        let mut piece = Vec::new();
        let mut next = self.next;
        let read = follower.read_page(|record, event, _| {
            if record.seq >= next {
                piece.extend_from_slice(&frame(&feed.run, record, event));
                next = record.seq + 1;
            }
        });
        if read.await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return None;
        }
        self.metrics.events_sent.inc_by(next - self.next);
        self.next = next;
        (!piece.is_empty()).then(|| Bytes::from(piece))
    }
}
