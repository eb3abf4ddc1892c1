//! Whether a change does what it should. Pure: results of tests in, verdict out. No evidence, no
//! pass, whatever a model says; and no failure that was there before is held against a change.

mod compared;

use std::collections::BTreeSet;

use lula_protocol::units::whole_seconds;
use serde::{Deserialize, Serialize};

pub use compared::TestComparison;
pub use lula_repair::trial::{
    AcceptanceBaseline, AcceptanceResult, NearestTestsResult, ProjectTestResults, TestRunAttempt,
    VerificationEvidence,
};

use crate::recovery::AttemptFailureClass;

/// The failing tests that a task is about; none where it asks for something else.
pub type GoalTests = BTreeSet<String>;

/// What a person can do where nothing shows that a task is done; a model can write a test instead.
pub(crate) const FOR_A_PERSON: &str = ": give one with --accept";

/// Most tests that are named in a sentence.
const NAMED: usize = 3;

/// What the evidence says about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunVerdict {
    /// It does what it should, and there is evidence.
    Pass { why: String },
    /// The evidence speaks against it.
    Fail {
        class: AttemptFailureClass,
        why: String,
        /// The tests or files that show it.
        named: Vec<String>,
    },
    /// Nothing shows that it does, and nothing that it does not.
    Inconclusive {
        /// What evidence is missing.
        why: String,
    },
}

impl RunVerdict {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass { .. } => "pass",
            Self::Fail { .. } => "fail",
            Self::Inconclusive { .. } => "inconclusive",
        }
    }

    pub fn why(&self) -> &str {
        match self {
            Self::Pass { why } | Self::Fail { why, .. } | Self::Inconclusive { why } => why,
        }
    }
}

fn fail(class: AttemptFailureClass, why: impl Into<String>, named: Vec<String>) -> RunVerdict {
    RunVerdict::Fail {
        class,
        why: why.into(),
        named,
    }
}

fn unproven(why: impl Into<String>) -> RunVerdict {
    RunVerdict::Inconclusive { why: why.into() }
}

/// So many tests are worse than before.
pub(crate) fn no_longer_pass(count: usize) -> String {
    match count {
        1 => "1 test that passed no longer does".to_owned(),
        many => format!("{many} tests that passed no longer do"),
    }
}

/// Some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Judges a change by its evidence alone: no model has a say.
pub fn judge(goal: &GoalTests, evidence: &VerificationEvidence) -> RunVerdict {
    let compared = TestComparison::of(evidence);
    if let Some(verdict) = objection(goal, evidence, &compared) {
        return verdict;
    }
    if goal.is_empty() {
        proof(evidence, &compared)
    } else {
        mended(goal, evidence, &compared)
    }
}

/// Whether nothing speaks against a change, and all that is missing is what shows that it does what was
/// asked for.
pub fn lacks_proof(goal: &GoalTests, evidence: &VerificationEvidence) -> bool {
    let compared = TestComparison::of(evidence);
    let shown = || matches!(proof(evidence, &compared), RunVerdict::Pass { .. });
    goal.is_empty() && objection(goal, evidence, &compared).is_none() && !shown()
}

/// What speaks against a change, or keeps it from being judged.
fn objection(
    goal: &GoalTests,
    evidence: &VerificationEvidence,
    compared: &TestComparison,
) -> Option<RunVerdict> {
    if evidence.changed_files == 0 {
        let why = "nothing was changed";
        return Some(fail(AttemptFailureClass::NoChange, why, Vec::new()));
    }
    let ended_early = evidence.first.as_ref().is_some_and(|first| first.enough);
    if ended_early || evidence.after == TestRunAttempt::NotRun {
        return Some(early(goal, evidence));
    }
    if let Some(verdict) = not_run(evidence) {
        return Some(verdict);
    }
    let hidden = hidden(goal, evidence, compared);
    if !hidden.is_empty() && !goal.is_empty() {
        let why = format!(
            "it passes only with its own versions of {}",
            evidence.touched_tests.join(", ")
        );
        return Some(fail(AttemptFailureClass::TestTampering, why, hidden));
    }
    let worse = broken(evidence, compared, &hidden).or_else(|| unaccepted(evidence));
    if worse.is_some() {
        return worse;
    }
    if !hidden.is_empty() {
        // What the task asks for may contradict old tests; whether it does is not for us to say.
        return Some(unproven(format!(
            "it needs a person: {} as they were fail with it, and it brings its own versions of {}",
            listed(&hidden),
            evidence.touched_tests.join(", ")
        )));
    }
    (!compared.unsteady.is_empty()).then(|| {
        unproven(format!(
            "with the change {} fail now and then",
            listed(&compared.unsteady)
        ))
    })
}

