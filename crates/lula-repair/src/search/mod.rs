//! The search: what fails, where, what could mend it, what does.

mod doubt;
mod hunt;
mod proof;
mod queue;

use std::time::{Duration, Instant};

use crate::detect::{Detection, TestsFound, detect, from_command, is_foreign};
use crate::ground::{Fork, Ground, GroundError};
use crate::locate::{Clues, Heat, RecentChange, frames};
use crate::outcome::{Effort, RepairOutcome, RepairReport, Suspect, Tally};
use crate::patches::propose;
use crate::report::{Outcome, TestReport};
use crate::suite::{Goal, Suite, open};
use crate::syntax::{Language, Source, is_test_path};
use hunt::Hunt;

/// What to repair, and how much it may cost.
#[derive(Debug, Clone)]
pub struct RepairTask {
    /// The test command, where the user gave one.
    pub tests: Option<String>,
    /// When to stop.
    pub budget: Duration,
    /// Whether to look for every patch instead of stopping soon after the first.
    pub all: bool,
    /// How many forks to work in at once.
    pub lanes: usize,
    /// What changed lately.
    pub recent: Vec<RecentChange>,
}

impl Default for RepairTask {
    fn default() -> Self {
        Self {
            tests: None,
            budget: Duration::from_mins(2),
            all: false,
            lanes: 2,
            recent: Vec::new(),
        }
    }
}

/// What the search is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Tests are run to see what fails.
    RunningTests {
        /// The command a person would type.
        command: String,
    },
    /// This many fail.
    Failing {
        /// How many tests fail.
        failing: usize,
        /// How many pass.
        passing: usize,
    },
    /// Candidates are ready.
    Searching {
        /// How many there are.
        candidates: usize,
    },
    /// Candidates were judged.
    Tried {
        /// How many so far.
        tried: usize,
        /// How many passed so far.
        passing: usize,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The ground failed.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// No way to run tests was found.
    #[error("no tests were found; give the command that runs them with --tests")]
    NoTests,
    /// The tests cannot be run.
    #[error("the tests cannot be run ({})", .0.join("; "))]
    CannotRun(Vec<String>),
    /// The tests that fail do so only now and then.
    #[error("the failing tests pass when run again ({}); a flaky test proves no patch", .0.join(", "))]
    OnlyFlaky(Vec<String>),
    /// What fails lacks something that is not installed.
    #[error("the failing tests need something that is not installed: {0}")]
    NotInstalled(String),
    /// Nothing of the project is in a language that patches can be written in.
    #[error("no source file in Python, JavaScript, TypeScript or Rust was found to repair")]
    NoSources,
}

/// Looks for patches that make a project's failing tests pass.
///
/// Everything happens in forks of the ground; the project itself is never written to, and no test
/// is ever edited.
pub fn repair(
    ground: &dyn Ground,
    task: &RepairTask,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<RepairReport, RepairError> {
    let start = Instant::now();
    let until = start + task.budget;
    let mut fork = ground.fork()?;
    let files = fork.files()?;
    let detection = look(fork.as_ref(), &files);
    let base = Baseline::establish(fork.as_mut(), &detection, task, watch)?;
    let mut report = base.report();
    if base.failing.is_empty() && base.unfixable.is_empty() {
        if !base.flaky.is_empty() {
            return Err(RepairError::OnlyFlaky(base.flaky));
        }
        report.effort.total_ms = millis(start.elapsed());
        return Ok(report);
    }
    if base.failing.is_empty() {
        return Err(RepairError::NotInstalled(base.unfixable.join(", ")));
    }
    watch(Progress::Failing {
        failing: base.failing.len(),
        passing: base.passing.len(),
    });

    let sources = sources(fork.as_ref(), &files)?;
    let (heat, clues) = locate(&base, fork.as_mut(), &sources, task, until);
    report.suspects = heat
        .hottest(10)
        .into_iter()
        .map(|(path, line, suspicion)| Suspect {
            path,
            line,
            suspicion,
        })
        .collect();
    let candidates: Vec<_> = sources
        .iter()
        .flat_map(|source| propose(source, &heat, &clues))
        .collect();
    watch(Progress::Searching {
        candidates: candidates.len(),
    });

    let goal = base.goal();
    let hunt = Hunt {
        ground,
        suite: base.suite.as_ref(),
        goal: &goal,
        sources: &sources,
        clues: &clues,
        task,
        start,
        until,
        watch,
    };
    let (patches, effort) = hunt.run(fork, candidates)?;
    report.outcome = if patches.is_empty() {
        RepairOutcome::NotFound
    } else {
        RepairOutcome::Fixed
    };
    report.patches = patches;
    report.effort = Effort {
        total_ms: millis(start.elapsed()),
        ..effort
    };
    Ok(report)
}

/// Runs a project's tests once in a fork of its own.
pub fn run_tests(
    ground: &dyn Ground,
    tests: Option<&str>,
    deadline: Duration,
) -> Result<TestReport, RepairError> {
    let mut fork = ground.fork()?;
    let files = fork.files()?;
    let detection = look(fork.as_ref(), &files);
    let task = RepairTask {
        tests: tests.map(str::to_owned),
        budget: deadline,
        ..RepairTask::default()
    };
    let (_, _, report) = first_report(fork.as_mut(), &detection, &task, &|_| ())?;
    Ok(report)
}

/// What the tests of a project say, with what fails only now and then set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// How they were run.
    pub tests: TestsFound,
    /// Every test, as the first run saw it.
    pub report: TestReport,
    /// Tests that pass.
    pub passing: Vec<String>,
    /// Tests that fail every time.
    pub failing: Vec<String>,
    /// Tests that fail now and then.
    pub flaky: Vec<String>,
    /// Failing tests that no change of code can help, because something is not installed.
    pub unfixable: Vec<String>,
}

