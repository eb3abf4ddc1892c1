//! What the tests say before anything is changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use super::{DecidingTests, RepairError, RepairTask, SearchProgress};
use crate::detect::{DetectedTests, ProjectDetection, TestFramework, from_command};
use crate::environment::BrokenEnvironment;
use crate::ground::{ForkSource, ProjectFork};
use crate::outcome::{RepairOutcome, RepairReport, SearchEffort, TestCounts};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::suite::{
    ProjectFolderFiles, RepairGoal, SuiteCommandAttempt, SuiteError, TestSuite, missing_modules,
    not_installed, open,
};
use crate::syntax::RepairLanguage;

/// The part of the time in which a project with failing tests is looked for among those of a
/// repository: where all that were looked at are sound, the first of them stands for it.
const PROJECTS: u32 = 4;

/// A suite, and what it said when it was run.
type SuiteReport = (Box<dyn TestSuite>, DetectedTests, TestReport);

/// The first way of running the tests that gives results: of several projects, in the first where
/// something fails.
pub(super) fn first_report(
    fork: &mut dyn ProjectFork,
    detection: &ProjectDetection,
    task: &RepairTask,
    (until, searching): (Instant, bool),
    watch: &(dyn Fn(SearchProgress) + Sync),
) -> Result<SuiteReport, RepairError> {
    let ways: Vec<DetectedTests> = match &task.tests.command {
        Some(line) => vec![from_command(line, detection)],
        None => detection.tests.clone(),
    };
    if ways.is_empty() {
        return Err(RepairError::NoTests);
    }
    let enough = Instant::now() + until.saturating_duration_since(Instant::now()) / PROJECTS;
    let mut sound: Option<SuiteReport> = None;
    let mut unable = SuiteFailures::default();
    for ways in ways.chunk_by(|one, next| one.folder == next.folder) {
        if sound.is_some() && Instant::now() >= enough {
            break;
        }
        match report_of(ways, fork, task, (until, searching), watch) {
            Ok(Ok(reported)) if reported.2.failing().next().is_some() => return Ok(reported),
            Ok(Ok(reported)) => {
                sound.get_or_insert(reported);
            }
            Ok(Err(more)) => unable.add(more),
            Err(_) if sound.is_some() => break,
            Err(error) => return Err(error),
        }
    }
    sound.ok_or_else(|| unable.into())
}

/// Why no way of running the tests gave results.
#[derive(Default)]
struct SuiteFailures {
    reasons: Vec<String>,
    broken: Option<Box<BrokenEnvironment>>,
}

impl SuiteFailures {
    fn add(&mut self, more: Self) {
        self.reasons.extend(more.reasons);
        self.broken = self.broken.take().or(more.broken);
    }
}

impl From<SuiteFailures> for RepairError {
    fn from(unable: SuiteFailures) -> Self {
        let broken = unable.broken.map(Self::EnvironmentBroken);
        broken.unwrap_or(Self::CannotRun(unable.reasons))
    }
}

/// The first way of running the tests of one project that gives results.
fn report_of(
    ways: &[DetectedTests],
    fork: &mut dyn ProjectFork,
    task: &RepairTask,
    (until, searching): (Instant, bool),
    watch: &(dyn Fn(SearchProgress) + Sync),
) -> Result<Result<SuiteReport, SuiteFailures>, RepairError> {
    // What takes longer is run by itself before it counts as hanging.
    let test_limit = (task.budget / 12)
        .clamp(Duration::from_secs(2), Duration::from_secs(30))
        .min(task.budget / 4);
    let mut unable = SuiteFailures::default();
    let mut by_pytest = false;
    for tests in ways {
        // What was asked for and cannot be run is not quietly run by something else; bare functions ask
        // for nothing.
        if (unable.broken.is_some() || by_pytest) && tests.framework != TestFramework::PlainPython {
            continue;
        }
        watch(SearchProgress::RunningTests {
            command: tests.line(),
        });
        let opened = open(tests, fork, test_limit, searching).and_then(|suite| {
            let left = until.saturating_duration_since(Instant::now());
            let report = suite.run(fork, left)?;
            Ok((suite, report))
        });
        let mut note = |reason: String| unable.reasons.push(format!("{}: {reason}", tests.line()));
        match opened {
            Ok((suite, report)) if !report.tests.is_empty() => {
                let mut tests = tests.clone();
                tests.argv = suite.argv().unwrap_or(tests.argv);
                return Ok(Ok((suite, tests, report)));
            }
            Ok(_) => note("no test ran".to_owned()),
            Err(SuiteError::EnvironmentBroken(found)) => {
                unable.broken.get_or_insert(found);
            }
            Err(SuiteError::NoResults(reason)) => {
                by_pytest |= tests.framework == TestFramework::Pytest;
                note(reason);
            }
            Err(SuiteError::OutOfTime) => return Err(RepairError::OutOfTime(task.budget)),
            Err(error) => note(error.to_string()),
        }
        if Instant::now() >= until {
            return Err(RepairError::OutOfTime(task.budget));
        }
    }
    Ok(Err(unable))
}

