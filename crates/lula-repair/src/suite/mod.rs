//! Test suites that can be run, watched line by line and asked about candidate patches.
//!
//! No candidate meets what another one left behind. Python candidates stand at the project's own
//! path, one after the other, and what their tests changed is put back from memory that no test can
//! reach. JavaScript candidates get a tree of their own inside the lane's sandbox. A command of
//! another framework runs in a fork made for one candidate. Rust candidates share a build and so a
//! place: what the tests of one changed in the tree is put back before the next runs. The patch
//! that is shown was proved again in a fresh fork, with the framework's own runner. No command's
//! deadline lies beyond the budget.

mod broken;
mod cargo;
mod node;
mod process;
mod python;
mod reporter;
mod script;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

pub use process::WHOLE;
pub(crate) use python::{PythonSuite, home as home_of_module};

use crate::detect::{DetectedTests, TestFramework};
pub(crate) use broken::{ProjectFolderFiles, SuiteCommandAttempt, missing_modules, not_installed};

use crate::environment::{BrokenEnvironment, CodeOrigin};
use crate::ground::{ForkSource, ForkSourceError, ProjectFork};
use crate::locate::{LinesOfTest, TypesByVariable};
use crate::patches::ByteRangeEdit;
use crate::renamed::renamed;
use crate::report::{TestCase, TestOutcome, TestReport};

/// Why a suite gave no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    /// A fork could not be used.
    #[error(transparent)]
    Ground(#[from] ForkSourceError),
    /// The framework is not there.
    #[error("{framework} cannot be run: {reason}")]
    Absent {
        /// What was looked for.
        framework: String,
        /// What was tried to find it.
        reason: String,
    },
    /// What it needs is not there.
    #[error("{0}")]
    EnvironmentBroken(Box<BrokenEnvironment>),
    /// It was ended before it reported anything.
    #[error("the tests did not end in time")]
    OutOfTime,
    /// It ran and reported nothing.
    #[error("the tests gave no results: {0}")]
    NoResults(String),
}

/// One candidate to be judged.
#[derive(Debug, Clone)]
pub(crate) struct CandidateTrial {
    pub(crate) index: usize,
    /// New and old text of each file it changes.
    pub(crate) files: Vec<SuiteFileChange>,
}

/// A file before and after.
#[derive(Debug, Clone)]
pub(crate) struct SuiteFileChange {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) edits: Vec<ByteRangeEdit>,
}

/// What the tests said of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CandidateVerdict {
    pub(crate) index: usize,
    /// Failing tests that now pass.
    pub(crate) fixed: Vec<String>,
    /// Whether every failing test passes and no other test broke.
    pub(crate) passes: bool,
    /// Whether a test that passed before was seen to break.
    pub(crate) broke: bool,
}

/// What a patch must achieve and must keep.
#[derive(Debug, Clone)]
pub(crate) struct RepairGoal {
    pub(crate) failing: Vec<String>,
    pub(crate) passing: Vec<String>,
    /// How long one candidate may take.
    pub(crate) patience: Duration,
    /// When the budget is spent, whatever is under way.
    pub(crate) end: Instant,
}

impl RepairGoal {
    /// A deadline that does not outlive the budget.
    pub(crate) fn at_most(&self, wanted: Duration) -> Duration {
        wanted.min(self.end.saturating_duration_since(Instant::now()))
    }

    /// Judges by tests that ran.
    pub(crate) fn verdict(&self, index: usize, tests: &[TestCase]) -> CandidateVerdict {
        self.judge(
            index,
            tests.iter().map(|test| (test.id.as_str(), test.outcome)),
        )
    }

    /// Judges by the outcomes of a whole run, or of the part of it that was needed.
    pub(crate) fn judge<'a>(
        &self,
        index: usize,
        outcomes: impl Iterator<Item = (&'a str, TestOutcome)>,
    ) -> CandidateVerdict {
        self.judge_part(index, outcomes, None)
    }

    /// Judges by tests that fail and some of those that pass, which are numbered.
    pub(crate) fn judge_part<'a>(
        &self,
        index: usize,
        outcomes: impl Iterator<Item = (&'a str, TestOutcome)>,
        needed: Option<&[usize]>,
    ) -> CandidateVerdict {
        let mut outcomes: HashMap<&str, TestOutcome> = outcomes.collect();
        let all_there = || {
            self.passing
                .iter()
                .all(|id| outcomes.contains_key(id.as_str()))
        };
        if needed.is_none() && !all_there() {
            let known = self.passing.iter().chain(&self.failing);
            let known: HashSet<&str> = known.map(String::as_str).collect();
            let gone = self.passing.iter().map(String::as_str);
            let gone = gone.filter(|id| !outcomes.contains_key(id));
            let new = outcomes.keys().copied().filter(|id| !known.contains(id));
            let again: Vec<_> = renamed(gone, new)
                .into_iter()
                .filter_map(|(now, before)| Some((before, *outcomes.get(now)?)))
                .collect();
            outcomes.extend(again);
        }
        let passed = |id: &String| outcomes.get(id.as_str()) == Some(&TestOutcome::Passed);
        // A file that could not be read is mended when its tests run and none of them fails.
        let readable = |id: &String| {
            let below = [format!("{id}::"), format!("{id}.")];
            let mut inside = outcomes
                .iter()
                .filter(|(test, _)| below.iter().any(|start| test.starts_with(start)))
                .peekable();
            !outcomes.contains_key(id.as_str())
                && inside.peek().is_some()
                && inside.all(|(_, outcome)| {
                    matches!(outcome, TestOutcome::Passed | TestOutcome::Skipped)
                })
        };
        let fixed: Vec<String> = self
            .failing
            .iter()
            .filter(|id| passed(id) || readable(id))
            .cloned()
            .collect();
        let broke = self.passing.iter().any(|id| {
            matches!(
                outcomes.get(id.as_str()),
                Some(TestOutcome::Failed | TestOutcome::Broken)
            )
        });
        let kept = match needed {
            None => self.passing.iter().all(passed),
            Some(some) => {
                !broke
                    && some
                        .iter()
                        .filter_map(|&at| self.passing.get(at))
                        .all(passed)
            }
        };
        CandidateVerdict {
            index,
            passes: fixed.len() == self.failing.len() && kept,
            fixed,
            broke,
        }
    }
}

