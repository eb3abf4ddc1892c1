//! Puts agents to tasks: what each is handed, and what it may spend.
//!
//! A task is begun when there is something for it to spend. If there is nothing, the scheduler
//! waits for the agents at work, then the run waits for a person. An agent that has spent its share
//! comes back, and another one with twice the share takes its place.
//!
//! What people said until then is heard here, and every agent begins with it; those at work are told
//! by the command that says it (`lula-host/src/drive/signals.rs`).

use std::collections::BTreeSet;

use lula_graph::{EffectRequest, NodeContext, NodeExit, VisitStop};
use lula_protocol::{BudgetAmounts, BudgetDimension, RunId};

use super::repositories::branch;
use super::shared_plan;
use lula_runner_api::{BranchWorkspaceStart, OpenWorkspaceOnBranch};

use crate::agent_pool::AgentResult;
use crate::effects::RunEffect;
use crate::graph::{NodeDeparture, RunNodeExit};
use crate::plan::{PathScope, PlanStepEntry, StepId, StepStatus, StepTransition};
use crate::route::TaskLane;
use crate::runner_port::workspace_of;
use crate::task::{DeliverMode, RunTask};
use crate::team::notes::notes_for;
use crate::team::{
    AgentHandoff, AgentInput, AgentRoles, RunAuthority, SharedPlan, SharedTaskView, agent_run,
};
use crate::work::{CodingState, RunStateEvent, TestBaseline};
use lula_repair::trial::excerpt;

/// Longest text that one agent is told of another.
const TOLD: usize = 6000;

/// What the tests of a repository said before any agent began.
pub(super) fn first_baseline(work: &CodingState, repo: usize) -> TestBaseline {
    let known = work.baseline_of(repo).cloned();
    known.unwrap_or_default()
}

/// Begins the runs of agents; nothing where there is too little for the first while others work. Where
/// no agent works a person is asked for more.
pub(super) async fn start(
    work: &CodingState,
    joint: &SharedPlan,
    steps: &[StepId],
    ctx: &mut NodeContext<'_>,
) -> Result<Option<NodeDeparture>, VisitStop> {
    let heard = ctx.hear().await?;
    let heard = heard.into_iter().map(|note| note.text);
    let notes: Vec<String> = work.notes.iter().cloned().chain(heard).collect();
    let free = shared_plan::left(ctx);
    let mut left = NodeExit::by(RunNodeExit::More);
    let mut ahead = joint.clone();
    for id in steps {
        let Some(entry) = joint.dag.steps.get(id) else {
            continue;
        };
        let agent = agent_run(ctx.run(), id, entry.attempts);
        let limits = ahead.share(id, &free);
        let missing = lacking(entry, &limits);
        if missing.is_some() && ahead.dag.running().next().is_some() {
            let begun = ahead.promised.len() > joint.promised.len();
            return Ok(begun.then_some(left));
        }
        let of = RunAuthority {
            tools: all_tools(joint.roles_of(entry.step.repo)),
            models: work.task.models.iter().map(|m| m.name.clone()).collect(),
            scope: PathScope::everything(),
            budget: free.clone(),
        };
        let handed = handoff(work, joint, entry, of, &limits, ctx);
        let mut handed = handed.map_err(VisitStop::Halt)?;
        handed.notes = notes_for(id, notes.iter().map(String::as_str), &joint.dag);
        if let Err(excess) = handed.check() {
            return Err(VisitStop::Halt(excess.to_string()));
        }
        let task = Box::new(errand(work, entry, handed));
        let change = StepTransition::Leased {
            id: id.clone(),
            run: agent.clone(),
        };
        let effect = RunEffect::Begin {
            agent: agent.clone(),
            task,
            limits: limits.clone(),
        };
        // The first effect of the visit: once there is more, all of it is thought over again.
        let effect = missing
            .into_iter()
            .fold(effect.request(), EffectRequest::reserving);
        ctx.effect::<()>(effect).await?;
        ahead.advance(&change);
        ahead.promised.insert(agent.clone(), limits.clone());
        left = left
            .with(RunStateEvent::StepChanged { change })
            .with(RunStateEvent::Promised { run: agent, limits });
    }
    Ok(Some(left))
}

/// What an agent needs to begin and would not have: what the plan says, or anything at all.
fn lacking(entry: &PlanStepEntry, limits: &BudgetAmounts) -> Option<BudgetAmounts> {
    let short = |(dimension, has): (BudgetDimension, u64)| {
        let needs = entry.step.budget.get(dimension).unwrap_or(1);
        (has < needs).then_some((dimension, needs))
    };
    let missing: BudgetAmounts = limits.iter().filter_map(short).collect();
    (!missing.is_empty()).then_some(missing)
}

fn all_tools(roles: &AgentRoles) -> BTreeSet<String> {
    let names = roles.names();
    let roles = names.iter().filter_map(|name| roles.get(name));
    roles.flat_map(|role| role.tools.iter().cloned()).collect()
}

