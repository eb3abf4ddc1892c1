//! The search: what fails, where, what could mend it, what does.

mod baseline;
mod doubt;
mod hunt;
mod proof;
mod queue;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::detect::{
    DetectedTests, ProjectDetection, TestSelection, detect_in, from_command, is_foreign,
};
use crate::environment::{BrokenEnvironment, CodeOrigin};
use crate::ground::{ForkSource, ForkSourceError, ProjectFork};
use crate::locate::{Clues, Heat, RecentChange, frames};
use crate::outcome::{RepairOutcome, RepairReport, SearchEffort, SuspectLocation};
use crate::patches::{CandidatePatch, propose};
use crate::report::TestReport;
use crate::syntax::{ParsedSource, RepairLanguage, is_test_path};
use baseline::{SearchBaseline, first_report};
use hunt::SearchContext;

/// How often at most what fails is run again where nothing is known of it.
const RERUNS: usize = 2;

/// How many runs of the whole suite a search may take at least.
const SUITES: u32 = 8;

/// Candidates beyond which no further source is looked into.
const ENOUGH: usize = 300_000;

/// What to repair, and how much it may cost.
#[derive(Debug, Clone)]
pub struct RepairTask {
    /// Which tests have to pass.
    pub tests: TestSelection,
    /// How long the whole search may take.
    pub budget: Duration,
    /// Whether to look for every patch instead of stopping soon after the first.
    pub all: bool,
    /// How many forks to work in at once.
    pub lanes: usize,
    /// Places that changed lately, which are suspected first.
    pub recent: Vec<RecentChange>,
}

impl Default for RepairTask {
    fn default() -> Self {
        Self {
            tests: TestSelection::default(),
            budget: Duration::from_mins(2),
            all: false,
            lanes: 2,
            recent: Vec::new(),
        }
    }
}

