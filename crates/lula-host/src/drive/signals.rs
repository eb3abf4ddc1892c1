//! Saying something to a run, whichever process drives it.

use std::sync::Arc;
use std::time::Duration;

use lula_agents::plan::StepId;
use lula_agents::team::notes::addressed;
use lula_agents::{CodingGraph, CodingState, ReadOnlyWorld};
use lula_graph::{EngineOptions, GraphEngine, RunState};
use lula_protocol::{Principal, RunId, RunSignal};
use lula_store::{RunStatus, RunStore};

use super::worker::{self, RunBlocker};
use crate::error::HostError;
use crate::installation::Installation;
use crate::repository::find_git;
use crate::runner_client;
use crate::runs::{reader, seal_key};

/// Longest note. It is paid for with every turn that follows.
const LONGEST: usize = 4000;
/// When it is looked for agents that began while a note was sent.
const SECOND_LOOK: Duration = Duration::from_millis(400);
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

    /// The text that the model hears.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Who hears a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteAudience {
    /// Whether a model works on the run at all.
    pub model: bool,
    /// The tasks whose agents hear it with their next turn.
    pub agents: Vec<String>,
}

impl NoteAudience {
    /// The agents, as the end of a sentence about who is told.
    pub fn told(&self) -> String {
        match self.agents.as_slice() {
            [] => String::new(),
            agents => format!(": the agents of {}", agents.join(", ")),
        }
    }
}

/// Has a run told something by a person, which its model hears with its next turn. Where agents work for it, those
/// at work hear it too, and every later one begins with it; with a task, only the agents of that one.
pub async fn steer(
    run: &RunId,
    task: Option<&str>,
    note: Note,
    by: &Principal,
    store: &Arc<dyn RunStore>,
) -> Result<NoteAudience, HostError> {
    let first = known(run, store).await?;
    let task = task.map(|name| named_task(&first, name)).transpose()?;
    let text = match &task {
        Some(task) => addressed(task, &note.0),
        None => note.0.clone(),
    };
    let signal = RunSignal::Steer {
        by: by.clone(),
        text,
    };
    store.send(run, &signal).await?;
    let mut audience = NoteAudience {
        model: !first.state.task.models.is_empty(),
        agents: Vec::new(),
    };
    let mut told: Vec<RunId> = Vec::new();
    // The run that leads may just have put an agent to a task, without the note: a second look finds it.
    for look in 0..2 {
        if look > 0 {
            tokio::time::sleep(SECOND_LOOK).await;
        }
        let now = reader(Arc::clone(store))?.show(run, None).await?;
        for (name, agent) in now.state.agents_by_task() {
            let wanted = task.as_ref().is_none_or(|task| *task == name);
            if !wanted || told.contains(&agent) || !hears(&agent, &note.0, store).await? {
                continue;
            }
            let signal = RunSignal::Steer {
                by: by.clone(),
                text: note.0.clone(),
            };
            store.send(&agent, &signal).await?;
            told.push(agent);
            audience.agents.push(name.to_string());
        }
    }
    Ok(audience)
}

/// Whether an agent is at work that did not begin with this note.
async fn hears(agent: &RunId, note: &str, store: &Arc<dyn RunStore>) -> Result<bool, HostError> {
    let Some(row) = store.run(agent).await? else {
        return Ok(false);
    };
    if row.status == RunStatus::Done {
        return Ok(false);
    }
    let known = reader(Arc::clone(store))?.show(agent, None).await?;
    let handed = known.state.task.handoff.as_ref();
    Ok(!handed.is_some_and(|handoff| handoff.notes.iter().any(|known| known == note)))
}

/// The task of a plan with that name, if its agent could still hear something.
fn named_task(known: &RunState<CodingState>, name: &str) -> Result<StepId, HostError> {
    let refused = |why: String| Err(HostError::NoteRefused(why));
    let Some(joint) = &known.state.joint else {
        return refused("the run has no tasks: there is no plan of several agents yet".to_owned());
    };
    let found = joint
        .dag
        .steps
        .iter()
        .find(|(id, _)| id.as_str() == name.trim());
    match found {
        Some((id, entry)) if entry.status.is_over() => {
            refused(format!("the task {id} is {}", entry.status.name()))
        }
        Some((id, _)) => Ok(id.clone()),
        None => {
            let open = joint.dag.steps.values();
            let open = open.filter(|entry| !entry.status.is_over());
            let names: Vec<String> = open.map(|entry| entry.step.id.to_string()).collect();
            let names = if names.is_empty() {
                "none is open".to_owned()
            } else {
                names.join(", ")
            };
            refused(format!("the run has no task {name:?}: {names}"))
        }
    }
}

/// Ends a run with its agents for a person, and tells what its log says of the end.
pub async fn cancel(
    run: &RunId,
    reason: &str,
    by: &Principal,
    store: &Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<String, HostError> {
    known(run, store).await?;
    let cancel = RunSignal::Cancel {
        by: by.clone(),
        reason: reason.to_owned(),
    };
    store.send(run, &cancel).await?;
    let end = tokio::time::Instant::now() + PATIENCE;
    while !ended(run, store, installation).await? {
        if tokio::time::Instant::now() >= end {
            return Err(HostError::NotEnded(run.clone()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let known = reader(Arc::clone(store))?.show(run, None).await?;
    end_agents(&known, by, store, installation).await?;
    let ended = known.progress.ended;
    Ok(ended.map(|ended| ended.summary).unwrap_or_default())
}

/// Ends the agents of a run that is over, where the process that drove it did not.
async fn end_agents(
    known: &RunState<CodingState>,
    by: &Principal,
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
        let cancel = RunSignal::Cancel {
            by: by.clone(),
            reason: "the run it worked for ended".to_owned(),
        };
        store.send(agent, &cancel).await?;
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
