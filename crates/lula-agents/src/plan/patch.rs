//! Rewiring a plan while it runs: a patch is applied as a whole or not at all, and its writer
//! is told why not.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::{BudgetAmounts, BudgetDimension};
use serde::{Deserialize, Serialize};

use super::{PathScope, PlanGraph, PlanStep, PlanStepEntry, StepId, StepStatus};

/// Most steps a plan ever has.
pub const MAX_STEPS: usize = 64;
/// Most patches of a run.
pub const MAX_PATCHES: u32 = 16;

/// One change of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlanPatchOperation {
    /// A step is added to the plan.
    AddTask {
        #[serde(rename = "job")]
        step: PlanStep,
    },
    /// A step needs another.
    AddEdge {
        /// The step that is needed.
        from: StepId,
        /// The step that needs it.
        to: StepId,
    },
    /// A step no longer needs another.
    RemoveEdge {
        /// The step that was needed.
        from: StepId,
        /// The step that needed it.
        to: StepId,
    },
    /// A step is not wanted any more.
    Cancel { id: StepId },
    /// A step may write more files.
    Widen {
        id: StepId,
        /// The files that it may write too.
        files: PathScope,
    },
    /// Others take the place of a step: they need what it needed, and steps that needed it need them.
    Replace {
        /// The step that goes.
        old: StepId,
        new: Vec<PlanStep>,
    },
}

/// A change of a plan as it was at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPatch {
    /// The version its author saw.
    pub base_version: u32,
    /// What to change, in this order.
    pub ops: Vec<PlanPatchOperation>,
}

impl PlanPatch {
    /// The first steps of a plan.
    pub(super) fn adding(steps: Vec<PlanStep>) -> Self {
        let add = |step| PlanPatchOperation::AddTask { step };
        Self {
            base_version: 0,
            ops: steps.into_iter().map(add).collect(),
        }
    }
}

/// Why a patch was not applied. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum PlanPatchRefusal {
    /// The plan has changed since.
    #[error("the plan is at version {now}, the patch was made for {base}")]
    Stale {
        /// The version it was made for.
        base: u32,
        now: u32,
    },
    #[error("the patch changes nothing")]
    Empty,
    /// There is no such step.
    #[error("there is no task {id}")]
    Unknown { id: StepId },
    /// The name is taken.
    #[error("there is a task {id} already")]
    Taken { id: StepId },
    /// Steps would wait for each other.
    #[error("{} would wait for each other", .steps.iter().map(StepId::as_str).collect::<Vec<_>>().join(" -> "))]
    Cycle {
        /// The steps of the cycle, in order.
        steps: Vec<StepId>,
    },
    /// A step that began would need something new.
    #[error("{id} has begun ({status}) and cannot come to need anything")]
    Begun {
        id: StepId,
        /// How far it is.
        status: String,
    },
    /// A step cannot be replaced or cancelled any more.
    #[error("{id} is {status}, and that cannot be changed")]
    Settled {
        id: StepId,
        /// How far it is.
        status: String,
    },
    /// There is no such edge.
    #[error("{to} does not need {from}")]
    NoEdge {
        /// What would be needed.
        from: StepId,
        /// The step that would need it.
        to: StepId,
    },
    /// The budget is not there.
    #[error("the tasks would need {asked} of {dimension}, {left} are left")]
    OverBudget {
        dimension: BudgetDimension,
        asked: u64,
        /// How much is left.
        left: u64,
    },
    /// There would be too many steps.
    #[error("the plan would have {steps} tasks, {MAX_STEPS} are the most")]
    TooManySteps {
        /// How many steps there would be.
        steps: usize,
    },
    /// There were too many patches.
    #[error("the plan was changed {MAX_PATCHES} times, and that is the most")]
    TooManyPatches,
    /// There is no such repository.
    #[error("{id} is about repository {repo}, and there is none with that number")]
    NoRepository {
        /// The step that names the repository.
        id: StepId,
        /// The number it names in the list of the run's repositories.
        repo: usize,
    },
    /// There is no such role.
    #[error("{id} is for a {role}, and there is no such role")]
    NoRole {
        /// The step that names the role.
        id: StepId,
        /// The name that no role has.
        role: String,
    },
    /// A step has no goal.
    #[error("{id} has no goal")]
    NoGoal { id: StepId },
}

/// What a plan is held to.
#[derive(Debug, Clone, Default)]
pub struct PlanBounds<'a> {
    /// How many repositories there are.
    pub repositories: usize,
    /// The roles there are.
    pub roles: &'a [&'a str],
    /// What is left of the budget; a dimension that is not named has no limit.
    pub left: BudgetAmounts,
}

