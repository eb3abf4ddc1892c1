//! The nodes, one file each where they do more than decide.

mod agent_return;
mod chat;
mod contest;
mod context;
mod deliver;
mod executor;
mod gate;
mod planner;
mod repositories;
mod scheduler;
mod second_look;
mod sending;
mod shared_plan;
mod task_commits;
mod verifier;
mod whole_review;

use lula_graph::{EffectError, NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::call::ExecCommand;
use lula_protocol::{RunId, ToolAction, WorkspaceId};

use lula_runner_api::{IntegrationBranchRef, OpenWorkspaceOnBranch};

use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::route::{TaskLane, route};
use crate::runner_port::{AgentWorkspace, workspace_of};
use crate::work::{CodingState, EarlyEnd, RepositoryEvent, RunStateEvent};
use crate::world::DriverFenceReport;

pub(crate) use chat::visit as chat;
pub(crate) use coder::visit as coder;
pub(crate) use contest::visit as contest;
pub(crate) use context::visit as context_builder;
pub(crate) use deliver::visit as reporter;
pub(crate) use executor::visit as executor;
pub(crate) use gate::visit as policy_gate;
pub(crate) use planner::visit as planner;
pub(crate) use scheduler::visit as scheduler;
pub(crate) use verifier::visit as verifier;

/// What the system says of a disk on which nothing fits any more.
const DISK_IS_FULL: &str = "No space left on device";

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
        // Nothing is wrong with the task where the disk has no room for a copy.
        Err(why) if why.contains(DISK_IS_FULL) => {
            let end = EarlyEnd::Environment { why, broken: None };
            return Ok(NodeExit::by(RunNodeExit::Invalid).with(RunStateEvent::Ending { end }));
        }
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

/// A command as a shell reads it, in a folder of the workspace; the same for a model's and for those that
/// finish a change.
pub(crate) fn shell(command: &str, folder: &str) -> ToolAction {
    ToolAction::Exec(ExecCommand {
        argv: vec!["/bin/sh".to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: folder.to_owned(),
        env: [("TZ", "UTC"), ("LC_ALL", "C.UTF-8")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..ExecCommand::default()
    })
}
