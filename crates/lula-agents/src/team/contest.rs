//! Several candidates for one task, and which of them is taken. Pure: who tries, what came back,
//! what comes next, who won and why.
//!
//! The order: tests, then confidence, then the smaller change. The contest node gives each
//! candidate a model or a temperature of its own, and stops the others as soon as one is proven by
//! tests, unless that one is more likely to be turned down than kept. What is taken is judged once
//! more in the run's own workspace; the reason is an event.

use std::cmp::Reverse;

use lula_protocol::{BudgetAmounts, RunExit, RunId};
use serde::{Deserialize, Serialize};

use crate::agent_pool::AgentResult;
use crate::plan::StepId;

/// Least candidates that make a choice.
pub const FEWEST: u32 = 2;
/// Most candidates at once.
pub const MOST: u32 = 5;
/// From here on, in thousandths, a change is likelier kept than not.
const LIKELY: u32 = 500;

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateOutcome {
    /// Its agent is at work.
    Running,
    /// Its agent was stopped: another one was proven.
    Dismissed,
    /// Tests show that it is right.
    Proven,
    /// Nothing shows whether it is right.
    Unproven,
    /// It came to nothing.
    Failed,
}

impl CandidateOutcome {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Dismissed => "dismissed",
            Self::Proven => "proven",
            Self::Unproven => "unproven",
            Self::Failed => "failed",
        }
    }
}

/// How far a candidate is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum CandidateStanding {
    /// An agent works on it.
    AtWork,
    /// Its agent is done.
    Back { returned: Box<AgentResult> },
    /// It was stopped: another one was proven first.
    Dismissed,
}

/// What a candidate that came back is worth, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateWorth {
    /// Nothing that could be taken.
    Failed,
    /// A change that nothing speaks against, and nothing for.
    Unproven,
    /// Tests or commands show that it is right.
    Proven,
}

/// A candidate: an agent that tries the whole task on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContestCandidate {
    pub id: StepId,
    /// The run in which it tries.
    pub run: RunId,
    /// The model it asks.
    pub model: String,
    /// How freely that answers, in hundredths.
    pub temperature_percent: u32,
    /// Why this model was chosen for it.
    pub because: String,
    /// What it may spend.
    pub limits: BudgetAmounts,
    /// How far it is.
    pub standing: CandidateStanding,
}

impl ContestCandidate {
    fn returned(&self) -> Option<&AgentResult> {
        match &self.standing {
            CandidateStanding::Back { returned } => Some(returned),
            CandidateStanding::AtWork | CandidateStanding::Dismissed => None,
        }
    }

    fn worth(&self) -> CandidateWorth {
        let changed = |back: &&AgentResult| back.tree.is_some() && !back.files.is_empty();
        match self.returned().filter(changed).map(|back| back.exit) {
            Some(RunExit::Verified) => CandidateWorth::Proven,
            Some(RunExit::Inconclusive) => CandidateWorth::Unproven,
            _ => CandidateWorth::Failed,
        }
    }

    fn confidence(&self) -> Option<u32> {
        let returned = self.returned()?;
        returned.confidence.as_ref().map(|sure| sure.permille)
    }

    /// Whether no other candidate has to go on: tests show that it is right, and it is not likelier turned
    /// down than kept.
    fn settles_it(&self) -> bool {
        self.worth() == CandidateWorth::Proven
            && self.confidence().is_none_or(|sure| sure >= LIKELY)
    }

    /// What became of it.
    pub fn outcome(&self) -> CandidateOutcome {
        match (&self.standing, self.worth()) {
            (CandidateStanding::AtWork, _) => CandidateOutcome::Running,
            (CandidateStanding::Dismissed, _) => CandidateOutcome::Dismissed,
            (CandidateStanding::Back { .. }, CandidateWorth::Proven) => CandidateOutcome::Proven,
            (CandidateStanding::Back { .. }, CandidateWorth::Unproven) => {
                CandidateOutcome::Unproven
            }
            (CandidateStanding::Back { .. }, CandidateWorth::Failed) => CandidateOutcome::Failed,
        }
    }

