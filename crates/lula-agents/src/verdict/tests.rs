//! What counts as a pass, and what never does.

use proptest::prelude::*;

use super::*;
use crate::task::TaskIntent;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn ran(passing: &[&str], failing: &[&str]) -> TestRunAttempt {
    TestRunAttempt::Ran(ProjectTestResults {
        passing: set(passing),
        failing: set(failing),
        ..ProjectTestResults::default()
    })
}

fn mended() -> VerificationEvidence {
    VerificationEvidence {
        before: ran(&["a"], &["b"]),
        after: ran(&["a", "b"], &[]),
        without: Some(ran(&["a"], &["b"])),
        changed_files: 1,
        ..VerificationEvidence::default()
    }
}

/// The verdict on everything that fails, or on something else.
fn judged(intent: TaskIntent, evidence: &VerificationEvidence) -> RunVerdict {
    judge(&goal(intent, evidence), evidence)
}

fn goal(intent: TaskIntent, evidence: &VerificationEvidence) -> GoalTests {
    match (intent, evidence.before.results()) {
        (TaskIntent::Repair, Some(results)) => results.failing.clone(),
        _ => GoalTests::new(),
    }
}

fn accepted(before: bool, after: bool) -> AcceptanceResult {
    AcceptanceResult {
        command: "make check".to_owned(),
        before,
        after,
        timed_out: false,
        unsteady: false,
        output: String::new(),
    }
}

fn class(verdict: &RunVerdict) -> Option<AttemptFailureClass> {
    match verdict {
        RunVerdict::Fail { class, .. } => Some(*class),
        _ => None,
    }
}

#[test]
fn a_mended_test_that_fails_again_without_the_change_is_a_pass() {
    assert_eq!(judged(TaskIntent::Repair, &mended()).name(), "pass");
}

#[test]
fn no_change_is_never_a_pass() {
    let mut evidence = mended();
    evidence.changed_files = 0;
    for intent in [TaskIntent::Repair, TaskIntent::Change] {
        assert_eq!(
            class(&judged(intent, &evidence)),
            Some(AttemptFailureClass::NoChange)
        );
    }
}

#[test]
fn a_lost_test_fails_a_change_that_mends_another() {
    let mut evidence = mended();
    evidence.after = ran(&["b"], &[]);
    assert_eq!(
        class(&judged(TaskIntent::Repair, &evidence)),
        Some(AttemptFailureClass::TestFail)
    );
}

#[test]
fn passing_only_with_ones_own_tests_is_tampering() {
    let mut evidence = mended();
    evidence.after = ran(&["a"], &["b"]);
    evidence.as_is = Some(ran(&["a", "b"], &[]));
    evidence.touched_tests = vec!["test_a.py".to_owned()];
    assert_eq!(
        class(&judged(TaskIntent::Repair, &evidence)),
        Some(AttemptFailureClass::TestTampering)
    );
}

#[test]
fn what_passes_without_the_change_proves_nothing() {
    let mut evidence = mended();
    evidence.without = Some(ran(&["a", "b"], &[]));
    assert_eq!(judged(TaskIntent::Repair, &evidence).name(), "inconclusive");
    evidence.without = None;
    assert_eq!(judged(TaskIntent::Repair, &evidence).name(), "inconclusive");
}

#[test]
fn a_change_with_nothing_to_show_for_it_is_inconclusive() {
    let mut evidence = mended();
    evidence.before = ran(&["a"], &[]);
    evidence.after = ran(&["a"], &[]);
    evidence.without = Some(ran(&["a"], &[]));
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
    evidence.before = TestRunAttempt::NoTests;
    evidence.after = TestRunAttempt::NoTests;
    evidence.without = None;
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
}

#[test]
fn an_acceptance_command_proves_by_failing_before() {
    let mut evidence = mended();
    evidence.before = TestRunAttempt::NoTests;
    evidence.after = TestRunAttempt::NoTests;
    evidence.without = None;
    evidence.accepted = vec![accepted(false, true)];
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "pass");
    evidence.accepted = vec![accepted(true, true)];
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
    evidence.accepted = vec![accepted(false, false)];
    assert_eq!(
        class(&judged(TaskIntent::Change, &evidence)),
        Some(AttemptFailureClass::Acceptance)
    );
}

