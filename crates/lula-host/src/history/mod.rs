//! The newest runs of a store, read once: how models did in them, what people did with their changes,
//! and what they teach about a repository.

pub mod labels;
pub mod lessons;
pub mod listing;
pub mod standing;

use std::sync::Arc;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_store::{RunFilter, RunStore};

use crate::error::HostError;
use crate::runs::reader;

/// Older runs say little about the models of today, and each has to be read.
const RECENT: usize = 200;

/// The newest runs, the newest first.
pub struct History {
    store: Arc<dyn RunStore>,
    /// Each with its tenant.
    runs: Vec<(String, RunState<CodingState>)>,
    /// How many could not be read.
    pub unread: usize,
}

impl History {
    /// Reads the newest runs. A run whose log this program cannot read is left out and counted.
    pub async fn read(store: Arc<dyn RunStore>) -> Result<Self, HostError> {
        let rows = store.runs(&RunFilter::default()).await?;
        let engine = reader(Arc::clone(&store))?;
        let mut history = Self {
            store,
            runs: Vec::new(),
            unread: 0,
        };
        for row in rows.into_iter().rev().take(RECENT) {
            match engine.show(&row.run, None).await {
                Ok(known) => history.runs.push((row.tenant, known)),
                Err(_) => history.unread += 1,
            }
        }
        Ok(history)
    }

    fn states(&self) -> impl Iterator<Item = &RunState<CodingState>> {
        self.runs.iter().map(|(_, known)| known)
    }
}