/// A suite of tests.
pub(crate) trait TestSuite: Send + Sync {
    /// Runs every test of the suite once.
    fn run(&self, fork: &mut dyn ProjectFork, deadline: Duration)
    -> Result<TestReport, SuiteError>;

    /// Runs at least these tests once more, and maybe others beside them.
    fn run_again(
        &self,
        fork: &mut dyn ProjectFork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let _ = tests;
        self.run(fork, deadline)
    }

    /// The lines that each test executes; none where that cannot be found out.
    fn cover(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>>;

    /// What variables were seen to hold, once lines were covered.
    fn kinds(&self) -> TypesByVariable {
        TypesByVariable::default()
    }

    /// Judges candidates in their order, as many as there is time for and until `heard` has heard
    /// enough. Nothing that a candidate's tests leave behind may reach another's: each gets a
    /// workspace of its own inside `fork`, or a fork of the ground.
    fn judge(
        &self,
        ground: &dyn ForkSource,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError>;

    /// How many candidates to hand over at once, at first and at most.
    fn batch(&self) -> (usize, usize);

    /// How long to work on one batch, so that a success elsewhere is heard of soon.
    fn spell(&self) -> Duration {
        Duration::from_millis(1200)
    }

    /// How many forks are worth working in at once.
    fn lanes(&self, wanted: usize) -> usize {
        wanted
    }

    /// Whether the fork that the tests first ran in is worth keeping for what they built there;
    /// otherwise candidates only ever meet forks in which nothing has run.
    fn keeps_builds(&self) -> bool {
        false
    }

    /// Whether a test runs a line that these changes touch; none where that is not known.
    fn runs(&self, test: &str, files: &[SuiteFileChange]) -> Option<bool> {
        let _ = (test, files);
        None
    }

    /// What runs the tests, with its version and place.
    fn interpreter(&self) -> Option<String> {
        None
    }

    /// The command as a developer would type it, where it is not the one that was detected.
    fn argv(&self) -> Option<Vec<String>> {
        None
    }

    /// Where the code that the tests exercised came from.
    fn origins(&self) -> Vec<CodeOrigin> {
        Vec::new()
    }

    /// Whether stack traces name the innermost place last.
    fn innermost_last(&self) -> bool {
        false
    }
}

/// Makes what was detected runnable.
pub(crate) fn open(
    tests: &DetectedTests,
    fork: &mut dyn ProjectFork,
    test_limit: Duration,
    searching: bool,
) -> Result<Box<dyn TestSuite>, SuiteError> {
    match tests.framework {
        TestFramework::Pytest | TestFramework::Unittest | TestFramework::PlainPython => {
            Ok(Box::new(PythonSuite::open(tests, fork, test_limit)?))
        }

        TestFramework::CargoTest => Ok(Box::new(cargo::CargoSuite::open(tests, test_limit))),
        // Below the top, its own files are named from elsewhere than the sources.
        TestFramework::NodeTest if tests.folder.is_empty() => {
            Ok(Box::new(node::NodeSuite::open(tests, test_limit)?))
        }
        _ => Ok(Box::new(process::ProcessSuite::open(
            tests, fork, searching,
        ))),
    }
}

/// Judges each candidate in a fork of the ground that is made for it and thrown away.
fn apart(
    ground: &dyn ForkSource,
    batch: &[CandidateTrial],
    until: Instant,
    heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    judge: &mut dyn FnMut(
        &mut dyn ProjectFork,
        &CandidateTrial,
    ) -> Result<CandidateVerdict, SuiteError>,
) -> Result<(), SuiteError> {
    for trial in batch {
        if Instant::now() >= until {
            break;
        }
        let mut fork = ground.fork()?;
        for change in &trial.files {
            fork.write(&change.path, change.new.as_bytes())?;
        }
        if !heard(judge(fork.as_mut(), trial)?) {
            break;
        }
    }
    Ok(())
}

/// A word that nothing printed by a test can be mistaken for.
pub(crate) fn nonce() -> String {
    use std::hash::{BuildHasher, Hasher};
    let word = || std::hash::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
