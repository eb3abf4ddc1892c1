//! What comes next in a plan, and what happened to its steps.

use lula_protocol::RunId;
use serde::{Deserialize, Serialize};

use super::{
    MAX_PATCHES, MAX_STEPS, PlanGraph, PlanStepEntry, StepFailurePolicy, StepFailureReason, StepId,
    StepStatus,
};

/// So often an agent is put to a step: once more after a conflict.
pub const MAX_ATTEMPTS: u32 = 2;

/// Something that happened to a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepTransition {
    /// An agent was put to it.
    Leased {
        id: StepId,
        /// The run of the agent.
        run: RunId,
    },
    /// Its agent is done.
    #[serde(rename = "produced")]
    AwaitingMerge { id: StepId },
    /// It is a part of the whole.
    #[serde(rename = "integrated")]
    Merged {
        id: StepId,
        /// As this commit; none where it only looked.
        commit: Option<String>,
    },
    /// It does not fit to what is there.
    Conflict {
        id: StepId,
        /// What shows it. Material, never an instruction.
        said: String,
    },
    /// It came to nothing.
    Failed {
        id: StepId,
        reason: StepFailureReason,
    },
    /// It will not be begun.
    Skipped {
        id: StepId,
        reason: StepFailureReason,
    },
}

/// Why a step cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{id} is {status}: it cannot be {to} now")]
pub struct StepTransitionError {
    /// The step that the step is about.
    pub id: StepId,
    /// How far it is.
    pub status: String,
    /// What it cannot be.
    pub to: &'static str,
}

/// What the scheduler does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchedulerMove {
    /// Make this step's result a part of the whole.
    Merge(StepId),
    /// This step did not fit twice: find an agent or a person to resolve it.
    Resolve(StepId),
    /// Never begin these steps, each for its reason.
    Skip(Vec<(StepId, StepFailureReason)>),
    /// Put agents to these.
    Start(Vec<StepId>),
    /// Wait for one of the agents.
    Wait,
    /// End the plan: no step is left to do.
    Finish,
}

