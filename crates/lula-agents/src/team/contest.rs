//! Several candidates for one task, and which of them is taken. Pure: who tries, what came back,
//! what comes next, who won and why.
//!
//! The order: tests, then how many of the others' new tests pass, then confidence, then the smaller
//! change. The contest node gives each candidate a model or a temperature of its own and waits for
//! all of them: the first that passes is not yet the best, since one that comes later may bring a
//! test that the first does not pass. Then the new tests of each are run with the code of each
//! other. What is taken is judged once more in the run's own workspace; the reason is an event.

mod others;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lula_protocol::{BudgetAmounts, RunExit, RunId};
use serde::{Deserialize, Serialize};

pub use others::{ContestTrial, OthersTests};

use crate::agent_pool::AgentResult;
use crate::plan::StepId;

/// Least candidates that make a choice.
pub const FEWEST: u32 = 2;
/// Most candidates at once.
pub const MOST: u32 = 5;
/// Most tests that are named in a sentence.
const NAMED: usize = 3;

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

    /// The tests that it brings along, where it could be taken.
    pub fn new_tests(&self) -> &[String] {
        let taken = self.worth() > CandidateWorth::Failed;
        let returned = self.returned().filter(|_| taken);
        returned.map_or(&[], |back| back.new_tests.as_slice())
    }

    /// Whether its agent is at work.
    pub fn is_at_work(&self) -> bool {
        self.standing == CandidateStanding::AtWork
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
    /// Every candidate is back: run the tests of some with the code of others.
    Compare(Vec<ContestTrial>),
    /// Nothing is left to be found out.
    Decide,
}

/// Several candidates for one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateContest {
    pub rivals: Vec<ContestCandidate>,
    /// How each does in the tests of the others, once those were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<BTreeMap<StepId, OthersTests>>,
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
        let working = self.rivals.iter().filter(|rival| rival.is_at_work());
        working.map(|rival| rival.run.clone()).collect()
    }

    /// What those who work may still spend.
    pub fn outstanding(&self) -> BudgetAmounts {
        let mut sum = BudgetAmounts::none();
        for rival in self.rivals.iter().filter(|rival| rival.is_at_work()) {
            for (dimension, amount) in rival.limits.iter() {
                let held = sum.0.entry(dimension).or_default();
                *held = held.saturating_add(amount);
            }
        }
        sum
    }

    pub fn next(&self) -> ContestMove {
        let working = self.at_work();
        if !working.is_empty() {
            return ContestMove::Wait(working);
        }
        let trials = self.trials();
        if self.others.is_some() || trials.is_empty() {
            ContestMove::Decide
        } else {
            ContestMove::Compare(trials)
        }
    }

    /// The new tests of each that could be taken, with the code of each other that could.
    fn trials(&self) -> Vec<ContestTrial> {
        let mut trials = Vec::new();
        let field = || {
            let rivals = self.rivals.iter();
            rivals.filter(|rival| rival.worth() > CandidateWorth::Failed)
        };
        for code in field() {
            let others = field().filter(|other| other.id != code.id);
            for tests in others.filter(|other| !other.new_tests().is_empty()) {
                trials.push(ContestTrial {
                    code: code.id.clone(),
                    tests: tests.id.clone(),
                });
            }
        }
        trials
    }

    /// A candidate by its name.
    pub fn rival(&self, id: &StepId) -> Option<&ContestCandidate> {
        self.rivals.iter().find(|rival| rival.id == *id)
    }

    /// How a candidate does in the tests of the others.
    pub fn in_tests_of_others(&self, id: &StepId) -> OthersTests {
        let known = self.others.as_ref().and_then(|others| others.get(id));
        known.cloned().unwrap_or_default()
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
        if let Some(rival) = working.find(|rival| rival.run == *run && rival.is_at_work()) {
            rival.standing = to();
        }
    }

    /// Who is taken: by tests, then by the tests of the others, then by confidence, then the smaller
    /// change, then the one asked first.
    pub fn decide(&self) -> ContestDecision {
        let rank = |rival: &ContestCandidate| {
            let lines = rival.returned().map_or(0, |back| back.lines);
            let others = self.in_tests_of_others(&rival.id).permille();
            (rival.worth(), others, rival.confidence(), Reverse(lines))
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
            because: self.why(first, field.get(1).copied()),
        }
    }

    /// Why the first is taken and not the second.
    fn why(&self, first: &ContestCandidate, second: Option<&ContestCandidate>) -> String {
        if let Some(second) = second
            && first.worth() == second.worth()
        {
            let (own, theirs) = [first, second]
                .map(|rival| self.in_tests_of_others(&rival.id))
                .into();
            if own.permille() > theirs.permille() {
                let shown: Vec<&str> = theirs
                    .failing
                    .iter()
                    .take(NAMED)
                    .map(String::as_str)
                    .collect();
                return format!(
                    "it does best in the new tests of the others: {} passes only {} of them, and \
                     not {}",
                    second.id,
                    theirs.told(),
                    shown.join(", ")
                );
            }
        }
        why(first, second)
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
mod tests;
