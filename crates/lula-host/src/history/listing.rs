//! Every run of a store in one line of facts.

use std::sync::Arc;

use lula_agents::CodingGraph;
use lula_graph::GraphEngine;
use lula_protocol::event::ParentRun;
use lula_protocol::{BudgetAmounts, RunExit, RunId};
use lula_store::{RunFilter, RunRow, RunStatus, RunStore};
use serde::Serialize;

use crate::drive::worker::is_dead;
use crate::error::HostError;
use crate::report::RunReport;
use crate::runs::reader;
use crate::standing::RunStanding;

/// One run in the list.
#[derive(Debug, Serialize)]
pub struct RunListing {
    pub run: RunId,
    /// How the store has it.
    pub status: RunStatus,
    /// In a word for people: verified, failed, running, waiting, interrupted…
    pub standing: RunStanding,
    /// The exit status of the command, as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<RunExit>,
    /// What it is to do.
    pub task: String,
    /// The repository it works on, the first where there are several.
    #[serde(skip)]
    pub repository: String,
    /// Unix time in milliseconds.
    pub started_ms: u64,
    /// How long its log is.
    pub events: u64,
    /// What came of it, in one sentence.
    pub summary: String,
    #[serde(skip_serializing_if = "BudgetAmounts::is_empty")]
    pub spent: BudgetAmounts,
    /// The run it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
}

/// All runs, but those of agents, which are told of with the run they work for.
pub async fn list(store: Arc<dyn RunStore>) -> Result<Vec<RunListing>, HostError> {
    let reader = reader(Arc::clone(&store))?;
    let mut rows = Vec::new();
    for row in store.runs(&RunFilter::default()).await? {
        rows.extend(RunListing::of(row, &reader, &*store).await);
    }
    Ok(rows)
}

impl RunListing {
    /// One run; nothing where it is an agent's.
    pub async fn of(
        row: RunRow,
        reader: &GraphEngine<CodingGraph>,
        store: &dyn RunStore,
    ) -> Option<Self> {
        let started_ms = started_ms(store, &row.run).await;
        // One run that cannot be read must not hide the others.
        let known = reader.show(&row.run, None).await;
        if let Ok(known) = &known
            && known.state.task.handoff.is_some()
        {
            return None;
        }
        let driven = is_driven(&row);
        let (task, report, unreadable) = match &known {
            Ok(known) => (
                known.state.task.text.clone(),
                Some(RunReport::of(known)),
                None,
            ),
            Err(error) => (String::new(), None, Some(error.to_string())),
        };
        let standing = match &report {
            None => RunStanding::Unreadable,
            Some(report) if row.status == RunStatus::Done => RunStanding::ended(report.exit),
            Some(_) if driven => RunStanding::Running,
            Some(report) => report.standing(),
        };
        Some(Self {
            run: row.run,
            status: row.status,
            standing,
            exit: report.as_ref().map(|report| report.exit),
            task,
            started_ms,
            events: row.head.next,
            spent: report
                .as_ref()
                .map(|it| it.spent.clone())
                .unwrap_or_default(),
            summary: match report {
                Some(_) if driven => String::new(),
                Some(report) => report.summary,
                None => unreadable.unwrap_or_default(),
            },
            repository: known.map_or_else(
                |_| String::new(),
                |known| known.state.task.repository(0).to_owned(),
            ),
            parent: row.parent,
        })
    }
}

/// Whether a process works on it now.
pub fn is_driven(row: &RunRow) -> bool {
    row.status == RunStatus::Running && !row.owner.as_deref().is_some_and(is_dead)
}

/// When a run began, in Unix milliseconds.
pub async fn started_ms(store: &dyn RunStore, run: &RunId) -> u64 {
    let first = store.read(run, 0, 1).await.ok();
    first
        .and_then(|page| page.first().map(|record| record.at_ms))
        .unwrap_or_default()
}
