//! Lets several agents try the same task and takes the best of what comes back, one thing in each
//! visit: begin all, wait for each, run the new tests of each with the code of each other, choose.
//! What is taken is judged once more where it is delivered from.

use std::collections::{BTreeMap, BTreeSet};

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::BudgetAmounts;

use super::repositories::branch;
use super::sending::first_baseline;
use super::{shared_plan, tried, workspace};
use lula_runner_api::{
    BranchWorkspaceStart, CommitAgentChange, CommittedAgentChangeView, FillWorkspaceFromBranch,
    MergeAgentChange, MergeTestRequirement,
};

use crate::agent_pool::{AgentPoolEvent, AgentResult};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::model_choice::{ContestEntrant, entrants};
use crate::plan::{PathScope, StepId};
use crate::runner_port::{MergeOutcome, workspace_of};
use crate::task::{CoderChoice, DeliverMode, RunTask};
use crate::team::contest::{CandidateStanding, ContestMove, ContestTrial};
use crate::team::{
    AgentHandoff, AgentRole, CandidateContest, ContestCandidate, OthersTests, PROPOSE,
    RunAuthority, agent_run,
};
use crate::verdict::TestRunAttempt;
use crate::work::{CodingState, EarlyEnd, RunStateEvent, TestBaseline};

/// The role of every candidate.
const ROLE: &str = "coder";

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let Some(contest) = &work.contest else {
        return enter(work, ctx).await;
    };
    match contest.next() {
        ContestMove::Wait(agents) => {
            let effect = RunEffect::Await { agents };
            let effect = effect.request().reserving(contest.outstanding());
            let AgentPoolEvent::Back(returned) = ctx.effect(effect).await? else {
                return Err(VisitStop::Halt(
                    "a candidate has no plan to change".to_owned(),
                ));
            };
            Ok(NodeExit::by(RunNodeExit::More).with(RunStateEvent::CameBack { returned }))
        }
        ContestMove::Compare(trials) => compare(work, contest, trials, ctx).await,
        ContestMove::Decide => take(work, contest, ctx).await,
    }
}

fn halted(why: String) -> NodeDeparture {
    let end = EarlyEnd::Halted { why };
    NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end })
}

/// Begins the runs of all candidates.
async fn enter(work: &CodingState, ctx: &mut NodeContext<'_>) -> NodeVisitFuture<CodingGraph> {
    let count = work.task.best_of.unwrap_or(1);
    let entrants = entrants(work, count);
    if entrants.is_empty() {
        let why = "no model is left that could try it".to_owned();
        let end = EarlyEnd::NeedsModel { why };
        return Ok(NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end }));
    }
    let roles = match shared_plan::roles(work, ctx).await? {
        Ok(roles) => roles,
        Err(why) => {
            let end = EarlyEnd::Rejected { why };
            return Ok(NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end }));
        }
    };
    let role = roles
        .get(ROLE)
        .cloned()
        .ok_or_else(|| VisitStop::Halt(format!("there is no role {ROLE}")))?;
    let free = shared_plan::left(ctx);
    let heads = u64::try_from(entrants.len()).unwrap_or(u64::MAX).max(1);
    let limits: BudgetAmounts = free.iter().map(|(of, free)| (of, free / heads)).collect();
    let mut rivals = Vec::new();
    for (index, entrant) in entrants.iter().enumerate() {
        let id = CandidateContest::name(index + 1).map_err(VisitStop::Halt)?;
        let rival = ContestCandidate {
            run: agent_run(ctx.run(), &id, 0),
            id,
            model: entrant.model.name.clone(),
            temperature_percent: entrant.temperature_percent,
            because: entrant.because.clone(),
            limits: limits.clone(),
            standing: CandidateStanding::AtWork,
        };
        let handed = handoff(work, &rival, &role, &free, ctx);
        if let Err(excess) = handed.check() {
            return Err(VisitStop::Halt(excess.to_string()));
        }
        let effect = RunEffect::Begin {
            agent: rival.run.clone(),
            task: Box::new(errand(work, entrant, handed)),
            limits: limits.clone(),
        };
        ctx.effect::<()>(effect.request()).await?;
        rivals.push(rival);
    }
    Ok(NodeExit::by(RunNodeExit::More).with(RunStateEvent::Entered { rivals }))
}

