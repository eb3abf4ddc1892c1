//! How far several agents are together. Pure: a plan, what came back, what comes next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lula_protocol::{BudgetAmounts, RunId};
use lula_repair::trial::{ProjectTestResults, TestBaseline, TestRunAttempt};
use serde::{Deserialize, Serialize};

use super::shared_task::first_line;
use super::{AgentRoles, PlanChangeRequests};
use crate::agent_pool::AgentResult;
use crate::plan::{
    MAX_PATCHES, PlanGraph, SchedulerMove, StepFailurePolicy, StepId, StepStatus, StepTransition,
};

/// What did not fit, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedMerge {
    /// The commit. It is kept.
    pub commit: String,
    /// What shows it. Material, never an instruction.
    pub said: String,
    /// The files it is about.
    pub files: Vec<String>,
}

/// A task that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingTask {
    pub task: StepId,
    /// What was to be done, in one line.
    pub goal: String,
    /// Why it was not.
    pub why: String,
}

/// Longest reason in a sentence about the whole.
const REASON: usize = 240;

/// A reason on one line; all of it is in the log.
fn short(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    first_line(&line, REASON)
}

/// What the run that leads a shared plan does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedPlanMove {
    /// Agents are to be told what was decided of their wishes.
    Tell,
    /// The planner has to think about a failed step.
    Amend(StepId),
    /// The scheduler has this to do.
    Move(SchedulerMove),
}

/// A plan with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPlan {
    pub dag: PlanGraph,
    /// Who the agents can be.
    pub roles: AgentRoles,
    /// The same as the other repositories want them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_roles: Vec<AgentRoles>,
    /// What each agent came back with, the last for each step.
    pub returned: BTreeMap<StepId, AgentResult>,
    /// What was promised to agents at work.
    pub promised: BTreeMap<RunId, BudgetAmounts>,
    /// What did not fit, the last for each step.
    pub candidates: BTreeMap<StepId, RejectedMerge>,
    /// Failed steps that the planner thought about.
    pub considered: BTreeSet<StepId>,
    /// How many patches were refused.
    pub refused: u32,
    /// What agents wanted changed.
    #[serde(default, skip_serializing_if = "PlanChangeRequests::is_empty")]
    pub wishes: PlanChangeRequests,
    /// What the tests say of what is merged so far, by repository.
    pub tests: BTreeMap<usize, ProjectTestResults>,
    /// Tests that were seen to pass and to fail before anything was merged, by repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flaky: BTreeMap<usize, BTreeSet<String>>,
}

impl SharedPlan {
    /// A plan of which no step has begun.
    pub fn new(dag: PlanGraph, roles: AgentRoles, other_roles: Vec<AgentRoles>) -> Self {
        Self {
            dag,
            roles,
            other_roles,
            returned: BTreeMap::new(),
            promised: BTreeMap::new(),
            candidates: BTreeMap::new(),
            considered: BTreeSet::new(),
            refused: 0,
            wishes: PlanChangeRequests::default(),
            tests: BTreeMap::new(),
            flaky: BTreeMap::new(),
        }
    }

    /// Who agents can be that work in a repository: as that repository wants them.
    pub fn roles_of(&self, repo: usize) -> &AgentRoles {
        let other = repo
            .checked_sub(1)
            .and_then(|index| self.other_roles.get(index));
        other.unwrap_or(&self.roles)
    }

    /// What comes next, with so many agents at once.
    pub fn next(&self, at_once: u32) -> SharedPlanMove {
        if !self.wishes.owed.is_empty() {
            return SharedPlanMove::Tell;
        }
        let open = |id: &StepId, status: &StepStatus| {
            matches!(status, StepStatus::Failed { .. }) && !self.considered.contains(id)
        };
        let failed = self
            .dag
            .steps
            .iter()
            .find(|(id, entry)| open(id, &entry.status));
        let patches = self.dag.patches + self.refused < MAX_PATCHES;
        let at_once = usize::try_from(at_once).unwrap_or(usize::MAX);
        let next = self.dag.next(at_once);
        // What can be begun does not wait for a planner who thinks about what failed.
        if matches!(next, SchedulerMove::Start(_)) {
            return SharedPlanMove::Move(next);
        }
        if let Some((id, _)) = failed
            && patches
            && self.dag.on_failure == StepFailurePolicy::Isolated
        {
            return SharedPlanMove::Amend(id.clone());
        }
        SharedPlanMove::Move(next)
    }