/// The line in which a test that could not begin says what is not installed.
fn lacking<'a>(test: &'a TestCase, project: &ProjectFolderFiles<'_>) -> Option<&'a str> {
    let foreign = |line: &&str| !missing_modules(project, line).0.is_empty();
    let packages = ["Cannot find module", "Cannot find package"];
    let mut lines = test.message.lines().map(str::trim);
    if test.outcome == TestOutcome::Failed {
        return lines.find(|line| line.contains("async def functions are not natively"));
    }
    lines.find(|line| {
        foreign(line)
            || packages
                .iter()
                .any(|needle| line.contains(needle) && !line.contains(&format!("{needle} '.")))
    })
}

/// Whether pytest took a test from a documentation text: it is then called by the module's full name and
/// stands beside what it shows, so its file is code.
fn is_doctest(file: &str, test: &str) -> bool {
    let module = file.strip_suffix(".py").unwrap_or(file);
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    let module: Vec<&str> = module.split('/').collect();
    let name: Vec<&str> = test.split('.').collect();
    (1..=module.len().min(name.len())).any(|parts| {
        let end = &module[module.len() - parts..];
        name.starts_with(end)
    })
}

/// What the tests say before anything is changed.
pub(super) struct SearchBaseline {
    pub(super) suite: Box<dyn TestSuite>,
    pub(super) tests: DetectedTests,
    pub(super) report: TestReport,
    pub(super) failing: Vec<String>,
    pub(super) passing: Vec<String>,
    pub(super) flaky: Vec<String>,
    pub(super) unfixable: Vec<String>,
    /// What each of those lacks.
    lacks: BTreeMap<String, String>,
    pub(super) took: Duration,
}

impl SearchBaseline {
    /// Without a ground, what fails runs again in the fork itself, which stands for no project. It does
    /// so `most` times at most.
    pub(super) fn establish(
        ground: Option<&dyn ForkSource>,
        fork: &mut dyn ProjectFork,
        detection: &ProjectDetection,
        task: &RepairTask,
        (until, most): (Instant, usize),
        watch: &(dyn Fn(SearchProgress) + Sync),
    ) -> Result<Self, RepairError> {
        let started = Instant::now();
        let (suite, tests, report) =
            first_report(fork, detection, task, (until, ground.is_some()), watch)?;
        let took = started.elapsed();
        Self::judge(suite, tests, report, (ground, fork), task, (took, most))
    }

    /// Runs what failed again, to tell the flaky from the broken.
    fn judge(
        suite: Box<dyn TestSuite>,
        tests: DetectedTests,
        report: TestReport,
        (ground, fork): (Option<&dyn ForkSource>, &mut dyn ProjectFork),
        task: &RepairTask,
        (took, most): (Duration, usize),
    ) -> Result<Self, RepairError> {
        let ids = |outcome: fn(&TestOutcome) -> bool| -> Vec<String> {
            report
                .tests
                .iter()
                .filter(|test| outcome(&test.outcome))
                .map(|test| test.id.clone())
                .collect()
        };
        let mut passing = ids(|outcome| *outcome == TestOutcome::Passed);
        let mut failing =
            ids(|outcome| matches!(outcome, TestOutcome::Failed | TestOutcome::Broken));
        let mut flaky = Vec::new();
        let hangs = report.failing().any(TestCase::hung);
        let again = if failing.is_empty() || hangs || took > task.budget / 2 {
            0
        } else if took < Duration::from_secs(1) {
            2
        } else {
            1
        };
        for _ in 0..again.min(most) {
            // What a run left behind must not make the next one differ.
            let second = match ground {
                Some(ground) if !suite.keeps_builds() => {
                    suite.run_again(ground.fork()?.as_mut(), &failing, task.budget / 5)
                }
                _ => suite.run_again(fork, &failing, task.budget / 5),
            };
            let Ok(second) = second else {
                continue;
            };
            let now = |id: &String, wanted: bool| {
                second
                    .tests
                    .iter()
                    .any(|test| test.id == *id && (test.outcome == TestOutcome::Passed) == wanted)
            };
            flaky.extend(failing.extract_if(.., |id| now(id, true)));
            flaky.extend(passing.extract_if(.., |id| now(id, false)));
        }
        // A run that hung says nothing of how long a good one takes.
        let took = if hangs {
            Duration::from_millis(700)
        } else {
            took
        };
        let project = ProjectFolderFiles::of(fork, &tests.folder);
        let lacks: BTreeMap<String, String> = report
            .failing()
            .filter_map(|test| Some((test.id.clone(), lacking(test, &project)?.to_owned())))
            .collect();
        let unfixable: Vec<String> = failing
            .extract_if(.., |id| lacks.contains_key(id))
            .collect();
        if !unfixable.is_empty() && failing.is_empty() && passing.is_empty() && flaky.is_empty() {
            let said: Vec<&str> = report.failing().map(|test| test.message.trim()).collect();
            let (line, said) = (tests.line(), said.join("\n"));
            let interpreter = suite.interpreter();
            let attempt = SuiteCommandAttempt {
                command: &line,
                folder: &tests.folder,
                interpreter: interpreter.as_deref(),
                output: &said,
            };
            if let Some(found) = not_installed(&project, &attempt) {
                return Err(RepairError::EnvironmentBroken(Box::new(found)));
            }
        }
        Ok(Self {
            suite,
            tests,
            report,
            failing,
            passing,
            flaky,
            unfixable,
            lacks,
            took,
        })
    }