/// Where the tests did not run with the change.
fn not_run(evidence: &VerificationEvidence) -> Option<RunVerdict> {
    let before = evidence.before.results();
    let known = before.is_some_and(|results| !results.is_empty());
    let lost = || before.map(|results| results.passing.iter().cloned().collect());
    let verdict = |looked: &TestRunAttempt, whose: &str| match looked.plain() {
        TestRunAttempt::Ran(_) => None,
        TestRunAttempt::NotRun | TestRunAttempt::EnvironmentBroken(_) => {
            Some(unproven("the tests were not run with the change"))
        }
        TestRunAttempt::OutOfTime(ms) => Some(unproven(format!(
            "the tests{whose} did not end within {} with the change",
            whole_seconds(ms)
        ))),
        TestRunAttempt::NoTests if !known => None,
        TestRunAttempt::CannotRun(why) if !known => {
            Some(unproven(format!("the tests cannot be run: {why}")))
        }
        TestRunAttempt::NoTests => Some(fail(
            AttemptFailureClass::TestTampering,
            "no test is left that could be run",
            lost().unwrap_or_default(),
        )),
        TestRunAttempt::CannotRun(why) => Some(fail(
            AttemptFailureClass::TestFail,
            format!("the tests{whose} no longer run: {why}"),
            Vec::new(),
        )),
    };
    let own = |looked: &TestRunAttempt| match looked {
        // Without a test of its own there is nothing that could fail.
        TestRunAttempt::NoTests => None,
        looked => verdict(looked, ", as it has them,"),
    };
    verdict(&evidence.after, "").or_else(|| evidence.as_is.as_ref().and_then(own))
}

/// Tests that are worse than before.
fn broken(
    evidence: &VerificationEvidence,
    compared: &TestComparison,
    hidden: &[String],
) -> Option<RunVerdict> {
    let open = |ids: &[String]| -> Vec<String> {
        let ids = ids.iter().filter(|id| !hidden.contains(id));
        ids.cloned().collect()
    };
    let (lost, mut failing) = (open(&compared.lost), open(&compared.broken));
    if !lost.is_empty() || !failing.is_empty() {
        let why = if failing.is_empty() {
            match lost.len() {
                1 => "1 test that passed is no longer run".to_owned(),
                many => format!("{many} tests that passed are no longer run"),
            }
        } else {
            no_longer_pass(failing.len() + lost.len())
        };
        failing.extend(lost);
        failing.sort();
        return Some(fail(AttemptFailureClass::TestFail, why, failing));
    }
    let new = open(&compared.new_failing);
    let ran_before = matches!(
        evidence.before,
        TestRunAttempt::Ran(_) | TestRunAttempt::NoTests
    );
    if !new.is_empty() && !ran_before {
        return Some(unproven(format!(
            "{} fail with the change, and the tests could not be run before it",
            listed(&new)
        )));
    }
    (!new.is_empty()).then(|| {
        let why = match new.len() {
            1 => "1 test fails with the change that did not fail before it".to_owned(),
            many => format!("{many} tests fail with the change that did not fail before it"),
        };
        fail(AttemptFailureClass::TestFail, why, new)
    })
}

/// An acceptance command that does not succeed.
fn unaccepted(evidence: &VerificationEvidence) -> Option<RunVerdict> {
    evidence.accepted.iter().find_map(|accepted| {
        if accepted.timed_out {
            let why = format!("{:?} did not end in time", accepted.command);
            return Some(unproven(why));
        }
        if accepted.unsteady {
            let why = format!(
                "{:?} succeeds with the change now and then: {}",
                accepted.command, accepted.output
            );
            return Some(unproven(why));
        }
        (!accepted.after).then(|| {
            let why = format!(
                "{:?} does not succeed: {}",
                accepted.command, accepted.output
            );
            fail(
                AttemptFailureClass::Acceptance,
                why,
                vec![accepted.command.clone()],
            )
        })
    })
}

/// Judges by the tests nearest to the change alone. They can show that it breaks something, never
/// that it does not.
fn early(goal: &GoalTests, evidence: &VerificationEvidence) -> RunVerdict {
    let (shown, picked) = shown(evidence);
    let why = format!(
        "{} of the {picked} tests nearest to the change fail; the others were not run",
        shown.len()
    );
    let before = evidence.before.results().cloned().unwrap_or_default();
    let breaks = shown.iter().any(|id| before.passing.contains(id));
    if breaks {
        let matters = |id: &String| goal.contains(id) || before.passing.contains(id);
        let named = shown.into_iter().filter(matters).collect();
        return fail(AttemptFailureClass::TestFail, why, named);
    }
    if shown.iter().any(|id| goal.contains(id)) {
        return unproven(why);
    }
    unproven("not all tests were run, and those that were decide nothing")
}

/// The nearest tests that fail with the change, and how many there are.
fn shown(evidence: &VerificationEvidence) -> (Vec<String>, usize) {
    let before = evidence.before.results().cloned().unwrap_or_default();
    match &evidence.first {
        Some(first) => (first.shown(&before).cloned().collect(), first.picked.len()),
        None => (Vec::new(), 0),
    }
}

