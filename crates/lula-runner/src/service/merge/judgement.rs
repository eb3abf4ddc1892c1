//! What the tests of merged files say about a merge, beside those of the branch before it.

use std::collections::BTreeSet;
use std::time::Duration;

use lula_repair::trial::{ProjectTestResults, TestBaseline, TestRunAttempt};

use super::NAMED;

/// What tests after a merge say beside those before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergeTestVerdict {
    /// Nothing worse; the results, where there are some.
    Fine(Option<Box<ProjectTestResults>>),
    /// Tests fail that did not before, or a command does.
    Worse { failing: Vec<String>, why: String },
    /// It cannot be told, with the reason.
    Unclear(String),
}

/// What passed must pass, and what was not known before must not fail. Pure.
pub(super) fn compare(before: &TestBaseline, after: &TestBaseline) -> MergeTestVerdict {
    let known = before.looked.results().cloned().unwrap_or_default();
    let mut now = match &after.looked.plain() {
        TestRunAttempt::Ran(results) => results.clone(),
        TestRunAttempt::NoTests if known.passing.is_empty() => return MergeTestVerdict::Fine(None),
        TestRunAttempt::NoTests => {
            return MergeTestVerdict::Worse {
                failing: known.passing.into_iter().take(NAMED).collect(),
                why: "no test is left that could be run".to_owned(),
            };
        }
        TestRunAttempt::OutOfTime(ms) => {
            let within = Duration::from_millis(*ms);
            return MergeTestVerdict::Unclear(format!(
                "the tests of the merged files did not end in {within:?}"
            ));
        }
        TestRunAttempt::NotRun | TestRunAttempt::EnvironmentBroken(_) => {
            return MergeTestVerdict::Unclear("the tests were not run".to_owned());
        }
        TestRunAttempt::CannotRun(_)
            if matches!(before.looked.plain(), TestRunAttempt::CannotRun(_)) =>
        {
            return MergeTestVerdict::Fine(None);
        }
        TestRunAttempt::CannotRun(why) if known.passing.is_empty() => {
            return MergeTestVerdict::Unclear(format!(
                "the tests of the merged files cannot be run: {why}"
            ));
        }
        TestRunAttempt::CannotRun(why) => {
            return MergeTestVerdict::Worse {
                failing: Vec::new(),
                why: format!("the tests no longer run: {why}"),
            };
        }
    };
    // Not installed is not passed either.
    now.failing.extend(after.unfixable.iter().cloned());
    let excused: BTreeSet<&String> = known
        .failing
        .iter()
        .chain(&known.flaky)
        .chain(&before.unfixable)
        .collect();
    let lost = known
        .passing
        .iter()
        .filter(|id| !now.passing.contains(*id) && !now.flaky.contains(*id));
    let broken: BTreeSet<String> = lost
        .chain(now.failing.iter().filter(|id| !excused.contains(id)))
        .cloned()
        .collect();
    if broken.is_empty() {
        return MergeTestVerdict::Fine(Some(Box::new(now)));
    }
    MergeTestVerdict::Worse {
        why: match broken.len() {
            1 => "1 test fails, or is gone, in the merged files".to_owned(),
            many => format!("{many} tests fail, or are gone, in the merged files"),
        },
        failing: broken.into_iter().take(NAMED).collect(),
    }
}

/// Which of the tests that stand against a merge show nothing of it: those that pass when the same files
/// are tested again, and those that passed before and do not without the change either. Pure.
pub(super) fn flaky(
    failing: &[String],
    before: &TestBaseline,
    again: &TestBaseline,
    without: &TestBaseline,
) -> FlakyTests {
    let set = |baseline: &TestBaseline| baseline.looked.results().cloned().unwrap_or_default();
    let (before, again, without) = (set(before), set(again), set(without));
    let comes = |id: &&String| again.passing.contains(*id) || again.flaky.contains(*id);
    let goes = |id: &&String| {
        before.passing.contains(*id)
            && (without.failing.contains(*id) || without.flaky.contains(*id))
    };
    FlakyTests {
        without_change: failing.iter().filter(goes).cloned().collect(),
        with_change: failing
            .iter()
            .filter(|id| comes(id) && !goes(id))
            .cloned()
            .collect(),
    }
}

