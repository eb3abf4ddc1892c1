//! Puts agents to the tasks of a plan and brings what they did together, one thing in each visit.
//!
//! Every step of a plan is therefore an event. While the scheduler waits for agents, what they were
//! promised is held back from the budget.

use std::collections::BTreeSet;

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::{BudgetAmounts, RunExit};

use super::agent_return::{StepPart, back};
use super::repositories::{self, branch};
use super::sending::{first_baseline, start};
use super::task_commits::TaskCommitWords;
use super::{shared_plan, tried, workspace};
use lula_runner_api::{
    CommitAgentChange, CommittedAgentChangeView, FillWorkspaceFromBranch, MergeAgentChange,
    MergeTestRequirement,
};

use crate::agent_pool::{AgentPoolEvent, AgentResult};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::plan::{
    PathScope, PlanBounds, PlanPatch, PlanPatchOperation, PlanPatchRefusal, PlanStep,
    SchedulerMove, StepFailureReason, StepId, StepStatus, StepTransition,
};
use crate::runner_port::{MergeOutcome, workspace_of};
use crate::team::{RejectedMerge, SharedPlan, SharedPlanMove};
use crate::work::{CodingState, EarlyEnd, RunStateEvent};
use lula_repair::trial::excerpt;

/// What a step that resolves another is called.
const RESOLVE: &str = "-resolve";
/// What its goal says beside that of the other.
const CONFLICT: &str = "\n\nResolve a conflict: ";
/// And one that is done again because its agent had too little.
const MORE: &str = "-more";

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let (Some(joint), Some(team)) = (&work.joint, &work.task.team) else {
        return Err(VisitStop::Halt("there is no plan".to_owned()));
    };
    match joint.next(team.at_once) {
        SharedPlanMove::Tell => {
            let answers = joint.wishes.untold();
            ctx.effect::<()>(RunEffect::Answer { answers }.request())
                .await?;
            Ok(NodeExit::by(RunNodeExit::More).with(RunStateEvent::Told))
        }
        SharedPlanMove::Amend(_) => Ok(NodeExit::by(RunNodeExit::Amend)),
        SharedPlanMove::Move(SchedulerMove::Start(steps)) => {
            match start(work, joint, &steps, ctx).await? {
                Some(left) => Ok(left),
                // An agent at work may leave enough for the next.
                None => wait(work, joint, ctx).await,
            }
        }
        SharedPlanMove::Move(SchedulerMove::Wait) => wait(work, joint, ctx).await,
        SharedPlanMove::Move(SchedulerMove::Merge(step)) => merge(work, joint, &step, ctx).await,
        SharedPlanMove::Move(SchedulerMove::Resolve(step)) => {
            resolve(work, joint, &step, ctx).await
        }
        SharedPlanMove::Move(SchedulerMove::Skip(steps)) => {
            let transitions = steps
                .into_iter()
                .map(|(id, reason)| StepTransition::Skipped { id, reason });
            Ok(happened(transitions))
        }
        SharedPlanMove::Move(SchedulerMove::Finish) => finish(work, joint, ctx).await,
    }
}

fn happened(transitions: impl IntoIterator<Item = StepTransition>) -> NodeDeparture {
    let events = transitions
        .into_iter()
        .map(|change| RunStateEvent::StepChanged { change });
    events.fold(NodeExit::by(RunNodeExit::More), NodeExit::with)
}