/// Runs the tests of a fork as it stands, and what fails again.
pub fn examine(
    fork: &mut dyn Fork,
    tests: Option<&str>,
    deadline: Duration,
) -> Result<Examined, RepairError> {
    let files = fork.files()?;
    let detection = look(fork, &files);
    let task = RepairTask {
        tests: tests.map(str::to_owned),
        budget: deadline,
        ..RepairTask::default()
    };
    let base = Baseline::establish(fork, &detection, &task, &|_| ())?;
    Ok(Examined {
        tests: base.tests,
        report: base.report,
        passing: base.passing,
        failing: base.failing,
        flaky: base.flaky,
        unfixable: base.unfixable,
    })
}

/// The first way of running the tests that gives results.
fn first_report(
    fork: &mut dyn Fork,
    detection: &Detection,
    task: &RepairTask,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<(Box<dyn Suite>, TestsFound, TestReport), RepairError> {
    let ways: Vec<TestsFound> = match &task.tests {
        Some(line) => vec![from_command(line, detection)],
        None => detection.tests.clone(),
    };
    if ways.is_empty() {
        return Err(RepairError::NoTests);
    }
    let test_limit = (task.budget / 30).clamp(Duration::from_secs(2), Duration::from_secs(10));
    let mut reasons = Vec::new();
    for tests in ways {
        watch(Progress::RunningTests {
            command: tests.argv.join(" "),
        });
        let opened = open(&tests, fork, test_limit).and_then(|suite| {
            let report = suite.run(fork, task.budget.mul_f64(0.6))?;
            Ok((suite, report))
        });
        match opened {
            Ok((suite, report)) if !report.tests.is_empty() => return Ok((suite, tests, report)),
            Ok(_) => reasons.push(format!("{}: no test ran", tests.argv.join(" "))),
            Err(error) => reasons.push(format!("{}: {error}", tests.argv.join(" "))),
        }
    }
    Err(RepairError::CannotRun(reasons))
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn look(fork: &dyn Fork, files: &[String]) -> Detection {
    detect(files, &|path| {
        fork.read(path)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
    })
}

/// What the tests say before anything is changed.
struct Baseline {
    suite: Box<dyn Suite>,
    tests: TestsFound,
    report: TestReport,
    failing: Vec<String>,
    passing: Vec<String>,
    flaky: Vec<String>,
    unfixable: Vec<String>,
    took: Duration,
}

impl Baseline {
    fn establish(
        fork: &mut dyn Fork,
        detection: &Detection,
        task: &RepairTask,
        watch: &(dyn Fn(Progress) + Sync),
    ) -> Result<Self, RepairError> {
        let started = Instant::now();
        let (suite, tests, report) = first_report(fork, detection, task, watch)?;
        Ok(Self::judge(
            suite,
            tests,
            report,
            fork,
            task,
            started.elapsed(),
        ))
    }

    /// Runs what failed again, to tell the flaky from the broken.
    fn judge(
        suite: Box<dyn Suite>,
        tests: TestsFound,
        report: TestReport,
        fork: &mut dyn Fork,
        task: &RepairTask,
        took: Duration,
    ) -> Self {
        let ids = |outcome: fn(&Outcome) -> bool| -> Vec<String> {
            report
                .tests
                .iter()
                .filter(|test| outcome(&test.outcome))
                .map(|test| test.id.clone())
                .collect()
        };
        let mut passing = ids(|outcome| *outcome == Outcome::Passed);
        let mut failing = ids(|outcome| matches!(outcome, Outcome::Failed | Outcome::Broken));
        let mut flaky = Vec::new();
        let hangs = report.failing().any(|test| {
            test.message.contains("did not end in") || test.message.contains("timed out")
        });
        let again = if failing.is_empty() || hangs || took > task.budget / 10 {
            0
        } else if took < Duration::from_secs(1) {
            2
        } else {
            1
        };
        for _ in 0..again {
            let Ok(second) = suite.run_again(fork, &failing, task.budget / 5) else {
                continue;
            };
            let now = |id: &String, wanted: bool| {
                second
                    .tests
                    .iter()
                    .any(|test| test.id == *id && (test.outcome == Outcome::Passed) == wanted)
            };
            flaky.extend(failing.extract_if(.., |id| now(id, true)));
            flaky.extend(passing.extract_if(.., |id| now(id, false)));
        }
        // A run that hung says nothing of how long a good one takes.
        let hung = report
            .failing()
            .filter(|test| {
                test.message.contains("did not end in") || test.message.contains("timed out")
            })
            .count();
        let took = if hung > 0 {
            Duration::from_millis(700)
        } else {
            took
        };
        let missing = |id: &String| {
            report.tests.iter().any(|test| {
                test.id == *id
                    && test.outcome == Outcome::Broken
                    && [
                        "No module named",
                        "Cannot find module",
                        "Cannot find package",
                    ]
                    .iter()
                    .any(|needle| test.message.contains(needle))
            })
        };
        let unfixable: Vec<String> = failing.extract_if(.., |id| missing(id)).collect();
        Self {
            suite,
            tests,
            report,
            failing,
            passing,
            flaky,
            unfixable,
            took,
        }
    }

    fn report(&self) -> RepairReport {
        RepairReport {
            outcome: RepairOutcome::NothingFailing,
            framework: self.tests.framework,
            command: self.tests.argv.clone(),
            reason: self.tests.reason.clone(),
            before: Tally::of(&self.report),
            failing: self.failing.clone(),
            flaky: self.flaky.clone(),
            unfixable: self.unfixable.clone(),
            suspects: Vec::new(),
            patches: Vec::new(),
            effort: Effort::default(),
        }
    }

    fn goal(&self) -> Goal {
        let usual = self.took.min(Duration::from_secs(3));
        Goal {
            failing: self.failing.clone(),
            passing: self.passing.clone(),
            patience: (usual * 3)
                .clamp(Duration::from_millis(1500), Duration::from_secs(20))
                .max(if self.took > Duration::from_secs(3) {
                    self.took.mul_f64(1.5).min(Duration::from_secs(30))
                } else {
                    Duration::ZERO
                }),
        }
    }
}

/// Everything that may be edited: sources that are neither tests nor somebody else's.
fn sources(fork: &dyn Fork, files: &[String]) -> Result<Vec<Source>, RepairError> {
    let mut found = Vec::new();
    for path in files
        .iter()
        .filter(|path| Language::of(path).is_some() && !is_foreign(path) && !is_test_path(path))
    {
        if let Some(source) = fork
            .read(path)
            .ok()
            .and_then(|bytes| Source::parse(path, &bytes))
        {
            found.push(source);
        }
    }
    if found.is_empty() {
        return Err(RepairError::NoSources);
    }
    Ok(found)
}

fn locate(
    base: &Baseline,
    fork: &mut dyn Fork,
    sources: &[Source],
    task: &RepairTask,
    until: Instant,
) -> (Heat, Clues) {
    let messages: Vec<&str> = base
        .report
        .tests
        .iter()
        .filter(|test| base.failing.contains(&test.id))
        .map(|test| test.message.as_str())
        .collect();
    let left = until.saturating_duration_since(Instant::now()) / 3;
    let mut heat = base
        .suite
        .cover(fork, &base.report, left)
        .map(|lines| Heat::ochiai(&lines, sources))
        .filter(|heat| !heat.hottest(1).is_empty())
        .unwrap_or_else(|| Heat::even(sources, 0.2));
    for message in &messages {
        let found = frames(message, sources.iter().map(|source| source.path.as_str()));
        heat.trace(&found, base.suite.innermost_last());
    }
    heat.recent(&task.recent);
    heat.spread(sources);
    (heat, Clues::read(messages.into_iter()))
}
