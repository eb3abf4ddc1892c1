//! Runs what is still owed after a coder's edits, and takes the change.
//!
//! Owed are the commands that the operator named to finish a change. They run in the run's own workspace,
//! as any command does: in the sandbox, by the rules, once. One that fails makes the attempt fail.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_protocol::WorkspaceId;
use lula_repair::trial::tail;
use lula_runner_api::CommittedChangeView;

use super::{repositories, shell, tried, workspace};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::guidelines::{RatingPhase, rate};
use crate::recovery::{AttemptFailure, AttemptFailureClass};
use crate::runner_port::{Reply, ToolRefusal};
use crate::work::{CoderProposal, CodingState, RunStateEvent};

/// Longest output of a failed command that the next coder is told.
const OUTPUT: usize = 8_000;

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let commands = match finish(work, ctx).await? {
        Ok(commands) => commands,
        Err(failure) => {
            let failed = RunStateEvent::Failed { failure };
            return Ok(NodeExit::by(RunNodeExit::Fail).with(failed));
        }
    };
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
    let mut left = NodeExit::by(RunNodeExit::Done);
    if !commands.is_empty() {
        left = left.with(RunStateEvent::Finished { commands });
    }
    let left = others.into_iter().fold(left, NodeExit::with);
    if work.task.guidance.guidelines.is_empty() {
        return Ok(left.with(executed));
    }
    let mut now = work.clone();
    now.apply(&executed);
    let rating = rate(&now, RatingPhase::Change);
    Ok(left.with(executed).with(RunStateEvent::Rated { rating }))
}

/// Finishes the change of every repository that has one; the commands that did, or how one failed.
async fn finish(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<Vec<String>, AttemptFailure>, VisitStop> {
    let mut places = vec![(0, workspace(work)?)];
    places.extend(repositories::others(work).map(|(repo, _, place)| (repo, place)));
    let joint = work.joint.as_ref();
    let mut finished = Vec::new();
    for (repo, place) in places {
        if joint.is_some_and(|joint| !joint.changed(repo)) {
            continue;
        }
        for command in work.task.finishing(repo) {
            if let Err(failure) = run(work, repo, &place, command, ctx).await? {
                return Ok(Err(failure));
            }
            finished.push(command.clone());
        }
    }
    Ok(Ok(finished))
}

async fn run(
    work: &CodingState,
    repo: usize,
    place: &WorkspaceId,
    command: &str,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<(), AttemptFailure>, VisitStop> {
    let effect = RunEffect::Act {
        workspace: place.clone(),
        action: shell(command, work.task.folder_of(repo)),
        shown: None,
    };
    let effect = repositories::in_repository(repo, effect).request();
    let said = tried(ctx.effect::<Reply>(effect).await)?.unwrap_or_else(Reply::failed);
    if !said.failed {
        return Ok(Ok(()));
    }
    let by = work.made.as_ref().map_or("", |(by, _)| by);
    Ok(Err(failed(command, &said, by)))
}

/// The attempt that a command which finishes changes did not accept, with the end of what it printed.
fn failed(command: &str, said: &Reply, by: &str) -> AttemptFailure {
    let class = said
        .refused
        .map_or(AttemptFailureClass::Finishing, ToolRefusal::class);
    let how = said.text.lines().next().unwrap_or_default();
    let why = format!("the finishing command {command:?} failed: {how}");
    let end = tail(&said.text, OUTPUT);
    let detail = format!(
        "After the edits {command:?} is run in the workspace, and it has to succeed. It said:\n{end}\n"
    );
    AttemptFailure::new(class, why, &[command.to_owned()], by).with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_named_with_the_end_of_its_output() {
        let printed = format!(
            "exit status 2\n<stdout>\n{}the last line",
            "x\n".repeat(9_000)
        );
        let failure = failed("make fmt", &Reply::failed(printed), "a/model");
        assert_eq!(failure.class, AttemptFailureClass::Finishing);
        assert_eq!(failure.by, "a/model");
        let said = "the finishing command \"make fmt\" failed: exit status 2";
        assert_eq!(failure.evidence, said);
        assert!(
            failure.detail.ends_with("the last line\n"),
            "{}",
            failure.detail
        );
        assert!(failure.detail.len() < OUTPUT + 200);
    }

    #[test]
    fn a_command_that_a_rule_refuses_is_a_refusal() {
        let refused = Reply {
            refused: Some(ToolRefusal::ByRule),
            ..Reply::failed("it was refused: test.never")
        };
        let failure = failed("deploy", &refused, "a/model");
        assert_eq!(failure.class, AttemptFailureClass::PolicyDenied);
    }
}