#[test]
fn a_new_test_of_the_change_that_fails_is_never_a_pass() {
    let mut evidence = mended();
    evidence.accepted = vec![accepted(false, true)];
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "pass");
    evidence.after = ran(&["a", "b"], &["new"]);
    for intent in [TaskIntent::Repair, TaskIntent::Change] {
        let RunVerdict::Fail { class, named, .. } = judged(intent, &evidence) else {
            panic!("{:?}", judged(intent, &evidence));
        };
        assert_eq!(
            (class, named),
            (AttemptFailureClass::TestFail, vec!["new".into()])
        );
    }
    // The same where it stands in a file that was there before.
    evidence.after = ran(&["a", "b"], &[]);
    evidence.as_is = Some(ran(&["a", "b"], &["new"]));
    evidence.touched_tests = vec!["test_a.py".to_owned()];
    for intent in [TaskIntent::Repair, TaskIntent::Change] {
        let verdict = judged(intent, &evidence);
        assert_eq!(
            class(&verdict),
            Some(AttemptFailureClass::TestFail),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_new_test_in_an_existing_file_proves_the_code_it_needs() {
    let mut evidence = VerificationEvidence {
        before: ran(&["a"], &[]),
        after: ran(&["a"], &[]),
        without: Some(ran(&["a"], &[])),
        as_is: Some(ran(&["a", "new"], &[])),
        tests_alone: Some(ran(&["a"], &["new"])),
        touched_tests: vec!["test_a.py".to_owned()],
        changed_files: 2,
        ..VerificationEvidence::default()
    };
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "pass");
    evidence.tests_alone = Some(ran(&["a", "new"], &[]));
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
    evidence.tests_alone = None;
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
}

#[test]
fn a_change_that_old_tests_contradict_needs_a_person() {
    let mut evidence = mended();
    evidence.before = ran(&["a", "b"], &[]);
    evidence.after = ran(&["a"], &["b"]);
    evidence.as_is = Some(ran(&["a", "b"], &[]));
    evidence.touched_tests = vec!["test_a.py".to_owned()];
    evidence.accepted = vec![accepted(false, true)];
    let verdict = judged(TaskIntent::Change, &evidence);
    assert_eq!(verdict.name(), "inconclusive");
    assert!(verdict.why().contains("needs a person"), "{verdict:?}");
    // Where it breaks something else too, that comes first.
    evidence.after = ran(&[], &["a", "b"]);
    evidence.as_is = Some(ran(&["b"], &["a"]));
    assert_eq!(
        class(&judged(TaskIntent::Change, &evidence)),
        Some(AttemptFailureClass::TestFail)
    );
}

#[test]
fn what_failed_before_is_not_held_against_a_change() {
    let evidence = VerificationEvidence {
        before: ran(&["a"], &["net"]),
        after: ran(&["a"], &["net", "lib"]),
        without: Some(ran(&["a"], &["net", "lib"])),
        given: vec!["lib".to_owned()],
        accepted: vec![accepted(false, true)],
        changed_files: 1,
        ..VerificationEvidence::default()
    };
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "pass");
    assert_eq!(TestComparison::of(&evidence).still_failing, ["lib", "net"]);
}

#[test]
fn some_of_several_failing_tests_is_unverified_and_a_named_one_is_enough() {
    let mut evidence = mended();
    evidence.before = ran(&["a"], &["b", "net"]);
    evidence.after = ran(&["a", "b"], &["net"]);
    evidence.without = Some(ran(&["a"], &["b", "net"]));
    let verdict = judged(TaskIntent::Repair, &evidence);
    assert_eq!(verdict.name(), "inconclusive");
    assert!(verdict.why().contains("1 of 2"), "{verdict:?}");
    assert_eq!(judge(&set(&["b"]), &evidence).name(), "pass");
    assert_eq!(judge(&set(&["net"]), &evidence).name(), "inconclusive");
}

#[test]
fn a_file_that_failed_as_a_whole_is_mended_by_its_tests() {
    let mut evidence = mended();
    evidence.before = ran(&["a"], &["t.py"]);
    evidence.after = ran(&["a", "t.py::x"], &[]);
    evidence.without = Some(ran(&["a"], &["t.py"]));
    assert_eq!(judged(TaskIntent::Repair, &evidence).name(), "pass");
    // One of them fails: it did before, with its file.
    evidence.after = ran(&["a", "t.py::x"], &["t.py::y"]);
    assert_eq!(judged(TaskIntent::Repair, &evidence).name(), "inconclusive");
    assert!(TestComparison::of(&evidence).new_failing.is_empty());
}

