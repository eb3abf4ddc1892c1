//! A plan as a graph of jobs. Pure: jobs, what needs what, how far each is, and what comes next.
//! Whoever drives it acts elsewhere and tells what happened.

mod job;
mod patch;
mod schedule;
mod scope;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use job::{Job, JobId, Reason, Status};
pub use patch::{Bounds, MAX_JOBS, MAX_PATCHES, Op, Patch, Refusal};
pub use schedule::{MAX_ATTEMPTS, Move, Step, StepError};
pub use scope::Scope;

/// What the failure of one job means for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Only what needs it is skipped.
    #[default]
    Isolated,
    /// Nothing else is begun.
    Fast,
}

/// A job with how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The job.
    pub job: Job,
    /// How far it is.
    #[serde(flatten)]
    pub status: Status,
    /// How often an agent was put to it.
    pub attempts: u32,
}

/// A plan as a graph of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dag {
    /// Goes up with every patch.
    pub version: u32,
    /// How many patches there were.
    pub patches: u32,
    /// What a failure means for the others.
    pub on_failure: OnFailure,
    /// The jobs by name.
    pub jobs: BTreeMap<JobId, Entry>,
}

impl Dag {
    /// A plan of these jobs.
    pub fn new(
        jobs: Vec<Job>,
        on_failure: OnFailure,
        bounds: &Bounds<'_>,
    ) -> Result<Self, Refusal> {
        let empty = Self {
            on_failure,
            ..Self::default()
        };
        let ops = jobs.into_iter().map(|job| Op::AddTask { job }).collect();
        empty.patch(
            &Patch {
                base_version: 0,
                ops,
            },
            bounds,
        )
    }

    /// Whether every job is a part of the whole, or was taken out of the plan on purpose.
    pub fn is_whole(&self) -> bool {
        let wanted = |entry: &&Entry| {
            !matches!(
                entry.status,
                Status::Integrated { .. } | Status::Superseded | Status::Cancelled
            )
        };
        !self.jobs.values().any(|entry| wanted(&entry))
            && self
                .jobs
                .values()
                .any(|entry| matches!(entry.status, Status::Integrated { .. }))
    }

    /// The jobs in an order in which each comes after what it needs; by name where that leaves a
    /// choice.
    pub fn in_order(&self) -> Vec<&Entry> {
        let mut order: Vec<&Entry> = Vec::new();
        while order.len() < self.jobs.len() {
            let done = |id: &JobId| order.iter().any(|entry| entry.job.id == *id);
            let next = self.jobs.values().find(|entry| {
                let open = |dep: &JobId| self.jobs.contains_key(dep) && !done(dep);
                !done(&entry.job.id) && !entry.job.deps.iter().any(open)
            });
            // A plan has no cycle; were there one, the rest is left out rather than looked for.
            let Some(next) = next else { break };
            order.push(next);
        }
        order
    }
}
