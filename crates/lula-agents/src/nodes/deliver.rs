//! The reporter delivers: whether the run's change goes anywhere, who is asked first, and the one effect
//! that takes it there. What the run says at its end is `graph::report`.

use std::fmt::Write;

use lula_graph::{
    ApprovalAnswer, ApprovalAsk, EffectRequest, NodeContext, NodeExit, NodeVisitFuture, VisitStop,
};
use lula_protocol::digest::DigestDomain;
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{Digest, RunId};
use lula_runner_api::{ChangeDelivery, DeliveredView, TaskHistory};

use super::task_commits::{body, subject, task_commits};
use super::{repositories, tried, whole_review, workspace};
use crate::effects::{RepositoryChangeDelivery, RunEffect};
use crate::graph::{CodingGraph, RunNodeExit};
use crate::guidelines::broken;
use crate::task::DeliverMode;
use crate::verdict::RunVerdict;
use crate::work::{CoderProposal, CodingState, EarlyEnd, RepositoryEvent, RunStateEvent};

/// Delivers what may be delivered, and says what became of it; what the run is worth was said before.
pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let reviewed = whole_review::review(work, ctx).await?;
    let events = deliver(work, ctx).await?;
    Ok(reviewed
        .into_iter()
        .chain(events)
        .fold(NodeExit::by(RunNodeExit::Done), NodeExit::with))
}

