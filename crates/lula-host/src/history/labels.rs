//! What people did with the changes of earlier runs: what confidence is learned from.
//!
//! Votes stand in the logs of runs and merges in their repositories. That a change was taken back
//! stands in neither, because its run is over: it is noted in a file beside the runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lula_agents::CodingState;
use lula_agents::guidelines::confidence::learn;
use lula_agents::guidelines::{ConfidenceCalibration, ConfidenceFeatures, ReviewLabel};
use lula_graph::RunState;
use lula_protocol::{ApprovalDecision, RunId};
use lula_workspace::GitProgram;

use super::History;
use crate::error::HostError;
use crate::installation::Installation;
use crate::store::RUNS;

/// Most changes taken back that are remembered.
const KEPT: usize = 1000;

fn file(installation: &Installation) -> Result<PathBuf, HostError> {
    Ok(installation
        .state_directory()?
        .join(RUNS)
        .join("undone.txt"))
}

fn undone(installation: &Installation) -> Result<Vec<String>, HostError> {
    let path = file(installation)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(HostError::File { path, error }),
    }
}

/// Notes that the change of a run was taken back.
pub fn was_undone(run: &RunId, installation: &Installation) -> Result<(), HostError> {
    let mut known = undone(installation)?;
    known.retain(|one| one != run.as_str());
    known.push(run.to_string());
    let over = known.len().saturating_sub(KEPT);
    let path = file(installation)?;
    let fresh = path.with_extension("new");
    let text = format!("{}\n", known[over..].join("\n"));
    std::fs::write(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|error| HostError::File { path, error })
}

/// One change and what became of it.
pub struct LabelledChange {
    /// What became of it.
    pub label: ReviewLabel,
    /// What was seen of it before.
    pub features: ConfidenceFeatures,
}

impl History {
    /// What people did with the changes of these runs.
    pub fn labels(
        &self,
        git: Option<&GitProgram>,
        installation: &Installation,
    ) -> Result<Vec<LabelledChange>, HostError> {
        let undone: BTreeSet<String> = undone(installation)?.into_iter().collect();
        let mut labelled = Vec::new();
        for known in self.states() {
            let Some(confidence) = &known.state.confidence else {
                continue;
            };
            let label = if undone.contains(known.progress.run.as_str()) {
                Some(ReviewLabel::Undone)
            } else {
                voted(known).or_else(|| merged(&known.state, git))
            };
            labelled.extend(label.map(|label| LabelledChange {
                label,
                features: confidence.features.clone(),
            }));
        }
        Ok(labelled)
    }

    /// What was learned from what people did with earlier changes, where they did something.
    pub fn calibration(
        &self,
        git: Option<&GitProgram>,
        installation: &Installation,
    ) -> Result<Option<ConfidenceCalibration>, HostError> {
        let labelled: Vec<_> = self
            .labels(git, installation)?
            .into_iter()
            .map(|one| (one.features, one.label.is_good()))
            .collect();
        Ok((!labelled.is_empty()).then(|| learn(&labelled)))
    }
}

/// How people voted on a change. A vote given beforehand, for whatever would come, is none.
fn voted(known: &RunState<CodingState>) -> Option<ReviewLabel> {
    if known.state.task.guidance.agreed_beforehand {
        return None;
    }
    let votes = known.progress.approvals.values();
    let votes: Vec<ApprovalDecision> = votes
        .flat_map(|asked| asked.votes.values().map(|ballot| ballot.decision))
        .collect();
    if votes.contains(&ApprovalDecision::Reject) {
        return Some(ReviewLabel::Rejected);
    }
    votes
        .contains(&ApprovalDecision::Approve)
        .then_some(ReviewLabel::Approved)
}

/// Whether the branch of a change is part of what is checked out.
fn merged(work: &CodingState, git: Option<&GitProgram>) -> Option<ReviewLabel> {
    let commit = work.delivered_of(0)?.commit.as_ref()?;
    let repository = Path::new(work.task.repository(0));
    let arguments = ["merge-base", "--is-ancestor", commit.as_str(), "HEAD"];
    git?.run(repository, &arguments).ok()?;
    Some(ReviewLabel::Merged)
}
