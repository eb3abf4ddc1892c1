//! Following the log of a run, whoever writes it.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::{Payload, RunId};
use lula_store::{Hint, Record, Store, StoreError};
use serde_json::Value;

use super::story::{Moment, Teller};

/// How often the log is looked at without a hint: another process gives none.
const LOOK: Duration = Duration::from_millis(250);

/// Reads what is new in the log of a run.
pub(crate) struct Follower {
    store: Arc<dyn Store>,
    run: RunId,
    next: u64,
    /// What was told so far.
    pub(crate) teller: Teller,
}

impl Follower {
    /// From the first event on.
    pub(crate) fn new(store: Arc<dyn Store>, run: RunId) -> Self {
        Self {
            store,
            run,
            next: 0,
            teller: Teller::default(),
        }
    }

    /// What is there and was not read, event by event.
    pub(crate) async fn catch_up(
        &mut self,
        mut hear: impl FnMut(&Record, &Moment, &Teller),
    ) -> Result<(), StoreError> {
        loop {
            let page = self.store.read(&self.run, self.next, 256).await?;
            if page.is_empty() {
                return Ok(());
            }
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
        }
    }

    /// Waits until there may be something new.
    pub(crate) async fn wait(hints: &mut tokio::sync::broadcast::Receiver<Hint>) {
        let news = async {
            if hints.recv().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(LOOK, news).await;
    }

    /// Reads until dropped.
    pub(crate) async fn follow(mut self, mut hear: impl FnMut(&Record, &Moment, &Teller)) {
        let mut hints = self.store.watch();
        loop {
            // A store that cannot be read now is read again soon; who drives the run says why.
            let _ = self.catch_up(&mut hear).await;
            Self::wait(&mut hints).await;
        }
    }
}

/// The value of a payload. One that is gone says nothing.
pub(super) async fn fetch(store: &dyn Store, payload: &Payload) -> Value {
    match payload {
        Payload::Inline(value) => value.clone(),
        Payload::Blob(reference) => match store.blob(&reference.digest).await {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Value::Null,
        },
    }
}
