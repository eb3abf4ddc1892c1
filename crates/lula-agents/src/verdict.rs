//! Whether a change does what it should. Pure: results of tests in, verdict out. No evidence, no
//! pass, whatever anybody says.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use lula_repair::trial::{Accepted, Evidence, FirstLook, Looked, Results};

use crate::recover::FailureClass;
use crate::task::Intent;

/// The judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// It does what it should, and there is evidence.
    Pass {
        /// What shows it.
        why: String,
    },
    /// It does not.
    Fail {
        /// In which way.
        class: FailureClass,
        /// What shows it.
        why: String,
        /// The tests or files that show it.
        named: Vec<String>,
    },
    /// Nothing shows that it does, and nothing that it does not.
    Inconclusive {
        /// What is missing.
        why: String,
    },
}

impl Verdict {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass { .. } => "pass",
            Self::Fail { .. } => "fail",
            Self::Inconclusive { .. } => "inconclusive",
        }
    }

    /// Its reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Pass { why } | Self::Fail { why, .. } | Self::Inconclusive { why } => why,
        }
    }
}

fn fail(class: FailureClass, why: impl Into<String>, named: Vec<String>) -> Verdict {
    Verdict::Fail {
        class,
        why: why.into(),
        named,
    }
}

/// Judges a change.
pub fn judge(intent: Intent, evidence: &Evidence) -> Verdict {
    if evidence.changed_files == 0 {
        return fail(FailureClass::NoChange, "nothing was changed", Vec::new());
    }
    let ended_early = evidence.first.as_ref().is_some_and(|first| first.enough);
    if ended_early || evidence.after == Looked::NotRun {
        return early(intent, evidence);
    }
    let before = match &evidence.before.plain() {
        Looked::CannotRun(why) if intent == Intent::Repair => {
            return Verdict::Inconclusive {
                why: format!("the tests could not be run before the change: {why}"),
            };
        }
        looked => looked.results().cloned().unwrap_or_default(),
    };
    let after = match &evidence.after.plain() {
        Looked::Ran(results) => results.clone(),
        Looked::NotRun | Looked::EnvironmentBroken(_) => return early(intent, evidence),
        Looked::NoTests if before.is_empty() => Results::default(),
        Looked::CannotRun(why) if before.is_empty() => {
            return Verdict::Inconclusive {
                why: format!("the tests cannot be run: {why}"),
            };
        }
        Looked::NoTests => {
            return fail(
                FailureClass::TestTampering,
                "no test is left that could be run",
                before.passing.into_iter().collect(),
            );
        }
        Looked::CannotRun(why) => {
            let why = format!("the tests no longer run: {why}");
            return fail(FailureClass::TestFail, why, Vec::new());
        }
    };
    let broken: Vec<String> = before
        .passing
        .iter()
        .filter(|id| !after.passing.contains(*id) && !after.flaky.contains(*id))
        .cloned()
        .collect();
    let required: BTreeSet<&String> = match intent {
        Intent::Repair => before.failing.iter().collect(),
        Intent::Change => BTreeSet::new(),
    };
    let still: Vec<String> = required
        .iter()
        .filter(|id| !after.passing.contains(**id))
        .map(|id| (*id).clone())
        .collect();
    if let Some(tampered) = tampering(evidence, &broken, &still) {
        return tampered;
    }
    if !broken.is_empty() {
        let gone = broken.iter().filter(|id| !after.knows(id)).count();
        let why = if gone == broken.len() {
            format!("{gone} tests that passed are no longer run")
        } else {
            format!("{} tests that passed no longer do", broken.len())
        };
        return fail(FailureClass::TestFail, why, broken);
    }
    if !still.is_empty() {
        let why = format!(
            "{} of {} failing tests still fail",
            still.len(),
            required.len()
        );
        return fail(FailureClass::TestFail, why, still);
    }
    for accepted in &evidence.accepted {
        if accepted.timed_out {
            return Verdict::Inconclusive {
                why: format!("{:?} did not end in time", accepted.command),
            };
        }
        if !accepted.after {
            let why = format!(
                "{:?} does not succeed: {}",
                accepted.command, accepted.output
            );
            return fail(
                FailureClass::Acceptance,
                why,
                vec![accepted.command.clone()],
            );
        }
    }
    proof(intent, evidence, &before, &after)
}

