//! Commands that are started anew for every run: test scripts of Node packages, Go, Make, Maven, Gradle,
//! and whatever a person gives. What runs inside them tells what it did where it can.

mod outcome;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::broken;
use super::reporter::{
    self, ReportedRun, ReporterLine, ReporterSettings, ReporterStart, lines_of_ranges,
};
use super::script;
use super::{CandidateTrial, CandidateVerdict, RepairGoal, SuiteError, TestSuite, apart};
use crate::detect::{DetectedTests, TestFramework};
use crate::environment::CodeOrigin;
use crate::ground::{ForkCommand, ForkSource, ProjectFork};
use crate::locate::LinesOfTest;
use crate::report::{TestOutcome, TestReport};
use crate::results::unnumbered;
pub use outcome::WHOLE;
use outcome::silent;

/// How much slower tests are while their lines are watched.
const TRACING: u32 = 6;
/// How much longer than any candidate one may take that mends the failing tests, while all of them run.
const WINNER: u32 = 4;

/// A command that runs all tests.
pub(crate) struct ProcessSuite {
    framework: TestFramework,
    argv: Vec<String>,
    folder: String,
    line: String,
    /// Whether the command is a package's script, whose runner can be started by itself. What is found
    /// that way is shown by the whole command in the end.
    scripted: bool,
    /// Whether the script makes what it tests: then its runner by itself may test old code.
    builds: bool,
    /// Whether it already says how node's own runner reports.
    reports_itself: bool,
    seen: Mutex<ProcessRunHistory>,
}

#[derive(Default)]
struct ProcessRunHistory {
    begun: Option<ReporterStart>,
    /// Where packages of the project came from.
    origins: Vec<CodeOrigin>,
    /// Whether the runner by itself was seen to run the code that is edited.
    runs_edited_code: Option<bool>,
    /// What is left of a script after its checks of style, where those fail.
    instead: Option<Vec<String>>,
    /// How long everything took.
    took: Duration,
}