#[test]
fn time_that_ran_out_is_no_failing_test() {
    let mut evidence = mended();
    evidence.after = TestRunAttempt::OutOfTime(60_000);
    let verdict = judged(TaskIntent::Repair, &evidence);
    assert_eq!(verdict.name(), "inconclusive");
    assert!(verdict.why().contains("60 s"), "{verdict:?}");
}

/// The nearest tests showed enough, and no other was run.
fn cut_short(first: NearestTestsResult) -> VerificationEvidence {
    VerificationEvidence {
        after: TestRunAttempt::NotRun,
        without: None,
        first: Some(first),
        ..mended()
    }
}

#[test]
fn a_test_nearby_that_fails_is_a_failure_and_one_that_passes_is_nothing() {
    let first = |with, without| NearestTestsResult {
        picked: set(&["a", "b"]),
        with,
        without,
        enough: true,
    };
    // What failed still fails.
    let still = cut_short(first(ran(&["a"], &["b"]), None));
    let verdict = judged(TaskIntent::Repair, &still);
    assert_eq!(
        verdict.why(),
        "1 of the 2 tests nearest to the change fail; the others were not run"
    );
    // It is no worse than before, and worth another try.
    assert_eq!(verdict.name(), "inconclusive");
    assert_eq!(
        still_to_mend(&goal(TaskIntent::Repair, &still), &still),
        ["b"]
    );
    assert_eq!(judged(TaskIntent::Change, &still).name(), "inconclusive");
    // What passed fails, and passes without the change.
    let broken = cut_short(first(ran(&["b"], &["a"]), Some(ran(&["a"], &["b"]))));
    for intent in [TaskIntent::Repair, TaskIntent::Change] {
        let verdict = judged(intent, &broken);
        assert_eq!(class(&verdict), Some(AttemptFailureClass::TestFail));
    }
    // It fails alone whether the change is there or not.
    let alone = cut_short(first(ran(&["b"], &["a"]), Some(ran(&["b"], &["a"]))));
    assert_eq!(judged(TaskIntent::Repair, &alone).name(), "inconclusive");
    let all_well = cut_short(first(ran(&["a", "b"], &[]), None));
    assert_eq!(judged(TaskIntent::Repair, &all_well).name(), "inconclusive");
}

fn results() -> impl Strategy<Value = ProjectTestResults> {
    let ids = || proptest::collection::btree_set("[a-f]", 0..5);
    (ids(), ids(), ids()).prop_map(|(passing, failing, flaky)| ProjectTestResults {
        failing: &failing - &passing,
        flaky: &(&flaky - &passing) - &failing,
        passing,
        skipped: BTreeSet::new(),
    })
}

fn evidence() -> impl Strategy<Value = VerificationEvidence> {
    let looked = || {
        prop_oneof![
            6 => results().prop_map(TestRunAttempt::Ran),
            1 => Just(TestRunAttempt::NoTests),
            1 => Just(TestRunAttempt::NotRun),
        ]
    };
    let maybe = || proptest::option::of(looked());
    let picked = proptest::collection::btree_set("[a-f]", 0..5);
    let first =
        (picked, looked(), maybe(), any::<bool>()).prop_map(|(picked, with, without, enough)| {
            NearestTestsResult {
                picked,
                with,
                without,
                enough,
            }
        });
    let first = proptest::option::of(first);
    let commands = proptest::collection::vec(any::<(bool, bool)>(), 0..2);
    let given = proptest::collection::vec("[a-f]", 0..2);
    let tests = (looked(), looked(), maybe(), maybe(), maybe());
    (tests, 0..3_usize, first, commands, given).prop_map(
        |((before, after, as_is, without, tests_alone), changed_files, first, commands, given)| {
            let commands = commands.into_iter();
            VerificationEvidence {
                before,
                after,
                as_is,
                without,
                tests_alone,
                accepted: commands.map(|(was, is)| accepted(was, is)).collect(),
                changed_files,
                first,
                given,
                ..VerificationEvidence::default()
            }
        },
    )
}

