//! A plan as a graph of steps. Pure: steps, what needs what, how far each is, and what comes next.
//! The scheduler that drives it acts elsewhere and tells what happened.
//!
//! A patch of a plan applies as a whole or is refused with a reason. A step can begin if it does not
//! write where another one at work does. A measure goes down with everything that happens, so a
//! plan ends.

#[cfg(test)]
pub(crate) mod examples;
mod overlap;
mod patch;
mod schedule;
mod scope;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use overlap::{SHARED_FILES, StepWait};
pub use patch::{
    MAX_PATCHES, MAX_STEPS, PlanBounds, PlanPatch, PlanPatchOperation, PlanPatchRefusal,
};
pub use schedule::{MAX_ATTEMPTS, SchedulerMove, StepTransition, StepTransitionError};
pub use scope::PathScope;
pub use step::{PlanStep, StepFailureReason, StepId, StepStatus};

/// What the failure of one step means for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepFailurePolicy {
    /// Only what needs it is skipped.
    #[default]
    Isolated,
    /// Nothing else is begun.
    Fast,
}

/// A step with how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStepEntry {
    /// What is to be done, as it was planned.
    #[serde(rename = "job")]
    pub step: PlanStep,
    /// How far it is.
    #[serde(flatten)]
    pub status: StepStatus,
    /// How often an agent was put to it.
    pub attempts: u32,
}

/// A plan as a graph of steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanGraph {
    /// Goes up with every patch.
    pub version: u32,
    /// How many patches there were.
    pub patches: u32,
    /// What a failure means for the others.
    pub on_failure: StepFailurePolicy,
    /// So many files may two steps have in common that are worked on at once; none where no test
    /// would judge the merge.
    #[serde(default, skip_serializing_if = "is_none")]
    pub shared_files: u32,
    /// The steps by name.
    #[serde(rename = "jobs")]
    pub steps: BTreeMap<StepId, PlanStepEntry>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it may leave out by reference"
)]
const fn is_none(files: &u32) -> bool {
    *files == 0
}

impl PlanGraph {
    /// A plan of these steps, or the first thing that speaks against it.
    pub fn new(
        steps: Vec<PlanStep>,
        on_failure: StepFailurePolicy,
        bounds: &PlanBounds<'_>,
    ) -> Result<Self, PlanPatchRefusal> {
        let empty = Self {
            on_failure,
            ..Self::default()
        };
        empty.patch(&PlanPatch::adding(steps), bounds)
    }

    /// A plan of these steps, or everything that speaks against it.
    pub fn checked(
        steps: Vec<PlanStep>,
        on_failure: StepFailurePolicy,
        bounds: &PlanBounds<'_>,
    ) -> Result<Self, Vec<PlanPatchRefusal>> {
        let empty = Self {
            on_failure,
            ..Self::default()
        };
        empty.patch_checked(&PlanPatch::adding(steps), bounds)
    }

    /// Whether every step is a part of the whole, or was taken out of the plan on purpose.
    pub fn is_whole(&self) -> bool {
        let wanted = |entry: &&PlanStepEntry| {
            !matches!(
                entry.status,
                StepStatus::Merged { .. } | StepStatus::Superseded | StepStatus::Cancelled
            )
        };
        !self.steps.values().any(|entry| wanted(&entry))
            && self
                .steps
                .values()
                .any(|entry| matches!(entry.status, StepStatus::Merged { .. }))
    }

    /// The steps in an order in which each comes after what it needs; by name where that leaves a
    /// choice.
    pub fn in_order(&self) -> Vec<&PlanStepEntry> {
        let mut order: Vec<&PlanStepEntry> = Vec::new();
        while order.len() < self.steps.len() {
            let done = |id: &StepId| order.iter().any(|entry| entry.step.id == *id);
            let next = self.steps.values().find(|entry| {
                let open = |dep: &StepId| self.steps.contains_key(dep) && !done(dep);
                !done(&entry.step.id) && !entry.step.deps.iter().any(open)
            });
            // A plan has no cycle; were there one, the rest is left out rather than looked for.
            let Some(next) = next else { break };
            order.push(next);
        }
        order
    }
}
