//! A run derived again from its record.

use lula_protocol::{RunExit, RunId};
use lula_store::SecretGuard;
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::{runs, store};

/// What a replay showed.
#[derive(Debug, Serialize)]
pub struct ReplaySummary {
    pub run: RunId,
    /// How many events its log has.
    pub events: u64,
    /// How many visits of nodes were derived again.
    pub visits: u64,
    /// The digest of the state they add up to.
    pub state_digest: String,
    /// Events that come out otherwise.
    pub differences: Vec<String>,
    /// Positions of visits whose answers were dropped to make room.
    pub dropped: Vec<u64>,
    /// Positions of visits that an earlier version did otherwise: taken as they were recorded.
    pub older: Vec<u64>,
}

impl ReplaySummary {
    /// Derives the run of that name again.
    pub async fn of(name: &str, installation: &Installation) -> Result<Self, HostError> {
        let store = store::open(installation, SecretGuard::default()).await?;
        let run = runs::named(&*store, name).await?;
        let replayed = runs::reader(store)?.replay(&run).await?;
        let differences = replayed.differences.iter();
        Ok(Self {
            run,
            events: replayed.events,
            visits: replayed.visits,
            state_digest: replayed.state.to_string(),
            differences: differences
                .map(|one| format!("event {}: {}", one.seq, one.what))
                .collect(),
            dropped: replayed.dropped,
            older: replayed.older,
        })
    }

    /// The exit status of `lula replay`.
    pub const fn exit(&self) -> RunExit {
        if !self.differences.is_empty() {
            return RunExit::Failed;
        }
        if self.dropped.is_empty() && self.older.is_empty() {
            RunExit::Verified
        } else {
            RunExit::Inconclusive
        }
    }
}
