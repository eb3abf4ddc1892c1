//! The gate: asks loop limits, rules and budget before an attempt is begun.
//!
//! - *Loop limits*, with the strikes of the loop guard and the class of the last failure, decide whether
//!   there is another attempt, and from where. Pure.
//! - *Rules* are asked once, before the first attempt, about everything the run will certainly do: the
//!   commands that the operator named, and the delivery. What they forbid ends the run here; what they
//!   ask about is told, and asked when its turn comes.
//! - *Budget*: where nothing is left of what the first question of the attempt to a model takes, the run
//!   waits here for more, as it would at that question, and nothing of the attempt is begun. A budget of
//!   which something is left is for the engine to hold against the whole question.
//!
//! Runs that were begun before the gate asked (`RunTask::gated`) go by their loop limits alone.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_models::spend::worst_case;
use lula_protocol::{BudgetAmounts, BudgetDimension, WorkspaceId};
use lula_runner_api::{ActRuling, ActRulings, ForeseenAct, RulingView};

use super::{repositories, shell, tried, workspace};
use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNode, RunNodeExit, admitted};
use crate::model_choice::{ModelRole, choose};
use crate::recovery::{AttemptRecovery, recover};
use crate::task::DeliverMode;
use crate::work::{CodingState, EarlyEnd, ForeseenQuestion, RetryPlan, RunStateEvent};

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let retry = match next(work, ctx.strikes()) {
        NextAttempt::First => None,
        NextAttempt::Again(retry) => Some(retry),
        NextAttempt::None(why) => return Ok(denied(EarlyEnd::Halted { why })),
    };
    let mut ahead = work.clone();
    let mut left = NodeExit::by(RunNodeExit::Allow);
    if work.task.gated && retry.is_none() {
        match ask(work, ctx).await? {
            Err(end) => return Ok(denied(end)),
            Ok(questions) if questions.is_empty() => {}
            Ok(questions) => left = left.with(RunStateEvent::Foreseen { questions }),
        }
    }
    if let Some(retry) = retry {
        let retrying = RunStateEvent::Retrying { retry };
        ahead.apply(&retrying);
        left = left.with(retrying);
    }
    if work.task.gated && !is_affordable(&ahead, ctx) {
        ctx.afford("the next attempt", &least(&ahead)).await?;
    }
    Ok(left)
}

/// Whether something is left of what the next attempt takes.
pub(super) fn is_affordable(ahead: &CodingState, ctx: &NodeContext<'_>) -> bool {
    let needs = |(of, amount): (BudgetDimension, u64)| amount > 0 && ctx.budget().free(of) == 0;
    !least(ahead).iter().any(needs)
}

fn denied(end: EarlyEnd) -> NodeDeparture {
    NodeExit::by(RunNodeExit::Deny).with(RunStateEvent::Ending { end })
}

/// What loop limits say about the next attempt.
enum NextAttempt {
    /// It is the first.
    First,
    /// It follows a failed one.
    Again(RetryPlan),
    /// There is none, and why.
    None(String),
}

/// Whether there is another attempt. Pure.
fn next(work: &CodingState, strikes: u32) -> NextAttempt {
    let handled = usize::try_from(work.loops).unwrap_or(usize::MAX);
    if work.failures.len() <= handled {
        return NextAttempt::First;
    }
    if let (Some(_), Some(failure)) = (&work.contest, work.failures.last()) {
        // Each candidate has tried again already.
        return NextAttempt::None(failure.evidence.clone());
    }
    match recover(&work.failures, work.task.max_loops, strikes, work.is_open()) {
        AttemptRecovery::Retry {
            target,
            another_model,
        } => NextAttempt::Again(RetryPlan {
            target,
            another_model,
        }),
        AttemptRecovery::Halt(why) => NextAttempt::None(why),
    }
}

/// What an attempt takes of the budget at least: its first question to a model, where it begins with
/// one. Pure.
fn least(work: &CodingState) -> BudgetAmounts {
    let model = match admitted(work) {
        RunNode::Planner => choose(work, ModelRole::Planner).map(|chosen| chosen.model),
        // What candidates may spend is theirs.
        _ if work.task.best_of.is_some() => None,
        _ => coder::next_model(work),
    };
    model.map_or_else(BudgetAmounts::none, |model| {
        worst_case(&model.price(), 0, u64::from(model.max_tokens))
    })
}

/// Something that the run will certainly do.
struct Foreseen {
    act: ForeseenAct,
    /// As a person wrote it.
    name: String,
    /// What a person changes who does not want it any more.
    remedy: &'static str,
    /// Whether the run waits where the rules ask.
    waits: bool,
}