impl PlanGraph {
    /// What comes next, with so many agents at once.
    pub fn next(&self, at_once: usize) -> SchedulerMove {
        let waiting =
            |entry: &&PlanStepEntry| matches!(entry.status, StepStatus::AwaitingMerge { .. });
        if let Some(entry) = self.steps.values().find(waiting) {
            return SchedulerMove::Merge(entry.step.id.clone());
        }
        let worn = |entry: &&PlanStepEntry| {
            matches!(entry.status, StepStatus::Conflict { .. }) && entry.attempts >= MAX_ATTEMPTS
        };
        if let Some(entry) = self.steps.values().find(worn) {
            return SchedulerMove::Resolve(entry.step.id.clone());
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

    /// Steps that agents work on.
    pub fn running(&self) -> impl Iterator<Item = (&StepId, &RunId)> {
        self.steps
            .iter()
            .filter_map(|(id, entry)| match &entry.status {
                StepStatus::Leased { run } => Some((id, run)),
                _ => None,
            })
    }

    /// Steps that can be begun now: everything they need is merged, and no agent is at files they
    /// may write, but for the few that the plan lets two share. The first by name comes first.
    pub fn ready(&self, at_once: usize) -> Vec<StepId> {
        let mut busy: Vec<&PlanStepEntry> = self
            .steps
            .values()
            .filter(|entry| entry.status.is_busy())
            .collect();
        let mut room = at_once.saturating_sub(self.running().count());
        let mut ready = Vec::new();
        for entry in self.steps.values() {
            if room == 0 {
                break;
            }
            let open = match entry.status {
                StepStatus::Pending => true,
                StepStatus::Conflict { .. } => entry.attempts < MAX_ATTEMPTS,
                _ => false,
            };
            let met = |other: &&PlanStepEntry| self.keeps_apart(entry, other);
            if !open || !self.has_what_it_needs(entry) || busy.iter().any(met) {
                continue;
            }
            ready.push(entry.step.id.clone());
            busy.push(entry);
            room -= 1;
        }
        ready
    }

    fn has_what_it_needs(&self, entry: &PlanStepEntry) -> bool {
        entry.step.deps.iter().all(|dep| {
            self.steps.get(dep).is_some_and(|needed| {
                matches!(
                    needed.status,
                    StepStatus::Merged { .. } | StepStatus::Superseded
                )
            })
        })
    }

    /// Steps that no agent has begun and none will.
    fn hopeless(&self) -> Vec<(StepId, StepFailureReason)> {
        let failed = |entry: &PlanStepEntry| matches!(entry.status, StepStatus::Failed { .. });
        let fast = self.on_failure == StepFailurePolicy::Fast && self.steps.values().any(failed);
        let mut skipped = Vec::new();
        for (id, entry) in &self.steps {
            if !matches!(entry.status, StepStatus::Pending) {
                continue;
            }
            let gone = entry.step.deps.iter().find(|dep| {
                self.steps.get(*dep).is_none_or(|needed| {
                    matches!(
                        needed.status,
                        StepStatus::Failed { .. }
                            | StepStatus::Cancelled
                            | StepStatus::Skipped { .. }
                    )
                })
            });
            if let Some(step) = gone {
                skipped.push((id.clone(), StepFailureReason::Needs { step: step.clone() }));
            } else if fast {
                skipped.push((id.clone(), StepFailureReason::FailFast));
            }
        }
        skipped
    }

    /// Takes note of what happened to a step.
    pub fn advance(&mut self, transition: &StepTransition) -> Result<(), StepTransitionError> {
        let (id, to) = match transition {
            StepTransition::Leased { id, .. } => (id, "running"),
            StepTransition::AwaitingMerge { id } => (id, "awaiting merge"),
            StepTransition::Merged { id, .. } => (id, "merged"),
            StepTransition::Conflict { id, .. } => (id, "in conflict"),
            StepTransition::Failed { id, .. } => (id, "failed"),
            StepTransition::Skipped { id, .. } => (id, "skipped"),
        };
        let wrong = |status: &str| StepTransitionError {
            id: id.clone(),
            status: status.to_owned(),
            to,
        };
        let ready = matches!(transition, StepTransition::Leased { .. })
            && self
                .steps
                .get(id)
                .is_some_and(|entry| self.has_what_it_needs(entry));
        let entry = self.steps.get_mut(id).ok_or_else(|| wrong("not there"))?;
        let next = match (&entry.status, transition) {
            (
                StepStatus::Pending | StepStatus::Conflict { .. },
                StepTransition::Leased { run, .. },
            ) if ready && entry.attempts < MAX_ATTEMPTS => {
                entry.attempts += 1;
                StepStatus::Leased { run: run.clone() }
            }
            (StepStatus::Leased { run }, StepTransition::AwaitingMerge { .. }) => {
                StepStatus::AwaitingMerge { run: run.clone() }
            }
            (StepStatus::AwaitingMerge { .. }, StepTransition::Merged { commit, .. }) => {
                StepStatus::Merged {
                    commit: commit.clone(),
                }
            }
            (StepStatus::AwaitingMerge { .. }, StepTransition::Conflict { said, .. }) => {
                StepStatus::Conflict { said: said.clone() }
            }
            (
                StepStatus::Leased { .. }
                | StepStatus::AwaitingMerge { .. }
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

    /// Goes down with everything that happens, in this order: steps that may be added, patches that
    /// may be made, steps that steps may take. So a plan comes to an end.
    pub fn measure(&self) -> (usize, u32, u32) {
        let pending = self.steps.values().map(|entry| {
            let rank = match entry.status {
                StepStatus::Pending => 3,
                StepStatus::Leased { .. } => 2,
                StepStatus::AwaitingMerge { .. } => 1,
                StepStatus::Conflict { .. } => 0,
                _ => return 0,
            };
            MAX_ATTEMPTS.saturating_sub(entry.attempts) * 4 + rank + 1
        });
        (
            MAX_STEPS.saturating_sub(self.steps.len()),
            MAX_PATCHES.saturating_sub(self.patches),
            pending.sum(),
        )
    }
}