    /// Runs tests that pass once more, and sets apart those that then do not.
    pub(super) fn hold(
        &mut self,
        deciding: &DecidingTests<'_>,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<(), RepairError> {
        let decides = |id: &&String| (deciding.decides)(id);
        let ids: Vec<String> = self.passing.iter().filter(decides).cloned().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut lost: HashSet<String> = ids.iter().cloned().collect();
        let alone = self.once_more(deciding, fork, &ids, deadline)?;
        let with_others = alone.tests.len() > ids.len();
        drop_passed(&mut lost, &alone);
        // What passes only after others is no test that comes and goes.
        if !lost.is_empty() && !with_others {
            let all = self.once_more(deciding, fork, &[], deadline)?;
            drop_passed(&mut lost, &all);
        }
        self.flaky
            .extend(self.passing.extract_if(.., |id| lost.contains(id)));
        Ok(())
    }

    /// One more run of these tests, or of all where none is named. What an earlier run left behind must
    /// not make it differ: only what was built is worth keeping.
    fn once_more(
        &self,
        deciding: &DecidingTests<'_>,
        fork: &mut dyn ProjectFork,
        ids: &[String],
        deadline: Duration,
    ) -> Result<TestReport, RepairError> {
        let run = |fork: &mut dyn ProjectFork| match ids {
            [] => self.suite.run(fork, deadline),
            ids => self.suite.run_again(fork, ids, deadline),
        };
        let again = if self.suite.keeps_builds() {
            run(fork)
        } else {
            run(deciding.forks.fork()?.as_mut())
        };
        match again {
            Err(SuiteError::Ground(error)) => Err(error.into()),
            // What cannot be seen twice does not hold.
            again => Ok(again.unwrap_or(TestReport { tests: Vec::new() })),
        }
    }

    /// The tests that no change of code can help, each with what it lacks.
    pub(super) fn lacking(&self) -> Vec<String> {
        self.unfixable
            .iter()
            .filter_map(|id| Some(format!("{id}: {}", self.lacks.get(id)?)))
            .collect()
    }

    /// The files that tests were reported from, from the top, where their names begin with a file. Rust
    /// keeps tests beside what they test.
    pub(super) fn homes(&self) -> BTreeSet<String> {
        let named = |id: &str| {
            let (file, test) = id.split_once("::").or_else(|| id.split_once(" > "))?;
            let language =
                RepairLanguage::of(file).filter(|language| *language != RepairLanguage::Rust);
            if is_doctest(file, test) {
                return None;
            }
            language
                .is_some()
                .then(|| match self.tests.folder.as_str() {
                    "" => file.to_owned(),
                    folder => format!("{folder}/{file}"),
                })
        };
        let tests = self.report.tests.iter();
        tests.filter_map(|test| named(&test.id)).collect()
    }

    pub(super) fn report(&self) -> RepairReport {
        RepairReport {
            outcome: RepairOutcome::NothingFailing,
            framework: self.tests.framework,
            command: self.tests.argv.clone(),
            reason: self.tests.reason.clone(),
            before: TestCounts::of(&self.report),
            failing: self.failing.clone(),
            flaky: self.flaky.clone(),
            unfixable: self.unfixable.clone(),
            given: Vec::new(),
            suspects: Vec::new(),
            left_aside: Vec::new(),
            patches: Vec::new(),
            effort: SearchEffort::default(),
        }
    }

    pub(super) fn goal(&self, end: Instant) -> RepairGoal {
        let usual = self.took.min(Duration::from_secs(3));
        // What hangs tells least and takes longest: it comes last.
        let mut failing = self.failing.clone();
        failing.sort_by_key(|id| {
            self.report
                .failing()
                .any(|test| test.id == *id && test.hung())
        });
        RepairGoal {
            end,
            failing,
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

/// Takes out what a run saw passing.
fn drop_passed(ids: &mut HashSet<String>, seen: &TestReport) {
    for test in &seen.tests {
        if test.outcome == TestOutcome::Passed {
            ids.remove(&test.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documentation_text_is_no_test_file() {
        for (file, test) in [
            ("parse.py", "parse.parse"),
            ("parse.py", "parse"),
            ("src/cart/total.py", "cart.total.Cart.sum"),
            ("src/cart/__init__.py", "cart"),
        ] {
            assert!(is_doctest(file, test), "{file} {test}");
        }
        for (file, test) in [
            ("tests/test_cart.py", "test_total"),
            ("tests/cart.py", "Cart::test_total"),
            ("test/cart.test.js", "cart > counts"),
        ] {
            assert!(!is_doctest(file, test), "{file} {test}");
        }
    }
}