/// Judges by the tests nearest to the change alone. They can show that it fails, never that it does
/// not.
fn early(intent: Intent, evidence: &Evidence) -> Verdict {
    let before = evidence.before.results().cloned().unwrap_or_default();
    let matters = |id: &&String| intent == Intent::Repair || before.passing.contains(*id);
    let (shown, picked): (Vec<String>, usize) = match &evidence.first {
        Some(first) => (
            first.shown(&before).filter(matters).cloned().collect(),
            first.picked.len(),
        ),
        None => (Vec::new(), 0),
    };
    if shown.is_empty() {
        return Verdict::Inconclusive {
            why: "not all tests were run, and those that were decide nothing".to_owned(),
        };
    }
    let why = format!(
        "{} of the {picked} tests nearest to the change fail; the others were not run",
        shown.len()
    );
    fail(FailureClass::TestFail, why, shown)
}

/// A change that passes with its own versions of tests and not with the ones that were there.
fn tampering(evidence: &Evidence, broken: &[String], still: &[String]) -> Option<Verdict> {
    let as_is = evidence.as_is.as_ref()?.results();
    let looks_good = |id: &String| as_is.is_none_or(|results| !results.failing.contains(id));
    let hidden: Vec<String> = broken
        .iter()
        .chain(still)
        .filter(|id| looks_good(id))
        .cloned()
        .collect();
    (!hidden.is_empty()).then(|| {
        let why = format!(
            "it passes only with its own versions of {}",
            evidence.touched_tests.join(", ")
        );
        fail(FailureClass::TestTampering, why, hidden)
    })
}

