//! Lets several agents try the same task and takes the best of what comes back, one thing in each
//! visit. What is taken is judged once more where it is delivered from.

use lula_graph::{Ctx, Leave, Stop, Visit};
use lula_protocol::Amounts;

use super::sending::first_baseline;
use super::sites::line;
use super::{shared_plan, tried, workspace};
use crate::choose::{Entrant, entrants};
use crate::crew::{News, Returned};
use crate::dag::Scope;
use crate::deeds::Deed;
use crate::graph::{Coding, Left, Way};
use crate::hands::{Harvest, Joined, Joining, Kept, workspace_of};
use crate::task::{CoderChoice, Deliver, Task};
use crate::team::contest::{Standing, Turn};
use crate::team::{Authority, Contest, Handoff, PROPOSE, Rival, Role, Start, agent_run};
use crate::work::{End, Event, Work};

/// What everybody who tries is.
const ROLE: &str = "coder";

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let Some(contest) = &work.contest else {
        return enter(work, ctx).await;
    };
    match contest.next() {
        Turn::Wait(agents) => {
            let deed = Deed::Await { agents };
            let effect = deed.effect().reserving(contest.outstanding());
            let News::Back(returned) = ctx.effect(effect).await? else {
                return Err(Stop::Halt("a candidate has no plan to change".to_owned()));
            };
            Ok(Leave::by(Way::More).with(Event::CameBack { returned }))
        }
        Turn::Dismiss(agents) => {
            let deed = Deed::Dismiss { agents };
            let effect = deed.effect().reserving(contest.outstanding());
            let mut back: Vec<Returned> = ctx.effect(effect).await?;
            // Whoever was stopped has nothing to show; whoever was done is compared.
            back.retain(|returned| returned.exit == lula_protocol::Exit::Verified);
            Ok(Leave::by(Way::More).with(Event::Dismissed { back }))
        }
        Turn::Decide => take(work, contest, ctx).await,
    }
}

fn halted(why: String) -> Left {
    let end = End::Halted { why };
    Leave::by(Way::Deny).with(Event::Ending { end })
}

/// Begins the runs of everybody who tries.
async fn enter(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let count = work.task.best_of.unwrap_or(1);
    let entrants = entrants(work, count);
    if entrants.is_empty() {
        let why = "no model is left that could try it".to_owned();
        let end = End::NeedsModel { why };
        return Ok(Leave::by(Way::Deny).with(Event::Ending { end }));
    }
    let roles = match shared_plan::roles(work, ctx).await? {
        Ok(roles) => roles,
        Err(why) => {
            let end = End::Rejected { why };
            return Ok(Leave::by(Way::Deny).with(Event::Ending { end }));
        }
    };
    let role = roles
        .get(ROLE)
        .cloned()
        .ok_or_else(|| Stop::Halt(format!("there is no role {ROLE}")))?;
    let free = shared_plan::left(ctx);
    let heads = u64::try_from(entrants.len()).unwrap_or(u64::MAX).max(1);
    let limits: Amounts = free.iter().map(|(of, free)| (of, free / heads)).collect();
    let mut rivals = Vec::new();
    for (index, entrant) in entrants.iter().enumerate() {
        let id = Contest::name(index + 1).map_err(Stop::Halt)?;
        let rival = Rival {
            run: agent_run(ctx.run(), &id, 0),
            id,
            model: entrant.mind.name.clone(),
            temperature_percent: entrant.temperature_percent,
            because: entrant.because.clone(),
            limits: limits.clone(),
            standing: Standing::AtWork,
        };
        let handed = handoff(work, &rival, &role, &free, ctx);
        if let Err(excess) = handed.check() {
            return Err(Stop::Halt(excess.to_string()));
        }
        let deed = Deed::Begin {
            agent: rival.run.clone(),
            task: Box::new(errand(work, entrant, handed)),
            limits: limits.clone(),
        };
        ctx.effect::<()>(deed.effect()).await?;
        rivals.push(rival);
    }
    Ok(Leave::by(Way::More).with(Event::Entered { rivals }))
}

