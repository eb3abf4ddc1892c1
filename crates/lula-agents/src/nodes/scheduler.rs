//! Puts agents to the tasks of a plan and brings what they did together, one thing in each visit.

use std::collections::BTreeSet;

use lula_graph::{Ctx, Leave, Stop, Visit};
use lula_protocol::Exit;

use super::{shared_plan, short, tried, workspace};
use crate::crew::Returned;
use crate::dag::{Entry, JobId, Move, Op, Patch, Reason, Status, Step};
use crate::deeds::Deed;
use crate::graph::{Coding, Left, Way};
use crate::hands::{Harvest, Joined, Joining, Kept, Line, workspace_of};
use crate::route::Lane;
use crate::task::{Deliver, Task};
use crate::team::{Authority, Candidate, Handoff, Input, Joint, Next, Start, agent_run};
use crate::verdict::Looked;
use crate::work::{Baseline, End, Event, Work};
use lula_repair::trial::tail;

/// Longest text that one agent is told of another.
const TOLD: usize = 6000;
/// What a job that resolves another is called.
const RESOLVE: &str = "-resolve";

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let (Some(joint), Some(team)) = (&work.joint, &work.task.team) else {
        return Err(Stop::Halt("there is no plan".to_owned()));
    };
    match joint.next(team.at_once) {
        Next::Amend(_) => Ok(Leave::by(Way::Amend)),
        Next::Move(Move::Start(jobs)) => start(work, joint, &jobs, ctx).await,
        Next::Move(Move::Wait) => wait(joint, ctx).await,
        Next::Move(Move::Integrate(job)) => integrate(work, joint, &job, ctx).await,
        Next::Move(Move::Resolve(job)) => resolve(joint, &job, ctx).await,
        Next::Move(Move::Skip(jobs)) => {
            let steps = jobs
                .into_iter()
                .map(|(id, reason)| Step::Skipped { id, reason });
            Ok(happened(steps))
        }
        Next::Move(Move::Finish) => finish(work, joint, ctx).await,
    }
}

fn happened(steps: impl IntoIterator<Item = Step>) -> Left {
    let events = steps.into_iter().map(|change| Event::Job { change });
    events.fold(Leave::by(Way::More), Leave::with)
}

/// The line of a run.
fn line(work: &Work, ctx: &Ctx<'_>) -> Line {
    Line {
        run: ctx.run().clone(),
        repository: work.task.repository.clone(),
        base: work
            .place
            .as_ref()
            .map(|place| place.commit.clone())
            .unwrap_or_default(),
    }
}

fn first_baseline(work: &Work) -> Baseline {
    work.baseline.clone().unwrap_or(Baseline {
        looked: Looked::NoTests,
        command: None,
        messages: Vec::new(),
        unfixable: Vec::new(),
    })
}