/// Waits for one of the agents, who is done or wants something.
async fn wait(
    work: &CodingState,
    joint: &SharedPlan,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let agents = joint.dag.running().map(|(_, run)| run.clone()).collect();
    let effect = RunEffect::Await { agents }
        .request()
        .reserving(joint.outstanding());
    let returned = match ctx.effect(effect).await? {
        AgentPoolEvent::Wish { wish } => {
            return shared_plan::consider(work, joint, &wish, ctx).await;
        }
        AgentPoolEvent::Back(returned) => *returned,
    };
    let mut running = joint.dag.running();
    let Some((id, _)) = running.find(|(_, run)| **run == returned.run) else {
        return Err(VisitStop::Halt(format!(
            "{} is no agent here",
            returned.run
        )));
    };
    let (id, part) = (id.clone(), StepPart::of(joint, id));
    if returned.exit == RunExit::Budget {
        return Ok(again_with_more(work, joint, &id, returned));
    }
    let transitions = back(&id, part, &returned);
    let came = RunStateEvent::Returned {
        step: id,
        returned: Box::new(returned),
    };
    let left = NodeExit::by(RunNodeExit::More).with(came);
    let events = transitions
        .into_iter()
        .map(|change| RunStateEvent::StepChanged { change });
    Ok(events.fold(left, NodeExit::with))
}

/// An agent has spent what it had: another one takes its place and may spend twice that. Where that is
/// not there, a person is asked for it before the next agent begins.
fn again_with_more(
    work: &CodingState,
    joint: &SharedPlan,
    id: &StepId,
    returned: AgentResult,
) -> NodeDeparture {
    let mut more = joint.clone();
    let had = joint.promised.get(&returned.run).cloned();
    let reason = StepFailureReason::OutOfBudget {
        said: returned.summary.clone(),
    };
    let failed = StepTransition::Failed {
        id: id.clone(),
        reason,
    };
    let came = RunStateEvent::Returned {
        step: id.clone(),
        returned: Box::new(returned),
    };
    more.advance(&failed);
    let left = NodeExit::by(RunNodeExit::More)
        .with(came)
        .with(RunStateEvent::StepChanged { change: failed });
    let (Some(entry), Ok(name)) = (joint.dag.steps.get(id), named(id, MORE, joint.dag.version))
    else {
        return left;
    };
    let twice = had.unwrap_or_default();
    let twice = twice.iter().map(|(of, had)| (of, had.saturating_mul(2)));
    let step = PlanStep {
        id: name,
        deps: Vec::new(),
        budget: twice.collect(),
        ..entry.step.clone()
    };
    // Whether it is there is asked when it is begun.
    match replaced(work, &more, id, step, BudgetAmounts::none()) {
        Ok(patched) => left.with(patched),
        // It stays failed, and the planner thinks about that.
        Err(refusal) => left.with(refused(&refusal)),
    }
}

/// The plan with one step in the place of another.
fn replaced(
    work: &CodingState,
    joint: &SharedPlan,
    old: &StepId,
    new: PlanStep,
    left: BudgetAmounts,
) -> Result<RunStateEvent, PlanPatchRefusal> {
    let patch = PlanPatch {
        base_version: joint.dag.version,
        ops: vec![PlanPatchOperation::Replace {
            old: old.clone(),
            new: vec![new],
        }],
    };
    let bounds = PlanBounds {
        repositories: work.repositories.len(),
        roles: &joint.roles.names(),
        left,
    };
    let dag = joint.dag.patch(&patch, &bounds)?;
    let by = "scheduler".to_owned();
    Ok(RunStateEvent::Patched { by, patch, dag })
}

fn refused(refusal: &PlanPatchRefusal) -> RunStateEvent {
    RunStateEvent::PatchRefused {
        by: "scheduler".to_owned(),
        reason: refusal.to_string(),
    }
}

