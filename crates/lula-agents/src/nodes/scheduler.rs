//! Puts agents to the tasks of a plan and brings what they did together, one thing in each visit.

use std::collections::BTreeSet;

use lula_graph::{Ctx, Leave, Stop, Visit};
use lula_protocol::{Amounts, Exit};

use super::sending::{first_baseline, start};
use super::sites::{self, line};
use super::{shared_plan, tried, workspace};
use crate::crew::{News, Returned};
use crate::dag::{Bounds, Job, JobId, Move, Op, Patch, Reason, Refusal, Scope, Status, Step};
use crate::deeds::Deed;
use crate::graph::{Coding, Left, Way};
use crate::hands::{Harvest, Joined, Joining, Kept, workspace_of};
use crate::team::{Candidate, Joint, Next};
use crate::work::{End, Event, Work};
use lula_repair::trial::tail;

/// What a job that resolves another is called.
const RESOLVE: &str = "-resolve";
/// And one that is done again because its agent had too little.
const MORE: &str = "-more";

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let (Some(joint), Some(team)) = (&work.joint, &work.task.team) else {
        return Err(Stop::Halt("there is no plan".to_owned()));
    };
    match joint.next(team.at_once) {
        Next::Tell => {
            let answers = joint.wishes.untold();
            ctx.effect::<()>(Deed::Answer { answers }.effect()).await?;
            Ok(Leave::by(Way::More).with(Event::Told))
        }
        Next::Amend(_) => Ok(Leave::by(Way::Amend)),
        Next::Move(Move::Start(jobs)) => match start(work, joint, &jobs, ctx).await? {
            Some(left) => Ok(left),
            // Somebody at work may leave enough for the next.
            None => wait(work, joint, ctx).await,
        },
        Next::Move(Move::Wait) => wait(work, joint, ctx).await,
        Next::Move(Move::Integrate(job)) => integrate(work, joint, &job, ctx).await,
        Next::Move(Move::Resolve(job)) => resolve(work, joint, &job, ctx).await,
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

/// Waits for one of the agents, who is done or wants something.
async fn wait(work: &Work, joint: &Joint, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let agents = joint.dag.running().map(|(_, run)| run.clone()).collect();
    let effect = Deed::Await { agents }
        .effect()
        .reserving(joint.outstanding());
    let returned = match ctx.effect(effect).await? {
        News::Wish { wish } => return Ok(shared_plan::consider(work, joint, &wish, ctx)),
        News::Back(returned) => *returned,
    };
    let mut running = joint.dag.running();
    let Some((id, _)) = running.find(|(_, run)| **run == returned.run) else {
        return Err(Stop::Halt(format!("{} is no agent here", returned.run)));
    };
    let (id, writes) = (id.clone(), writes(joint, id));
    if returned.exit == Exit::Budget {
        return Ok(again_with_more(work, joint, &id, returned));
    }
    let steps = back(&id, writes, &returned);
    let came = Event::Returned {
        job: id,
        returned: Box::new(returned),
    };
    let left = Leave::by(Way::More).with(came);
    let events = steps.into_iter().map(|change| Event::Job { change });
    Ok(events.fold(left, Leave::with))
}

/// An agent has spent what it had: another one takes its place and may spend twice that. Where that is
/// not there, a person is asked for it before anybody begins.
fn again_with_more(work: &Work, joint: &Joint, id: &JobId, returned: Returned) -> Left {
    let mut more = joint.clone();
    let had = joint.promised.get(&returned.run).cloned();
    let reason = Reason::OutOfBudget {
        said: returned.summary.clone(),
    };
    let failed = Step::Failed {
        id: id.clone(),
        reason,
    };
    let came = Event::Returned {
        job: id.clone(),
        returned: Box::new(returned),
    };
    more.step(&failed);
    let left = Leave::by(Way::More)
        .with(came)
        .with(Event::Job { change: failed });
    let (Some(entry), Ok(name)) = (joint.dag.jobs.get(id), named(id, MORE, joint.dag.version))
    else {
        return left;
    };
    let twice = had.unwrap_or_default();
    let twice = twice.iter().map(|(of, had)| (of, had.saturating_mul(2)));
    let job = Job {
        id: name,
        deps: Vec::new(),
        budget: twice.collect(),
        ..entry.job.clone()
    };
    // Whether it is there is asked when it is begun.
    match replaced(work, &more, id, job, Amounts::none()) {
        Ok(patched) => left.with(patched),
        // It stays failed, and whoever planned it thinks about that.
        Err(refusal) => left.with(refused(&refusal)),
    }
}

/// The plan with one job in the place of another.
fn replaced(
    work: &Work,
    joint: &Joint,
    old: &JobId,
    new: Job,
    left: Amounts,
) -> Result<Event, Refusal> {
    let patch = Patch {
        base_version: joint.dag.version,
        ops: vec![Op::Replace {
            old: old.clone(),
            new: vec![new],
        }],
    };
    let bounds = Bounds {
        repositories: work.repositories(),
        roles: &joint.roles.names(),
        left,
    };
    let dag = joint.dag.patch(&patch, &bounds)?;
    let by = "scheduler".to_owned();
    Ok(Event::Patched { by, patch, dag })
}

fn refused(refusal: &Refusal) -> Event {
    Event::PatchRefused {
        by: "scheduler".to_owned(),
        reason: refusal.to_string(),
    }
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
    let repo = entry.job.repo;
    let harvest = Harvest {
        line: line(work, repo, ctx),
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
    let mut accept = joint.acceptance(repo);
    accept.extend(entry.job.acceptance.iter().cloned());
    let joining = Joining {
        line: line(work, repo, ctx),
        job: id.clone(),
        commit: kept.commit.clone(),
        tests: work.task.tests.clone(),
        folder: work.task.folder_of(repo).to_owned(),
        before: Some(Box::new(joint.baseline(repo, &first_baseline(work, repo)))),
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
async fn resolve(work: &Work, joint: &Joint, id: &JobId, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let (Some(entry), Some(candidate)) = (joint.dag.jobs.get(id), joint.candidates.get(id)) else {
        return Err(Stop::Halt(format!("{id} has no conflict")));
    };
    let said = candidate.said.clone();
    let again = id.as_str().contains(RESOLVE);
    if again && joint.dag.running().next().is_some() {
        // A person is asked when nobody else has anything to do.
        return wait(work, joint, ctx).await;
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
    let resolver = named(id, RESOLVE, joint.dag.version).map_err(Stop::Halt)?;
    let files = Scope::new(&candidate.files).unwrap_or_default();
    let mut job = entry.job.clone();
    job.id = resolver.clone();
    job.deps = Vec::new();
    job.scope = entry.job.scope.and(&files);
    job.goal = format!(
        "Resolve a conflict. Somebody was to do this: {}\nIt was done, and does not fit to what \
         others did meanwhile. Keep what both wanted.",
        entry.job.goal
    );
    match replaced(work, joint, id, job, shared_plan::left(ctx)) {
        Ok(patched) => Ok(Leave::by(Way::More).with(patched).with(Event::Merged {
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
            Ok(left.with(refused(&refusal)))
        }
    }
}

/// What a job is called that takes the place of another, however long the name of that is.
fn named(id: &JobId, why: &str, version: u32) -> Result<JobId, String> {
    let end = format!("{why}{version}");
    let first = id.as_str().split(why).next().unwrap_or_default();
    let room = JobId::LONGEST.saturating_sub(end.len());
    JobId::new(&format!("{}{end}", first.get(..room).unwrap_or(first)))
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
        let kept = format!("nothing was delivered; run {}", ctx.run().short());
        let why = joint.told();
        return halted(format!("{why}; {kept} keeps what was done"));
    }
    if joint.changed(0) {
        let deed = Deed::Lay {
            line: line(work, 0, ctx),
            workspace: workspace(work)?,
        };
        if let Err(why) = tried(ctx.effect::<()>(deed.effect()).await)? {
            return halted(why);
        }
    }
    if let Err(why) = sites::lay(work, ctx).await? {
        return halted(why);
    }
    let by: BTreeSet<&str> = joint.returned.values().map(|r| r.by.as_str()).collect();
    let by: Vec<&str> = by.into_iter().filter(|by| !by.is_empty()).collect();
    Ok(Leave::by(Way::Whole).with(Event::Coded {
        by: by.join(", "),
        summary: joint.told(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_the_place_of_a_job_has_a_name_however_long_that_of_the_job_is() {
        let long = JobId::new(&"x".repeat(JobId::LONGEST)).unwrap();
        let first = named(&long, RESOLVE, 3).unwrap();
        assert!(first.as_str().ends_with("x-resolve3"), "{first}");
        let again = named(&first, RESOLVE, 16).unwrap();
        assert!(again.as_str().ends_with("x-resolve16"), "{again}");
        let short = named(&JobId::new("a").unwrap(), MORE, 2).unwrap();
        assert_eq!(short.as_str(), "a-more2");
    }
}