/// What shows that the task is done: a test or command that succeeds with the change and does not
/// without it.
fn proof(intent: Intent, evidence: &Evidence, before: &Results, after: &Results) -> Verdict {
    let without = evidence.without.as_ref().and_then(Looked::results);
    // Where the tests cannot even be run without the change, everything needs it.
    let needs_change = |id: &String| match &evidence.without {
        None => false,
        Some(Looked::CannotRun(_) | Looked::EnvironmentBroken(_)) => true,
        Some(_) => without.is_some_and(|results| !results.passing.contains(id)),
    };
    let fixed: Vec<&String> = before.failing.intersection(&after.passing).collect();
    let unproven = fixed.iter().filter(|id| !needs_change(id)).count();
    if intent == Intent::Repair {
        if fixed.is_empty() {
            return Verdict::Inconclusive {
                why: "no failing test was made to pass".to_owned(),
            };
        }
        if unproven > 0 {
            return Verdict::Inconclusive {
                why: format!("{unproven} of the mended tests pass without the change too"),
            };
        }
        let (mended, again) = match fixed.len() {
            1 => ("1 test that failed passes".to_owned(), "it fails"),
            more => (format!("{more} tests that failed pass"), "they fail"),
        };
        return Verdict::Pass {
            why: format!(
                "{mended} now, {} pass in all, and without the change {again} again",
                after.passing.len()
            ),
        };
    }
    let accepted = evidence.accepted.iter().filter(|one| !one.before).count();
    let new = after.passing.iter().filter(|id| !before.knows(id));
    let new = new.filter(|id| needs_change(id)).count();
    let mended = fixed.len() - unproven;
    if accepted + new + mended == 0 {
        let why = if evidence.accepted.is_empty() {
            "no test and no acceptance command shows that the task is done: give one with --accept"
        } else {
            "the acceptance commands succeeded before the change too"
        };
        return Verdict::Inconclusive {
            why: why.to_owned(),
        };
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
    Verdict::Pass {
        why: format!("{}; no test that passed was lost", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ran(passing: &[&str], failing: &[&str]) -> Looked {
        Looked::Ran(Results {
            passing: set(passing),
            failing: set(failing),
            ..Results::default()
        })
    }

    fn mended() -> Evidence {
        Evidence {
            before: ran(&["a"], &["b"]),
            after: ran(&["a", "b"], &[]),
            as_is: None,
            without: Some(ran(&["a"], &["b"])),
            accepted: Vec::new(),
            touched_tests: Vec::new(),
            changed_files: 1,
            first: None,
        }
    }

    fn class(verdict: &Verdict) -> Option<FailureClass> {
        match verdict {
            Verdict::Fail { class, .. } => Some(*class),
            _ => None,
        }
    }

    #[test]
    fn a_mended_test_that_fails_again_without_the_change_is_a_pass() {
        assert_eq!(judge(Intent::Repair, &mended()).name(), "pass");
    }

    #[test]
    fn no_change_is_never_a_pass() {
        let mut evidence = mended();
        evidence.changed_files = 0;
        for intent in [Intent::Repair, Intent::Change] {
            assert_eq!(
                class(&judge(intent, &evidence)),
                Some(FailureClass::NoChange)
            );
        }
    }

    #[test]
    fn a_lost_test_fails_a_change_that_mends_another() {
        let mut evidence = mended();
        evidence.after = ran(&["b"], &[]);
        assert_eq!(
            class(&judge(Intent::Repair, &evidence)),
            Some(FailureClass::TestFail)
        );
    }

    #[test]
    fn passing_only_with_ones_own_tests_is_tampering() {
        let mut evidence = mended();
        evidence.after = ran(&["a"], &["b"]);
        evidence.as_is = Some(ran(&["a", "b"], &[]));
        evidence.touched_tests = vec!["test_a.py".to_owned()];
        assert_eq!(
            class(&judge(Intent::Repair, &evidence)),
            Some(FailureClass::TestTampering)
        );
    }

    #[test]
    fn what_passes_without_the_change_proves_nothing() {
        let mut evidence = mended();
        evidence.without = Some(ran(&["a", "b"], &[]));
        assert_eq!(judge(Intent::Repair, &evidence).name(), "inconclusive");
        evidence.without = None;
        assert_eq!(judge(Intent::Repair, &evidence).name(), "inconclusive");
    }

    #[test]
    fn a_change_with_nothing_to_show_for_it_is_inconclusive() {
        let mut evidence = mended();
        evidence.before = ran(&["a"], &[]);
        evidence.after = ran(&["a"], &[]);
        evidence.without = Some(ran(&["a"], &[]));
        assert_eq!(judge(Intent::Change, &evidence).name(), "inconclusive");
        evidence.before = Looked::NoTests;
        evidence.after = Looked::NoTests;
        evidence.without = None;
        assert_eq!(judge(Intent::Change, &evidence).name(), "inconclusive");
    }

    #[test]
    fn an_acceptance_command_proves_by_failing_before() {
        let mut evidence = mended();
        evidence.before = Looked::NoTests;
        evidence.after = Looked::NoTests;
        evidence.without = None;
        let accepted = |before, after| Accepted {
            command: "make check".to_owned(),
            before,
            after,
            timed_out: false,
            output: String::new(),
        };
        evidence.accepted = vec![accepted(false, true)];
        assert_eq!(judge(Intent::Change, &evidence).name(), "pass");
        evidence.accepted = vec![accepted(true, true)];
        assert_eq!(judge(Intent::Change, &evidence).name(), "inconclusive");
        evidence.accepted = vec![accepted(false, false)];
        assert_eq!(
            class(&judge(Intent::Change, &evidence)),
            Some(FailureClass::Acceptance)
        );
    }

    /// The nearest tests showed enough, and no other was run.
    fn cut_short(first: FirstLook) -> Evidence {
        Evidence {
            after: Looked::NotRun,
            without: None,
            first: Some(first),
            ..mended()
        }
    }

    #[test]
    fn a_test_nearby_that_fails_is_a_failure_and_one_that_passes_is_nothing() {
        let first = |with, without| FirstLook {
            picked: set(&["a", "b"]),
            with,
            without,
            enough: true,
        };
        // What failed still fails.
        let still = cut_short(first(ran(&["a"], &["b"]), None));
        let verdict = judge(Intent::Repair, &still);
        assert_eq!(class(&verdict), Some(FailureClass::TestFail));
        assert_eq!(
            verdict.why(),
            "1 of the 2 tests nearest to the change fail; the others were not run"
        );
        assert_eq!(judge(Intent::Change, &still).name(), "inconclusive");
        // What passed fails, and passes without the change.
        let broken = cut_short(first(ran(&["b"], &["a"]), Some(ran(&["a"], &["b"]))));
        for intent in [Intent::Repair, Intent::Change] {
            let verdict = judge(intent, &broken);
            assert_eq!(class(&verdict), Some(FailureClass::TestFail));
        }
        // It fails alone whether the change is there or not.
        let alone = cut_short(first(ran(&["b"], &["a"]), Some(ran(&["b"], &["a"]))));
        assert_eq!(judge(Intent::Repair, &alone).name(), "inconclusive");
        let all_well = cut_short(first(ran(&["a", "b"], &[]), None));
        assert_eq!(judge(Intent::Repair, &all_well).name(), "inconclusive");
    }

    fn results() -> impl Strategy<Value = Results> {
        let ids = || proptest::collection::btree_set("[a-f]", 0..5);
        (ids(), ids(), ids()).prop_map(|(passing, failing, flaky)| Results {
            failing: &failing - &passing,
            flaky: &(&flaky - &passing) - &failing,
            passing,
            skipped: BTreeSet::new(),
        })
    }

    fn evidence() -> impl Strategy<Value = Evidence> {
        let looked = || {
            prop_oneof![
                6 => results().prop_map(Looked::Ran),
                1 => Just(Looked::NoTests),
                1 => Just(Looked::NotRun),
            ]
        };
        let maybe = || proptest::option::of(looked());
        let picked = proptest::collection::btree_set("[a-f]", 0..5);
        let first = (picked, looked(), maybe(), any::<bool>()).prop_map(
            |(picked, with, without, enough)| FirstLook {
                picked,
                with,
                without,
                enough,
            },
        );
        let first = proptest::option::of(first);
        (looked(), looked(), maybe(), maybe(), 0..3_usize, first).prop_map(
            |(before, after, as_is, without, changed_files, first)| Evidence {
                before,
                after,
                as_is,
                without,
                accepted: Vec::new(),
                touched_tests: Vec::new(),
                changed_files,
                first,
            },
        )
    }

    proptest! {
        /// More broken tests never make a verdict better.
        #[test]
        fn breaking_another_test_never_makes_a_pass(
            evidence in evidence(), repair: bool, name in "[g-k]",
        ) {
            let intent = if repair { Intent::Repair } else { Intent::Change };
            let mut worse = evidence;
            let Looked::Ran(before) = &mut worse.before else { return Ok(()) };
            before.passing.insert(name.clone());
            if let Looked::Ran(after) = &mut worse.after {
                after.failing.insert(name);
            }
            prop_assert_ne!(judge(intent, &worse).name(), "pass");
        }

        /// What the nearest tests say, and which were picked, never makes a pass: all tests ran, and
        /// passed without having been picked too.
        #[test]
        fn a_first_look_never_makes_a_pass(evidence in evidence(), repair: bool) {
            let intent = if repair { Intent::Repair } else { Intent::Change };
            if judge(intent, &evidence).name() == "pass" {
                prop_assert!(evidence.after.results().is_some());
                let mut unpicked = evidence;
                unpicked.first = None;
                prop_assert_eq!(judge(intent, &unpicked).name(), "pass");
            }
        }

        /// A pass always rests on something that did not succeed before.
        #[test]
        fn a_pass_has_evidence(evidence in evidence(), repair: bool) {
            let intent = if repair { Intent::Repair } else { Intent::Change };
            if judge(intent, &evidence).name() == "pass" {
                prop_assert!(evidence.changed_files > 0);
                let before = evidence.before.results().cloned().unwrap_or_default();
                let after = evidence.after.results().cloned().unwrap_or_default();
                prop_assert!(after.passing.iter().any(|id| !before.passing.contains(id)));
                prop_assert!(before.passing.iter()
                    .all(|id| after.passing.contains(id) || after.flaky.contains(id)));
            }
        }
    }
}