/// Makes what an agent did a part of the whole, if it fits.
async fn merge(
    work: &CodingState,
    joint: &SharedPlan,
    id: &StepId,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let failed = |reason| {
        Ok(happened([StepTransition::Failed {
            id: id.clone(),
            reason,
        }]))
    };
    let not_merged = |said: String| failed(StepFailureReason::NotDone { said });
    let (Some(entry), Some(returned)) = (joint.dag.steps.get(id), joint.returned.get(id)) else {
        return not_merged("nothing came back".to_owned());
    };
    let Some(tree) = returned.tree else {
        return not_merged("nothing came back".to_owned());
    };
    let at = ctx.now().await? / 1000;
    let words = TaskCommitWords::of(ctx.run(), &entry.step, returned);
    let repo = entry.step.repo;
    let order = CommitAgentChange {
        branch: branch(work, repo, ctx),
        step: id.to_string(),
        workspace: workspace_of(&returned.run),
        tree,
        message: words.message(),
        at,
    };
    let effect = RunEffect::Commit { order };
    let committed: CommittedAgentChangeView = match tried(ctx.effect(effect.request()).await)? {
        Ok(committed) => committed,
        Err(why) => return not_merged(why),
    };
    let mut outside = committed.outside;
    let strays = returned.files.iter();
    outside.extend(strays.filter(|path| !entry.step.scope.holds(path)).cloned());
    outside.sort();
    outside.dedup();
    if !outside.is_empty() {
        return failed(StepFailureReason::ScopeViolation { files: outside });
    }
    let mut accept = joint.acceptance(repo);
    accept.extend(entry.step.acceptance.iter().cloned());
    let order = MergeAgentChange {
        branch: branch(work, repo, ctx),
        step: id.to_string(),
        commit: committed.commit.clone(),
        tests: MergeTestRequirement {
            command: work.task.tests.clone(),
            folder: work.task.folder_of(repo).to_owned(),
            before: Some(Box::new(joint.baseline(repo, &first_baseline(work, repo)))),
            accept,
            tests_ms: work.task.tests_ms,
        },
        message: format!("Integrate {id}\n\n{}", words.trailers()),
        at,
    };
    let effect = RunEffect::Merge {
        order: Box::new(order),
    };
    let merged: MergeOutcome = match tried(ctx.effect(effect.request()).await)? {
        Ok(merged) => merged,
        Err(why) => return not_merged(why),
    };
    Ok(match merged {
        MergeOutcome::Merged {
            commit,
            tests,
            flaky,
        } => {
            let left = happened([StepTransition::Merged {
                id: id.clone(),
                commit: Some(commit),
            }]);
            left.with(RunStateEvent::Merged {
                step: id.clone(),
                tests,
                candidate: None,
                flaky,
            })
        }
        MergeOutcome::Misfit { said, files, .. } => {
            let candidate = RejectedMerge {
                commit: committed.commit,
                said: said.clone(),
                files,
            };
            let left = happened([StepTransition::Conflict {
                id: id.clone(),
                said,
            }]);
            left.with(RunStateEvent::Merged {
                step: id.clone(),
                tests: None,
                candidate: Some(candidate),
                flaky: BTreeSet::new(),
            })
        }
        // What tests cannot judge does not get in.
        MergeOutcome::Unclear { why } => happened([StepTransition::Failed {
            id: id.clone(),
            reason: StepFailureReason::NotDone { said: why },
        }]),
    })
}

