//! The log of a run, read once for all who follow it. What was read last is kept up to a size; a reader
//! that begins before it reads the log itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bytes::Bytes;
use lula_host::story::StoryEvent;
use lula_host::story::follow::RunLogFollower;
use lula_protocol::RunId;
use lula_store::{LogRecord, RunStatus, RunStore};
use serde::Serialize;
use tokio::sync::watch;

/// Most bytes of events that are kept of one run.
const KEPT: usize = 1 << 20;

/// One event as it is sent: what `lula logs --json` prints of it.
#[derive(Serialize)]
struct SentEvent<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    event: &'a StoryEvent,
    hash: String,
}

/// An event in the form of a stream.
pub(super) fn frame(run: &RunId, record: &LogRecord, event: &StoryEvent) -> Bytes {
    let sent = SentEvent {
        run,
        event,
        hash: record.hash.to_string(),
    };
    let data = serde_json::to_string(&sent).unwrap_or_default();
    let text = format!(
        "id: {}\nevent: {}\ndata: {data}\n\n",
        record.seq, event.event
    );
    Bytes::from(text)
}

/// The newest events of a run.
#[derive(Debug, Default)]
pub(super) struct KeptEvents {
    /// Position of the first one that is kept.
    first: u64,
    frames: VecDeque<Bytes>,
    bytes: usize,
}

/// What a reader at a position gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextEvents {
    /// These, and how many they are.
    Frames(Bytes, u64),
    /// It was kept once, or never.
    NotKept,
    /// Nothing has come since.
    None,
}

impl KeptEvents {
    fn push(&mut self, frame: Bytes) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
        while self.bytes > KEPT && self.frames.len() > 1 {
            if let Some(old) = self.frames.pop_front() {
                self.bytes -= old.len();
                self.first += 1;
            }
        }
    }

    fn next(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// What comes at a position, up to so many bytes.
    pub(super) fn after(&self, position: u64, most: usize) -> NextEvents {
        if position < self.first {
            return NextEvents::NotKept;
        }
        let skipped = usize::try_from(position - self.first).unwrap_or(usize::MAX);
        let mut taken = Vec::new();
        let mut count = 0;
        for frame in self.frames.iter().skip(skipped) {
            if count > 0 && taken.len() + frame.len() > most {
                break;
            }
            taken.extend_from_slice(frame);
            count += 1;
        }
        if count == 0 {
            return NextEvents::None;
        }
        NextEvents::Frames(Bytes::from(taken), count)
    }
}

/// How far the log of a run was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FeedPosition {
    pub(super) next: u64,
    /// Whether the run is over and all of it was read.
    pub(super) is_over: bool,
}

/// The log of one run, for all who follow it.
pub(super) struct Feed {
    pub(super) run: RunId,
    kept: RwLock<KeptEvents>,
    position: watch::Sender<FeedPosition>,
}

impl Feed {
    fn new(run: RunId) -> Self {
        Self {
            run,
            kept: RwLock::default(),
            position: watch::Sender::new(FeedPosition::default()),
        }
    }

    pub(super) fn after(&self, position: u64, most: usize) -> NextEvents {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.after(position, most)
    }

    pub(super) fn watch(&self) -> watch::Receiver<FeedPosition> {
        self.position.subscribe()
    }

    fn push(&self, frame: Bytes) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.push(frame);
    }

    fn tell(&self, is_over: bool) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let now = FeedPosition {
            next: kept.next(),
            is_over,
        };
        drop(kept);
        self.position.send_if_modified(|known| {
            let changed = *known != now;
            *known = now;
            changed
        });
    }
}

/// Reads a log for its feed until the run is over or no reader is left.
async fn fill(feed: Weak<Feed>, store: Arc<dyn RunStore>, run: RunId) {
    let mut follower = RunLogFollower::new(Arc::clone(&store), run.clone());
    let mut hints = store.watch();
    loop {
        // Asked before the log is read: what was written until then is read.
        let row = store.run(&run).await;
        loop {
            let Some(feed) = feed.upgrade() else { return };
            let read = follower.read_page(|record, event, _| {
                feed.push(frame(&run, record, event));
            });
            let more = read.await;
            feed.tell(false);
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%run, %error, "the log of a run cannot be read");
                    break;
                }
            }
        }
        let Some(feed) = feed.upgrade() else { return };
        if let Ok(Some(row)) = row
            && row.status == RunStatus::Done
            && feed.watch().borrow().next >= row.head.next
        {
            feed.tell(true);
            return;
        }
        drop(feed);
        RunLogFollower::wait(&mut hints).await;
    }
}

/// The feeds of all runs that are followed now.
#[derive(Default)]
pub(crate) struct Feeds(Mutex<HashMap<RunId, Weak<Feed>>>);

impl Feeds {
    /// The feed of a run; begun where it is the first to be followed.
    pub(super) fn of(&self, run: &RunId, store: &Arc<dyn RunStore>) -> Arc<Feed> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(run).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::new(run.clone()));
        feeds.insert(run.clone(), Arc::downgrade(&feed));
        tokio::spawn(fill(Arc::downgrade(&feed), Arc::clone(store), run.clone()));
        feed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: u8, size: usize) -> KeptEvents {
        let mut kept = KeptEvents::default();
        for number in 0..count {
            kept.push(Bytes::from(vec![number; size]));
        }
        kept
    }

    #[test]
    fn a_reader_gets_what_comes_after_its_position() {
        let kept = frames(3, 2);
        let all = NextEvents::Frames(Bytes::from_static(&[0, 0, 1, 1, 2, 2]), 3);
        assert_eq!(kept.after(0, 100), all);
        let rest = NextEvents::Frames(Bytes::from_static(&[2, 2]), 1);
        assert_eq!(kept.after(2, 100), rest);
        assert_eq!(kept.after(3, 100), NextEvents::None);
        // One at least, however long it is.
        let one = NextEvents::Frames(Bytes::from_static(&[0, 0]), 1);
        assert_eq!(kept.after(0, 1), one);
    }

    #[test]
    fn what_is_kept_has_a_size_and_who_fell_behind_is_told() {
        let kept = frames(5, KEPT / 2);
        assert_eq!((kept.first, kept.next()), (3, 5));
        assert!(kept.bytes <= KEPT);
        assert_eq!(kept.after(2, 100), NextEvents::NotKept);
        assert!(matches!(kept.after(3, 100), NextEvents::Frames(_, 1)));
    }
}