/// Tests that are worse than they should be as they were, and not as the change has them.
fn hidden(
    goal: &GoalTests,
    evidence: &VerificationEvidence,
    compared: &TestComparison,
) -> Vec<String> {
    let Some(as_is) = &evidence.as_is else {
        return Vec::new();
    };
    let as_is = as_is.results();
    let looks_good = |id: &&String| as_is.is_none_or(|results| !results.failing.contains(*id));
    let worse = compared.broken.iter().chain(&compared.lost);
    let still = compared
        .still_failing
        .iter()
        .filter(|id| goal.contains(*id));
    worse.chain(still).filter(looks_good).cloned().collect()
}

/// Why another try makes sense although nothing shows that the change is wrong: tests that were to
/// pass still fail. Those that do.
pub fn still_to_mend(goal: &GoalTests, evidence: &VerificationEvidence) -> Vec<String> {
    if evidence.after == TestRunAttempt::NotRun {
        let (shown, _) = shown(evidence);
        return shown.into_iter().filter(|id| goal.contains(id)).collect();
    }
    let compared = TestComparison::of(evidence);
    let still = goal.iter().filter(|id| !compared.is_mended(id));
    still.cloned().collect()
}

/// Whether the tests that were to pass do, and do so because of the change.
fn mended(
    goal: &GoalTests,
    evidence: &VerificationEvidence,
    compared: &TestComparison,
) -> RunVerdict {
    let still: Vec<String> = goal
        .iter()
        .filter(|id| !compared.is_mended(id))
        .cloned()
        .collect();
    let fixed = goal.len() - still.len();
    if fixed == 0 {
        return unproven(format!(
            "{} of {} failing tests still fail, with the change as without it: {}",
            still.len(),
            goal.len(),
            listed(&still)
        ));
    }
    let needless = goal
        .iter()
        .filter(|id| compared.is_mended(id) && !needs_change(evidence, id))
        .count();
    if needless > 0 {
        return unproven(format!(
            "{needless} of the mended tests pass without the change too"
        ));
    }
    if !still.is_empty() {
        return unproven(format!(
            "{fixed} of {} failing tests pass now; still failing: {}",
            goal.len(),
            listed(&still)
        ));
    }
    let (mended, again) = match fixed {
        1 => ("1 test that failed passes".to_owned(), "it fails"),
        more => (format!("{more} tests that failed pass"), "they fail"),
    };
    let passing = evidence
        .after
        .results()
        .map_or(0, |after| after.passing.len());
    RunVerdict::Pass {
        why: format!("{mended} now, {passing} pass in all, and without the change {again} again"),
    }
}

/// Whether a test does not pass without the change.
fn needs_change(evidence: &VerificationEvidence, id: &String) -> bool {
    let fails_in = |looked: &TestRunAttempt| match looked {
        // Where the tests cannot even be run without the change, everything needs it.
        TestRunAttempt::CannotRun(_) | TestRunAttempt::EnvironmentBroken(_) => true,
        TestRunAttempt::Ran(results) => {
            !compared::passes(id, results) && !results.flaky.contains(id)
        }
        TestRunAttempt::NoTests | TestRunAttempt::OutOfTime(_) | TestRunAttempt::NotRun => false,
    };
    let knows = |looked: &TestRunAttempt| looked.results().is_some_and(|results| results.knows(id));
    let own = evidence.as_is.is_some() && !knows(&evidence.before) && !knows(&evidence.after);
    let without = if own {
        &evidence.tests_alone
    } else {
        &evidence.without
    };
    without.as_ref().is_some_and(fails_in)
}

/// What shows that the task is done: a test or command that succeeds with the change and does not
/// without it.
fn proof(evidence: &VerificationEvidence, compared: &TestComparison) -> RunVerdict {
    let needed = |ids: &[String]| {
        let needed = ids.iter().filter(|id| needs_change(evidence, id));
        needed.count()
    };
    let accepted = evidence.accepted.iter().filter(|one| !one.before).count();
    let new = needed(&compared.new_passing);
    let mended = needed(&compared.fail_to_pass);
    if accepted + new + mended == 0 {
        if !compared.new_passing.is_empty() {
            return unproven(format!(
                "its new tests pass without the change too: {}",
                listed(&compared.new_passing)
            ));
        }
        let why = if evidence.accepted.is_empty() {
            "no test and no acceptance command shows that the task is done: give one with --accept"
        } else {
            "the acceptance commands succeeded before the change too"
        };
        return unproven(why);
    }
    let mut parts = Vec::new();
    let mut count = |number: usize, one: &str, more: &str| match number {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{number} {more}")),
    };
    count(
        accepted,
        "acceptance command that failed succeeds",
        "acceptance commands that failed succeed",
    );
    count(
        new,
        "new test passes that fails without the change",
        "new tests pass that fail without the change",
    );
    count(mended, "failing test passes", "failing tests pass");
    RunVerdict::Pass {
        why: format!("{}; no test that passed was lost", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests;
