//! Test suites that can be run, watched line by line and asked about candidate patches.

mod broken;
mod cargo;
mod node;
mod process;
mod python;
mod reporter;

use std::collections::HashMap;
use std::time::{Duration, Instant};

pub use process::WHOLE;
pub(crate) use python::{Python, home as home_of_module};

use crate::detect::{Framework, TestsFound};
pub(crate) use broken::{Manifest, missing_modules};

use crate::environment::{BrokenEnvironment, CodeOrigin};
use crate::ground::{Fork, Ground, GroundError};
use crate::locate::{Kinds, LinesOfTest};
use crate::patches::Edit;
use crate::report::{Outcome, TestCase, TestReport};

/// Why a suite gave no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    /// The ground failed.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The framework is not there.
    #[error("{framework} cannot be run: {reason}")]
    Absent {
        /// What was looked for.
        framework: String,
        /// What was tried.
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
pub(crate) struct Trial {
    pub(crate) index: usize,
    /// New and old text of each file it changes.
    pub(crate) files: Vec<Change>,
}

/// A file before and after.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) edits: Vec<Edit>,
}

/// What the tests said of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
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
pub(crate) struct Goal {
    pub(crate) failing: Vec<String>,
    pub(crate) passing: Vec<String>,
    /// How long one candidate may take.
    pub(crate) patience: Duration,
    /// When the budget is spent, whatever is under way.
    pub(crate) end: Instant,
}

impl Goal {
    /// A deadline that does not outlive the budget.
    pub(crate) fn at_most(&self, wanted: Duration) -> Duration {
        wanted.min(self.end.saturating_duration_since(Instant::now()))
    }

    /// Judges by tests that ran.
    pub(crate) fn verdict(&self, index: usize, tests: &[TestCase]) -> Verdict {
        self.judge(
            index,
            tests.iter().map(|test| (test.id.as_str(), test.outcome)),
        )
    }

    /// Judges by the outcomes of a whole run, or of the part of it that was needed.
    pub(crate) fn judge<'a>(
        &self,
        index: usize,
        outcomes: impl Iterator<Item = (&'a str, Outcome)>,
    ) -> Verdict {
        self.judge_part(index, outcomes, None)
    }

    /// Judges by tests that fail and some of those that pass, which are numbered.
    pub(crate) fn judge_part<'a>(
        &self,
        index: usize,
        outcomes: impl Iterator<Item = (&'a str, Outcome)>,
        needed: Option<&[usize]>,
    ) -> Verdict {
        let outcomes: HashMap<&str, Outcome> = outcomes.collect();
        let passed = |id: &String| outcomes.get(id.as_str()) == Some(&Outcome::Passed);
        // A file that could not be read is mended when its tests run and none of them fails.
        let readable = |id: &String| {
            let below = [format!("{id}::"), format!("{id}.")];
            let mut inside = outcomes
                .iter()
                .filter(|(test, _)| below.iter().any(|start| test.starts_with(start)))
                .peekable();
            !outcomes.contains_key(id.as_str())
                && inside.peek().is_some()
                && inside.all(|(_, outcome)| matches!(outcome, Outcome::Passed | Outcome::Skipped))
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
                Some(Outcome::Failed | Outcome::Broken)
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
        Verdict {
            index,
            passes: fixed.len() == self.failing.len() && kept,
            fixed,
            broke,
        }
    }
}

/// A suite of tests.
pub(crate) trait Suite: Send + Sync {
    /// Runs everything once.
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError>;

    /// Runs at least these tests once more, and maybe others beside them.
    fn run_again(
        &self,
        fork: &mut dyn Fork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let _ = tests;
        self.run(fork, deadline)
    }

    /// The lines that each test executes; none where that cannot be found out.
    fn cover(
        &self,
        fork: &mut dyn Fork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>>;

    /// What variables were seen to hold, once lines were covered.
    fn kinds(&self) -> Kinds {
        Kinds::default()
    }

    /// Judges candidates in their order, as many as there is time for and until `heard` has heard
    /// enough. Nothing that a candidate's tests leave behind may reach another's: each gets a
    /// workspace of its own inside `fork`, or a fork of the ground.
    fn judge(
        &self,
        ground: &dyn Ground,
        fork: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
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
    fn runs(&self, test: &str, files: &[Change]) -> Option<bool> {
        let _ = (test, files);
        None
    }

    /// What runs the tests, with its version and place.
    fn interpreter(&self) -> Option<String> {
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
    tests: &TestsFound,
    fork: &mut dyn Fork,
    test_limit: Duration,
) -> Result<Box<dyn Suite>, SuiteError> {
    match tests.framework {
        Framework::Pytest | Framework::Unittest | Framework::PlainPython => {
            Ok(Box::new(Python::open(tests, fork, test_limit)?))
        }

        Framework::CargoTest => Ok(Box::new(cargo::Cargo::open(tests, test_limit))),
        // Below the top, its own files are named from elsewhere than the sources.
        Framework::NodeTest if tests.folder.is_empty() => {
            Ok(Box::new(node::Node::open(tests, test_limit)?))
        }
        _ => Ok(Box::new(process::Process::open(tests, fork))),
    }
}

/// Judges each candidate in a fork of the ground that is made for it and thrown away.
fn apart(
    ground: &dyn Ground,
    batch: &[Trial],
    until: Instant,
    heard: &mut dyn FnMut(Verdict) -> bool,
    judge: &mut dyn FnMut(&mut dyn Fork, &Trial) -> Result<Verdict, SuiteError>,
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
