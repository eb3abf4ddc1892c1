//! What comes next in a plan, and what happened to its jobs.

use lula_protocol::RunId;
use serde::{Deserialize, Serialize};

use super::{
    MAX_JOBS, MAX_PATCHES, PlanGraph, PlanStepEntry, StepFailurePolicy, StepFailureReason, StepId,
    StepStatus,
};

/// So often an agent is put to a job: once more after a conflict.
pub const MAX_ATTEMPTS: u32 = 2;

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepTransition {
    /// An agent was put to it.
    Leased {
        /// Which.
        id: StepId,
        /// The agent's run.
        run: RunId,
    },
    /// Its agent is done.
    Produced {
        /// Which.
        id: StepId,
    },
    /// It is a part of the whole.
    Integrated {
        /// Which.
        id: StepId,
        /// As this commit; none where it only looked.
        commit: Option<String>,
    },
    /// It does not fit to what is there.
    Conflict {
        /// Which.
        id: StepId,
        /// What shows it.
        said: String,
    },
    /// It came to nothing.
    Failed {
        /// Which.
        id: StepId,
        /// Why.
        reason: StepFailureReason,
    },
    /// It will not be begun.
    Skipped {
        /// Which.
        id: StepId,
        /// Why.
        reason: StepFailureReason,
    },
}

/// Why a step cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{id} is {status}: it cannot be {to} now")]
pub struct StepTransitionError {
    /// The job that the step is about.
    pub id: StepId,
    /// How far it is.
    pub status: String,
    /// What it cannot be.
    pub to: &'static str,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchedulerMove {
    /// Make this job's result a part of the whole.
    Integrate(StepId),
    /// This job did not fit twice: find an agent or a person to resolve it.
    Resolve(StepId),
    /// Never begin these.
    Skip(Vec<(StepId, StepFailureReason)>),
    /// Put agents to these.
    Start(Vec<StepId>),
    /// Wait for one of the agents.
    Wait,
    /// Everything is over.
    Finish,
}

impl PlanGraph {
    /// What comes next, with so many agents at once.
    pub fn next(&self, at_once: usize) -> SchedulerMove {
        let produced = |entry: &&PlanStepEntry| matches!(entry.status, StepStatus::Produced { .. });
        if let Some(entry) = self.jobs.values().find(produced) {
            return SchedulerMove::Integrate(entry.job.id.clone());
        }
        let worn = |entry: &&PlanStepEntry| {
            matches!(entry.status, StepStatus::Conflict { .. }) && entry.attempts >= MAX_ATTEMPTS
        };
        if let Some(entry) = self.jobs.values().find(worn) {
            return SchedulerMove::Resolve(entry.job.id.clone());
        }
        let skipped = self.hopeless();
        if !skipped.is_empty() {
            return SchedulerMove::Skip(skipped);
        }
        let ready = self.ready(at_once);
        if !ready.is_empty() {
            return SchedulerMove::Start(ready);
        }
        if self.running().next().is_some() {
            return SchedulerMove::Wait;
        }
        SchedulerMove::Finish
    }

    /// Jobs that agents work on.
    pub fn running(&self) -> impl Iterator<Item = (&StepId, &RunId)> {
        self.jobs
            .iter()
            .filter_map(|(id, entry)| match &entry.status {
                StepStatus::Leased { run } => Some((id, run)),
                _ => None,
            })
    }

    /// Jobs that can be begun now: everything they need is integrated, and no agent is at files they
    /// may write. The first by name comes first.
    pub fn ready(&self, at_once: usize) -> Vec<StepId> {
        let mut busy: Vec<&PlanStepEntry> = self
            .jobs
            .values()
            .filter(|entry| entry.status.is_busy())
            .collect();
        let mut room = at_once.saturating_sub(self.running().count());
        let mut ready = Vec::new();
        for entry in self.jobs.values() {
            if room == 0 {
                break;
            }
            let open = match entry.status {
                StepStatus::Pending => true,
                StepStatus::Conflict { .. } => entry.attempts < MAX_ATTEMPTS,
                _ => false,
            };
            let met = |other: &&PlanStepEntry| {
                other.job.repo == entry.job.repo && other.job.scope.meets(&entry.job.scope)
            };
            if !open || !self.has_what_it_needs(entry) || busy.iter().any(met) {
                continue;
            }
            ready.push(entry.job.id.clone());
            busy.push(entry);
            room -= 1;
        }
        ready
    }