#[test]
fn a_given_failure_that_passes_without_the_change_proves_nothing() {
    let evidence = VerificationEvidence {
        before: ran(&["a", "b"], &[]),
        given: vec!["b".to_owned()],
        ..mended()
    };
    assert_eq!(judged(TaskIntent::Change, &evidence).name(), "inconclusive");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// More broken tests never make a verdict better.
    #[test]
    fn breaking_another_test_never_makes_a_pass(
        evidence in evidence(), repair: bool, name in "[g-k]",
    ) {
        let intent = if repair { TaskIntent::Repair } else { TaskIntent::Change };
        let mut worse = evidence;
        let TestRunAttempt::Ran(before) = &mut worse.before else { return Ok(()) };
        before.passing.insert(name.clone());
        if let TestRunAttempt::Ran(after) = &mut worse.after {
            after.failing.insert(name);
        }
        prop_assert_ne!(judged(intent, &worse).name(), "pass");
    }

    /// What the nearest tests say, and which were picked, never makes a pass: all tests ran, and
    /// passed without having been picked too.
    #[test]
    fn a_first_look_never_makes_a_pass(evidence in evidence(), repair: bool) {
        let intent = if repair { TaskIntent::Repair } else { TaskIntent::Change };
        if judged(intent, &evidence).name() == "pass" {
            prop_assert_ne!(&evidence.after, &TestRunAttempt::NotRun);
            let mut unpicked = evidence;
            unpicked.first = None;
            prop_assert_eq!(judged(intent, &unpicked).name(), "pass");
        }
    }

    /// A pass always rests on something that did not succeed before.
    #[test]
    fn a_pass_has_evidence(evidence in evidence(), repair: bool) {
        let intent = if repair { TaskIntent::Repair } else { TaskIntent::Change };
        if judged(intent, &evidence).name() == "pass" {
            prop_assert!(evidence.changed_files > 0);
            let before = evidence.before.results().cloned().unwrap_or_default();
            let after = evidence.after.results().cloned().unwrap_or_default();
            let as_is = evidence.as_is.as_ref().and_then(TestRunAttempt::results);
            let passing = after.passing.iter().chain(as_is.iter().flat_map(|all| &all.passing));
            let new = passing.filter(|id| !before.passing.contains(*id)).count();
            let commands = evidence.accepted.iter().filter(|one| one.after && !one.before).count();
            prop_assert!(new + commands > 0);
            prop_assert!(evidence.accepted.iter().all(|one| one.after));
            prop_assert!(before.passing.iter().all(|id| after.passing.contains(id)));
        }
    }

    /// Whatever else speaks for a change, a test that fails with it and did not before is no pass:
    /// an old one, a new one, or one that only the change's own versions of tests show.
    #[test]
    fn a_newly_failing_test_is_never_a_pass(
        evidence in evidence(), repair: bool, name in "[g-k]", own: bool, flaky: bool,
    ) {
        let intent = if repair { TaskIntent::Repair } else { TaskIntent::Change };
        let mut worse = evidence;
        let place = if own { worse.as_is.as_mut() } else { Some(&mut worse.after) };
        let Some(TestRunAttempt::Ran(results)) = place else { return Ok(()) };
        if flaky {
            results.flaky.insert(name);
        } else {
            results.failing.insert(name);
        }
        prop_assert_ne!(judged(intent, &worse).name(), "pass");
    }

    /// A change that makes no difference is neither right nor wrong.
    #[test]
    fn the_same_with_and_without_it_is_inconclusive(
        results in results(), repair: bool, commands: bool,
    ) {
        let intent = if repair { TaskIntent::Repair } else { TaskIntent::Change };
        let same = TestRunAttempt::Ran(results);
        let evidence = VerificationEvidence {
            before: same.clone(),
            after: same.clone(),
            without: Some(same),
            accepted: if commands { vec![accepted(true, true)] } else { Vec::new() },
            changed_files: 1,
            ..VerificationEvidence::default()
        };
        prop_assert_eq!(judged(intent, &evidence).name(), "inconclusive");
    }

    /// A smaller goal is never harder to reach.
    #[test]
    fn a_part_of_the_goal_is_reached_with_all_of_it(evidence in evidence(), skip in 0..5_usize) {
        let all = goal(TaskIntent::Repair, &evidence);
        let part: GoalTests = all.iter().skip(skip).cloned().collect();
        if !part.is_empty() && judge(&all, &evidence).name() == "pass" {
            prop_assert_eq!(judge(&part, &evidence).name(), "pass");
        }
    }
}
