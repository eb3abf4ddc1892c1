//! Saying something to a run, whichever process drives it.

use std::sync::Arc;
use std::time::Duration;

use lula_agents::{CodingGraph, CodingState, ReadOnlyWorld};
use lula_graph::{EngineOptions, GraphEngine, RunState};
use lula_protocol::{RunId, RunSignal};
use lula_store::{RunStatus, RunStore};

use super::worker::{self, RunBlocker};
use crate::error::HostError;
use crate::installation::Installation;
use crate::record::local_principal;
use crate::repository::find_git;
use crate::runner_client;
use crate::runs::{reader, seal_key};

/// Longest note. It is paid for with every turn that follows.
const LONGEST: usize = 4000;
/// How long to wait for the process that drives the run.
const PATIENCE: Duration = Duration::from_secs(20);

async fn known(run: &RunId, store: &Arc<dyn RunStore>) -> Result<RunState<CodingState>, HostError> {
    let known = reader(Arc::clone(store))?.show(run, None).await?;
    if known.progress.ended.is_some() {
        return Err(HostError::RunOver(run.clone()));
    }
    Ok(known)
}

/// A note that a run can be told.
#[derive(Debug, Clone)]
pub struct Note(String);

impl Note {
    /// Refused where it is empty or too long.
    pub fn new(text: &str) -> Result<Self, HostError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(HostError::NoteRefused("the note is empty".to_owned()));
        }
        if text.chars().count() > LONGEST {
            let why = format!("the note is longer than {LONGEST} characters");
            return Err(HostError::NoteRefused(why));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Tells a run something, which its model hears with its next turn. Tells whether it has one.
pub async fn steer(run: &RunId, note: Note, store: &Arc<dyn RunStore>) -> Result<bool, HostError> {
    let known = known(run, store).await?;
    let (by, text) = (local_principal()?, note.0);
    store.send(run, &RunSignal::Steer { by, text }).await?;
    Ok(!known.state.task.models.is_empty())
}

/// Ends a run with its agents, and tells what its log says of the end.
pub async fn cancel(
    run: &RunId,
    reason: &str,
    store: &Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<String, HostError> {
    known(run, store).await?;
    let (by, reason) = (local_principal()?, reason.to_owned());
    store.send(run, &RunSignal::Cancel { by, reason }).await?;
    let end = tokio::time::Instant::now() + PATIENCE;
    while !ended(run, store, installation).await? {
        if tokio::time::Instant::now() >= end {
            return Err(HostError::NotEnded(run.clone()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let known = reader(Arc::clone(store))?.show(run, None).await?;
    end_agents(&known, store, installation).await?;
    let ended = known.progress.ended;
    Ok(ended.map(|ended| ended.summary).unwrap_or_default())
}

/// Ends the agents of a run that is over, where the process that drove it did not.
async fn end_agents(
    known: &RunState<CodingState>,
    store: &Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<(), HostError> {
    for agent in &known.state.agents_at_work() {
        let Some(row) = store.run(agent).await? else {
            continue;
        };
        if row.status == RunStatus::Done {
            continue;
        }
        let (by, reason) = (local_principal()?, "the run it worked for ended".to_owned());
        store.send(agent, &RunSignal::Cancel { by, reason }).await?;
        ended(agent, store, installation).await?;
    }
    Ok(())
}

/// Whether the run is over. One that no process drives is ended here: that needs no runner.
async fn ended(
    run: &RunId,
    store: &Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<bool, HostError> {
    let Some(row) = store.run(run).await? else {
        return Ok(true);
    };
    if row.status == RunStatus::Done {
        return Ok(true);
    }
    if let RunBlocker::Free = worker::release_dead(&**store, &row).await? {
        let options = EngineOptions {
            worker: worker::name(),
            seal: Some(seal_key(installation)?),
            ..EngineOptions::default()
        };
        let engine = GraphEngine::new(
            CodingGraph,
            Arc::clone(store),
            Arc::new(ReadOnlyWorld),
            options,
        )?;
        // Another process may have been faster; then it is looked at again.
        if engine.resume(run).await?.is_some() {
            // Space, not correctness.
            let _ = runner_client::clear_here(run, &find_git(installation)?, installation);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_something_and_not_too_much() {
        assert!(Note::new(" \n").is_err());
        assert!(Note::new(&"x".repeat(LONGEST + 1)).is_err());
        assert_eq!(Note::new(" mind the cache ").unwrap().0, "mind the cache");
    }
}