impl PlanGraph {
    /// Applies a patch as a whole, or changes nothing and says the first thing that is wrong with it.
    pub fn patch(
        &self,
        patch: &PlanPatch,
        bounds: &PlanBounds<'_>,
    ) -> Result<Self, PlanPatchRefusal> {
        self.patch_checked(patch, bounds)
            .map_err(|mut wrong| wrong.swap_remove(0))
    }

    /// Applies a patch as a whole, or changes nothing and says everything that is wrong with it:
    /// there is at least one thing then.
    pub fn patch_checked(
        &self,
        patch: &PlanPatch,
        bounds: &PlanBounds<'_>,
    ) -> Result<Self, Vec<PlanPatchRefusal>> {
        if patch.base_version != self.version {
            return Err(vec![PlanPatchRefusal::Stale {
                base: patch.base_version,
                now: self.version,
            }]);
        }
        if patch.ops.is_empty() {
            return Err(vec![PlanPatchRefusal::Empty]);
        }
        if self.patches >= MAX_PATCHES {
            return Err(vec![PlanPatchRefusal::TooManyPatches]);
        }
        let mut wrong = Vec::new();
        let mut next = self.clone();
        // Names first: the steps of one patch may need each other in any order.
        for op in &patch.ops {
            let steps = match op {
                PlanPatchOperation::AddTask { step } => std::slice::from_ref(step),
                PlanPatchOperation::Replace { new, .. } => new.as_slice(),
                PlanPatchOperation::AddEdge { .. }
                | PlanPatchOperation::RemoveEdge { .. }
                | PlanPatchOperation::Cancel { .. }
                | PlanPatchOperation::Widen { .. } => &[],
            };
            for step in steps {
                next.insert(step, bounds, &mut wrong);
            }
        }
        for op in &patch.ops {
            wrong.extend(next.rewire(op).err());
        }
        for entry in next.steps.values() {
            let deps = entry.step.deps.iter();
            let missing = deps.filter(|id| !next.steps.contains_key(id));
            wrong.extend(missing.map(|id| PlanPatchRefusal::Unknown { id: id.clone() }));
        }
        if let Some(steps) = next.cycle() {
            wrong.push(PlanPatchRefusal::Cycle { steps });
        }
        wrong.extend(next.affordable(&bounds.left).err());
        let mut told: Vec<PlanPatchRefusal> = Vec::new();
        for refusal in wrong {
            if !told.contains(&refusal) {
                told.push(refusal);
            }
        }
        if !told.is_empty() {
            return Err(told);
        }
        next.version += 1;
        next.patches += 1;
        Ok(next)
    }

    /// Takes a step in, or says why not. One that is only wrong in itself is taken in all the same, so
    /// that what needs it is not told that it is missing.
    fn insert(
        &mut self,
        step: &PlanStep,
        bounds: &PlanBounds<'_>,
        wrong: &mut Vec<PlanPatchRefusal>,
    ) {
        let id = step.id.clone();
        if self.steps.contains_key(&id) {
            wrong.push(PlanPatchRefusal::Taken { id });
            return;
        }
        if step.repo >= bounds.repositories {
            let (id, repo) = (id.clone(), step.repo);
            wrong.push(PlanPatchRefusal::NoRepository { id, repo });
        }
        if !bounds.roles.contains(&step.role.as_str()) {
            let (id, role) = (id.clone(), step.role.clone());
            wrong.push(PlanPatchRefusal::NoRole { id, role });
        }
        if step.goal.trim().is_empty() {
            wrong.push(PlanPatchRefusal::NoGoal { id: id.clone() });
        }
        if self.steps.len() >= MAX_STEPS {
            let steps = self.steps.len() + 1;
            wrong.push(PlanPatchRefusal::TooManySteps { steps });
            return;
        }
        let mut step = step.clone();
        step.deps.sort();
        step.deps.dedup();
        let entry = PlanStepEntry {
            step,
            status: StepStatus::Pending,
            attempts: 0,
        };
        self.steps.insert(id, entry);
    }

    fn rewire(&mut self, op: &PlanPatchOperation) -> Result<(), PlanPatchRefusal> {
        match op {
            PlanPatchOperation::AddTask { .. } => Ok(()),
            PlanPatchOperation::AddEdge { from, to } => {
                self.known(from)?;
                let entry = self.pending(to)?;
                if !entry.step.deps.contains(from) {
                    entry.step.deps.push(from.clone());
                    entry.step.deps.sort();
                }
                Ok(())
            }
            PlanPatchOperation::RemoveEdge { from, to } => {
                self.known(from)?;
                let entry = self.pending(to)?;
                let before = entry.step.deps.len();
                entry.step.deps.retain(|id| id != from);
                if entry.step.deps.len() == before {
                    let (from, to) = (from.clone(), to.clone());
                    return Err(PlanPatchRefusal::NoEdge { from, to });
                }
                Ok(())
            }
            PlanPatchOperation::Cancel { id } => {
                let entry = self.known(id)?;
                if entry.status.is_over()
                    || matches!(entry.status, StepStatus::AwaitingMerge { .. })
                {
                    return Err(settled(id, &entry.status));
                }
                entry.status = StepStatus::Cancelled;
                Ok(())
            }
            PlanPatchOperation::Widen { id, files } => {
                let entry = self.known(id)?;
                if entry.status.is_over() {
                    return Err(settled(id, &entry.status));
                }
                entry.step.scope = entry.step.scope.and(files);
                Ok(())
            }
            PlanPatchOperation::Replace { old, new } => self.replace(old, new),
        }
    }