/// Tests that fail now and then.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FlakyTests {
    /// So they do without the change: it has no part in it.
    pub(super) without_change: BTreeSet<String>,
    /// They were seen to with the change alone.
    pub(super) with_change: BTreeSet<String>,
}

impl FlakyTests {
    pub(super) fn all(&self) -> BTreeSet<String> {
        &self.without_change | &self.with_change
    }
}

/// The same, with some tests as flaky ones, whatever they did there.
pub(super) fn with_flaky(baseline: &TestBaseline, flaky: &BTreeSet<String>) -> TestBaseline {
    let mut baseline = baseline.clone();
    if let TestRunAttempt::Ran(results) = &mut baseline.looked {
        for set in [&mut results.passing, &mut results.failing] {
            set.retain(|id| !flaky.contains(id));
        }
        results.flaky.extend(flaky.iter().cloned());
    }
    baseline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(passing: &[&str], failing: &[&str]) -> TestBaseline {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                passing: set(passing),
                failing: set(failing),
                ..ProjectTestResults::default()
            }),
            ..TestBaseline::default()
        }
    }

    fn unable(why: &str) -> TestBaseline {
        TestBaseline {
            looked: TestRunAttempt::CannotRun(why.to_owned()),
            ..said(&[], &[])
        }
    }

    fn worse(before: &TestBaseline, after: &TestBaseline) -> Vec<String> {
        match compare(before, after) {
            MergeTestVerdict::Worse { failing, .. } => failing,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_passed_must_pass_and_what_is_new_must_not_fail() {
        let before = said(&["a", "b"], &["old"]);
        let fine = compare(&before, &said(&["a", "b", "new"], &["old"]));
        assert!(matches!(fine, MergeTestVerdict::Fine(Some(_))), "{fine:?}");
        assert_eq!(worse(&before, &said(&["a"], &["b", "old"])), ["b"]);
        assert_eq!(worse(&before, &said(&["a"], &[])), ["b"], "gone is no pass");
        assert_eq!(worse(&before, &said(&["a", "b"], &["new"])), ["new"]);
    }

    #[test]
    fn no_evidence_is_no_pass() {
        let before = said(&["a"], &[]);
        let none = TestBaseline {
            looked: TestRunAttempt::NoTests,
            ..said(&[], &[])
        };
        assert_eq!(worse(&before, &none), ["a"]);
        assert!(matches!(
            compare(&before, &unable("x")),
            MergeTestVerdict::Worse { .. }
        ));
        assert!(matches!(
            compare(&none, &unable("x")),
            MergeTestVerdict::Unclear(_)
        ));
        assert_eq!(
            compare(&unable("x"), &unable("x")),
            MergeTestVerdict::Fine(None)
        );
        assert_eq!(worse(&unable("x"), &said(&[], &["a"])), ["a"]);
    }

    #[test]
    fn a_test_that_fails_without_the_change_or_passes_again_with_it_is_flaky() {
        let before = said(&["a", "b", "c"], &[]);
        let failing = ["a", "b", "c", "new"].map(str::to_owned);
        let again = said(&["b", "new"], &["a", "c"]);
        let found = flaky(&failing, &before, &again, &said(&["b", "c"], &["a"]));
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(found.without_change, set(&["a"]));
        assert_eq!(found.with_change, set(&["b", "new"]));
        let now = said(&[], &["a", "b", "c", "new"]);
        let excused = found.all();
        let left = compare(&with_flaky(&before, &excused), &with_flaky(&now, &excused));
        let MergeTestVerdict::Worse { failing, .. } = left else {
            panic!("{left:?}");
        };
        assert_eq!(
            failing,
            ["c"],
            "what fails each time, and only with the change"
        );
    }

    #[test]
    fn a_test_that_is_gone_is_not_flaky() {
        let before = said(&["a"], &[]);
        let none = said(&[], &[]);
        let found = flaky(&["a".to_owned()], &before, &none, &none);
        assert_eq!(found, FlakyTests::default());
    }
}