    /// Takes note of what happened to a step.
    pub fn advance(&mut self, transition: &StepTransition) {
        // A step that cannot have happened changes nothing: what is next follows from the plan.
        let _ = self.dag.advance(transition);
    }

    /// What agents at work may still spend.
    pub fn outstanding(&self) -> BudgetAmounts {
        let mut sum = BudgetAmounts::none();
        for (dimension, amount) in self.promised.values().flat_map(BudgetAmounts::iter) {
            let held = sum.0.entry(dimension).or_default();
            *held = held.saturating_add(amount);
        }
        sum
    }

    /// What the next agent may spend: an equal share of what no agent was promised, or what the plan says
    /// where that is more.
    pub fn share(&self, id: &StepId, free: &BudgetAmounts) -> BudgetAmounts {
        let outstanding = self.outstanding();
        let waiting = self.dag.steps.values().filter(|entry| {
            matches!(
                entry.status,
                StepStatus::Pending | StepStatus::Conflict { .. }
            )
        });
        let heads = u64::try_from(waiting.count()).unwrap_or(1).max(1);
        let planned = self.dag.steps.get(id).map(|entry| &entry.step.budget);
        free.iter()
            .map(|(dimension, free)| {
                let left = free.saturating_sub(outstanding.get(dimension).unwrap_or(0));
                // Less than one is nothing: then fewer begin, and the others wait for what is left.
                let share = (left / heads).max(left.min(1));
                let wanted = planned.and_then(|budget| budget.get(dimension));
                (dimension, share.max(wanted.unwrap_or(0)).min(left))
            })
            .collect()
    }

    /// What the tests of a repository say of what is merged there so far.
    pub fn baseline(&self, repo: usize, first: &TestBaseline) -> TestBaseline {
        match self.tests.get(&repo) {
            None => first.clone(),
            Some(results) => TestBaseline {
                looked: TestRunAttempt::Ran(results.clone()),
                // What failing tests said was said of something else.
                messages: Vec::new(),
                ..first.clone()
            },
        }
    }

    /// Takes note of tests that fail without a change as well as with it. Once something else was merged
    /// that may be why: then they are not excused.
    pub(crate) fn note_flaky(&mut self, repo: usize, flaky: &BTreeSet<String>) {
        let mut merged = self.dag.steps.values().filter(|entry| {
            entry.step.repo == repo
                && matches!(entry.status, StepStatus::Merged { commit: Some(_) })
        });
        // The one that this was seen with is among them, or is about to be.
        if !flaky.is_empty() && merged.nth(1).is_none() {
            self.flaky.entry(repo).or_default().extend(flaky.clone());
        }
    }

    /// What the tests of a repository said at first, with what is known to be flaky since.
    pub fn steady(&self, repo: usize, mut first: TestBaseline) -> TestBaseline {
        if let (Some(flaky), TestRunAttempt::Ran(results)) =
            (self.flaky.get(&repo), &mut first.looked)
        {
            results.passing.retain(|id| !flaky.contains(id));
            results.flaky.extend(flaky.iter().cloned());
        }
        first
    }

    /// Whether something was merged in a repository.
    pub fn changed(&self, repo: usize) -> bool {
        self.dag.steps.values().any(|entry| {
            entry.step.repo == repo
                && matches!(entry.status, StepStatus::Merged { commit: Some(_) })
        })
    }

    /// Commands that must succeed for everything that is merged in a repository.
    pub fn acceptance(&self, repo: usize) -> Vec<String> {
        let done = self
            .dag
            .steps
            .values()
            .filter(|entry| entry.step.repo == repo)
            .filter(|entry| matches!(entry.status, StepStatus::Merged { .. }));
        let mut all: Vec<String> = Vec::new();
        for command in done.flat_map(|entry| &entry.step.acceptance) {
            if !all.contains(command) {
                all.push(command.clone());
            }
        }
        all
    }

    /// Whether everything is over and some of it is missing.
    pub fn is_partial(&self) -> bool {
        let mut steps = self.dag.steps.values();
        steps.all(|entry| entry.status.is_over()) && !self.missing().is_empty()
    }

