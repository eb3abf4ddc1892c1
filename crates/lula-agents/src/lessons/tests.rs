use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::recovery::{AttemptFailure, AttemptFailureClass};
use crate::task::RunTask;
use crate::work::CodingState;

const REPOSITORY: &str = "/r";
const DAY_MS: u64 = 24 * 3_600_000;

fn failed(class: AttemptFailureClass, test: &str, evidence: &str) -> AttemptFailure {
    AttemptFailure::new(class, evidence, &[test.to_owned()], "a/model")
}

fn past(number: u64, failures: &[AttemptFailure]) -> RunLessonHistory {
    RunLessonHistory {
        run: RunId::from_parts(number, [0; 10]),
        at_ms: number,
        failures: failures.iter().map(|one| (7, one.clone())).collect(),
        recalled: None,
        verified: Some(true),
    }
}

fn pool(runs: &[RunLessonHistory]) -> Vec<LessonRecord> {
    derive(REPOSITORY, runs, &BTreeSet::new(), 0)
}

#[test]
fn only_what_tests_showed_teaches_and_the_same_failure_is_one_lesson() {
    let seen = failed(
        AttemptFailureClass::TestFail,
        "test_a",
        "1 test still fails",
    );
    let again = failed(
        AttemptFailureClass::TestFail,
        "test_a",
        "it still fails, otherwise",
    );
    let words = failed(AttemptFailureClass::Malformed, "x", "not an edit");
    let silent = failed(AttemptFailureClass::Acceptance, "make", " ");
    let lessons = pool(&[past(1, &[seen, words]), past(2, &[again, silent])]);
    let [record] = &lessons[..] else {
        panic!("{lessons:?}");
    };
    assert!(record.lesson.text.contains("otherwise"));
    assert_eq!(record.lesson.evidence.len(), 2);
    assert_eq!(record.lesson.evidence[0].event, 7);
    assert_eq!(record.lesson.author, "a/model");
}

#[test]
fn lessons_of_another_repository_have_other_names() {
    let seen = [past(1, &[failed(AttemptFailureClass::TestFail, "t", "x")])];
    let other = derive("/other", &seen, &BTreeSet::new(), 0);
    assert_ne!(pool(&seen)[0].lesson.id, other[0].lesson.id);
}

#[test]
fn what_is_forgotten_old_or_harmful_is_not_shown() {
    let seen = past(1, &[failed(AttemptFailureClass::TestFail, "t", "x")]);
    let id = pool(std::slice::from_ref(&seen))[0].lesson.id.clone();
    let forgotten: BTreeSet<String> = [id.clone()].into();
    assert!(derive(REPOSITORY, std::slice::from_ref(&seen), &forgotten, 0).is_empty());
    let old = derive(
        REPOSITORY,
        std::slice::from_ref(&seen),
        &BTreeSet::new(),
        91 * DAY_MS,
    );
    assert_eq!(old[0].retired, Some("expired"));

    let used = |number: u64, shown: bool, verified: bool| RunLessonHistory {
        recalled: Some(LessonSelection {
            shown: if shown { vec![id.clone()] } else { Vec::new() },
            held_back: if shown { Vec::new() } else { vec![id.clone()] },
        }),
        verified: Some(verified),
        ..past(number, &[])
    };
    let mut runs = vec![seen];
    runs.extend((2..21).map(|number| used(number, true, number % 2 == 0)));
    runs.push(used(30, false, true));
    let early = pool(&runs);
    assert_eq!((early[0].lesson.uses, early[0].retired), (19, None));
    runs.push(used(31, true, false));
    let late = pool(&runs);
    assert_eq!(late[0].lesson.uplift(), Some(-500));
    assert!(late[0].retired.is_some());
}

fn work(lessons: &[Lesson], dice: impl Fn(usize) -> u8) -> CodingState {
    CodingState::begin(RunTask {
        lessons: LessonView::new(lessons, dice),
        ..RunTask::new("fix the failing tests of the parser", REPOSITORY)
    })
}

#[test]
fn the_failure_at_hand_comes_first_and_held_back_ones_are_not_shown() {
    let lessons: Vec<Lesson> = pool(&[past(
        1,
        &[
            failed(
                AttemptFailureClass::TestFail,
                "test_parser",
                "the parser loses a comma",
            ),
            failed(
                AttemptFailureClass::TestFail,
                "test_same",
                "unlike in every word",
            ),
            failed(
                AttemptFailureClass::TestFail,
                "test_cart",
                "nothing alike here",
            ),
        ],
    )])
    .into_iter()
    .map(|record| record.lesson)
    .collect();
    let named = |word: &str| lessons.iter().find(|one| one.text.contains(word)).unwrap();
    let mut all = work(&lessons, |_| 255);
    all.failures
        .push(failed(AttemptFailureClass::TestFail, "test_same", ""));
    let recalled = recall(&all);
    assert_eq!(
        recalled.shown[..2],
        [named("unlike").id.clone(), named("comma").id.clone()]
    );
    assert!(!recalled.shown.contains(&named("nothing").id));
    all.recalled = Some(recalled);
    assert!(fenced(&all).contains("loses a comma"));

    let mut none = work(&lessons, |_| 0);
    let recalled = recall(&none);
    assert!(recalled.shown.is_empty() && !recalled.held_back.is_empty());
    none.recalled = Some(recalled);
    assert_eq!(fenced(&none), "");
}

proptest! {
    /// Whatever a failure said, its lesson is short and stays inside its fence.
    #[test]
    fn a_lesson_is_bounded_and_fenced(evidence in "(?s).{1,900}", named in "[a-z]{1,9}") {
        let runs = [past(1, &[failed(AttemptFailureClass::TestFail, &named, &evidence)])];
        for record in pool(&runs) {
            prop_assert!(record.lesson.text.chars().count() <= LONGEST);
            prop_assert!(!record.lesson.text.contains('\n'));
            let mut work = work(std::slice::from_ref(&record.lesson), |_| 255);
            work.recalled = Some(LessonSelection { shown: vec![record.lesson.id], held_back: Vec::new() });
            let text = fenced(&work);
            prop_assert_eq!(text.matches('<').count(), 2, "{}", text);
        }
    }
}