/// Asks the rules of every repository; what they would ask people about, or the end that a forbidden act
/// puts to the run.
async fn ask(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<Vec<ForeseenQuestion>, EarlyEnd>, VisitStop> {
    let mut places: Vec<(usize, WorkspaceId)> = vec![(0, workspace(work)?)];
    places.extend(repositories::others(work).map(|(repo, _, place)| (repo, place)));
    let mut questions: Vec<ForeseenQuestion> = Vec::new();
    for (repo, place) in places {
        let foreseen = foreseen(work, repo);
        if foreseen.is_empty() {
            continue;
        }
        let effect = RunEffect::Judge {
            workspace: place,
            acts: foreseen.iter().map(|one| one.act.clone()).collect(),
        };
        let effect = repositories::in_repository(repo, effect).request();
        let rulings = match tried(ctx.effect::<ActRulings>(effect).await)? {
            Ok(judged) if judged.rulings.len() == foreseen.len() => judged.rulings,
            Ok(_) => return Ok(Err(unasked("the answer is about other acts"))),
            Err(why) => return Ok(Err(unasked(&why))),
        };
        match settle(&foreseen, rulings) {
            Ok(asked) => questions.extend(asked),
            Err(why) => return Ok(Err(EarlyEnd::Rejected { why })),
        }
    }
    questions.dedup();
    Ok(Ok(questions))
}

fn unasked(why: &str) -> EarlyEnd {
    let why = format!("the rules could not be asked: {why}");
    EarlyEnd::Halted { why }
}

/// Everything that a run will certainly do in a repository: commands that were named, and the delivery.
/// Pure.
fn foreseen(work: &CodingState, repo: usize) -> Vec<Foreseen> {
    let task = &work.task;
    let command = |line: &String, remedy, waits| Foreseen {
        act: ForeseenAct::Call {
            action: shell(line, task.folder_of(repo)),
        },
        name: format!("{line:?}"),
        remedy,
        waits,
    };
    let mut all = Vec::new();
    let tests = "name another command with --tests";
    all.extend(task.tests.iter().map(|line| command(line, tests, false)));
    let accept = "name another command with --accept";
    let accepted = work.acceptance(repo);
    all.extend(accepted.iter().map(|line| command(line, accept, false)));
    let finish = "name another command with --finish or in run.finish";
    let finished = task.finishing(repo).iter();
    all.extend(finished.map(|line| command(line, finish, true)));
    if matches!(task.deliver, DeliverMode::Branch | DeliverMode::Worktree) {
        all.push(Foreseen {
            act: ForeseenAct::Deliver,
            name: "the delivery".to_owned(),
            remedy: "take the change with --deliver patch",
            waits: true,
        });
    }
    all
}

/// What rules ask about, or which of these acts they forbid, with what to do instead. Pure.
fn settle(foreseen: &[Foreseen], rulings: Vec<ActRuling>) -> Result<Vec<ForeseenQuestion>, String> {
    let mut questions = Vec::new();
    for (one, said) in foreseen.iter().zip(rulings) {
        match said.ruling {
            RulingView::Allow => {}
            RulingView::Ask => questions.push(ForeseenQuestion {
                act: one.name.clone(),
                reason: said.reason,
                waits: one.waits,
            }),
            RulingView::Deny => {
                return Err(format!(
                    "a rule forbids {}: {}; {}, or change the rule: `lula policy show` says where it is",
                    one.name, said.reason, one.remedy
                ));
            }
        }
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{AttemptFailure, AttemptFailureClass};
    use crate::task::RunTask;

    fn work(change: impl FnOnce(&mut RunTask)) -> CodingState {
        let mut task = RunTask::new("add a flag", "/r");
        change(&mut task);
        CodingState::begin(task)
    }

    fn names(work: &CodingState) -> Vec<String> {
        foreseen(work, 0).into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn what_a_run_will_certainly_do_is_known_before_it_begins() {
        let named = work(|task| {
            task.tests = Some("make test".to_owned());
            task.accept = vec!["./cli --verbose".to_owned()];
            task.finish = vec!["make fmt".to_owned()];
        });
        let all = [
            "\"make test\"",
            "\"./cli --verbose\"",
            "\"make fmt\"",
            "the delivery",
        ];
        assert_eq!(names(&named), all);
        let nowhere = work(|task| task.deliver = DeliverMode::Patch);
        assert!(names(&nowhere).is_empty());
    }

    fn says(ruling: RulingView) -> ActRuling {
        ActRuling {
            ruling,
            rule: Some("test.rule".to_owned()),
            reason: "because (test.rule: make fmt)".to_owned(),
        }
    }

    #[test]
    fn an_act_that_is_asked_about_is_told_and_a_forbidden_one_says_what_to_change() {
        let work = work(|task| {
            task.finish = vec!["make fmt".to_owned()];
            task.deliver = DeliverMode::None;
        });
        let asked = settle(&foreseen(&work, 0), vec![says(RulingView::Ask)]).unwrap();
        assert_eq!(asked[0].act, "\"make fmt\"");
        assert!(asked[0].waits);
        let why = settle(&foreseen(&work, 0), vec![says(RulingView::Deny)]).unwrap_err();
        assert!(why.contains("because (test.rule: make fmt)"), "{why}");
        assert!(why.contains("--finish"), "{why}");
    }

    #[test]
    fn a_run_that_failed_too_often_gets_no_other_attempt() {
        let mut work = work(|task| task.max_loops = 0);
        assert!(matches!(next(&work, 0), NextAttempt::First));
        let failure = AttemptFailure::new(AttemptFailureClass::TestFail, "seen", &[], "a/model");
        work.apply(&RunStateEvent::Failed { failure });
        let NextAttempt::None(why) = next(&work, 0) else {
            panic!("another attempt");
        };
        assert!(why.contains("the only attempt failed"), "{why}");
    }
}