/// What the search is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchProgress {
    /// Tests are run to see what fails.
    RunningTests {
        /// The command a person would type.
        command: String,
    },
    /// The tests were run, and this many fail.
    Failing {
        /// How many tests fail.
        failing: usize,
        /// How many tests pass.
        passing: usize,
    },
    /// Candidates are ready to be judged.
    Searching {
        /// How many there are.
        candidates: usize,
    },
    /// Candidates were judged by the tests.
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
    /// A fork could not be made or used.
    #[error(transparent)]
    Ground(#[from] ForkSourceError),
    /// No way to run tests was found.
    #[error("no tests were found; give the command that runs them with --tests")]
    NoTests,
    /// The tests cannot be run.
    #[error("the tests cannot be run ({})", .0.join("; "))]
    CannotRun(Vec<String>),
    /// They lack something that no change of the code can give them.
    #[error("{0}")]
    EnvironmentBroken(Box<BrokenEnvironment>),
    /// The budget was spent before the tests had told what fails.
    #[error("the tests did not end within the budget of {0:?}")]
    OutOfTime(Duration),
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
    ground: &dyn ForkSource,
    task: &RepairTask,
    watch: &(dyn Fn(SearchProgress) + Sync),
) -> Result<RepairReport, RepairError> {
    let start = Instant::now();
    let until = start + task.budget;
    let mut fork = ground.fork()?;
    let files = fork.files()?;
    let detection = look(fork.as_ref(), &files, &task.tests);
    // Known before any test is run.
    if !files.iter().any(|path| is_editable(path)) {
        return Err(RepairError::NoSources);
    }
    let base = SearchBaseline::establish(
        Some(ground),
        fork.as_mut(),
        &detection,
        task,
        (until, RERUNS),
        watch,
    )?;
    // What it took to learn what fails is not taken from the search, and a slow suite gets longer.
    let search = task
        .budget
        .max(base.took * SUITES)
        .min(task.budget.saturating_mul(3));
    let until = Instant::now() + search;
    let mut report = base.report();
    if base.failing.is_empty() && base.unfixable.is_empty() {
        if !base.flaky.is_empty() {
            return Err(RepairError::OnlyFlaky(base.flaky));
        }
        report.effort.total_ms = millis(start.elapsed());
        return Ok(report);
    }
    if base.failing.is_empty() {
        return Err(RepairError::NotInstalled(base.lacking().join("; ")));
    }
    watch(SearchProgress::Failing {
        failing: base.failing.len(),
        passing: base.passing.len(),
    });

    if !base.suite.keeps_builds() {
        fork = ground.fork()?;
    }
    let within = format!("{}/", base.tests.folder);
    let files: Vec<String> = files
        .into_iter()
        .filter(|path| base.tests.folder.is_empty() || path.starts_with(&within))
        .collect();
    // What tests were reported from is a test, whatever it is called.
    let homes = base.homes();
    let files: Vec<String> = files
        .into_iter()
        .filter(|path| !homes.contains(path))
        .collect();
    let (sources, left_aside) = sources(fork.as_ref(), &files)?;
    report.left_aside = left_aside;
    let (heat, clues) = locate(&base, fork.as_mut(), &sources, task, until);
    report.suspects = heat
        .hottest(10)
        .into_iter()
        .map(|(path, line, suspicion)| SuspectLocation {
            path,
            line,
            suspicion,
        })
        .collect();
    let candidates = proposals(&sources, &heat, &clues, Instant::now() + search / 6);
    watch(SearchProgress::Searching {
        candidates: candidates.len(),
    });

    let goal = base.goal(until);
    let hunt = SearchContext {
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
    let (patches, given, effort) = hunt.run(fork, candidates)?;
    report.given = given;
    report.outcome = if patches.is_empty() {
        RepairOutcome::NotFound
    } else {
        RepairOutcome::Fixed
    };
    report.patches = patches;
    report.effort = SearchEffort {
        total_ms: millis(start.elapsed()),
        ..effort
    };
    Ok(report)
}

/// Candidates for every source, the most suspicious first, as far as there is time to think of them: a
/// large project has millions, of which few will ever be tried.
fn proposals(
    sources: &[ParsedSource],
    heat: &Heat,
    clues: &Clues,
    until: Instant,
) -> Vec<CandidatePatch> {
    let hottest = heat.hottest(usize::MAX);
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (place, (path, ..)) in hottest.iter().enumerate() {
        first.entry(path).or_insert(place);
    }
    let mut order: Vec<&ParsedSource> = sources.iter().collect();
    order.sort_by_key(|source| {
        first
            .get(source.path.as_str())
            .copied()
            .unwrap_or(usize::MAX)
    });
    let mut found = Vec::new();
    for source in order {
        if !found.is_empty() && (Instant::now() >= until || found.len() > ENOUGH) {
            break;
        }
        found.extend(propose(source, heat, clues));
    }
    found
}

/// Runs a project's tests once in a fork of its own.
pub fn run_tests(
    ground: &dyn ForkSource,
    tests: &TestSelection,
    deadline: Duration,
) -> Result<TestReport, RepairError> {
    let mut fork = ground.fork()?;
    let files = fork.files()?;
    let detection = look(fork.as_ref(), &files, tests);
    let task = RepairTask {
        tests: tests.clone(),
        budget: deadline,
        ..RepairTask::default()
    };
    let (_, _, report) = first_report(
        fork.as_mut(),
        &detection,
        &task,
        (Instant::now() + deadline, false),
        &|_| (),
    )?;
    Ok(report)
}

/// What the tests of a project say, with what fails only now and then set apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestExamination {
    /// How they were run.
    pub tests: DetectedTests,
    /// Every test, as the first run saw it.
    pub report: TestReport,
    pub passing: Vec<String>,
    /// Tests that fail every time.
    pub failing: Vec<String>,
    /// Tests that fail now and then.
    pub flaky: Vec<String>,
    /// Failing tests that no change of code can help, because something is not installed.
    pub unfixable: Vec<String>,
    /// What ran them, with its version and place.
    pub interpreter: Option<String>,
    /// Where the code that they exercised came from.
    pub origins: Vec<CodeOrigin>,
    /// How long it took to run all of them once.
    pub took: Duration,
}

/// What is run again, and how.
#[derive(Clone, Copy)]
pub(crate) struct Reruns<'a> {
    /// How often at most what fails is run again.
    pub(crate) failing: usize,
    /// What is run again where it passes.
    pub(crate) deciding: Option<DecidingTests<'a>>,
}

impl Reruns<'_> {
    /// Where nothing is known of the tests yet.
    pub(crate) const fn at_first() -> Self {
        Self {
            failing: RERUNS,
            deciding: None,
        }
    }
}

/// Tests that have to pass twice, because something is decided by their passing.
#[derive(Clone, Copy)]
pub(crate) struct DecidingTests<'a> {
    /// Whether a test is one of them.
    pub(crate) decides: &'a dyn Fn(&str) -> bool,
    /// Forks like the one that the tests are run in first.
    pub(crate) forks: &'a dyn ForkSource,
}

/// Runs the tests of a fork as it stands, and what fails again.
pub fn examine(
    fork: &mut dyn ProjectFork,
    tests: &TestSelection,
    deadline: Duration,
) -> Result<TestExamination, RepairError> {
    examine_again(fork, tests, Reruns::at_first(), deadline)
}