/// What an agent is handed.
fn handoff(
    work: &CodingState,
    joint: &SharedPlan,
    entry: &PlanStepEntry,
    of: RunAuthority,
    limits: &BudgetAmounts,
    ctx: &NodeContext<'_>,
) -> Result<AgentHandoff, String> {
    let step = &entry.step;
    let role = joint.roles_of(step.repo).get(&step.role).cloned();
    let role = role.ok_or_else(|| format!("there is no role {}", step.role))?;
    let mut inputs = Vec::new();
    let mut contains = Vec::new();
    for dep in &step.deps {
        let needed = joint.dag.steps.get(dep);
        // What was done in another repository is not in this one.
        let needed = needed.filter(|entry| entry.step.repo == step.repo);
        if let Some(StepStatus::Merged {
            commit: Some(commit),
        }) = needed.map(|entry| &entry.status)
        {
            contains.push(commit.clone());
        }
        if let Some(returned) = joint.returned.get(dep) {
            inputs.push(AgentInput {
                from: dep.to_string(),
                text: told(returned, role.writes),
            });
        }
    }
    let candidate = joint.candidates.get(&step.id);
    if let Some(candidate) = candidate {
        inputs.push(AgentInput {
            from: "what did not fit".to_owned(),
            text: format!(
                "This task was done once. What was done is in your copy, over what the others did \
                 meanwhile, and the two do not go together:\n{}",
                excerpt(&candidate.said, TOLD)
            ),
        });
    }
    let authority = RunAuthority {
        tools: role.tools.iter().cloned().collect(),
        models: of.models.clone(),
        scope: step.scope.clone(),
        budget: limits.clone(),
    };
    Ok(AgentHandoff {
        parent: ctx.run().clone(),
        step: step.id.clone(),
        base: work.base_of(step.repo).to_owned(),
        start: beginning(joint, &step.id),
        contains,
        inputs,
        role,
        role_name: step.role.clone(),
        authority,
        of,
        baseline: Some(Box::new(
            joint.baseline(step.repo, &first_baseline(work, step.repo)),
        )),
        whole: Some(Box::new(SharedTaskView::of(&work.task.text, joint, entry))),
        notes: Vec::new(),
    })
}

/// What the workspace of a step's agent begins with.
fn beginning(joint: &SharedPlan, step: &StepId) -> BranchWorkspaceStart {
    match joint.candidates.get(step) {
        Some(candidate) => BranchWorkspaceStart::Merge {
            commit: candidate.commit.clone(),
        },
        None => BranchWorkspaceStart::Branch,
    }
}

/// Lets the agent at work on a step write what the step may write now: the runner, which holds it to
/// its files, is told.
pub(super) fn widened(
    work: &CodingState,
    joint: &SharedPlan,
    entry: &PlanStepEntry,
    agent: &RunId,
    ctx: &NodeContext<'_>,
) -> RunEffect {
    RunEffect::OpenOnBranch {
        order: OpenWorkspaceOnBranch {
            branch: branch(work, entry.step.repo, ctx),
            workspace: workspace_of(agent),
            write_scope: entry.step.scope.patterns().to_vec(),
            contains: Vec::new(),
            start: beginning(joint, &entry.step.id),
        },
    }
}

/// What one agent is told of another's work.
fn told(returned: &AgentResult, writes: bool) -> String {
    if let Some(answer) = &returned.answer {
        return excerpt(&answer.text, TOLD);
    }
    let mut text = returned.said.clone();
    if !writes {
        text.push_str("\n\nThe change:\n");
        text.push_str(&excerpt(&returned.diff, TOLD));
    }
    text
}

/// The task of an agent.
fn errand(work: &CodingState, entry: &PlanStepEntry, handoff: AgentHandoff) -> RunTask {
    let of = &work.task;
    let mut models = of.models.clone();
    if let Some(preferred) = &handoff.role.model {
        models.sort_by_key(|model| model.name != *preferred);
    }
    RunTask {
        tests: of.tests.clone(),
        folder: of.folder_of(entry.step.repo).to_owned(),
        accept: entry.step.acceptance.clone(),
        // The whole is finished where it is put together, not the part of each.
        finish: Vec::new(),
        gated: of.gated,
        deliver: DeliverMode::None,
        lane: Some(TaskLane::Interactive),
        coder: of.coder,
        models,
        standing: of.standing.clone(),
        guidance: of.guidance_of(entry.step.repo),
        lessons: of.lessons.clone(),
        handoff: Some(Box::new(handoff)),
        max_loops: of.max_loops,
        max_turns: of.max_turns,
        search_ms: of.search_ms,
        tests_ms: of.tests_ms,
        ..RunTask::new(&entry.step.goal, work.repository(entry.step.repo))
    }
}
