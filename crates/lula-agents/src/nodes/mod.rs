//! The nodes, one file each where they do more than decide.

mod contest;
mod context;
mod deliver;
mod planner;
mod repositories;
mod scheduler;
mod second_look;
mod sending;
mod shared_plan;
mod verifier;

use lula_graph::{EffectError, NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::{RunId, WorkspaceId};

use lula_runner_api::{CommittedChangeView, IntegrationBranchRef, OpenWorkspaceOnBranch};

use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::guidelines::{RatingPhase, rate};
use crate::recovery::{AttemptRecovery, recover};
use crate::route::{TaskLane, route};
use crate::runner_port::{AgentWorkspace, workspace_of};
use crate::work::{
    CoderProposal, CodingState, EarlyEnd, RepositoryEvent, RetryPlan, RunStateEvent,
};
use crate::world::DriverFenceReport;

pub(crate) use coder::visit as coder;
pub(crate) use contest::visit as contest;
pub(crate) use context::visit as context_builder;
pub(crate) use planner::visit as planner;
pub(crate) use scheduler::visit as scheduler;
pub(crate) use verifier::visit as verifier;

/// Keeps what an effect said when it failed; everything else ends the visit.
pub(crate) fn tried<T>(result: Result<T, VisitStop>) -> Result<Result<T, String>, VisitStop> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(VisitStop::Effect(EffectError::Failed { message, .. })) => Ok(Err(message)),
        Err(stop) => Err(stop),
    }
}

/// The workspace, which `ingest` opened.
pub(crate) fn workspace(work: &CodingState) -> Result<WorkspaceId, VisitStop> {
    let place = work.place_of(0);
    place
        .map(|place| place.workspace.clone())
        .ok_or_else(|| VisitStop::Halt("there is no workspace".to_owned()))
}

pub(crate) async fn ingest(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let invalid = |why: String| {
        let end = EarlyEnd::Rejected { why };
        Ok(NodeExit::by(RunNodeExit::Invalid).with(RunStateEvent::Ending { end }))
    };
    if work.task.text.trim().is_empty() {
        return invalid("the task is empty: say what is to be done".to_owned());
    }
    if let Some(Err(excess)) = work.task.handoff.as_ref().map(|handoff| handoff.check()) {
        return invalid(excess.to_string());
    }
    let effect = opening(work, ctx.run());
    let place: AgentWorkspace = match tried(ctx.effect(effect.request()).await)? {
        Ok(place) => place,
        Err(why) => return invalid(why),
    };
    let effect = RunEffect::Fence {
        repository: work.task.repository(0).to_owned(),
        workspace: place.workspace.clone(),
    };
    let fenced: DriverFenceReport = ctx.effect(effect.request()).await?;
    let places = match repositories::open(work, ctx).await? {
        Ok(places) => places,
        Err(why) => return invalid(why),
    };
    let left = NodeExit::by(RunNodeExit::Ok)
        .with(RunStateEvent::Repository(RepositoryEvent::opened(place)))
        .with(RunStateEvent::Fenced { fenced });
    if places.is_empty() {
        return Ok(left);
    }
    let opened = RepositoryEvent::Opened { first: 1, places };
    Ok(left.with(RunStateEvent::Repository(opened)))
}

/// How the workspace is opened: of the repository, or over what other agents did.
fn opening(work: &CodingState, run: &RunId) -> RunEffect {
    let repository = work.task.repository(0).to_owned();
    let Some(handoff) = &work.task.handoff else {
        return RunEffect::Open { repository };
    };
    let order = OpenWorkspaceOnBranch {
        branch: IntegrationBranchRef {
            run: handoff.parent.clone(),
            repository,
            base: Some(handoff.base.clone()),
        },
        workspace: workspace_of(run),
        write_scope: handoff.authority.scope.patterns().to_vec(),
        contains: handoff.contains.clone(),
        start: handoff.start.clone(),
    };
    RunEffect::OpenOnBranch { order }
}

pub(crate) fn router(work: &CodingState) -> NodeDeparture {
    // A plan that no model can make is no plan.
    let lane = if work.task.models.is_empty() {
        TaskLane::Interactive
    } else {
        let lane = work.task.lane;
        match work.task.team {
            Some(_) => TaskLane::DeepPlanning,
            // Each of several who try the same goes its own way.
            None if work.task.best_of.is_some() => TaskLane::Interactive,
            None => lane.unwrap_or_else(|| route(&work.task.text)),
        }
    };
    let way = match lane {
        TaskLane::DeepPlanning => RunNodeExit::Deep,
        TaskLane::Interactive | TaskLane::Recovery => RunNodeExit::Interactive,
    };
    NodeExit::by(way).with(RunStateEvent::Routed { lane })
}

/// Whether the run may go on: by the task's loop limit, the strikes of the loop guard, and what the
/// class of the last failure allows. Rules about acts are asked where an act is ordered, by the
/// runner; a budget that is spent suspends the run at its next effect instead of ending it here.
pub(crate) fn policy_gate(work: &CodingState, strikes: u32) -> NodeDeparture {
    let handled = usize::try_from(work.loops).unwrap_or(usize::MAX);
    if work.failures.len() <= handled {
        return NodeExit::by(RunNodeExit::Allow);
    }
    if let (Some(_), Some(failure)) = (&work.contest, work.failures.last()) {
        // Every candidate has tried again already.
        let why = failure.evidence.clone();
        let end = EarlyEnd::Halted { why };
        return NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end });
    }
    match recover(&work.failures, work.task.max_loops, strikes) {
        AttemptRecovery::Retry {
            target,
            another_model,
        } => {
            let retry = RetryPlan {
                target,
                another_model,
            };
            NodeExit::by(RunNodeExit::Allow).with(RunStateEvent::Retrying { retry })
        }
        AttemptRecovery::Halt(why) => {
            let end = EarlyEnd::Halted { why };
            NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end })
        }
    }
}

/// Takes what the coder left in the workspace.
pub(crate) async fn executor(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let effect = RunEffect::TakeChange {
        workspace: workspace(work)?,
    };
    let taken: CommittedChangeView = ctx.effect(effect.request()).await?;
    let (by, summary) = work.made.clone().unwrap_or_default();
    let mut proposal = CoderProposal {
        by,
        summary,
        diff: taken.diff,
        files: taken.files,
        tree: taken.tree,
    };
    let others = repositories::take(work, &mut proposal, ctx).await?;
    let executed = RunStateEvent::Executed { proposal };
    let left = others
        .into_iter()
        .fold(NodeExit::by(RunNodeExit::Done), NodeExit::with);
    if work.task.guidance.guidelines.is_empty() {
        return Ok(left.with(executed));
    }
    let mut now = work.clone();
    now.apply(&executed);
    let rating = rate(&now, RatingPhase::Change);
    Ok(left.with(executed).with(RunStateEvent::Rated { rating }))
}

/// Delivers what may be delivered, and says what became of it; what the run is worth was said before.
pub(crate) async fn reporter(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let events = deliver::deliver(work, ctx).await?;
    Ok(events
        .into_iter()
        .fold(NodeExit::by(RunNodeExit::Done), NodeExit::with))
}