async fn start(work: &Work, joint: &Joint, jobs: &[JobId], ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let free = shared_plan::left(ctx);
    let mut left = Leave::by(Way::More);
    let mut ahead = joint.clone();
    for id in jobs {
        let Some(entry) = joint.dag.jobs.get(id) else {
            continue;
        };
        let agent = agent_run(ctx.run(), id, entry.attempts);
        let limits = ahead.share(id, &free);
        let of = Authority {
            tools: all_tools(joint),
            models: work.task.models.iter().map(|m| m.name.clone()).collect(),
            scope: crate::dag::Scope::everything(),
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
        ctx.effect::<()>(deed.effect()).await?;
        ahead.step(&change);
        ahead.promised.insert(agent.clone(), limits.clone());
        left = left
            .with(Event::Job { change })
            .with(Event::Promised { run: agent, limits });
    }
    Ok(left)
}

fn all_tools(joint: &Joint) -> BTreeSet<String> {
    let names = joint.roles.names();
    let roles = names.iter().filter_map(|name| joint.roles.get(name));
    roles.flat_map(|role| role.tools.iter().cloned()).collect()
}

/// What an agent is handed.
fn handoff(
    work: &Work,
    joint: &Joint,
    entry: &Entry,
    of: Authority,
    limits: &lula_protocol::Amounts,
    ctx: &Ctx<'_>,
) -> Result<Handoff, String> {
    let job = &entry.job;
    let role = joint.roles.get(&job.role).cloned();
    let role = role.ok_or_else(|| format!("there is no role {}", job.role))?;
    let mut inputs = Vec::new();
    let mut contains = Vec::new();
    for dep in &job.deps {
        if let Some(Status::Integrated {
            commit: Some(commit),
        }) = joint.dag.jobs.get(dep).map(|entry| &entry.status)
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
        base: line(work, ctx).base,
        start,
        contains,
        inputs,
        role,
        role_name: job.role.clone(),
        authority,
        of,
        baseline: Some(Box::new(joint.baseline(&first_baseline(work)))),
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
        accept: entry.job.acceptance.clone(),
        deliver: Deliver::None,
        lane: Some(Lane::Interactive),
        coder: of.coder,
        models,
        standing: of.standing.clone(),
        handoff: Some(Box::new(handoff)),
        max_loops: of.max_loops,
        max_turns: of.max_turns,
        search_ms: of.search_ms,
        tests_ms: of.tests_ms,
        ..Task::new(&entry.job.goal, &of.repository)
    }
}

/// Waits for one of the agents.
async fn wait(joint: &Joint, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let agents = joint.dag.running().map(|(_, run)| run.clone()).collect();
    let effect = Deed::Await { agents }
        .effect()
        .reserving(joint.outstanding());
    let returned: Returned = ctx.effect(effect).await?;
    let mut running = joint.dag.running();
    let Some((id, _)) = running.find(|(_, run)| **run == returned.run) else {
        return Err(Stop::Halt(format!("{} is no agent here", returned.run)));
    };
    let (id, writes) = (id.clone(), writes(joint, id));
    let steps = back(&id, writes, &returned);
    let came = Event::Returned {
        job: id,
        returned: Box::new(returned),
    };
    let left = Leave::by(Way::More).with(came);
    let events = steps.into_iter().map(|change| Event::Job { change });
    Ok(events.fold(left, Leave::with))
}

fn writes(joint: &Joint, id: &JobId) -> bool {
    let role = joint.dag.jobs.get(id).map(|entry| &entry.job.role);
    role.and_then(|role| joint.roles.get(role))
        .is_some_and(|role| role.writes)
}

/// What an agent's return means for its job. No evidence, no success.
fn back(id: &JobId, writes: bool, returned: &Returned) -> Vec<Step> {
    let id = id.clone();
    let failed = |reason| {
        vec![Step::Failed {
            id: id.clone(),
            reason,
        }]
    };
    if writes {
        if returned.exit == Exit::Verified && returned.tree.is_some() {
            return vec![Step::Produced { id }];
        }
        let said = returned.summary.clone();
        return failed(Reason::NotDone { said });
    }
    match &returned.answer {
        Some(answer) if answer.approve == Some(false) => failed(Reason::Rejected {
            said: answer.text.clone(),
        }),
        Some(_) => vec![
            Step::Produced { id: id.clone() },
            Step::Integrated { id, commit: None },
        ],
        None => failed(Reason::NotDone {
            said: returned.summary.clone(),
        }),
    }
}

/// Makes what an agent did a part of the whole, if it fits.
async fn integrate(work: &Work, joint: &Joint, id: &JobId, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let failed = |reason| {
        Ok(happened([Step::Failed {
            id: id.clone(),
            reason,
        }]))
    };
    let not_done = |said: String| failed(Reason::NotDone { said });
    let (Some(entry), Some(returned)) = (joint.dag.jobs.get(id), joint.returned.get(id)) else {
        return not_done("nothing came back".to_owned());
    };
    let Some(tree) = returned.tree else {
        return not_done("nothing came back".to_owned());
    };
    let at = ctx.now().await? / 1000;
    let run = ctx.run().clone();
    let title: String = entry
        .job
        .goal
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(72)
        .collect();
    let trailers = format!(
        "Lula-Run: {run}\nLula-Task: {id}\nLula-Model: {}\n",
        returned.by
    );
    let harvest = Harvest {
        line: line(work, ctx),
        job: id.clone(),
        workspace: workspace_of(&returned.run),
        tree,
        message: format!("{title}\n\n{}\n\n{trailers}", returned.summary),
        at,
    };
    let deed = Deed::Harvest { order: harvest };
    let kept: Kept = match tried(ctx.effect(deed.effect()).await)? {
        Ok(kept) => kept,
        Err(why) => return not_done(why),
    };
    let mut outside = kept.outside;
    let strays = returned.files.iter();
    outside.extend(strays.filter(|path| !entry.job.scope.holds(path)).cloned());
    outside.sort();
    outside.dedup();
    if !outside.is_empty() {
        return failed(Reason::ScopeViolation { files: outside });
    }
    let mut accept = joint.acceptance();
    accept.extend(entry.job.acceptance.iter().cloned());
    let joining = Joining {
        line: line(work, ctx),
        job: id.clone(),
        commit: kept.commit.clone(),
        tests: work.task.tests.clone(),
        before: Box::new(joint.baseline(&first_baseline(work))),
        accept,
        tests_ms: work.task.tests_ms,
        message: format!("Integrate {id}\n\n{trailers}"),
        at,
    };
    let deed = Deed::Join {
        order: Box::new(joining),
    };
    let joined: Joined = match tried(ctx.effect(deed.effect()).await)? {
        Ok(joined) => joined,
        Err(why) => return not_done(why),
    };
    Ok(match joined {
        Joined::Integrated { commit, tests } => {
            let left = happened([Step::Integrated {
                id: id.clone(),
                commit: Some(commit),
            }]);
            left.with(Event::Merged {
                job: id.clone(),
                tests,
                candidate: None,
            })
        }
        Joined::Misfit { said, files, .. } => {
            let candidate = Candidate {
                commit: kept.commit,
                said: said.clone(),
                files,
            };
            let left = happened([Step::Conflict {
                id: id.clone(),
                said,
            }]);
            left.with(Event::Merged {
                job: id.clone(),
                tests: None,
                candidate: Some(candidate),
            })
        }
        // What nobody can judge does not get in.
        Joined::Unclear { why } => happened([Step::Failed {
            id: id.clone(),
            reason: Reason::NotDone { said: why },
        }]),
    })
}

/// Finds somebody for a conflict that its own agent could not resolve: another agent, then a person.
async fn resolve(joint: &Joint, id: &JobId, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let (Some(entry), Some(candidate)) = (joint.dag.jobs.get(id), joint.candidates.get(id)) else {
        return Err(Stop::Halt(format!("{id} has no conflict")));
    };
    let said = candidate.said.clone();
    let again = id.as_str().contains(RESOLVE);
    if again && joint.dag.running().next().is_some() {
        // A person is asked when nobody else has anything to do.
        return wait(joint, ctx).await;
    }
    if again {
        let question = format!(
            "{id} does not fit to what the others did, and two agents could not resolve it: {}",
            tail(&said, 400)
        );
        let choice = ctx.ask(&question, &["give up", "try again"]).await?;
        if choice.choice != "try again" {
            let reason = Reason::Conflict { said };
            return Ok(happened([Step::Failed {
                id: id.clone(),
                reason,
            }]));
        }
    }
    let name: String = format!(
        "{}{RESOLVE}{}",
        id.as_str().split(RESOLVE).next().unwrap_or_default(),
        joint.dag.version
    );
    let resolver = JobId::new(&name).map_err(Stop::Halt)?;
    let files = crate::dag::Scope::new(&candidate.files).unwrap_or_default();
    let mut job = entry.job.clone();
    job.id = resolver.clone();
    job.deps = Vec::new();
    job.scope = entry.job.scope.and(&files);
    job.goal = format!(
        "Resolve a conflict. Somebody was to do this: {}\nIt was done, and does not fit to what \
         others did meanwhile. Keep what both wanted.",
        entry.job.goal
    );
    let patch = Patch {
        base_version: joint.dag.version,
        ops: vec![Op::Replace {
            old: id.clone(),
            new: vec![job],
        }],
    };
    let bounds = crate::dag::Bounds {
        repositories: 1,
        roles: &joint.roles.names(),
        left: shared_plan::left(ctx),
    };
    match joint.dag.patch(&patch, &bounds) {
        Ok(dag) => Ok(Leave::by(Way::More)
            .with(Event::Patched {
                by: "scheduler".to_owned(),
                patch,
                dag,
            })
            .with(Event::Merged {
                job: resolver,
                tests: None,
                candidate: Some(candidate.clone()),
            })),
        Err(refusal) => {
            let reason = Reason::Conflict {
                said: format!("{said} ({refusal})"),
            };
            let left = happened([Step::Failed {
                id: id.clone(),
                reason,
            }]);
            Ok(left.with(Event::PatchRefused {
                by: "scheduler".to_owned(),
                reason: refusal.to_string(),
            }))
        }
    }
}

/// Everything is over: what came together is taken to where it is judged as a whole.
async fn finish(work: &Work, joint: &Joint, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let halted = |why: String| {
        let end = End::Halted { why };
        Ok(Leave::by(Way::Deny).with(Event::Ending { end }))
    };
    let whole = joint.dag.is_whole();
    let changed = joint
        .dag
        .jobs
        .values()
        .any(|entry| matches!(entry.status, Status::Integrated { commit: Some(_) }));
    if !whole || !changed {
        let kept = format!("nothing was delivered; run {}", short(ctx.run().as_str()));
        let why = joint.told();
        return halted(format!("{why}; {kept} keeps what was done"));
    }
    let deed = Deed::Lay {
        line: line(work, ctx),
        workspace: workspace(work)?,
    };
    if let Err(why) = tried(ctx.effect::<()>(deed.effect()).await)? {
        return halted(why);
    }
    let by: BTreeSet<&str> = joint.returned.values().map(|r| r.by.as_str()).collect();
    let by: Vec<&str> = by.into_iter().filter(|by| !by.is_empty()).collect();
    Ok(Leave::by(Way::Whole).with(Event::Coded {
        by: by.join(", "),
        summary: joint.told(),
    }))
}
