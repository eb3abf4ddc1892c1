//! Following the log of a run, whichever process writes it.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::{EventPayload, RunId};
use lula_store::{LogRecord, RunStore, StoreError, StoreHint};
use serde_json::Value;

use super::{StoryEvent, StoryTeller};

/// How often the log is looked at without a hint: another process gives none.
const LOOK: Duration = Duration::from_millis(250);

/// Reads what is new in the log of a run.
pub struct RunLogFollower {
    store: Arc<dyn RunStore>,
    run: RunId,
    next: u64,
    /// What was told so far.
    pub teller: StoryTeller,
}

impl RunLogFollower {
    /// From the first event on.
    pub fn new(store: Arc<dyn RunStore>, run: RunId) -> Self {
        Self {
            store,
            run,
            next: 0,
            teller: StoryTeller::default(),
        }
    }

    /// What is there and was not read, event by event.
    pub async fn catch_up(
        &mut self,
        mut hear: impl FnMut(&LogRecord, &StoryEvent, &StoryTeller),
    ) -> Result<(), StoreError> {
        while self.read_page(&mut hear).await? {}
        Ok(())
    }

    /// The next page of what is there and was not read. Tells whether there was anything.
    pub async fn read_page(
        &mut self,
        mut hear: impl FnMut(&LogRecord, &StoryEvent, &StoryTeller),
    ) -> Result<bool, StoreError> {
        let page = self.store.read(&self.run, self.next, 256).await?;
        for record in &page {
            let body = record.read_body()?;
            let mut values = Vec::new();
            for payload in body.payloads() {
                values.push(fetch(&*self.store, payload).await);
            }
            let moment = self.teller.tell((record.seq, record.at_ms), &body, &values);
            hear(record, &moment, &self.teller);
            self.next = record.seq + 1;
        }
        Ok(!page.is_empty())
    }

    /// Waits until there may be something new.
    pub async fn wait(hints: &mut tokio::sync::broadcast::Receiver<StoreHint>) {
        let news = async {
            if hints.recv().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(LOOK, news).await;
    }

    /// Reads the log as it grows, until the future is dropped.
    pub async fn follow(mut self, mut hear: impl FnMut(&LogRecord, &StoryEvent, &StoryTeller)) {
        let mut hints = self.store.watch();
        loop {
            // A store that cannot be read now is read again soon; who drives the run says why.
            let _ = self.catch_up(&mut hear).await;
            Self::wait(&mut hints).await;
        }
    }
}

/// The value of a payload. One that is gone says nothing.
pub(crate) async fn fetch(store: &dyn RunStore, payload: &EventPayload) -> Value {
    match payload {
        EventPayload::Inline(value) => value.clone(),
        EventPayload::Blob(reference) => match store.blob(&reference.digest).await {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Value::Null,
        },
    }
}