/// Delivers the changes of a run, if they are to go anywhere; tells where they arrived, or why not.
async fn deliver(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Vec<RunStateEvent>, VisitStop> {
    let Some(proposal) = deliverable(work) else {
        return Ok(Vec::new());
    };
    let first = first_delivery(work, proposal, ctx).await?;
    let effect = all_deliveries(work, &first, ctx.run());
    let request = match ask(work, &effect, ctx).await? {
        ConsentAnswer::Given(request) => request,
        ConsentAnswer::Refused(why) => return Ok(halted(why)),
    };
    let RunEffect::Deliver { parts, several } = &effect else {
        return Ok(Vec::new());
    };
    let delivered = if *several {
        tried(ctx.effect::<Vec<DeliveredView>>(request).await)?
    } else {
        tried(ctx.effect::<DeliveredView>(request).await)?.map(|one| vec![one])
    };
    Ok(match delivered {
        Ok(delivered) => {
            let repos = parts.iter().map(|part| part.repo);
            repos.zip(delivered).map(arrived).collect()
        }
        Err(why) => halted(format!("the change was not delivered: {why}")),
    })
}

/// The change that goes somewhere, if one does: it was judged, nothing speaks against it, and the
/// task names a place for it. Pure.
fn deliverable(work: &CodingState) -> Option<&CoderProposal> {
    let judged = matches!(
        work.verdict,
        Some(RunVerdict::Pass { .. } | RunVerdict::Inconclusive { .. })
    );
    let somewhere = matches!(
        work.task.deliver,
        DeliverMode::Branch | DeliverMode::Worktree
    );
    let proposal = work.proposal.as_ref()?;
    let goes = judged && somewhere && work.end.is_none() && !proposal.files.is_empty();
    goes.then_some(proposal)
}

fn arrived((repo, delivered): (usize, DeliveredView)) -> RunStateEvent {
    RunStateEvent::Repository(RepositoryEvent::Delivered { repo, delivered })
}

fn halted(why: String) -> Vec<RunStateEvent> {
    let end = EarlyEnd::Halted { why };
    vec![RunStateEvent::Ending { end }]
}

/// The delivery of the first repository's change.
async fn first_delivery(
    work: &CodingState,
    proposal: &CoderProposal,
    ctx: &mut NodeContext<'_>,
) -> Result<ChangeDelivery, VisitStop> {
    let at = ctx.now().await? / 1000;
    // Names everything that was recorded of this run until now: a holder of the log can check it.
    let recorded = ctx.head().await?;
    let run = ctx.run();
    let verdict = work.verdict.as_ref().map_or("none", RunVerdict::name);
    let title = subject(&work.task.text);
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
    let reason = format!("{reason}{}", partial_trailers(work));
    // What the coder says of its change; what a plan came to is said by its tasks.
    let said = if work.joint.is_none() {
        body(&proposal.summary)
    } else {
        String::new()
    };
    let message = format!(
        "{title}\n\n{said}{}{}\n\nLula-Run: {run}\nLula-Model: {}\nLula-Verdict: \
         {verdict}\n{reason}Lula-Audit: {}\n",
        why,
        missing_tasks(work),
        proposal.by,
        recorded
    );
    let team = work.task.team.as_ref().filter(|_| work.joint.is_some());
    let separate = team.is_some_and(|team| team.commit_per_task);
    let history = (separate && work.task.deliver == DeliverMode::Branch).then(|| TaskHistory {
        tasks: task_commits(work, run, 0),
        // What is said of the whole stands at its last commit.
        end: format!("Lula-Verdict: {verdict}\n{reason}Lula-Audit: {recorded}\n"),
    });
    Ok(ChangeDelivery {
        history,
        workspace: workspace(work)?,
        into_files: work.task.deliver == DeliverMode::Worktree,
        branch: format!("lula/{}", run.short()),
        message,
        at,
        tree: proposal.tree,
    })
}

/// The tasks that are missing, for the body of a commit.
fn missing_tasks(work: &CodingState) -> String {
    let mut text = String::new();
    let missing = work.missing();
    if !missing.is_empty() {
        text.push_str("\n\nThis is a part of the task. Missing:\n");
    }
    for one in missing {
        let _ = writeln!(text, "- {}: {} ({})", one.task, one.goal, one.why);
    }
    text.trim_end().to_owned()
}

/// The same for readers of trailers.
fn partial_trailers(work: &CodingState) -> String {
    let mut text = String::new();
    for one in work.missing() {
        let _ = writeln!(text, "Lula-Partial: {}: {}", one.task, one.why);
    }
    text
}

/// How the changes of all repositories are delivered, given how the first one's is.
fn all_deliveries(work: &CodingState, own: &ChangeDelivery, run: &RunId) -> RunEffect {
    let several = work.repositories.len() > 1;
    let mut parts = Vec::new();
    if !several || work.joint.as_ref().is_some_and(|joint| joint.changed(0)) {
        parts.push(RepositoryChangeDelivery {
            repo: 0,
            delivery: own.clone(),
        });
    }
    for (repo, repository, workspace) in repositories::others(work) {
        let taken = repository.taken.as_ref();
        let Some(taken) = taken.filter(|taken| !taken.files.is_empty()) else {
            continue;
        };
        parts.push(RepositoryChangeDelivery {
            repo,
            delivery: ChangeDelivery {
                workspace,
                tree: taken.tree,
                history: own.history.as_ref().map(|first| TaskHistory {
                    tasks: task_commits(work, run, repo),
                    end: first.end.clone(),
                }),
                ..own.clone()
            },
        });
    }
    RunEffect::Deliver { parts, several }
}

/// How long a question stands.
const DAYS: u64 = 7;

/// What a person said.
enum ConsentAnswer {
    /// It may be done, once, exactly like this.
    Given(EffectRequest),
    /// It may not be done, for this reason.
    Refused(String),
}

/// Waits for a person's agreement to a delivery, where one is wanted. The question is bound to the
/// order and to the change it delivers.
async fn ask(
    work: &CodingState,
    effect: &RunEffect,
    ctx: &mut NodeContext<'_>,
) -> Result<ConsentAnswer, VisitStop> {
    let Some(reason) = reason(work) else {
        return Ok(ConsentAnswer::Given(effect.request()));
    };
    let diff = work.proposal.as_ref().map(|made| &made.diff);
    let digest = Digest::of(DigestDomain::Approval, &(effect.logged(), diff))
        .map_err(|error| VisitStop::Halt(error.to_string()))?;
    let now_ms = ctx.now().await?;
    let rule = ApprovalRule {
        quorum: 1,
        roles: Vec::new(),
        requester: None,
        four_eyes: false,
        expires_ms: now_ms + DAYS * 24 * 60 * 60 * 1000,
    };
    let asked = ctx.approval(ApprovalAsk {
        digest,
        rule,
        reason,
    });
    Ok(match asked.await? {
        ApprovalAnswer::Approved(approval) => {
            ConsentAnswer::Given(effect.request().approved(approval, digest))
        }
        ApprovalAnswer::Rejected(why) => {
            ConsentAnswer::Refused(format!("the change was not delivered: {why}"))
        }
    })
}

/// Why a person is asked, where one is. Confidence decides only this.
fn reason(work: &CodingState) -> Option<String> {
    let confidence = work.confidence.as_ref();
    let calibrated = confidence.filter(|known| known.is_calibrated());
    let sure = calibrated.map_or_else(String::new, |known| {
        format!("; confidence {}", known.spoken())
    });
    if work.task.ask_first {
        return Some(format!("the change is ready to be delivered{sure}"));
    }
    let broken: Vec<&str> = broken(work).iter().map(|score| score.id.as_str()).collect();
    if !broken.is_empty() {
        let broken = broken.join(", ");
        return Some(format!(
            "the change breaks what must be kept: {broken}{sure}"
        ));
    }
    let unsure = work.task.guidance.ask_unless_sure
        && !confidence.is_some_and(crate::guidelines::ChangeConfidence::is_sure);
    let few = if confidence.is_some() && calibrated.is_none() {
        ": too few changes were judged by people so far"
    } else {
        ""
    };
    unsure.then(|| format!("the run is not sure of its change{few}{sure}"))
}
