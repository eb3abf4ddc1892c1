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

use lula_graph::{Ctx, EffectError, Leave, Stop, Visit};
use lula_protocol::{RunId, WorkspaceId};

use crate::coder;
use crate::deeds::{Deed, Taken};
use crate::glean::{Phase, rate};
use crate::graph::{Coding, Left, Way};
use crate::hands::{Consignment, Delivered, Footing, Line, OverLine, Place, workspace_of};
use crate::recover::{Recovery, recover};
use crate::route::{Lane, route};
use crate::task::Deliver;
use crate::team::Start;
use crate::verdict::Verdict;
use crate::work::{End, Event, Produced, Retry, Work};
use crate::world::Fenced;

use consent::Consent;

pub(crate) use coder::visit as coder;
pub(crate) use contest::visit as contest;
pub(crate) use context::visit as context_builder;
pub(crate) use planner::visit as planner;
pub(crate) use scheduler::visit as scheduler;
pub(crate) use verifier::visit as verifier;

/// Keeps what an effect said when it failed; everything else ends the visit.
pub(crate) fn tried<T>(result: Result<T, Stop>) -> Result<Result<T, String>, Stop> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Effect(EffectError::Failed { message, .. })) => Ok(Err(message)),
        Err(stop) => Err(stop),
    }
}

/// The workspace, which `ingest` opened.
pub(crate) fn workspace(work: &Work) -> Result<WorkspaceId, Stop> {
    let place = work.place.as_ref();
    place
        .map(|place| place.workspace.clone())
        .ok_or_else(|| Stop::Halt("there is no workspace".to_owned()))
}

pub(crate) async fn ingest(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let invalid = |why: String| {
        let end = End::Rejected { why };
        Ok(Leave::by(Way::Invalid).with(Event::Ending { end }))
    };
    if work.task.text.trim().is_empty() {
        return invalid("the task is empty: say what is to be done".to_owned());
    }
    if let Some(Err(excess)) = work.task.handoff.as_ref().map(|handoff| handoff.check()) {
        return invalid(excess.to_string());
    }
    let deed = opening(work, ctx.run());
    let place: Place = match tried(ctx.effect(deed.effect()).await)? {
        Ok(place) => place,
        Err(why) => return invalid(why),
    };
    let deed = Deed::Fence {
        repository: work.task.repository.clone(),
        workspace: place.workspace.clone(),
    };
    let fenced: Fenced = ctx.effect(deed.effect()).await?;
    let sites = match sites::open(work, ctx).await? {
        Ok(sites) => sites,
        Err(why) => return invalid(why),
    };
    let left = Leave::by(Way::Ok)
        .with(Event::Opened { place })
        .with(Event::Fenced { fenced });
    if sites.is_empty() {
        return Ok(left);
    }
    Ok(left.with(Event::OpenedToo { sites }))
}

/// How the workspace is opened: of the repository, or over what other agents did.
fn opening(work: &Work, run: &RunId) -> Deed {
    let repository = work.task.repository.clone();
    let Some(handoff) = &work.task.handoff else {
        return Deed::Open { repository };
    };
    let wanted = OverLine {
        line: Line {
            run: handoff.parent.clone(),
            repository,
            base: handoff.base.clone(),
        },
        workspace: workspace_of(run),
        scope: handoff.authority.scope.patterns().to_vec(),
        contains: handoff.contains.clone(),
        footing: match &handoff.start {
            Start::Line => Footing::Line,
            Start::Merge { commit } => Footing::Merge {
                commit: commit.clone(),
            },
        },
    };
    Deed::OpenOver { wanted }
}

pub(crate) fn router(work: &Work) -> Left {
    // A plan that no model can make is no plan.
    let lane = if work.task.models.is_empty() {
        Lane::Interactive
    } else {
        let lane = work.task.lane;
        match work.task.team {
            Some(_) => Lane::DeepPlanning,
            // Each of several who try the same goes its own way.
            None if work.task.best_of.is_some() => Lane::Interactive,
            None => lane.unwrap_or_else(|| route(&work.task.text)),
        }
    };
    let way = match lane {
        Lane::DeepPlanning => Way::Deep,
        Lane::Interactive | Lane::Recovery => Way::Interactive,
    };
    Leave::by(way).with(Event::Routed { lane })
}

