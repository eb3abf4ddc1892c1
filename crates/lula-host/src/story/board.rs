//! What a board of a plan shows while it is worked on: which tasks where there is no room for all, and how
//! far each is, in words. Pure.

use std::collections::BTreeMap;

use lula_agents::plan::{PlanGraph, PlanStepEntry, StepStatus};

/// As many as fit: who works and what went wrong first, then who waits, then what is done.
pub fn chosen<'a>(entries: &[&'a PlanStepEntry], lines: usize) -> Vec<&'a PlanStepEntry> {
    if entries.len() <= lines {
        return entries.to_vec();
    }
    let rank = |entry: &PlanStepEntry| match entry.status {
        StepStatus::Leased { .. }
        | StepStatus::AwaitingMerge { .. }
        | StepStatus::Conflict { .. } => 0,
        StepStatus::Failed { .. } => 1,
        StepStatus::Pending => 2,
        _ => 3,
    };
    let mut places: Vec<usize> = (0..entries.len()).collect();
    places.sort_by_key(|at| rank(entries[*at]));
    // One line is for the others.
    places.truncate(lines.saturating_sub(1));
    places.sort_unstable();
    places.into_iter().map(|at| entries[at]).collect()
}

/// `and 12 more: 8 merged, 4 pending`
pub fn counted(left: &[&&PlanStepEntry]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in left {
        *counts.entry(entry.status.name()).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!("and {} more: {}", left.len(), counts.join(", "))
}

/// How far a task is, in a few words.
pub fn progress_of(
    dag: &PlanGraph,
    entry: &PlanStepEntry,
    doing: &BTreeMap<String, String>,
) -> String {
    match &entry.status {
        StepStatus::Pending => dag
            .waits(&entry.step.id)
            .map_or_else(String::new, |wait| wait.to_string()),
        StepStatus::Leased { .. } => {
            let doing = doing
                .get(entry.step.id.as_str())
                .map_or("begins", String::as_str);
            if entry.attempts > 1 {
                format!("again: {doing}")
            } else {
                doing.to_owned()
            }
        }
        StepStatus::AwaitingMerge { .. } => "done, and on its way into the whole".to_owned(),
        StepStatus::Merged { .. } => "merged".to_owned(),
        StepStatus::Conflict { said } => {
            let said = said.lines().next().unwrap_or_default();
            format!("does not fit: {said}")
        }
        StepStatus::Failed { reason } => format!("failed: {reason}"),
        StepStatus::Skipped { reason } => format!("skipped: {reason}"),
        StepStatus::Cancelled | StepStatus::Superseded => entry.status.name().to_owned(),
    }
}