    fn has_what_it_needs(&self, entry: &PlanStepEntry) -> bool {
        entry.job.deps.iter().all(|dep| {
            self.jobs.get(dep).is_some_and(|needed| {
                matches!(
                    needed.status,
                    StepStatus::Integrated { .. } | StepStatus::Superseded
                )
            })
        })
    }

    /// Jobs that no agent has begun and none will.
    fn hopeless(&self) -> Vec<(StepId, StepFailureReason)> {
        let failed = |entry: &PlanStepEntry| matches!(entry.status, StepStatus::Failed { .. });
        let fast = self.on_failure == StepFailurePolicy::Fast && self.jobs.values().any(failed);
        let mut skipped = Vec::new();
        for (id, entry) in &self.jobs {
            if !matches!(entry.status, StepStatus::Pending) {
                continue;
            }
            let gone = entry.job.deps.iter().find(|dep| {
                self.jobs.get(*dep).is_none_or(|needed| {
                    matches!(
                        needed.status,
                        StepStatus::Failed { .. }
                            | StepStatus::Cancelled
                            | StepStatus::Skipped { .. }
                    )
                })
            });
            if let Some(job) = gone {
                skipped.push((id.clone(), StepFailureReason::Needs { job: job.clone() }));
            } else if fast {
                skipped.push((id.clone(), StepFailureReason::FailFast));
            }
        }
        skipped
    }

    /// Takes note of what happened to a job.
    pub fn step(&mut self, step: &StepTransition) -> Result<(), StepTransitionError> {
        let (id, to) = match step {
            StepTransition::Leased { id, .. } => (id, "running"),
            StepTransition::Produced { id } => (id, "produced"),
            StepTransition::Integrated { id, .. } => (id, "integrated"),
            StepTransition::Conflict { id, .. } => (id, "in conflict"),
            StepTransition::Failed { id, .. } => (id, "failed"),
            StepTransition::Skipped { id, .. } => (id, "skipped"),
        };
        let wrong = |status: &str| StepTransitionError {
            id: id.clone(),
            status: status.to_owned(),
            to,
        };
        let ready = matches!(step, StepTransition::Leased { .. })
            && self
                .jobs
                .get(id)
                .is_some_and(|entry| self.has_what_it_needs(entry));
        let entry = self.jobs.get_mut(id).ok_or_else(|| wrong("not there"))?;
        let next = match (&entry.status, step) {
            (
                StepStatus::Pending | StepStatus::Conflict { .. },
                StepTransition::Leased { run, .. },
            ) if ready && entry.attempts < MAX_ATTEMPTS => {
                entry.attempts += 1;
                StepStatus::Leased { run: run.clone() }
            }
            (StepStatus::Leased { run }, StepTransition::Produced { .. }) => {
                StepStatus::Produced { run: run.clone() }
            }
            (StepStatus::Produced { .. }, StepTransition::Integrated { commit, .. }) => {
                StepStatus::Integrated {
                    commit: commit.clone(),
                }
            }
            (StepStatus::Produced { .. }, StepTransition::Conflict { said, .. }) => {
                StepStatus::Conflict { said: said.clone() }
            }
            (
                StepStatus::Leased { .. }
                | StepStatus::Produced { .. }
                | StepStatus::Conflict { .. },
                StepTransition::Failed { reason, .. },
            ) => StepStatus::Failed {
                reason: reason.clone(),
            },
            (StepStatus::Pending, StepTransition::Skipped { reason, .. }) => StepStatus::Skipped {
                reason: reason.clone(),
            },
            (status, _) => return Err(wrong(status.name())),
        };
        entry.status = next;
        Ok(())
    }

    /// Goes down with everything that happens, in this order: jobs that may be added, patches that
    /// may be made, steps that jobs may take. So a plan comes to an end.
    pub fn measure(&self) -> (usize, u32, u32) {
        let steps = self.jobs.values().map(|entry| {
            let rank = match entry.status {
                StepStatus::Pending => 3,
                StepStatus::Leased { .. } => 2,
                StepStatus::Produced { .. } => 1,
                StepStatus::Conflict { .. } => 0,
                _ => return 0,
            };
            MAX_ATTEMPTS.saturating_sub(entry.attempts) * 4 + rank + 1
        });
        (
            MAX_JOBS.saturating_sub(self.jobs.len()),
            MAX_PATCHES.saturating_sub(self.patches),
            steps.sum(),
        )
    }
}