/// Finds who resolves a conflict that its own agent could not resolve: another agent, then a person.
async fn resolve(
    work: &CodingState,
    joint: &SharedPlan,
    id: &StepId,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let (Some(entry), Some(candidate)) = (joint.dag.steps.get(id), joint.candidates.get(id)) else {
        return Err(VisitStop::Halt(format!("{id} has no conflict")));
    };
    let said = candidate.said.clone();
    let again = id.as_str().contains(RESOLVE);
    if again && joint.dag.running().next().is_some() {
        // A person is asked when no agent has anything to do.
        return wait(work, joint, ctx).await;
    }
    if again {
        let question = format!(
            "{id} does not fit to what the others did, and two agents could not resolve it: {}",
            excerpt(&said, 400)
        );
        let choice = ctx.ask(&question, &["give up", "try again"]).await?;
        if choice.choice != "try again" {
            let reason = StepFailureReason::Conflict { said };
            return Ok(happened([StepTransition::Failed {
                id: id.clone(),
                reason,
            }]));
        }
    }
    let resolver = named(id, RESOLVE, joint.dag.version).map_err(VisitStop::Halt)?;
    let files = PathScope::new(&candidate.files).unwrap_or_default();
    let mut step = entry.step.clone();
    step.id = resolver.clone();
    step.deps = Vec::new();
    step.scope = entry.step.scope.and(&files);
    step.goal = format!(
        "{}\n\nResolve a conflict: this was done, and does not fit to what others did meanwhile. Keep \
         what both wanted.",
        entry.step.goal.split(CONFLICT).next().unwrap_or_default()
    );
    match replaced(work, joint, id, step, shared_plan::left(ctx)) {
        Ok(patched) => {
            Ok(NodeExit::by(RunNodeExit::More)
                .with(patched)
                .with(RunStateEvent::Merged {
                    step: resolver,
                    tests: None,
                    candidate: Some(candidate.clone()),
                    flaky: BTreeSet::new(),
                }))
        }
        Err(refusal) => {
            let reason = StepFailureReason::Conflict {
                said: format!("{said} ({refusal})"),
            };
            let left = happened([StepTransition::Failed {
                id: id.clone(),
                reason,
            }]);
            Ok(left.with(refused(&refusal)))
        }
    }
}

/// What a step is called that takes the place of another, however long the name of that is.
fn named(id: &StepId, why: &str, version: u32) -> Result<StepId, String> {
    let end = format!("{why}{version}");
    let first = id.as_str().split(why).next().unwrap_or_default();
    let room = StepId::LONGEST.saturating_sub(end.len());
    StepId::new(&format!("{}{end}", first.get(..room).unwrap_or(first)))
}

/// Everything is over: what came together is taken to where it is judged as a whole.
async fn finish(
    work: &CodingState,
    joint: &SharedPlan,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let halted = |why: String| {
        let end = EarlyEnd::Halted { why };
        Ok(NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end }))
    };
    let whole = joint.dag.is_whole();
    // Several repositories get all of their parts or none: a part for one of them is no change set.
    let deliverable = whole || (joint.is_partial() && work.repositories.len() == 1);
    let changed = joint
        .dag
        .steps
        .values()
        .any(|entry| matches!(entry.status, StepStatus::Merged { commit: Some(_) }));
    if !deliverable || !changed {
        let run = ctx.run().short().to_owned();
        let why = joint.told();
        let several = if changed {
            " (of several repositories all get their part or none)"
        } else {
            ""
        };
        return halted(format!(
            "{why}; nothing was delivered{several}; run {run} keeps what was done"
        ));
    }
    if joint.changed(0) {
        let effect = RunEffect::Fill {
            order: FillWorkspaceFromBranch {
                branch: branch(work, 0, ctx),
                workspace: workspace(work)?,
            },
        };
        if let Err(why) = tried(ctx.effect::<()>(effect.request()).await)? {
            return halted(why);
        }
    }
    if let Err(why) = repositories::fill(work, ctx).await? {
        return halted(why);
    }
    let by: BTreeSet<&str> = joint.returned.values().map(|r| r.by.as_str()).collect();
    let by: Vec<&str> = by.into_iter().filter(|by| !by.is_empty()).collect();
    Ok(NodeExit::by(RunNodeExit::Whole).with(RunStateEvent::Coded {
        by: by.join(", "),
        summary: joint.told(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_the_place_of_a_step_has_a_name_however_long_that_of_the_step_is() {
        let long = StepId::new(&"x".repeat(StepId::LONGEST)).unwrap();
        let first = named(&long, RESOLVE, 3).unwrap();
        assert!(first.as_str().ends_with("x-resolve3"), "{first}");
        let again = named(&first, RESOLVE, 16).unwrap();
        assert!(again.as_str().ends_with("x-resolve16"), "{again}");
        let short = named(&StepId::new("a").unwrap(), MORE, 2).unwrap();
        assert_eq!(short.as_str(), "a-more2");
    }
}