    /// What it says of itself, where it came back.
    pub fn summary(&self) -> &str {
        self.returned().map_or("", |back| back.summary.as_str())
    }

    /// What it came back with, where it did.
    pub fn back(&self) -> Option<&AgentResult> {
        self.returned()
    }
}

/// Who was taken, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContestDecision {
    /// Which one; `None` where no candidate can be taken.
    pub id: Option<StepId>,
    pub because: String,
}

/// What the contest does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContestMove {
    /// Wait for one of these.
    Wait(Vec<RunId>),
    /// One is proven: these are stopped.
    Dismiss(Vec<RunId>),
    /// Every candidate is back or was stopped.
    Decide,
}

/// Several candidates for one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateContest {
    pub rivals: Vec<ContestCandidate>,
    /// Who was taken, as soon as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<ContestDecision>,
}

impl CandidateContest {
    /// The name of a candidate, from 1.
    pub fn name(number: usize) -> Result<StepId, String> {
        StepId::new(&format!("candidate-{number}"))
    }

    /// The runs of candidates that are still at work.
    pub fn at_work(&self) -> Vec<RunId> {
        let working = |rival: &&ContestCandidate| rival.standing == CandidateStanding::AtWork;
        let working = self.rivals.iter().filter(working);
        working.map(|rival| rival.run.clone()).collect()
    }

    /// What those who work may still spend.
    pub fn outstanding(&self) -> BudgetAmounts {
        let mut sum = BudgetAmounts::none();
        let working = |rival: &&ContestCandidate| rival.standing == CandidateStanding::AtWork;
        for rival in self.rivals.iter().filter(working) {
            for (dimension, amount) in rival.limits.iter() {
                let held = sum.0.entry(dimension).or_default();
                *held = held.saturating_add(amount);
            }
        }
        sum
    }

    pub fn next(&self) -> ContestMove {
        let working = self.at_work();
        if working.is_empty() {
            ContestMove::Decide
        } else if self.rivals.iter().any(ContestCandidate::settles_it) {
            ContestMove::Dismiss(working)
        } else {
            ContestMove::Wait(working)
        }
    }

    /// An agent came back.
    pub fn came_back(&mut self, returned: &AgentResult) {
        self.settle(&returned.run, &|| CandidateStanding::Back {
            returned: Box::new(returned.clone()),
        });
    }

    /// Every candidate that was still at work was stopped.
    pub fn dismissed(&mut self) {
        for run in self.at_work() {
            self.settle(&run, &|| CandidateStanding::Dismissed);
        }
    }

    fn settle(&mut self, run: &RunId, to: &dyn Fn() -> CandidateStanding) {
        let mut working = self.rivals.iter_mut();
        if let Some(rival) =
            working.find(|rival| rival.run == *run && rival.standing == CandidateStanding::AtWork)
        {
            rival.standing = to();
        }
    }

    /// Who is taken: by tests, then by confidence, then the smaller change, then the one asked
    /// first.
    pub fn decide(&self) -> ContestDecision {
        let rank = |rival: &ContestCandidate| {
            let lines = rival.returned().map_or(0, |back| back.lines);
            (rival.worth(), rival.confidence(), Reverse(lines))
        };
        let mut field: Vec<&ContestCandidate> = self
            .rivals
            .iter()
            .filter(|rival| rival.worth() > CandidateWorth::Failed)
            .collect();
        // Stable: equals stay in the order they were asked.
        field.sort_by_key(|rival| Reverse(rank(rival)));
        let Some(first) = field.first() else {
            return ContestDecision {
                id: None,
                because: self.failures(),
            };
        };
        ContestDecision {
            id: Some(first.id.clone()),
            because: why(first, field.get(1).copied()),
        }
    }