/// What an agent that tries is handed: everything, but for the models of the others.
fn handoff(
    work: &CodingState,
    rival: &ContestCandidate,
    role: &AgentRole,
    free: &BudgetAmounts,
    ctx: &NodeContext<'_>,
) -> AgentHandoff {
    let of = RunAuthority {
        tools: role.tools.iter().cloned().collect(),
        models: work.task.models.iter().map(|m| m.name.clone()).collect(),
        scope: PathScope::everything(),
        budget: free.clone(),
    };
    AgentHandoff {
        parent: ctx.run().clone(),
        step: rival.id.clone(),
        base: work.base_of(0).to_owned(),
        start: BranchWorkspaceStart::Branch,
        contains: Vec::new(),
        inputs: Vec::new(),
        role: role.clone(),
        role_name: ROLE.to_owned(),
        authority: RunAuthority {
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
        whole: None,
        notes: Vec::new(),
    }
}

/// The task of an agent that tries: the same, with one model, and nothing of it is delivered.
fn errand(work: &CodingState, entrant: &ContestEntrant<'_>, handoff: AgentHandoff) -> RunTask {
    RunTask {
        best_of: None,
        models: vec![entrant.model.clone()],
        temperature_percent: Some(entrant.temperature_percent),
        coder: CoderChoice::Model,
        deliver: DeliverMode::None,
        ask_first: false,
        handoff: Some(Box::new(handoff)),
        ..work.task.clone()
    }
}

/// Runs the new tests of each candidate with the code of each other. A trial that cannot be made
/// speaks for and against no candidate.
async fn compare(
    work: &CodingState,
    contest: &CandidateContest,
    trials: Vec<ContestTrial>,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let mut others: BTreeMap<StepId, OthersTests> = BTreeMap::new();
    for trial in trials {
        let (Some(code), Some(tests)) = (contest.rival(&trial.code), contest.rival(&trial.tests))
        else {
            continue;
        };
        let effect = RunEffect::RunOthersTests {
            workspace: workspace_of(&code.run),
            of: workspace_of(&tests.run),
            tests: work.task.tests.clone(),
            folder: work.task.folder.clone(),
            tests_ms: work.task.tests_ms,
        };
        let ran = tried(ctx.effect::<TestBaseline>(effect.request()).await)?;
        let passing: BTreeSet<String> = match ran.map(|ran| ran.looked) {
            Ok(TestRunAttempt::Ran(results)) => results.passing,
            // Code with which the tests do not even run passes none of them.
            Ok(TestRunAttempt::CannotRun(_) | TestRunAttempt::NoTests) => BTreeSet::new(),
            _ => continue,
        };
        let seen = others.entry(trial.code).or_default();
        seen.add(tests.new_tests(), &|test| passing.contains(test));
    }
    Ok(NodeExit::by(RunNodeExit::More).with(RunStateEvent::Compared { others }))
}

/// Takes the best to where it is judged once more.
async fn take(
    work: &CodingState,
    contest: &CandidateContest,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let decided = contest.decide();
    let why = decided.because.clone();
    let winner = contest.rivals.iter().find(|rival| {
        decided.id.as_ref().is_some_and(|id| *id == rival.id) && rival.back().is_some()
    });
    let chosen = RunStateEvent::Chosen { decided };
    let Some((rival, back)) = winner.and_then(|rival| Some((rival, rival.back()?))) else {
        let kept = format!("nothing was delivered; run {}", ctx.run().short());
        return Ok(halted(format!("{why}; {kept} keeps what was tried")).with(chosen));
    };
    Ok(match bring(work, rival, back, ctx).await? {
        Ok(()) => NodeExit::by(RunNodeExit::Whole)
            .with(chosen)
            .with(RunStateEvent::Coded {
                by: back.by.clone(),
                summary: back.said.clone(),
            }),
        Err(why) => halted(format!("{} cannot be taken: {why}", rival.id)).with(chosen),
    })
}

/// Makes the run's own workspace hold what the winner did.
async fn bring(
    work: &CodingState,
    rival: &ContestCandidate,
    back: &AgentResult,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<(), String>, VisitStop> {
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
    let order = CommitAgentChange {
        branch: branch(work, 0, ctx),
        step: rival.id.to_string(),
        workspace: workspace_of(&rival.run),
        tree,
        message: format!("Take {}\n\n{trailers}", rival.id),
        at,
    };
    let effect = RunEffect::Commit { order };
    let committed: CommittedAgentChangeView = match tried(ctx.effect(effect.request()).await)? {
        Ok(committed) => committed,
        Err(why) => return Ok(Err(why)),
    };
    let order = MergeAgentChange {
        branch: branch(work, 0, ctx),
        step: rival.id.to_string(),
        commit: committed.commit,
        tests: MergeTestRequirement {
            command: work.task.tests.clone(),
            folder: work.task.folder.clone(),
            // Nothing else is in the branch: what was judged is what arrives, and it is judged again.
            before: None,
            accept: Vec::new(),
            tests_ms: work.task.tests_ms,
        },
        message: format!("Integrate {}\n\n{trailers}", rival.id),
        at,
    };
    let effect = RunEffect::Merge {
        order: Box::new(order),
    };
    match tried(ctx.effect::<MergeOutcome>(effect.request()).await)? {
        Ok(MergeOutcome::Merged { .. }) => {}
        Ok(MergeOutcome::Misfit { said, .. }) => return Ok(Err(said)),
        Ok(MergeOutcome::Unclear { why }) | Err(why) => return Ok(Err(why)),
    }
    let effect = RunEffect::Fill {
        order: FillWorkspaceFromBranch {
            branch: branch(work, 0, ctx),
            workspace: workspace(work)?,
        },
    };
    tried(ctx.effect::<()>(effect.request()).await)
}