    /// The tasks that came to nothing, each with its reason.
    pub fn missing(&self) -> Vec<MissingTask> {
        let steps = self.dag.in_order().into_iter();
        let missing = steps.filter_map(|entry| {
            let (StepStatus::Failed { reason } | StepStatus::Skipped { reason }) = &entry.status
            else {
                return None;
            };
            Some(MissingTask {
                task: entry.step.id.clone(),
                goal: first_line(&entry.step.goal, REASON),
                why: short(&reason.to_string()),
            })
        });
        missing.collect()
    }

    /// What became of the plan, in one sentence.
    pub fn told(&self) -> String {
        let count = |name: &str| {
            let with = |status: &StepStatus| status.name() == name;
            let steps = self.dag.steps.values();
            steps.filter(|entry| with(&entry.status)).count()
        };
        let wanted = self.dag.steps.len() - count("superseded") - count("cancelled");
        let mut text = format!("{} of {wanted} tasks came together", count("merged"));
        for entry in self.dag.steps.values() {
            let reason = match &entry.status {
                StepStatus::Failed { reason } => {
                    format!("failed, {}", short(&reason.to_string()))
                }
                StepStatus::Skipped { reason } => {
                    format!("was skipped, {}", short(&reason.to_string()))
                }
                _ => continue,
            };
            let _ = write!(text, "; {} {reason}", entry.step.id);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::examples::{dag, step};
    use lula_protocol::BudgetDimension;

    fn joint(names: &[&str]) -> SharedPlan {
        let steps = names.iter().map(|name| step(name, &[], &[name]));
        SharedPlan::new(dag(steps.collect()), AgentRoles::built_in(), Vec::new())
    }

    #[test]
    fn agents_share_what_is_left_and_never_more() {
        let mut joint = joint(&["a", "b", "c"]);
        let free = BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100);
        let mut promised = 0;
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            let id = StepId::new(name).unwrap();
            let share = joint.share(&id, &free);
            promised += share.get(BudgetDimension::MicroUsd).unwrap();
            let run = RunId::from_parts(number as u64, [0; 10]);
            joint.advance(&StepTransition::Leased {
                id,
                run: run.clone(),
            });
            joint.promised.insert(run, share);
        }
        assert!((99..=100).contains(&promised), "{promised}");
    }

    #[test]
    fn a_failed_step_is_thought_about_once() {
        let mut joint = joint(&["a", "b"]);
        let id = StepId::new("a").unwrap();
        let run = RunId::from_parts(1, [0; 10]);
        joint.advance(&StepTransition::Leased {
            id: id.clone(),
            run,
        });
        let reason = crate::plan::StepFailureReason::NotDone {
            said: "no".to_owned(),
        };
        joint.advance(&StepTransition::Failed {
            id: id.clone(),
            reason,
        });
        let b = StepId::new("b").unwrap();
        assert_eq!(
            joint.next(2),
            SharedPlanMove::Move(SchedulerMove::Start(vec![b.clone()])),
            "what can be begun does not wait for the planner"
        );
        joint.advance(&StepTransition::Leased {
            id: b,
            run: RunId::from_parts(2, [0; 10]),
        });
        assert_eq!(joint.next(2), SharedPlanMove::Amend(id.clone()));
        joint.considered.insert(id);
        assert_eq!(joint.next(2), SharedPlanMove::Move(SchedulerMove::Wait));
    }

    #[test]
    fn a_test_that_was_flaky_before_anything_was_merged_counts_nowhere_later() {
        let set = |id: &str| BTreeSet::from([id.to_owned()]);
        let first = || TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                passing: &set("a") | &set("b"),
                ..ProjectTestResults::default()
            }),
            ..TestBaseline::default()
        };
        let mut joint = joint(&["a", "b"]);
        for (name, seen) in [("a", "a"), ("b", "b")] {
            let id = StepId::new(name).unwrap();
            let run = RunId::from_parts(1, [0; 10]);
            joint.advance(&StepTransition::Leased {
                id: id.clone(),
                run,
            });
            joint.advance(&StepTransition::AwaitingMerge { id: id.clone() });
            let commit = Some("c".to_owned());
            joint.advance(&StepTransition::Merged { id, commit });
            joint.note_flaky(0, &set(seen));
        }
        let steady = joint.steady(0, first());
        let results = steady.looked.results().unwrap();
        assert_eq!(results.flaky, set("a"));
        // What was merged first may be why that one fails now and then.
        assert_eq!(results.passing, set("b"));
        assert_eq!(joint.steady(1, first()), first());
    }
}
