//! What people did with the changes of earlier runs: what confidence is learned from.
//!
//! Votes stand in the logs of runs and merges in their repositories. That a change was taken back
//! stands in neither, because its run is over: it is noted in a file beside the runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_agents::Work;
use lula_agents::glean::{Features, Label};
use lula_graph::RunState;
use lula_protocol::{Decision, RunId};
use lula_store::{RunFilter, Store};
use lula_workspace::Git;

use super::reader;
use super::store::RUNS;
use crate::failure::Failure;
use crate::session::Session;

/// Older runs say little about the models of today, and each has to be read.
const RECENT: usize = 200;
/// Most changes taken back that are remembered.
const KEPT: usize = 1000;

fn file(session: &Session) -> Result<PathBuf, Failure> {
    Ok(session.state_directory()?.join(RUNS).join("undone.txt"))
}

fn undone(session: &Session) -> Result<Vec<String>, Failure> {
    match std::fs::read_to_string(file(session)?) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Notes that the change of a run was taken back.
pub(crate) fn was_undone(run: &RunId, session: &Session) -> Result<(), Failure> {
    let mut known = undone(session)?;
    known.retain(|one| one != run.as_str());
    known.push(run.to_string());
    let over = known.len().saturating_sub(KEPT);
    let path = file(session)?;
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, format!("{}\n", known[over..].join("\n")))?;
    Ok(std::fs::rename(&fresh, &path)?)
}

/// One change and what became of it.
pub(crate) struct Labelled {
    pub(crate) label: Label,
    pub(crate) features: Features,
}

/// Everything that is known of the newest runs.
pub(crate) async fn collect(
    store: Arc<dyn Store>,
    git: Option<&Git>,
    session: &Session,
) -> Result<Vec<Labelled>, Failure> {
    let undone: BTreeSet<String> = undone(session)?.into_iter().collect();
    let rows = store.runs(&RunFilter::default()).await?;
    let engine = reader(store)?;
    let mut labelled = Vec::new();
    for row in rows.iter().rev().take(RECENT) {
        // A run that cannot be read says nothing.
        let Ok(known) = engine.show(&row.run, None).await else {
            continue;
        };
        let Some(confidence) = &known.state.confidence else {
            continue;
        };
        let label = if undone.contains(row.run.as_str()) {
            Some(Label::Undone)
        } else {
            voted(&known).or_else(|| merged(&known.state, git))
        };
        labelled.extend(label.map(|label| Labelled {
            label,
            features: confidence.features.clone(),
        }));
    }
    Ok(labelled)
}

/// How people voted on a change. A vote given beforehand, for whatever would come, is none.
fn voted(known: &RunState<Work>) -> Option<Label> {
    if known.state.task.guidance.agreed_beforehand {
        return None;
    }
    let votes = known.progress.approvals.values();
    let votes: Vec<Decision> = votes
        .flat_map(|asked| asked.votes.values().map(|ballot| ballot.decision))
        .collect();
    if votes.contains(&Decision::Reject) {
        return Some(Label::Rejected);
    }
    votes
        .contains(&Decision::Approve)
        .then_some(Label::Approved)
}

/// Whether the branch of a change is part of what is checked out.
fn merged(work: &Work, git: Option<&Git>) -> Option<Label> {
    let commit = work.delivered.as_ref()?.commit.as_ref()?;
    let repository = Path::new(&work.task.repository);
    let arguments = ["merge-base", "--is-ancestor", commit.as_str(), "HEAD"];
    git?.run(repository, &arguments).ok()?;
    Some(Label::Merged)
}
