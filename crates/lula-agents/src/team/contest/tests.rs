//! Who is taken of several that try the same, whatever comes back of them.

use super::*;
use crate::guidelines::{ChangeConfidence, ConfidenceFeatures, FEATURES};
use proptest::prelude::*;

fn rival(number: usize) -> ContestCandidate {
    ContestCandidate {
        id: CandidateContest::name(number).unwrap(),
        run: RunId::from_parts(number as u64, [0; 10]),
        model: format!("m{number}"),
        temperature_percent: 0,
        because: String::new(),
        limits: BudgetAmounts::none(),
        standing: CandidateStanding::AtWork,
    }
}

fn contest(count: usize) -> CandidateContest {
    CandidateContest {
        rivals: (1..=count).map(rival).collect(),
        others: None,
        decided: None,
    }
}

fn back(number: usize, exit: RunExit, sure: Option<u32>, lines: u64) -> AgentResult {
    AgentResult {
        run: RunId::from_parts(number as u64, [0; 10]),
        exit,
        summary: format!("said {number}"),
        by: format!("m{number}"),
        said: String::new(),
        files: vec!["a.py".to_owned()],
        diff: String::new(),
        lines,
        outline: String::new(),
        new_tests: Vec::new(),
        tree: Some(lula_protocol::Digest::of_bytes(b"tree")),
        answer: None,
        confidence: sure.map(|permille| ChangeConfidence {
            permille,
            deviation: 100,
            labels: 0,
            features: ConfidenceFeatures::new([0.0; FEATURES]),
            second_look: false,
        }),
        spent: BudgetAmounts::none(),
    }
}

fn decided(backs: &[AgentResult]) -> ContestDecision {
    let mut contest = contest(backs.len());
    for back in backs {
        contest.came_back(back);
    }
    contest.decide()
}

fn winner(backs: &[AgentResult]) -> (String, String) {
    let decided = decided(backs);
    (decided.id.unwrap().to_string(), decided.because)
}

#[test]
fn tests_come_before_confidence_and_that_before_size() {
    use RunExit::{Failed, Inconclusive, Verified};
    let unsure = back(1, Verified, Some(400), 90);
    let (id, why) = winner(&[unsure.clone(), back(2, Inconclusive, Some(990), 1)]);
    assert_eq!(id, "candidate-1", "{why}");
    let (id, why) = winner(&[unsure, back(2, Verified, Some(900), 200)]);
    assert!(id == "candidate-2" && why.contains("0.900"), "{id} {why}");
    let (id, why) = winner(&[back(1, Verified, None, 9), back(2, Verified, None, 3)]);
    assert!(id == "candidate-2" && why.contains("3 lines"), "{id} {why}");
    let (id, why) = winner(&[back(1, Failed, None, 1), back(2, Verified, None, 3)]);
    assert!(
        id == "candidate-2" && why.contains("only one"),
        "{id} {why}"
    );
}

#[test]
fn where_nobody_passes_nobody_is_taken_and_everybody_is_told_of() {
    let decided = decided(&[
        back(1, RunExit::Failed, None, 1),
        back(2, RunExit::Budget, None, 1),
    ]);
    assert_eq!(decided.id, None);
    assert!(
        decided.because.contains("said 1") && decided.because.contains("said 2"),
        "{}",
        decided.because
    );
    let mut nothing = back(1, RunExit::Verified, None, 0);
    nothing.files.clear();
    assert_eq!(self::decided(&[nothing]).id, None, "no change, no winner");
}

#[test]
fn one_that_is_proven_waits_for_the_others() {
    let mut contest = contest(3);
    contest.came_back(&back(1, RunExit::Failed, None, 1));
    contest.came_back(&back(2, RunExit::Verified, Some(999), 1));
    assert!(matches!(contest.next(), ContestMove::Wait(runs) if runs.len() == 1));
    contest.came_back(&back(3, RunExit::Verified, Some(400), 1));
    assert_eq!(contest.next(), ContestMove::Decide, "none brings a test");
}

#[test]
fn the_tests_of_the_others_come_before_confidence_and_size() {
    let mut contest = contest(3);
    contest.came_back(&back(1, RunExit::Verified, Some(990), 2));
    let mut later = back(2, RunExit::Verified, Some(600), 30);
    later.new_tests = vec!["test_edge".to_owned()];
    contest.came_back(&later);
    let mut failed = back(3, RunExit::Failed, None, 1);
    failed.new_tests = vec!["test_nonsense".to_owned()];
    contest.came_back(&failed);
    let ContestMove::Compare(trials) = contest.next() else {
        panic!("{:?}", contest.next());
    };
    // What came to nothing is neither tried nor believed.
    let [trial] = &trials[..] else {
        panic!("{trials:?}");
    };
    assert_eq!(trial.code.as_str(), "candidate-1");
    assert_eq!(trial.tests.as_str(), "candidate-2");
    let mut seen = OthersTests::default();
    seen.add(&later.new_tests, &|_| false);
    contest.others = Some([(trial.code.clone(), seen)].into());
    assert_eq!(contest.next(), ContestMove::Decide);
    let decided = contest.decide();
    assert_eq!(decided.id.unwrap().as_str(), "candidate-2");
    assert!(decided.because.contains("test_edge"), "{}", decided.because);
}

proptest! {
    /// Whatever comes back in whatever order: it ends, and the one taken is at least as well
    /// shown to be right as every other.
    #[test]
    fn a_contest_ends_with_the_best(
        field in proptest::collection::vec(
            (0..3_u8, proptest::option::of(0..1000_u32), 0..50_u64, 0..3_u8, any::<u8>()),
            2..6,
        ),
    ) {
        let mut contest = contest(field.len());
        for (index, (exit, sure, lines, tests, _)) in field.iter().enumerate() {
            let waits = matches!(contest.next(), ContestMove::Wait(_));
            prop_assert!(waits, "all of them finish");
            let exit = [RunExit::Failed, RunExit::Inconclusive, RunExit::Verified][usize::from(*exit)];
            let mut back = back(index + 1, exit, *sure, *lines);
            back.new_tests = (0..*tests).map(|test| format!("t{index}_{test}")).collect();
            contest.came_back(&back);
        }
        if let ContestMove::Compare(trials) = contest.next() {
            let mut others: BTreeMap<StepId, OthersTests> = BTreeMap::new();
            for trial in trials {
                let tests = contest.rival(&trial.tests).unwrap().new_tests().to_vec();
                let number = contest.rivals.iter().position(|one| one.id == trial.code).unwrap();
                let luck = field[number].4;
                others.entry(trial.code).or_default().add(&tests, &|test| {
                    test.len() % 2 == usize::from(luck % 2)
                });
            }
            contest.others = Some(others);
        }
        prop_assert_eq!(contest.next(), ContestMove::Decide);
        let decided = contest.decide();
        let best = contest.rivals.iter().map(ContestCandidate::worth).max().unwrap();
        match decided.id {
            None => prop_assert_eq!(best, CandidateWorth::Failed),
            Some(id) => {
                let taken = contest.rival(&id).unwrap();
                prop_assert_eq!(taken.worth(), best);
                prop_assert!(!decided.because.is_empty());
                let share = contest.in_tests_of_others(&id).permille();
                for other in contest.rivals.iter().filter(|other| other.worth() == best) {
                    prop_assert!(contest.in_tests_of_others(&other.id).permille() <= share);
                }
            }
        }
    }
}
