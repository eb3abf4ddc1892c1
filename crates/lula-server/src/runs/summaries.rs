//! What is said of each run in a list. A run that is over is read once: its log does not change any more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lula_host::history::listing::{RunListing, is_driven};
use lula_protocol::RunId;
use lula_store::{RunRow, RunStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::ServerState;

/// So many runs are remembered before all are read anew.
const REMEMBERED: usize = 16_384;

/// A run in a few facts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    pub(crate) run: String,
    /// How the store has it: `ready`, `running`, `suspended` or `done`.
    pub(crate) status: String,
    /// In a word for people: verified, failed, running, waiting, interrupted…
    pub(crate) standing: String,
    /// The exit status that the command line would have.
    pub(crate) exit: Option<String>,
    pub(crate) task: String,
    pub(crate) repository: String,
    /// Who began it, where it was begun here.
    pub(crate) by: Option<String>,
    /// Unix time in milliseconds.
    pub(crate) started_ms: u64,
    /// How long its log is.
    pub(crate) events: u64,
    /// What came of it, in one sentence.
    pub(crate) summary: String,
    /// What was spent, by dimension.
    pub(crate) spent: std::collections::BTreeMap<String, u64>,
    /// The run it was forked from.
    pub(crate) parent: Option<String>,
    /// The last event of that one which was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_at: Option<u64>,
}

/// What is remembered of runs that are over, and where each run works.
#[derive(Debug, Default)]
pub(crate) struct Summaries {
    over: Mutex<HashMap<RunId, RunSummary>>,
    places: Mutex<HashMap<RunId, String>>,
}

impl Summaries {
    /// What is said of a run; nothing where this server does not show it.
    pub(crate) async fn of(&self, row: &RunRow, state: &ServerState) -> Option<RunSummary> {
        let is_over = row.status == RunStatus::Done;
        if is_over {
            let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = over.get(&row.run) {
                return Some(known.clone());
            }
        }
        let summary = read(row, state).await?;
        if is_over {
            let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
            if over.len() >= REMEMBERED {
                over.clear();
            }
            over.insert(row.run.clone(), summary.clone());
        }
        Some(summary)
    }

    /// The repository of a run; nothing where this server does not show the run.
    pub(crate) async fn repository(&self, row: &RunRow, state: &ServerState) -> Option<String> {
        {
            let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = places.get(&row.run) {
                return Some(known.clone());
            }
        }
        let found = self.of(row, state).await?.repository;
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED {
            places.clear();
        }
        places.insert(row.run.clone(), found.clone());
        Some(found)
    }
}

async fn read(row: &RunRow, state: &ServerState) -> Option<RunSummary> {
    let driven = is_driven(row) || state.drivers.has(&row.run);
    let listing = RunListing::of(row.clone(), &state.reader, &*state.store).await?;
    let repository = state.repositories.name_of(&listing.repository)?.to_owned();
    let by = state.records.begun_by(&row.run).ok().flatten();
    let waits_for_driver = driven && row.status != RunStatus::Done;
    let standing = if waits_for_driver {
        "running"
    } else {
        listing.standing.word()
    };
    let exit = listing.exit.filter(|_| !waits_for_driver);
    let exit = exit.and_then(|exit| serde_json::to_value(exit).ok());
    Some(RunSummary {
        run: listing.run.to_string(),
        status: listing.status.name().to_owned(),
        standing: standing.to_owned(),
        exit: exit.and_then(|exit| exit.as_str().map(str::to_owned)),
        task: listing.task,
        repository,
        by: by.map(|by| by.to_string()),
        started_ms: listing.started_ms,
        events: listing.events,
        summary: if waits_for_driver {
            String::new()
        } else {
            listing.summary
        },
        spent: listing
            .spent
            .iter()
            .map(|(dimension, amount)| (dimension.name().to_owned(), amount))
            .collect(),
        forked_at: listing.parent.as_ref().map(|parent| parent.seq),
        parent: listing.parent.map(|parent| parent.run.to_string()),
    })
}