/// The same, with what is to be run again.
pub(crate) fn examine_again(
    fork: &mut dyn ProjectFork,
    tests: &TestSelection,
    reruns: Reruns<'_>,
    deadline: Duration,
) -> Result<TestExamination, RepairError> {
    let files = fork.files()?;
    let detection = look(fork, &files, tests);
    examine_found(fork, &detection, tests, reruns, deadline)
}

/// Runs some of the tests of a fork, and what fails again; `None` where they cannot be told apart.
/// `part` cuts a set of tests down.
pub(crate) fn examine_part(
    fork: &mut dyn ProjectFork,
    tests: &TestSelection,
    part: &dyn Fn(DetectedTests) -> Option<DetectedTests>,
    reruns: Reruns<'_>,
    deadline: Duration,
) -> Result<Option<TestExamination>, RepairError> {
    let files = fork.files()?;
    let mut detection = look(fork, &files, tests);
    if let Some(line) = &tests.command {
        detection.tests = vec![from_command(line, &detection)];
    }
    let ways = std::mem::take(&mut detection.tests);
    let cut = |found: DetectedTests| {
        let all = found.files.clone();
        part(found).map(|mut found| {
            if found.files != all {
                found.only.clone_from(&found.files);
            }
            found
        })
    };
    detection.tests = ways.into_iter().filter_map(cut).collect();
    if detection.tests.is_empty() {
        return Ok(None);
    }
    let found = TestSelection {
        command: None,
        folder: tests.folder.clone(),
    };
    examine_found(fork, &detection, &found, reruns, deadline).map(Some)
}

fn examine_found(
    fork: &mut dyn ProjectFork,
    detection: &ProjectDetection,
    tests: &TestSelection,
    reruns: Reruns<'_>,
    deadline: Duration,
) -> Result<TestExamination, RepairError> {
    let task = RepairTask {
        tests: tests.clone(),
        budget: deadline,
        ..RepairTask::default()
    };
    let until = Instant::now() + deadline;
    let mut base = SearchBaseline::establish(
        None,
        fork,
        detection,
        &task,
        (until, reruns.failing),
        &|_| (),
    )?;
    if let Some(deciding) = reruns.deciding {
        base.hold(&deciding, fork, deadline)?;
    }
    Ok(TestExamination {
        interpreter: base.suite.interpreter(),
        origins: base.suite.origins(),
        took: base.took,
        tests: base.tests,
        report: base.report,
        passing: base.passing,
        failing: base.failing,
        flaky: base.flaky,
        unfixable: base.unfixable,
    })
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn look(fork: &dyn ProjectFork, files: &[String], tests: &TestSelection) -> ProjectDetection {
    let read = |path: &str| String::from_utf8(fork.read(path).ok()?).ok();
    detect_in(files, &read, &tests.folder)
}

/// Whether a file is in a language that patches are written in, and neither a test nor foreign.
fn is_editable(path: &str) -> bool {
    RepairLanguage::of(path).is_some() && !is_foreign(path) && !is_test_path(path)
}

/// Everything that may be edited: sources that are neither tests nor foreign; and those that
/// were left aside, with the reason.
fn sources(
    fork: &dyn ProjectFork,
    files: &[String],
) -> Result<(Vec<ParsedSource>, Vec<String>), RepairError> {
    let (mut found, mut left_aside) = (Vec::new(), Vec::new());
    for path in files.iter().filter(|path| is_editable(path)) {
        let Ok(bytes) = fork.read(path) else {
            continue;
        };
        match ParsedSource::parse(path, &bytes) {
            Ok(source) => found.push(source),
            Err(reason) => left_aside.push(format!("{path}: {reason}")),
        }
    }
    if found.is_empty() {
        return Err(RepairError::NoSources);
    }
    Ok((found, left_aside))
}

fn locate(
    base: &SearchBaseline,
    fork: &mut dyn ProjectFork,
    sources: &[ParsedSource],
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
        .unwrap_or_else(|| {
            let mut heat = Heat::even(sources, 0.2);
            heat.named(&base.failing, sources);
            heat
        });
    for message in &messages {
        let found = frames(message, sources.iter().map(|source| source.path.as_str()));
        heat.trace(&found, base.suite.innermost_last());
    }
    heat.recent(&task.recent);
    heat.spread(sources);
    let mut clues = Clues::read(messages.into_iter());
    clues.see(base.suite.kinds());
    (heat, clues)
}