    fn failures(&self) -> String {
        let told = self.rivals.iter().map(|rival| {
            let said = rival.summary();
            let said = if said.is_empty() {
                rival.outcome().word()
            } else {
                said
            };
            format!("{} ({}): {said}", rival.id, rival.model)
        });
        let told: Vec<String> = told.collect();
        format!(
            "none of {} candidates can be taken; {}",
            self.rivals.len(),
            told.join("; ")
        )
    }
}

/// Why the first is taken and not the second.
fn why(first: &ContestCandidate, second: Option<&ContestCandidate>) -> String {
    let lines = |rival: &ContestCandidate| rival.returned().map_or(0, |back| back.lines);
    let Some(second) = second else {
        return match first.worth() {
            CandidateWorth::Proven => "the only one that tests show to be right".to_owned(),
            _ => "the only one with a change that nothing speaks against".to_owned(),
        };
    };
    if first.worth() > second.worth() {
        return format!("tests show that it is right, and not so of {}", second.id);
    }
    let shown = match first.worth() {
        CandidateWorth::Proven => "tests show that it is right",
        _ => "nothing speaks against it",
    };
    if first.confidence() != second.confidence() {
        let permille = |rival: &ContestCandidate| rival.confidence().unwrap_or_default();
        return format!(
            "{shown}, and it is the surest: 0.{:03} against 0.{:03} of {}",
            permille(first).min(999),
            permille(second).min(999),
            second.id
        );
    }
    if lines(first) < lines(second) {
        return format!(
            "{shown}, and it is the smallest: {} lines against {} of {}",
            lines(first),
            lines(second),
            second.id
        );
    }
    format!("{shown}, and it was asked before {}, its equal", second.id)
}

#[cfg(test)]
mod tests {
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
    fn one_that_is_proven_stops_the_others_and_one_that_will_be_turned_down_does_not() {
        let mut contest = contest(3);
        contest.came_back(&back(1, RunExit::Failed, None, 1));
        assert!(matches!(contest.next(), ContestMove::Wait(runs) if runs.len() == 2));
        let mut doubtful = contest.clone();
        doubtful.came_back(&back(2, RunExit::Verified, Some(LIKELY - 1), 1));
        assert!(matches!(doubtful.next(), ContestMove::Wait(runs) if runs.len() == 1));
        contest.came_back(&back(2, RunExit::Verified, Some(LIKELY), 1));
        assert!(matches!(contest.next(), ContestMove::Dismiss(runs) if runs.len() == 1));
        contest.dismissed();
        assert_eq!(contest.next(), ContestMove::Decide);
        assert_eq!(contest.rivals[2].outcome().word(), "dismissed");
    }

    proptest! {
        /// Whatever comes back in whatever order: it ends, and the one taken is at least as well
        /// shown to be right as every other.
        #[test]
        fn a_contest_ends_with_the_best(
            field in proptest::collection::vec((0..3_u8, proptest::option::of(0..1000_u32), 0..50_u64), 2..6),
        ) {
            let mut contest = contest(field.len());
            let mut steps = 0;
            for (index, (exit, sure, lines)) in field.iter().enumerate() {
                let exit = [RunExit::Failed, RunExit::Inconclusive, RunExit::Verified][usize::from(*exit)];
                match contest.next() {
                    ContestMove::Decide => break,
                    ContestMove::Dismiss(_) => contest.dismissed(),
                    ContestMove::Wait(_) => contest.came_back(&back(index + 1, exit, *sure, *lines)),
                }
                steps += 1;
            }
            prop_assert!(steps <= field.len());
            if !matches!(contest.next(), ContestMove::Decide) {
                contest.dismissed();
            }
            let decided = contest.decide();
            let best = contest.rivals.iter().map(ContestCandidate::worth).max().unwrap();
            match decided.id {
                None => prop_assert_eq!(best, CandidateWorth::Failed),
                Some(id) => {
                    let taken = contest.rivals.iter().find(|rival| rival.id == id).unwrap();
                    prop_assert_eq!(taken.worth(), best);
                    prop_assert!(!decided.because.is_empty());
                }
            }
        }
    }
}