/// What somebody who tries is handed: everything, but for the models of the others.
fn handoff(work: &Work, rival: &Rival, role: &Role, free: &Amounts, ctx: &Ctx<'_>) -> Handoff {
    let of = Authority {
        tools: role.tools.iter().cloned().collect(),
        models: work.task.models.iter().map(|m| m.name.clone()).collect(),
        scope: Scope::everything(),
        budget: free.clone(),
    };
    Handoff {
        parent: ctx.run().clone(),
        job: rival.id.clone(),
        base: line(work, 0, ctx).base,
        start: Start::Line,
        contains: Vec::new(),
        inputs: Vec::new(),
        role: role.clone(),
        role_name: ROLE.to_owned(),
        authority: Authority {
            // There is no plan that it could change.
            tools: role
                .tools
                .iter()
                .filter(|tool| *tool != PROPOSE)
                .cloned()
                .collect(),
            models: [rival.model.clone()].into(),
            budget: rival.limits.clone(),
            ..of.clone()
        },
        of,
        baseline: Some(Box::new(first_baseline(work, 0))),
    }
}

/// The task of somebody who tries: the same, with one model, and nothing of it is delivered.
fn errand(work: &Work, entrant: &Entrant<'_>, handoff: Handoff) -> Task {
    Task {
        best_of: None,
        models: vec![entrant.mind.clone()],
        temperature_percent: Some(entrant.temperature_percent),
        coder: CoderChoice::Model,
        deliver: Deliver::None,
        ask_first: false,
        handoff: Some(Box::new(handoff)),
        ..work.task.clone()
    }
}

/// Takes the best to where it is judged once more.
async fn take(work: &Work, contest: &Contest, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let decided = contest.decide();
    let why = decided.because.clone();
    let winner = contest.rivals.iter().find(|rival| {
        decided.id.as_ref().is_some_and(|id| *id == rival.id) && rival.back().is_some()
    });
    let chosen = Event::Chosen { decided };
    let Some((rival, back)) = winner.and_then(|rival| Some((rival, rival.back()?))) else {
        let kept = format!("nothing was delivered; run {}", ctx.run().short());
        return Ok(halted(format!("{why}; {kept} keeps what was tried")).with(chosen));
    };
    Ok(match bring(work, rival, back, ctx).await? {
        Ok(()) => Leave::by(Way::Whole).with(chosen).with(Event::Coded {
            by: back.by.clone(),
            summary: back.said.clone(),
        }),
        Err(why) => halted(format!("{} cannot be taken: {why}", rival.id)).with(chosen),
    })
}

/// Makes the run's own workspace hold what the winner did.
async fn bring(
    work: &Work,
    rival: &Rival,
    back: &Returned,
    ctx: &mut Ctx<'_>,
) -> Result<Result<(), String>, Stop> {
    let Some(tree) = back.tree else {
        return Ok(Err("nothing came back".to_owned()));
    };
    let at = ctx.now().await? / 1000;
    let trailers = format!(
        "Lula-Run: {}\nLula-Task: {}\nLula-Model: {}\n",
        ctx.run(),
        rival.id,
        back.by
    );
    let harvest = Harvest {
        line: line(work, 0, ctx),
        job: rival.id.clone(),
        workspace: workspace_of(&rival.run),
        tree,
        message: format!("Take {}\n\n{trailers}", rival.id),
        at,
    };
    let deed = Deed::Harvest { order: harvest };
    let kept: Kept = match tried(ctx.effect(deed.effect()).await)? {
        Ok(kept) => kept,
        Err(why) => return Ok(Err(why)),
    };
    let joining = Joining {
        line: line(work, 0, ctx),
        job: rival.id.clone(),
        commit: kept.commit,
        tests: work.task.tests.clone(),
        folder: work.task.folder.clone(),
        // Nothing else is in the line: what was judged is what arrives, and it is judged again.
        before: None,
        accept: Vec::new(),
        tests_ms: work.task.tests_ms,
        message: format!("Integrate {}\n\n{trailers}", rival.id),
        at,
    };
    let deed = Deed::Join {
        order: Box::new(joining),
    };
    match tried(ctx.effect::<Joined>(deed.effect()).await)? {
        Ok(Joined::Integrated { .. }) => {}
        Ok(Joined::Misfit { said, .. }) => return Ok(Err(said)),
        Ok(Joined::Unclear { why }) | Err(why) => return Ok(Err(why)),
    }
    let deed = Deed::Lay {
        line: line(work, 0, ctx),
        workspace: workspace(work)?,
    };
    tried(ctx.effect::<()>(deed.effect()).await)
}
