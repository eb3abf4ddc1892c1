//! Judges the tree, never the words of a model.
//!
//! Trees are judged in private forks, with existing tests as they were before the change, and once
//! more without the change. `verdict/compared.rs` puts every test into the one list it belongs to;
//! a test that is new there and fails is never a pass (docs/verdicts.md).

use std::fmt::Write;

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};

use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::nodes::{gate, repositories, second_look, tried, workspace};
use crate::recovery::{AttemptFailure, AttemptFailureClass, AttemptRecovery, recover};
use crate::test_selection::{self, SelectedTests};
use crate::verdict::{
    FOR_A_PERSON, GoalTests, RunVerdict, TestComparison, VerificationEvidence, judge, lacks_proof,
    still_to_mend,
};
use crate::work::{CodingState, RetryPlan, RunStateEvent, TestBaseline};
use lula_repair::trial::{beside, excerpt, is_evidence};

/// Longest evidence handed to the next attempt, beside its sentence.
const DETAIL: usize = 20_000;
/// Longest part of the change that is handed to a coder that does not know it.
const CHANGE: usize = 12_000;
/// Tests that take no longer together, in milliseconds, are not run in part first.
const QUICK: u64 = 3_000;
/// Most failing tests whose words are handed on.
const TESTS: usize = 6;

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let before = work.steady_baseline(0);
    let seen = handed_in_again(work);
    let first = match seen {
        Some(_) => Vec::new(),
        None => nearest(work, &before, ctx).await?,
    };
    let effect = RunEffect::Verify {
        workspace: workspace(work)?,
        first,
        tests: work.task.tests.clone(),
        folder: work.task.folder.clone(),
        before: Box::new(before),
        accept: work.acceptance(0),
        tests_ms: work.task.tests_ms,
    };
    let (evidence, verdict) = match seen {
        Some(seen) => (seen.clone(), judge(&work.goal(0), seen)),
        None => verify(&effect, work, ctx).await?,
    };
    let judged = RunStateEvent::Judged {
        evidence: Box::new(evidence.clone()),
        verdict,
    };
    let looked = second_look::take(work, judged, &effect, ctx).await?;
    let failure = match &looked.verdict {
        RunVerdict::Fail { class, why, named } => Some(failed(*class, why, named, &evidence, work)),
        RunVerdict::Inconclusive { why } => unfinished(why, &evidence, work, ctx),
        RunVerdict::Pass { .. } => None,
    };
    let way = match (&looked.verdict, &failure) {
        (_, Some(_)) => RunNodeExit::Fail,
        (RunVerdict::Inconclusive { .. }, None) => RunNodeExit::Inconclusive,
        _ => RunNodeExit::Pass,
    };
    let mut left = NodeExit::by(way);
    if let Some(failure) = failure {
        left = left.with(RunStateEvent::Failed { failure });
    }
    Ok(looked.events.into_iter().fold(left, NodeExit::with))
}

/// What is known of a change that comes back as it was, although its coder was asked for a test: nothing
/// failed with it, so running the tests once more would show nothing.
fn handed_in_again(work: &CodingState) -> Option<&VerificationEvidence> {
    let asked = work.failures.last()?.class == AttemptFailureClass::NoEvidence;
    let (known, now) = (work.undecided.as_ref()?, work.proposal.as_ref()?);
    let alone = repositories::others(work).next().is_none();
    (asked && alone && known.tree == now.tree).then_some(&known.evidence)
}

/// Whether a failure like this would be followed by another try.
fn goes_on(work: &CodingState, failure: &AttemptFailure, strikes: u32) -> bool {
    let mut failures = work.failures.clone();
    failures.push(failure.clone());
    let next = recover(&failures, work.task.max_loops, strikes, work.is_open());
    let AttemptRecovery::Retry {
        target,
        another_model,
    } = next
    else {
        return false;
    };
    let mut then = work.clone();
    then.apply(&RunStateEvent::Failed {
        failure: failure.clone(),
    });
    let retry = RetryPlan {
        target,
        another_model,
    };
    then.apply(&RunStateEvent::Retrying { retry });
    // Candidates have tried again already, each for itself.
    work.contest.is_none() && coder::is_left(&then)
}

/// A change that is not wrong, and leaves tests failing that were to pass: tried again while that makes
/// sense, and otherwise left to a person as it is. Where some of them pass, once is enough: the others
/// may fail for a reason that no change helps.
fn unfinished(
    why: &str,
    evidence: &VerificationEvidence,
    work: &CodingState,
    ctx: &NodeContext<'_>,
) -> Option<AttemptFailure> {
    let goal = work.goal(0);
    let still = still_to_mend(&goal, evidence);
    if evidence.changed_files == 0 {
        return None;
    }
    if work.is_open() && lacks_proof(&goal, evidence) {
        return unshown(why, evidence, work, ctx);
    }
    if still.is_empty() {
        return None;
    }
    let failure = failed(AttemptFailureClass::TestFail, why, &still, evidence, work);
    let known = |known: &AttemptFailure| known.fingerprint == failure.fingerprint;
    let again = still.len() < goal.len() && work.failures.iter().any(known);
    (!again && goes_on(work, &failure, ctx.strikes())).then_some(failure)
}