pub(crate) fn policy_gate(work: &Work, strikes: u32) -> Left {
    let handled = usize::try_from(work.loops).unwrap_or(usize::MAX);
    if work.failures.len() <= handled {
        return Leave::by(Way::Allow);
    }
    if let (Some(_), Some(failure)) = (&work.contest, work.failures.last()) {
        // Everybody who tried has tried again already.
        let why = failure.evidence.clone();
        let end = End::Halted { why };
        return Leave::by(Way::Deny).with(Event::Ending { end });
    }
    match recover(&work.failures, work.task.max_loops, strikes) {
        Recovery::Retry {
            target,
            another_mind,
        } => {
            let retry = Retry {
                target,
                another_mind,
            };
            Leave::by(Way::Allow).with(Event::Retrying { retry })
        }
        Recovery::Halt(why) => {
            let end = End::Halted { why };
            Leave::by(Way::Deny).with(Event::Ending { end })
        }
    }
}

/// Takes what the coder left in the workspace.
pub(crate) async fn executor(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let deed = Deed::Change {
        workspace: workspace(work)?,
    };
    let taken: Taken = ctx.effect(deed.effect()).await?;
    let (by, summary) = work.made.clone().unwrap_or_default();
    let mut produced = Produced {
        by,
        summary,
        diff: taken.diff,
        files: taken.files,
        tree: taken.tree,
    };
    let too = sites::take(work, &mut produced, ctx).await?;
    let executed = Event::Executed { produced };
    let left = too.into_iter().fold(Leave::by(Way::Done), Leave::with);
    if work.task.guidance.guidelines.is_empty() {
        return Ok(left.with(executed));
    }
    let mut now = work.clone();
    now.apply(&executed);
    let rating = rate(&now, Phase::Change);
    Ok(left.with(executed).with(Event::Rated { rating }))
}

/// Delivers what may be delivered.
pub(crate) async fn reporter(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let order = match (&work.verdict, &work.end, &work.produced) {
        (Some(Verdict::Pass { .. } | Verdict::Inconclusive { .. }), None, Some(produced))
            if !produced.files.is_empty()
                && matches!(work.task.deliver, Deliver::Branch | Deliver::Worktree) =>
        {
            consignment(work, produced, ctx).await?
        }
        _ => return Ok(Leave::by(Way::Done)),
    };
    let done = Leave::by(Way::Done);
    let deed = sites::deliver(work, order);
    let effect = match consent::ask(work, &deed, ctx).await? {
        Consent::Given(effect) => effect,
        Consent::Refused(why) => {
            let end = End::Halted { why };
            return Ok(done.with(Event::Ending { end }));
        }
    };
    let arrived = match &deed {
        Deed::DeliverAll { parts } => {
            let arrived = tried(ctx.effect::<Vec<Delivered>>(effect).await)?;
            arrived.map(|all| parts.iter().map(|part| part.site).zip(all).collect())
        }
        _ => tried(ctx.effect::<Delivered>(effect).await)?.map(|one| vec![(0, one)]),
    };
    Ok(match arrived {
        Ok(arrived) => arrived.into_iter().fold(done, |left, (site, delivered)| {
            left.with(match site {
                0 => Event::Delivered { delivered },
                _ => Event::DeliveredToo { site, delivered },
            })
        }),
        Err(why) => {
            let why = format!("the change was not delivered: {why}");
            done.with(Event::Ending {
                end: End::Halted { why },
            })
        }
    })
}

async fn consignment(
    work: &Work,
    produced: &Produced,
    ctx: &mut Ctx<'_>,
) -> Result<Consignment, Stop> {
    let at = ctx.now().await? / 1000;
    // Names everything that was recorded of this run until now: whoever has the log can check it.
    let recorded = ctx.head().await?;
    let run = ctx.run();
    let verdict = work.verdict.as_ref().map_or("none", Verdict::name);
    let title: String = work
        .task
        .text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(72)
        .collect();
    let why = work.verdict.as_ref().map_or("", Verdict::why);
    // A person who reads only the trailers should know that nothing shows that it is right.
    let reason = match &work.verdict {
        Some(Verdict::Inconclusive { why }) => {
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
    Ok(Consignment {
        workspace: workspace(work)?,
        deliver: work.task.deliver,
        branch: format!("lula/{}", run.short()),
        message,
        at,
        tree: produced.tree,
    })
}