    fn replace(&mut self, old: &StepId, new: &[PlanStep]) -> Result<(), PlanPatchRefusal> {
        let entry = self.known(old)?;
        let open = matches!(
            entry.status,
            StepStatus::Pending | StepStatus::Failed { .. } | StepStatus::Conflict { .. }
        );
        if !open {
            return Err(settled(old, &entry.status));
        }
        entry.status = StepStatus::Superseded;
        let needed = entry.step.deps.clone();
        let names: Vec<StepId> = new.iter().map(|step| step.id.clone()).collect();
        for id in &names {
            let entry = self.known(id)?;
            entry.step.deps.extend(needed.iter().cloned());
            entry.step.deps.retain(|dep| dep != old);
            entry.step.deps.sort();
            entry.step.deps.dedup();
        }
        for (id, entry) in &mut self.steps {
            if names.contains(id) || !entry.step.deps.contains(old) {
                continue;
            }
            if entry.status.is_over() && !matches!(entry.status, StepStatus::Skipped { .. }) {
                continue;
            }
            entry.step.deps.retain(|dep| dep != old);
            entry.step.deps.extend(names.iter().cloned());
            entry.step.deps.sort();
            entry.step.deps.dedup();
        }
        Ok(())
    }

    fn known(&mut self, id: &StepId) -> Result<&mut PlanStepEntry, PlanPatchRefusal> {
        let unknown = || PlanPatchRefusal::Unknown { id: id.clone() };
        self.steps.get_mut(id).ok_or_else(unknown)
    }

    /// A step that may come to need something.
    fn pending(&mut self, id: &StepId) -> Result<&mut PlanStepEntry, PlanPatchRefusal> {
        let entry = self.known(id)?;
        if entry.status != StepStatus::Pending {
            return Err(PlanPatchRefusal::Begun {
                id: id.clone(),
                status: entry.status.name().to_owned(),
            });
        }
        Ok(entry)
    }

    /// Steps that wait for each other, where some do.
    pub fn cycle(&self) -> Option<Vec<StepId>> {
        let mut left: BTreeMap<&StepId, BTreeSet<&StepId>> = self
            .steps
            .iter()
            .map(|(id, entry)| (id, entry.step.deps.iter().collect()))
            .collect();
        loop {
            let free: Vec<&StepId> = left
                .iter()
                .filter(|(_, deps)| deps.iter().all(|dep| !left.contains_key(*dep)))
                .map(|(id, _)| *id)
                .collect();
            if free.is_empty() {
                break;
            }
            for id in free {
                left.remove(id);
            }
        }
        // Each step that is left needs another one that is left: walking along comes round.
        let mut way: Vec<StepId> = Vec::new();
        let mut at = *left.keys().next()?;
        while !way.contains(at) {
            way.push(at.clone());
            at = left.get(at)?.iter().find(|dep| left.contains_key(**dep))?;
        }
        let begin = way.iter().position(|id| id == at)?;
        way.drain(..begin);
        way.push(at.clone());
        way.reverse();
        Some(way)
    }

    /// Whether what the steps may still spend is there.
    fn affordable(&self, left: &BudgetAmounts) -> Result<(), PlanPatchRefusal> {
        let mut asked: BTreeMap<BudgetDimension, u64> = BTreeMap::new();
        for entry in self.steps.values().filter(|entry| !entry.status.is_over()) {
            for (dimension, amount) in entry.step.budget.iter() {
                let sum = asked.entry(dimension).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        for (dimension, left) in left.iter() {
            let asked = asked.get(&dimension).copied().unwrap_or(0);
            if asked > left {
                return Err(PlanPatchRefusal::OverBudget {
                    dimension,
                    asked,
                    left,
                });
            }
        }
        Ok(())
    }
}

fn settled(id: &StepId, status: &StepStatus) -> PlanPatchRefusal {
    PlanPatchRefusal::Settled {
        id: id.clone(),
        status: status.name().to_owned(),
    }
}
