//! Puts agents to tasks: what each is handed, and what it may spend.

use std::collections::BTreeSet;

use lula_graph::{Ctx, Effect, Leave, Stop};
use lula_protocol::{Amounts, Dimension};

use super::shared_plan;
use super::sites::line;
use crate::crew::Returned;
use crate::dag::{Entry, JobId, Scope, Status, Step};
use crate::deeds::Deed;
use crate::graph::{Left, Way};
use crate::route::Lane;
use crate::task::{Deliver, Task};
use crate::team::{Authority, Handoff, Input, Joint, Roles, Start, agent_run};
use crate::work::{Baseline, Event, Work};
use lula_repair::trial::tail;

/// Longest text that one agent is told of another.
const TOLD: usize = 6000;

/// What the tests of a repository said before anybody began.
pub(super) fn first_baseline(work: &Work, repo: usize) -> Baseline {
    let known = work.baseline_of(repo).cloned();
    known.unwrap_or_default()
}

/// Begins the runs of agents; nothing where there is too little for the first while others work. Where
/// nobody works a person is asked for more.
pub(super) async fn start(
    work: &Work,
    joint: &Joint,
    jobs: &[JobId],
    ctx: &mut Ctx<'_>,
) -> Result<Option<Left>, Stop> {
    let free = shared_plan::left(ctx);
    let mut left = Leave::by(Way::More);
    let mut ahead = joint.clone();
    for id in jobs {
        let Some(entry) = joint.dag.jobs.get(id) else {
            continue;
        };
        let agent = agent_run(ctx.run(), id, entry.attempts);
        let limits = ahead.share(id, &free);
        let missing = lacking(entry, &limits);
        if missing.is_some() && ahead.dag.running().next().is_some() {
            let begun = ahead.promised.len() > joint.promised.len();
            return Ok(begun.then_some(left));
        }
        let of = Authority {
            tools: all_tools(joint.roles_of(entry.job.repo)),
            models: work.task.models.iter().map(|m| m.name.clone()).collect(),
            scope: Scope::everything(),
            budget: free.clone(),
        };
        let handed = handoff(work, joint, entry, of, &limits, ctx);
        let handed = handed.map_err(Stop::Halt)?;
        if let Err(excess) = handed.check() {
            return Err(Stop::Halt(excess.to_string()));
        }
        let task = Box::new(errand(work, entry, handed));
        let change = Step::Leased {
            id: id.clone(),
            run: agent.clone(),
        };
        let deed = Deed::Begin {
            agent: agent.clone(),
            task,
            limits: limits.clone(),
        };
        // The first effect of the visit: once there is more, all of it is thought over again.
        let effect = missing.into_iter().fold(deed.effect(), Effect::reserving);
        ctx.effect::<()>(effect).await?;
        ahead.step(&change);
        ahead.promised.insert(agent.clone(), limits.clone());
        left = left
            .with(Event::Job { change })
            .with(Event::Promised { run: agent, limits });
    }
    Ok(Some(left))
}

/// What an agent needs to begin and would not have: what the plan says, or anything at all.
fn lacking(entry: &Entry, limits: &Amounts) -> Option<Amounts> {
    let short = |(dimension, has): (Dimension, u64)| {
        let needs = entry.job.budget.get(dimension).unwrap_or(1);
        (has < needs).then_some((dimension, needs))
    };
    let missing: Amounts = limits.iter().filter_map(short).collect();
    (!missing.is_empty()).then_some(missing)
}

fn all_tools(roles: &Roles) -> BTreeSet<String> {
    let names = roles.names();
    let roles = names.iter().filter_map(|name| roles.get(name));
    roles.flat_map(|role| role.tools.iter().cloned()).collect()
}

/// What an agent is handed.
fn handoff(
    work: &Work,
    joint: &Joint,
    entry: &Entry,
    of: Authority,
    limits: &Amounts,
    ctx: &Ctx<'_>,
) -> Result<Handoff, String> {
    let job = &entry.job;
    let role = joint.roles_of(job.repo).get(&job.role).cloned();
    let role = role.ok_or_else(|| format!("there is no role {}", job.role))?;
    let mut inputs = Vec::new();
    let mut contains = Vec::new();
    for dep in &job.deps {
        let needed = joint.dag.jobs.get(dep);
        // What was done in another repository is not in this one.
        let needed = needed.filter(|entry| entry.job.repo == job.repo);
        if let Some(Status::Integrated {
            commit: Some(commit),
        }) = needed.map(|entry| &entry.status)
        {
            contains.push(commit.clone());
        }
        if let Some(returned) = joint.returned.get(dep) {
            inputs.push(Input {
                from: dep.to_string(),
                text: told(returned, role.writes),
            });
        }
    }
    let candidate = joint.candidates.get(&job.id);
    if let Some(candidate) = candidate {
        inputs.push(Input {
            from: "what did not fit".to_owned(),
            text: tail(&candidate.said, TOLD).to_owned(),
        });
    }
    let start = match candidate {
        Some(candidate) => Start::Merge {
            commit: candidate.commit.clone(),
        },
        None => Start::Line,
    };
    let authority = Authority {
        tools: role.tools.iter().cloned().collect(),
        models: of.models.clone(),
        scope: job.scope.clone(),
        budget: limits.clone(),
    };
    Ok(Handoff {
        parent: ctx.run().clone(),
        job: job.id.clone(),
        base: line(work, job.repo, ctx).base,
        start,
        contains,
        inputs,
        role,
        role_name: job.role.clone(),
        authority,
        of,
        baseline: Some(Box::new(
            joint.baseline(job.repo, &first_baseline(work, job.repo)),
        )),
    })
}

/// What one agent is told of another's work.
fn told(returned: &Returned, writes: bool) -> String {
    if let Some(answer) = &returned.answer {
        return tail(&answer.text, TOLD).to_owned();
    }
    let mut text = returned.said.clone();
    if !writes {
        text.push_str("\n\nThe change:\n");
        text.push_str(tail(&returned.diff, TOLD));
    }
    text
}

/// The task of an agent.
fn errand(work: &Work, entry: &Entry, handoff: Handoff) -> Task {
    let of = &work.task;
    let mut models = of.models.clone();
    if let Some(preferred) = &handoff.role.model {
        models.sort_by_key(|mind| mind.name != *preferred);
    }
    Task {
        tests: of.tests.clone(),
        folder: of.folder_of(entry.job.repo).to_owned(),
        accept: entry.job.acceptance.clone(),
        deliver: Deliver::None,
        lane: Some(Lane::Interactive),
        coder: of.coder,
        models,
        standing: of.standing.clone(),
        guidance: of.guidance_of(entry.job.repo),
        lessons: of.lessons.clone(),
        handoff: Some(Box::new(handoff)),
        max_loops: of.max_loops,
        max_turns: of.max_turns,
        search_ms: of.search_ms,
        tests_ms: of.tests_ms,
        ..Task::new(&entry.job.goal, work.repository(entry.job.repo))
    }
}
