//! Showing a run as it goes: the log is the source, and what takes a while says so itself.

use std::sync::Arc;

use lula_protocol::{Dimension, EventBody, RunId};
use lula_store::{Hint, Store};

use crate::term::{DIM, GOOD, Live, STRONG, WARN, paint};

/// Tells what is new in the log of a run.
pub(crate) struct Follower {
    store: Arc<dyn Store>,
    run: RunId,
    next: u64,
    spent_micro_usd: u64,
    calls: u64,
}

impl Follower {
    /// From the position on that the log has now.
    pub(crate) async fn new(store: Arc<dyn Store>, run: RunId) -> Self {
        let row = store.run(&run).await.ok().flatten();
        Self {
            next: row.map_or(0, |row| row.head.next),
            store,
            run,
            spent_micro_usd: 0,
            calls: 0,
        }
    }

    /// Tells until dropped.
    pub(crate) async fn follow(mut self, live: Arc<Live>) {
        let mut hints = self.store.watch();
        loop {
            self.catch_up(&live).await;
            match hints.recv().await {
                Ok(Hint::Run(run)) if run != self.run => {}
                Err(tokio::sync::broadcast::error::RecvError::Closed) => {
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
        }
    }

    /// Tells what is there and was not told.
    pub(crate) async fn catch_up(&mut self, live: &Live) {
        while let Ok(page) = self.store.read(&self.run, self.next, 256).await {
            if page.is_empty() {
                return;
            }
            self.next += page.len() as u64;
            for body in page.iter().filter_map(|record| record.read_body().ok()) {
                if let Some(line) = self.line(&body) {
                    live.tell(&line);
                }
            }
        }
    }

    fn line(&mut self, body: &EventBody) -> Option<String> {
        match body {
            EventBody::NodeLeft { node, outcome, .. } => Some(format!(
                "{} {} {}{}",
                paint(GOOD, "•"),
                paint(STRONG, node),
                paint(DIM, outcome),
                self.spend()
            )),
            EventBody::EffectSettled { spent, .. } => {
                let of = |dimension| spent.get(dimension).unwrap_or_default();
                self.spent_micro_usd += of(Dimension::MicroUsd);
                self.calls += of(Dimension::ModelCalls);
                None
            }
            EventBody::RunTaken { .. } => Some(paint(DIM, "going on with the run")),
            EventBody::EffectRetried { attempt, .. } => Some(paint(
                WARN,
                format!("doing a lost step again (try {attempt})"),
            )),
            EventBody::StuckDetected { node, .. } => Some(paint(
                WARN,
                format!("{node} does the same thing again and again"),
            )),
            _ => None,
        }
    }

    fn spend(&self) -> String {
        if self.calls == 0 {
            return String::new();
        }
        let text = format!(
            " ({} model calls, {})",
            self.calls,
            usd(self.spent_micro_usd)
        );
        paint(DIM, text)
    }
}

/// Millionths of a dollar as people write them.
pub(crate) fn usd(micro: u64) -> String {
    format!("${}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}