impl ProcessSuite {
    /// For a search, what stands beside the tests in a script, such as checks of style, is left out where
    /// the tests can do without: it would run again for every candidate.
    pub(crate) fn open(tests: &DetectedTests, fork: &dyn ProjectFork, searching: bool) -> Self {
        let text_of_script = script::text(fork, &tests.folder);
        let text = format!("{} {text_of_script}", tests.line());
        let scripted = matches!(
            tests.argv.first().map(String::as_str),
            Some("npm" | "pnpm" | "yarn")
        );
        Self {
            framework: tests.framework,
            argv: tests.argv.clone(),
            folder: tests.folder.clone(),
            line: tests.line(),
            scripted,
            builds: script::builds(&text_of_script),
            reports_itself: text.contains("--test-reporter"),
            seen: Mutex::new(ProcessRunHistory {
                instead: (scripted && searching)
                    .then(|| script::without_checks(fork, &tests.folder))
                    .flatten(),
                ..ProcessRunHistory::default()
            }),
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, ProcessRunHistory> {
        self.seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn start(
        &self,
        fork: &mut dyn ProjectFork,
        argv: Vec<String>,
        wishes: &ReporterSettings,
        deadline: Duration,
    ) -> Result<ReportedRun, SuiteError> {
        let mut command = ForkCommand::new(argv, deadline).in_folder(&self.folder);
        // Vitest and Jest watch files for ever where they think that a person looks on.
        if matches!(self.framework, TestFramework::Vitest | TestFramework::Jest) {
            command = command.env("CI", "1");
        }
        let wishes = ReporterSettings {
            node_test: !self.reports_itself,
            any_runner: true,
            packages: script::packages(fork),
            ..wishes.clone()
        };
        reporter::run(fork, &command, &wishes)
    }

    fn by_other_manager(&self) -> bool {
        matches!(
            self.argv.first().map(String::as_str),
            Some("pnpm" | "yarn" | "bun")
        ) && self.seen().instead.is_none()
    }

    /// What to start for everything.
    fn whole(&self) -> Vec<String> {
        self.seen()
            .instead
            .clone()
            .unwrap_or_else(|| self.argv.clone())
    }

    /// What to start for these tests, where the runner can be started by itself and runs what is edited.
    fn part(&self, tests: &[String]) -> Option<(Vec<String>, ReporterSettings)> {
        let fresh = !self.builds || self.seen().runs_edited_code == Some(true);
        fresh.then(|| self.runner_alone(tests)).flatten()
    }

    fn runner_alone(&self, tests: &[String]) -> Option<(Vec<String>, ReporterSettings)> {
        let seen = self.seen();
        let begun = seen
            .begun
            .as_ref()
            .filter(|begun| self.scripted && !begun.args.is_empty())?;
        let mut argv = vec![begun.executable.clone()];
        // Named from where it is started: another fork may lie elsewhere.
        let here = format!("{}/", begun.cwd);
        let words = begun.args.iter();
        argv.extend(words.map(|word| word.strip_prefix(&here).unwrap_or(word).to_owned()));
        let mut wishes = ReporterSettings::default();
        match begun.runner.as_str() {
            "mocha" | "uvu" => {
                let names = tests.iter().map(|id| unnumbered(id).to_owned());
                wishes.only = names.collect();
            }
            "jest" | "vitest" => {
                let mut files: Vec<String> = Vec::new();
                for id in tests {
                    let file = id.split(" > ").next().unwrap_or(id);
                    if file.starts_with('-') || !file.contains('.') {
                        return None;
                    }
                    if !files.iter().any(|known| known == file) {
                        files.push(file.to_owned());
                    }
                }
                argv.extend(files);
            }
            "ava" | "tap" | "tape" | "jasmine" => {}
            _ => return None,
        }
        Some((argv, wishes))
    }

    /// Whether the runner by itself runs the code that is edited: it shows the failures, and something
    /// else as soon as a file that candidates edit cannot be read.
    fn runs_edited_code(
        &self,
        ground: &dyn ForkSource,
        goal: &RepairGoal,
        trial: &CandidateTrial,
    ) -> Option<bool> {
        let (argv, wishes) = self.runner_alone(&goal.failing)?;
        let shown = |broken: bool| -> Option<Option<TestReport>> {
            let mut fork = ground.fork().ok()?;
            if broken {
                for file in &trial.files {
                    let text = format!("{}\n)]}}\n", file.old);
                    fork.write(&file.path, text.as_bytes()).ok()?;
                }
            }
            let patience = goal.at_most(goal.patience.max(Duration::from_secs(20)));
            Some(
                self.started(fork.as_mut(), argv.clone(), &wishes, patience)
                    .ok(),
            )
        };
        let sound = shown(false)??;
        let all_seen = goal.failing.iter().all(|id| {
            let mut tests = sound.tests.iter();
            tests.any(|test| test.id == *id && test.outcome != TestOutcome::Passed)
        });
        let broken = shown(true)?;
        let outcomes = |report: &TestReport| -> BTreeMap<String, TestOutcome> {
            let tests = report.tests.iter();
            tests.map(|test| (test.id.clone(), test.outcome)).collect()
        };
        Some(all_seen && broken.is_none_or(|broken| outcomes(&broken) != outcomes(&sound)))
    }

    fn report(
        &self,
        fork: &mut dyn ProjectFork,
        only: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let (argv, wishes) = match (only.is_empty(), self.part(only)) {
            (false, Some(part)) => part,
            _ => (self.whole(), ReporterSettings::default()),
        };
        self.started(fork, argv, &wishes, deadline)
    }

    fn started(
        &self,
        fork: &mut dyn ProjectFork,
        argv: Vec<String>,
        wishes: &ReporterSettings,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let reported = self.start(fork, argv, wishes, deadline)?;
        if let Some(begun) = reported.begun() {
            self.seen().begun.get_or_insert_with(|| begun.clone());
        }
        let origins = reported.origins();
        let attempt = self.attempt("");
        if let Some(found) = broken::linked_elsewhere(&origins, &fork.root(), &attempt) {
            return Err(SuiteError::EnvironmentBroken(Box::new(found)));
        }
        if !origins.is_empty() {
            self.seen().origins = origins;
        }
        self.read(fork, &reported)
    }
}

impl TestSuite for ProcessSuite {
    fn run(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let begun = Instant::now();
        let left = || (begun + deadline).saturating_duration_since(Instant::now());
        // A step before the tests failed, or lacks what they do not need.
        let stopped = |report: &Result<TestReport, SuiteError>| match report {
            Ok(report) => silent(report),
            Err(SuiteError::EnvironmentBroken(_)) => self.scripted,
            Err(_) => false,
        };
        let mut report = self.report(fork, &[], deadline);
        if self.seen().instead.is_some() && (report.is_err() || stopped(&report)) {
            self.seen().instead = None;
            report = self.report(fork, &[], left());
        }
        self.seen().took = begun.elapsed();
        let report = match report {
            // npm runs the scripts of every package, and comes with node.
            Err(SuiteError::Ground(_)) if self.by_other_manager() => {
                self.seen().instead = Some(vec!["npm".to_owned(), "test".to_owned()]);
                Ok(self.report(fork, &[], left())?)
            }
            Err(SuiteError::Ground(error)) => {
                return Err(self.absent(fork).unwrap_or(error.into()));
            }
            report => report,
        };
        if !stopped(&report) || self.seen().instead.is_some() {
            return report;
        }
        for instead in [
            script::without_checks(fork, &self.folder),
            script::without_hooks(fork, &self.folder, &self.argv),
        ]
        .into_iter()
        .flatten()
        {
            self.seen().instead = Some(instead);
            let again = self.report(fork, &[], left());
            match again {
                Ok(report) if !silent(&report) => return Ok(report),
                _ => self.seen().instead = None,
            }
        }
        report
    }

    fn run_again(
        &self,
        fork: &mut dyn ProjectFork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        self.report(fork, tests, deadline)
    }

    fn cover(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        if !matches!(
            self.seen().begun.as_ref()?.runner.as_str(),
            "mocha" | "tape" | "uvu"
        ) {
            return None;
        }
        let mut wishes = ReporterSettings {
            cover: true,
            ..ReporterSettings::default()
        };
        // Where all would take too long, the tests beside those that fail are enough to compare with.
        if self.seen().took * TRACING > deadline {
            let file = |id: &str| id.split(" > ").next().unwrap_or(id).to_owned();
            let files: BTreeSet<String> = report.failing().map(|test| file(&test.id)).collect();
            let beside = report.tests.iter().map(|test| unnumbered(&test.id));
            let beside = beside.filter(|id| files.contains(&file(id)));
            wishes.only = beside.map(str::to_owned).collect();
        }
        let failing: BTreeSet<&str> = report.failing().map(|test| unnumbered(&test.id)).collect();
        // By itself the runner is not instrumented by what measures coverage around it.
        let argv = self
            .part(&[])
            .map_or_else(|| self.whole(), |(argv, _)| argv);
        let reported = self.start(fork, argv, &wishes, deadline).ok()?;
        let found: Vec<LinesOfTest> = reported
            .lines
            .iter()
            .filter_map(|line| {
                let ReporterLine::Lines { id, lines } = line else {
                    return None;
                };
                // tape names assertions below the test that they stand in.
                let below = format!("{id} > ");
                Some(LinesOfTest {
                    failed: failing
                        .iter()
                        .any(|name| name == id || name.starts_with(&below)),
                    lines: lines
                        .iter()
                        .map(|(path, text)| (path.clone(), lines_of_ranges(text)))
                        .collect(),
                })
            })
            .collect();
        let useful = found
            .iter()
            .any(|test| test.failed && !test.lines.is_empty());
        useful.then_some(found)
    }

    fn judge(
        &self,
        ground: &dyn ForkSource,
        _: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        if self.builds
            && self.seen().runs_edited_code.is_none()
            && let Some(first) = batch.first()
        {
            let found = self.runs_edited_code(ground, goal, first);
            self.seen().runs_edited_code = Some(found.unwrap_or(false));
        }
        let narrow = self.part(&goal.failing).is_some();
        let patience = goal.patience.max(Duration::from_secs(5));
        let outcome = |fork: &mut dyn ProjectFork, only: &[String], trial: &CandidateTrial| {
            // One that mends what fails is worth waiting for, however busy the machine is.
            let patience = if only.is_empty() && narrow {
                patience * WINNER
            } else {
                patience
            };
            match self.report(fork, only, goal.at_most(patience)) {
                Ok(report) => Ok(goal.verdict(trial.index, &report.tests)),
                Err(SuiteError::Ground(error)) => Err(error.into()),
                Err(_) => Ok(goal.verdict(trial.index, &[])),
            }
        };
        apart(ground, batch, until, heard, &mut |fork, trial| {
            // Most candidates do not even help the tests that fail.
            if narrow {
                let verdict = outcome(fork, &goal.failing, trial)?;
                if verdict.passes || verdict.fixed.len() < goal.failing.len() {
                    return Ok(verdict);
                }
            }
            outcome(fork, &[], trial)
        })
    }

    fn origins(&self) -> Vec<CodeOrigin> {
        self.seen().origins.clone()
    }

    fn batch(&self) -> (usize, usize) {
        (1, 4)
    }

    fn interpreter(&self) -> Option<String> {
        let seen = self.seen();
        let begun = seen.begun.as_ref()?;
        Some(if begun.python.is_empty() {
            format!("Node {} at {}", begun.version, begun.executable)
        } else {
            format!("Python {} at {}", begun.python, begun.executable)
        })
    }
}
