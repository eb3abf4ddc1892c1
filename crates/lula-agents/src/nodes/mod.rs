//! The nodes, one file each where they do more than decide.

mod consent;
mod contest;
mod context;
mod planner;
mod scheduler;
mod second_look;
mod sending;
mod shared_plan;
mod sites;
mod verifier;

use lula_graph::{EffectError, NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::{RunId, WorkspaceId};

use lula_runner_api::{CommittedChangeView, DeliveredView};

use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::guidelines::{RatingPhase, rate};
use crate::recovery::{AttemptRecovery, recover};
use crate::route::{TaskLane, route};
use crate::runner_port::{
    AgentWorkspace, DeliverRequest, IntegrationBranchRef, LineWorkspace, workspace_of,
};
use crate::task::DeliverMode;
use crate::verdict::RunVerdict;
use crate::work::{CoderProposal, CodingState, EarlyEnd, RetryPlan, RunStateEvent};
use crate::world::DriverFenceReport;

use consent::ConsentAnswer;

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
    let place = work.place.as_ref();
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
    let deed = opening(work, ctx.run());
    let place: AgentWorkspace = match tried(ctx.effect(deed.effect()).await)? {
        Ok(place) => place,
        Err(why) => return invalid(why),
    };
    let deed = RunEffect::Fence {
        repository: work.task.repository.clone(),
        workspace: place.workspace.clone(),
    };
    let fenced: DriverFenceReport = ctx.effect(deed.effect()).await?;
    let sites = match sites::open(work, ctx).await? {
        Ok(sites) => sites,
        Err(why) => return invalid(why),
    };
    let left = NodeExit::by(RunNodeExit::Ok)
        .with(RunStateEvent::Opened { place })
        .with(RunStateEvent::Fenced { fenced });
    if sites.is_empty() {
        return Ok(left);
    }
    Ok(left.with(RunStateEvent::OpenedToo { sites }))
}

/// How the workspace is opened: of the repository, or over what other agents did.
fn opening(work: &CodingState, run: &RunId) -> RunEffect {
    let repository = work.task.repository.clone();
    let Some(handoff) = &work.task.handoff else {
        return RunEffect::Open { repository };
    };
    let wanted = LineWorkspace {
        line: IntegrationBranchRef {
            run: handoff.parent.clone(),
            repository,
            base: handoff.base.clone(),
        },
        workspace: workspace_of(run),
        scope: handoff.authority.scope.patterns().to_vec(),
        contains: handoff.contains.clone(),
        footing: handoff.start.clone(),
    };
    RunEffect::OpenOver { wanted }
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

pub(crate) fn policy_gate(work: &CodingState, strikes: u32) -> NodeDeparture {
    let handled = usize::try_from(work.loops).unwrap_or(usize::MAX);
    if work.failures.len() <= handled {
        return NodeExit::by(RunNodeExit::Allow);
    }
    if let (Some(_), Some(failure)) = (&work.contest, work.failures.last()) {
        // Everybody who tried has tried again already.
        let why = failure.evidence.clone();
        let end = EarlyEnd::Halted { why };
        return NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end });
    }
    match recover(&work.failures, work.task.max_loops, strikes) {
        AttemptRecovery::Retry {
            target,
            another_mind,
        } => {
            let retry = RetryPlan {
                target,
                another_mind,
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
    let deed = RunEffect::Change {
        workspace: workspace(work)?,
    };
    let taken: CommittedChangeView = ctx.effect(deed.effect()).await?;
    let (by, summary) = work.made.clone().unwrap_or_default();
    let mut produced = CoderProposal {
        by,
        summary,
        diff: taken.diff,
        files: taken.files,
        tree: taken.tree,
    };
    let too = sites::take(work, &mut produced, ctx).await?;
    let executed = RunStateEvent::Executed { produced };
    let left = too
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

/// Delivers what may be delivered.
pub(crate) async fn reporter(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let order = match (&work.verdict, &work.end, &work.produced) {
        (Some(RunVerdict::Pass { .. } | RunVerdict::Inconclusive { .. }), None, Some(produced))
            if !produced.files.is_empty()
                && matches!(
                    work.task.deliver,
                    DeliverMode::Branch | DeliverMode::Worktree
                ) =>
        {
            consignment(work, produced, ctx).await?
        }
        _ => return Ok(NodeExit::by(RunNodeExit::Done)),
    };
    let done = NodeExit::by(RunNodeExit::Done);
    let deed = sites::deliver(work, order);
    let effect = match consent::ask(work, &deed, ctx).await? {
        ConsentAnswer::Given(effect) => effect,
        ConsentAnswer::Refused(why) => {
            let end = EarlyEnd::Halted { why };
            return Ok(done.with(RunStateEvent::Ending { end }));
        }
    };
    let arrived = match &deed {
        RunEffect::DeliverAll { parts } => {
            let arrived = tried(ctx.effect::<Vec<DeliveredView>>(effect).await)?;
            arrived.map(|all| parts.iter().map(|part| part.site).zip(all).collect())
        }
        _ => tried(ctx.effect::<DeliveredView>(effect).await)?.map(|one| vec![(0, one)]),
    };
    Ok(match arrived {
        Ok(arrived) => arrived.into_iter().fold(done, |left, (site, delivered)| {
            left.with(match site {
                0 => RunStateEvent::Delivered { delivered },
                _ => RunStateEvent::DeliveredToo { site, delivered },
            })
        }),
        Err(why) => {
            let why = format!("the change was not delivered: {why}");
            done.with(RunStateEvent::Ending {
                end: EarlyEnd::Halted { why },
            })
        }
    })
}

async fn consignment(
    work: &CodingState,
    produced: &CoderProposal,
    ctx: &mut NodeContext<'_>,
) -> Result<DeliverRequest, VisitStop> {
    let at = ctx.now().await? / 1000;
    // Names everything that was recorded of this run until now: a holder of the log can check it.
    let recorded = ctx.head().await?;
    let run = ctx.run();
    let verdict = work.verdict.as_ref().map_or("none", RunVerdict::name);
    let title: String = work
        .task
        .text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(72)
        .collect();
    let why = work.verdict.as_ref().map_or("", RunVerdict::why);
    // A person who reads only the trailers should know that nothing shows that it is right.
    let reason = match &work.verdict {
        Some(RunVerdict::Inconclusive { why }) => {
            let line: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
            let line: String = line.chars().take(400).collect();
            format!("Lula-Unverified: {line}\n")
        }
        _ => String::new(),
    };
    let message = format!(
        "{title}\n\n{}\n\nLula-Run: {run}\nLula-Model: {}\nLula-Verdict: \
         {verdict}\n{reason}Lula-Audit: {}\n",
        why, produced.by, recorded
    );
    Ok(DeliverRequest {
        workspace: workspace(work)?,
        deliver: work.task.deliver,
        branch: format!("lula/{}", run.short()),
        message,
        at,
        tree: produced.tree,
    })
}