/// A change that breaks nothing, where nothing shows that it does what it should. Its coder is asked
/// once for a test that does; handed in again as it is, it is left to a person.
fn unshown(
    why: &str,
    evidence: &VerificationEvidence,
    work: &CodingState,
    ctx: &NodeContext<'_>,
) -> Option<AttemptFailure> {
    const HOW: &str = "Nothing that passed before fails. Add a test that fails without your change and \
                       passes with it: it is run both ways. If no test can show it, hand the change in \
                       again as it is; then a person judges it.";
    let why = why.strip_suffix(FOR_A_PERSON).unwrap_or(why);
    let needless = TestComparison::of(evidence).new_passing;
    let class = AttemptFailureClass::NoEvidence;
    let failure = AttemptFailure {
        detail: HOW.to_owned(),
        ..failed(class, why, &needless, evidence, work)
    };
    // The same once more is a coder that has nothing else to show.
    let known = |known: &AttemptFailure| known.fingerprint == failure.fingerprint;
    if work.failures.iter().any(known) {
        return None;
    }
    // A person who gave no more than this budget gets the change as it is.
    let goes_on = goes_on(work, &failure, ctx.strikes()) && gate::is_affordable(work, ctx);
    goes_on.then_some(failure)
}

/// The tests nearest to the change. Where they cannot be found, or all tests together take no longer than
/// it is worth, all tests are run at once.
async fn nearest(
    work: &CodingState,
    before: &TestBaseline,
    ctx: &mut NodeContext<'_>,
) -> Result<Vec<String>, VisitStop> {
    if before.took_ms.is_some_and(|ms| ms < QUICK) {
        return Ok(Vec::new());
    }
    // The last try is judged by all tests, unless it breaks one: what it leaves may still be of use.
    let by = work.made.as_ref().map_or("", |(by, _)| by);
    let last = AttemptFailure::new(AttemptFailureClass::TestFail, "", &[], by);
    let goal = if goes_on(work, &last, ctx.strikes()) {
        work.goal(0)
    } else {
        GoalTests::new()
    };
    let change = work.proposal.as_ref().and_then(|proposal| {
        let results = before.looked.results()?;
        // Where tests are touched, only all of them tell.
        let touches_tests = proposal.files.iter().any(|path| is_evidence(path));
        let repository = work.task.repository(0);
        let change = test_selection::change(repository, &proposal.diff, &goal, results);
        change.filter(|_| !touches_tests)
    });
    let Some(change) = change else {
        return Ok(Vec::new());
    };
    let effect = RunEffect::SelectTests {
        workspace: workspace(work)?,
        change: Box::new(change),
    };
    let picked = tried(ctx.effect::<SelectedTests>(effect.request()).await)?;
    Ok(picked.unwrap_or_default().tests)
}

/// Collects evidence and judges it.
pub(super) async fn verify(
    effect: &RunEffect,
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<(VerificationEvidence, RunVerdict), VisitStop> {
    let own = match tried(ctx.effect::<VerificationEvidence>(effect.request()).await)? {
        Ok(evidence) => {
            let verdict = judge(&work.goal(0), &evidence);
            (evidence, verdict)
        }
        Err(why) => {
            let why = format!("the change could not be judged: {why}");
            (
                VerificationEvidence::default(),
                RunVerdict::Inconclusive { why },
            )
        }
    };
    repositories::verify_others(own, work, ctx).await
}

/// A failed attempt, with what the next coder is told.
fn failed(
    class: AttemptFailureClass,
    why: &str,
    named: &[String],
    evidence: &VerificationEvidence,
    work: &CodingState,
) -> AttemptFailure {
    let mut text = match class {
        AttemptFailureClass::TestTampering => {
            format!("{why}. Existing tests count as they were; change the code, not the tests.")
        }
        _ => why.to_owned(),
    };
    for name in named.iter().take(20) {
        text.push_str("\n- ");
        text.push_str(name);
    }
    let (by, summary) = work.made.clone().unwrap_or_default();
    let change = work.proposal.as_ref();
    AttemptFailure {
        change: change.map_or_else(String::new, |change| excerpt(&change.diff, CHANGE)),
        summary,
        ..AttemptFailure::new(class, text, named, by).with_detail(detail(named, evidence))
    }
}

/// Everything else that was seen: commands, files that were put back, what tests said.
fn detail(named: &[String], evidence: &VerificationEvidence) -> String {
    let mut text = String::new();
    let before = evidence.command_before.as_ref();
    // Where only the nearest tests were run, it is the command of the first look.
    if let Some(command) = evidence.command.as_ref().or(before) {
        let _ = writeln!(text, "The tests were run with: {command}");
    }
    let other = |before: &&String| evidence.command.as_ref().is_some_and(|one| one != *before);
    if let Some(before) = before.filter(other) {
        let _ = writeln!(text, "Before the change they were run with: {before}");
    }
    if !evidence.touched_tests.is_empty() {
        let _ = writeln!(
            text,
            "Existing tests were run as they were before the change, in {}; what it adds there is run too.",
            evidence.touched_tests.join(", ")
        );
    }
    // What is named comes first.
    let (mut said, rest): (Vec<_>, Vec<_>) = evidence
        .messages
        .iter()
        .partition(|(id, _)| named.contains(id));
    if said.is_empty() {
        said = rest;
    }
    let mut before = "";
    for (id, message) in said.into_iter().take(TESTS) {
        let _ = writeln!(
            text,
            "<test name={id:?}>\n{}\n</test>",
            beside(message, before)
        );
        before = message;
    }
    excerpt(&text, DETAIL)
}
