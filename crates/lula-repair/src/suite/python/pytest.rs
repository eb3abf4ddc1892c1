//! The project's own pytest command, with a plugin of ours that tells what it did.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::interpreter::wrong;
use super::{PythonSuite, lock, packages, words};
use crate::environment::CodeOrigin;
use crate::ground::{ForkCommand, ProjectFork};
use crate::locate::{LinesOfTest, TypesByVariable};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::suite::SuiteError;
use crate::suite::broken::{self, ProjectFolderFiles, SuiteCommandAttempt};
use crate::suite::reporter::{self, ReportedRun, ReporterLine, ReporterSettings, lines_of_ranges};

/// Tests that hang before no other one is given a second chance.
const HANGS: usize = 3;
/// How often a run is taken up again after a test ended it.
const RESUMPTIONS: usize = 12;
/// How much slower tests are while their lines are watched.
const TRACING: u32 = 6;

impl PythonSuite {
    fn start(
        &self,
        fork: &mut dyn ProjectFork,
        targets: &[String],
        extra: &[&str],
        wishes: &ReporterSettings,
        deadline: Duration,
    ) -> Result<ReportedRun, SuiteError> {
        let argv = if targets.is_empty() {
            self.argv.clone()
        } else {
            self.bare_argv(fork)
        };
        let argv = argv
            .into_iter()
            .chain(extra.iter().map(|&word| word.to_owned()))
            .chain(targets.iter().cloned());
        let command = ForkCommand::new(argv, deadline)
            .in_folder(&self.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONHASHSEED", "0");
        reporter::run(fork, &command, wishes)
    }

    /// The command without the tests that it names.
    pub(super) fn bare_argv(&self, fork: &dyn ProjectFork) -> Vec<String> {
        let project = ProjectFolderFiles::of(fork, &self.folder);
        words::without_targets(&self.argv, &|word| {
            let path = word.split("::").next().unwrap_or(word);
            let path = path.trim_start_matches("./").trim_end_matches('/');
            let below = format!("{path}/");
            path == "."
                || project
                    .files()
                    .iter()
                    .any(|file| file == path || file.starts_with(&below))
        })
    }

    fn wishes(&self, fork: &dyn ProjectFork) -> ReporterSettings {
        ReporterSettings {
            test_limit: Some(self.test_limit),
            packages: packages::names(ProjectFolderFiles::of(fork, &self.folder).files()),
            ..ReporterSettings::default()
        }
    }

    /// Runs the command, and again without what ended it, until every test has been told of.
    pub(super) fn run_pytest(
        &self,
        fork: &mut dyn ProjectFork,
        targets: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let until = Instant::now() + deadline;
        let left = || until.saturating_duration_since(Instant::now());
        let mut wishes = self.wishes(fork);
        let mut all: Vec<TestCase> = Vec::new();
        let mut hangs = 0;
        for _ in 0..RESUMPTIONS {
            // Where some files cannot be read, what the others say is worth knowing.
            let extra = &["--continue-on-collection-errors"];
            let reported = self.start(fork, targets, extra, &wishes, left())?;
            let Some(begun) = reported.begun().cloned() else {
                return self.no_beginning(fork, &reported, all);
            };
            self.note(&reported);
            let now = reported.tests().tests;
            let ended = reported.finished();
            merge(&mut all, now);
            if ended {
                return self.believed(fork, &reported, all);
            }
            let Some(id) = reported.running().map(str::to_owned) else {
                if reported.ran.timed_out {
                    return Err(SuiteError::OutOfTime);
                }
                return Err(SuiteError::NoResults(format!(
                    "pytest ended before it had told everything\n{}",
                    reported.printed()
                )));
            };
            if begun.spread && reported.ran.timed_out {
                return Err(SuiteError::OutOfTime);
            }
            all.retain(|test| test.id != id);
            let alone = if hangs < HANGS {
                let again = self.alone(fork, &id, &reported, left())?;
                hangs += usize::from(again.hung());
                again
            } else {
                hung(&id, self.test_limit, &reported.hung_at)
            };
            all.push(alone);
            if left().is_zero() {
                return Err(SuiteError::OutOfTime);
            }
            wishes.skip = all.iter().map(|test| test.id.clone()).collect();
        }
        Ok(TestReport { tests: all })
    }

    /// A test that took too long or ended its process, by itself and without a limit of its own: one
    /// that is merely slow passes.
    fn alone(
        &self,
        fork: &mut dyn ProjectFork,
        id: &str,
        before: &ReportedRun,
        left: Duration,
    ) -> Result<TestCase, SuiteError> {
        let patience = (self.test_limit * 3).min(left.mul_f64(0.5));
        let wishes = ReporterSettings::default();
        let again = self.start(fork, &[id.to_owned()], &[], &wishes, patience)?;
        let found = again.tests().tests.into_iter().find(|test| test.id == id);
        if let Some(test) = found.filter(|_| again.finished()) {
            return Ok(test);
        }
        if again.ran.timed_out {
            return Ok(hung(id, patience, &before.hung_at));
        }
        Ok(TestCase {
            id: id.to_owned(),
            outcome: TestOutcome::Broken,
            message: format!(
                "the test ended the process that ran it\n{}",
                again.printed()
            ),
        })
    }

    /// pytest did not get as far as looking for tests.
    fn no_beginning(
        &self,
        fork: &dyn ProjectFork,
        reported: &ReportedRun,
        mut all: Vec<TestCase>,
    ) -> Result<TestReport, SuiteError> {
        if reported.ran.timed_out {
            return Err(SuiteError::OutOfTime);
        }
        let output = reported.printed();
        let line = self.argv.join(" ");
        let attempt = self.attempt(&line, &output);
        if let Some(found) = broken::python(&ProjectFolderFiles::of(fork, &self.folder), &attempt) {
            return Err(wrong(found));
        }
        if output.contains("conftest") || output.contains("Error: ") && output.contains("File \"") {
            // The project's own code breaks before the first test.
            all.push(TestCase {
                id: COLLECTION.to_owned(),
                outcome: TestOutcome::Broken,
                message: output,
            });
            return Ok(TestReport { tests: all });
        }
        let said = output
            .lines()
            .rev()
            .find(|line| line.to_ascii_lowercase().contains("error"))
            .or_else(|| output.lines().last())
            .unwrap_or("nothing was printed");
        Err(wrong(attempt.failed(
            format!("pytest could not begin: {}", said.trim()),
            Vec::new(),
            None,
        )))
    }

    fn attempt<'a>(&'a self, command: &'a str, output: &'a str) -> SuiteCommandAttempt<'a> {
        SuiteCommandAttempt {
            command,
            folder: &self.folder,
            interpreter: Some(&self.about),
            output,
        }
    }

    /// Results, unless they are those of another code or of nothing at all.
    fn believed(
        &self,
        fork: &dyn ProjectFork,
        reported: &ReportedRun,
        tests: Vec<TestCase>,
    ) -> Result<TestReport, SuiteError> {
        let project = ProjectFolderFiles::of(fork, &self.folder);
        let output = reported.printed();
        let line = self.argv.join(" ");
        let attempt = self.attempt(&line, &output);
        let origins = lock(&self.seen).origins.clone();
        if let Some(found) = broken::shadowed(&project, &origins, &fork.root(), &attempt) {
            return Err(wrong(found));
        }
        if tests.is_empty() {
            return Err(SuiteError::NoResults(format!("no test ran\n{output}")));
        }
        if !tests.iter().any(passed) {
            let messages: Vec<&str> = tests.iter().map(|test| test.message.as_str()).collect();
            let messages = messages.join("\n");
            let attempt = self.attempt(&line, &messages);
            if let Some(found) = broken::python(&project, &attempt) {
                return Err(wrong(found));
            }
        }
        Ok(TestReport { tests })
    }

    fn note(&self, reported: &ReportedRun) {
        let mut seen = lock(&self.seen);
        for line in &reported.lines {
            match line {
                ReporterLine::Begin(begun) => seen.begun = Some(begun.clone()),
                ReporterLine::Plan { plan } if !plan.is_empty() => seen.plan.clone_from(plan),
                ReporterLine::Origins { origins } => {
                    seen.origins = origins
                        .iter()
                        .map(|(name, path)| CodeOrigin {
                            name: name.clone(),
                            path: path.clone(),
                        })
                        .collect();
                }
                ReporterLine::Test(test) => {
                    let took = Duration::from_millis(test.ms);
                    if test.outcome == TestOutcome::Passed {
                        seen.slowest = seen.slowest.max(took);
                    }
                    let known = seen.took.entry(test.id.clone()).or_default();
                    *known = (*known).max(took);
                }
                ReporterLine::Kinds { kinds, preload } => {
                    seen.kinds = TypesByVariable::new(kinds.clone());
                    seen.preload.clone_from(preload);
                }
                _ => {}
            }
        }
    }

    /// Options with which candidates do without what only slows them down.
    pub(super) fn plainly(&self) -> Vec<&'static str> {
        let seen = lock(&self.seen);
        let has: Vec<&str> = seen
            .begun
            .iter()
            .flat_map(|begun| begun.has.iter().map(String::as_str))
            .collect();
        let mut words = Vec::new();
        for (plugin, option) in [
            ("xdist", &["-n0"][..]),
            ("pytest_cov", &["--no-cov"]),
            ("randomly", &["-p", "no:randomly"]),
        ] {
            if has.contains(&plugin) {
                words.extend_from_slice(option);
            }
        }
        words
    }

    /// The lines of each test; of those in the files that fail, where all would take too long.
    pub(super) fn cover_pytest(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        let until = Instant::now() + deadline;
        let whole: Duration = lock(&self.seen).took.values().sum();
        let failing: BTreeSet<String> = report.failing().map(|test| test.id.clone()).collect();
        let targets: Vec<String> = if whole * TRACING > deadline {
            let files: BTreeSet<&str> = failing
                .iter()
                .filter_map(|id| id.split("::").next())
                .collect();
            files.into_iter().map(str::to_owned).collect()
        } else {
            self.only.clone()
        };
        let targets: Vec<String> = targets
            .into_iter()
            .filter(|target| target != COLLECTION)
            .collect();
        let hangs = report.failing().any(TestCase::hung);
        let mut wishes = ReporterSettings {
            cover: true,
            // What a test that hangs runs shows early on.
            test_limit: hangs.then_some(Duration::from_secs(2)),
            ..ReporterSettings::default()
        };
        let mut extra = self.plainly();
        extra.push("--continue-on-collection-errors");
        let mut found = Vec::new();
        for _ in 0..HANGS {
            let left = until.saturating_duration_since(Instant::now());
            let reported = self.start(fork, &targets, &extra, &wishes, left).ok()?;
            self.note(&reported);
            let outcomes = reported.tests();
            for line in &reported.lines {
                let ReporterLine::Lines { id, lines } = line else {
                    continue;
                };
                let skipped = outcomes
                    .tests
                    .iter()
                    .any(|test| test.id == *id && test.outcome == TestOutcome::Skipped);
                wishes.skip.push(id.clone());
                if skipped {
                    continue;
                }
                let lines: std::collections::BTreeMap<String, Vec<usize>> = lines
                    .iter()
                    .map(|(path, text)| (path.clone(), lines_of_ranges(text)))
                    .collect();
                lock(&self.seen).lines.insert(id.clone(), lines.clone());
                found.push(LinesOfTest {
                    failed: failing.contains(id),
                    lines,
                });
            }
            if !outcomes.failing().any(TestCase::hung) {
                break;
            }
        }
        Some(found)
    }
}

/// The name of what failed before the first test.
pub(super) const COLLECTION: &str = "collection";

fn passed(test: &TestCase) -> bool {
    test.outcome == TestOutcome::Passed
}

fn hung(id: &str, limit: Duration, place: &str) -> TestCase {
    TestCase {
        id: id.to_owned(),
        outcome: TestOutcome::Broken,
        message: format!(
            "the test did not end in {} seconds\n{place}",
            limit.as_secs_f64()
        ),
    }
}

/// Adds what a further run told; what it told last counts.
fn merge(all: &mut Vec<TestCase>, now: Vec<TestCase>) {
    if all.is_empty() {
        *all = now;
        return;
    }
    for test in now {
        match all.iter_mut().find(|known| known.id == test.id) {
            Some(known) => *known = test,
            None => all.push(test),
        }
    }
}
