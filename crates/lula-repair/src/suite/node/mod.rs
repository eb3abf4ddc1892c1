//! Node's own test runner: results in TAP, lines from V8's coverage, candidates in worker threads.

mod warm;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::broken::{self, SuiteCommandAttempt};
use super::reporter::{self, ReporterSettings};
use super::{
    CandidateTrial, CandidateVerdict, RepairGoal, SuiteError, TestSuite, apart, nonce, script,
};
use crate::detect::DetectedTests;
use crate::environment::CodeOrigin;
use crate::ground::{ForkCommand, ForkSource, ProjectFork};
use crate::locate::LinesOfTest;
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::results;
use warm::{NodeJudgingKind, NodeJudgingMethod};

const COVER: &str = include_str!("cover.mjs");

/// Test files that node runs.
pub(crate) struct NodeSuite {
    files: Vec<String>,
    options: Vec<String>,
    test_limit: Duration,
    seen: Mutex<NodeRunHistory>,
    way: Mutex<NodeJudgingMethod>,
}

#[derive(Default)]
struct NodeRunHistory {
    /// Which node it is, once it ran.
    about: Option<String>,
    /// Where packages of the project came from.
    origins: Vec<CodeOrigin>,
}

/// Least time that a test file gets: starting node on a busy machine takes long enough.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many test files are looked at for their lines beside those that fail.
const SAMPLE: usize = 24;

/// Between the file and the names of a test in its id.
const IN: &str = " > ";

#[derive(Deserialize)]
struct TestCoverage {
    test: String,
    failed: bool,
    lines: BTreeMap<String, Vec<usize>>,
}

impl NodeSuite {
    pub(crate) fn open(tests: &DetectedTests, test_limit: Duration) -> Result<Self, SuiteError> {
        if tests.files.is_empty() {
            return Err(SuiteError::Absent {
                framework: "node --test".to_owned(),
                reason: "no test files were found".to_owned(),
            });
        }
        Ok(Self {
            files: tests.files.clone(),
            options: tests
                .options
                .iter()
                .filter(|option| option.starts_with("--") && *option != "--test")
                .filter(|option| !option.starts_with("--test-reporter"))
                .cloned()
                .collect(),
            test_limit,
            seen: Mutex::default(),
            way: Mutex::new(NodeJudgingMethod {
                kind: NodeJudgingKind::Cold,
                expected: BTreeMap::new(),
                usual: Duration::ZERO,
            }),
        })
    }

    fn seen(&self) -> MutexGuard<'_, NodeRunHistory> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, file: &str, deadline: Duration) -> ForkCommand {
        let argv = ["node".to_owned(), "--test-reporter=tap".to_owned()]
            .into_iter()
            .chain(self.options.iter().cloned())
            .chain([file.to_owned()]);
        ForkCommand::new(argv, deadline)
    }

    /// Runs one file; a file that breaks before its first test is one broken test.
    fn run_file(
        &self,
        fork: &mut dyn ProjectFork,
        file: &str,
        deadline: Duration,
    ) -> Result<Vec<TestCase>, SuiteError> {
        let ran = fork.run(&self.command(file, deadline))?;
        let passed = ran.exit == Some(0) && !ran.timed_out;
        Ok(Self::read(file, &ran.out(), passed, || {
            if ran.timed_out {
                format!("timed out after {deadline:?}\n{}", ran.err())
            } else {
                ran.err()
            }
        }))
    }

    /// Runs all files at once, as many beside each other as node thinks right. None where one by one
    /// tells more: a file broke before its first test, or the runner did not get to its end.
    fn run_together(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<Option<TestReport>, SuiteError> {
        let argv = ["node".to_owned()]
            .into_iter()
            .chain(self.options.iter().cloned())
            .chain(["--test".to_owned()])
            .chain(self.files.iter().cloned());
        let files = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let patience = deadline.min(self.test_limit * 2 * files.max(1));
        let settings = ReporterSettings {
            node_test: true,
            packages: script::packages(fork),
            ..ReporterSettings::default()
        };
        let reported = reporter::run(fork, &ForkCommand::new(argv, patience), &settings)?;
        let begun = reported.begun();
        self.seen().about =
            begun.map(|node| format!("Node {} at {}", node.version, node.executable));
        let origins = reported.origins();
        let attempt = SuiteCommandAttempt {
            command: "node --test",
            folder: "",
            interpreter: None,
            output: "",
        };
        if let Some(found) = broken::linked_elsewhere(&origins, &fork.root(), &attempt) {
            return Err(SuiteError::EnvironmentBroken(Box::new(found)));
        }
        self.seen().origins = origins;
        let report = leaves(reported.tests());
        // One file by itself tells why it broke, and names with line breaks in one line.
        let apart = |test: &TestCase| !test.id.contains(IN) || test.id.contains(char::is_control);
        let passed = reported.ran.exit == Some(0);
        let told = reported.finished()
            && !reported.ran.timed_out
            && !report.tests.is_empty()
            && !report.tests.iter().any(apart)
            && passed == (report.failing().next().is_none());
        Ok(told.then_some(report))
    }

    fn run_files(
        &self,
        fork: &mut dyn ProjectFork,
        files: &[&String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let until = Instant::now() + deadline;
        let mut tests = Vec::new();
        for file in files {
            let left = until.saturating_duration_since(Instant::now());
            tests.extend(self.run_file(fork, file, left.min(self.test_limit * 2))?);
        }
        if tests.is_empty() {
            let reason = "no test was found in the test files".to_owned();
            return Err(SuiteError::NoResults(reason));
        }
        Ok(TestReport { tests })
    }

    /// The tests of one file from what its run printed.
    fn read(path: &str, out: &str, passed: bool, reason: impl FnOnce() -> String) -> Vec<TestCase> {
        let mut tests = results::tap(out);
        for test in &mut tests {
            test.id = format!("{path}{IN}{}", test.id);
        }
        if !passed && !tests.iter().any(|test| test.outcome == TestOutcome::Failed) {
            tests.push(TestCase {
                id: path.to_owned(),
                outcome: TestOutcome::Broken,
                message: reason(),
            });
        }
        results::number(&mut tests);
        tests
    }

    /// Test files in the order in which they tell the most: those that fail first.
    fn order(&self, goal: &RepairGoal) -> Vec<&String> {
        let mut order: Vec<&String> = goal.failing.iter().filter_map(|id| self.home(id)).collect();
        order.dedup();
        let rest: Vec<&String> = self
            .files
            .iter()
            .filter(|file| !order.contains(file))
            .collect();
        order.into_iter().chain(rest).collect()
    }

    fn home<'a>(&'a self, id: &str) -> Option<&'a String> {
        self.files.iter().find(|file| {
            id == *file
                || id
                    .strip_prefix(file.as_str())
                    .is_some_and(|rest| rest.starts_with(IN))
        })
    }
}

impl TestSuite for NodeSuite {
    fn run(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let until = Instant::now() + deadline;
        if let Some(report) = self.run_together(fork, deadline)? {
            return Ok(report);
        }
        if self.interpreter().is_none() {
            let asked = "`Node ${process.version} at ${process.execPath}`";
            let told = fork.run(&ForkCommand::new(["node", "-p", asked], PATIENCE));
            let told = told.ok().filter(|ran| ran.exit == Some(0));
            self.seen().about = told.map(|ran| ran.out().trim().to_owned());
        }
        let files: Vec<&String> = self.files.iter().collect();
        let left = until.saturating_duration_since(Instant::now());
        self.run_files(fork, &files, left)
    }

    fn interpreter(&self) -> Option<String> {
        self.seen().about.clone()
    }

    fn origins(&self) -> Vec<CodeOrigin> {
        self.seen().origins.clone()
    }

    fn run_again(
        &self,
        fork: &mut dyn ProjectFork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let mut files: Vec<&String> = tests.iter().filter_map(|id| self.home(id)).collect();
        files.dedup();
        self.run_files(fork, &files, deadline)
    }

    fn cover(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        let until = Instant::now() + deadline;
        self.warm_up(fork, report, deadline / 2);
        let marker = format!("lula-lines {} ", nonce());
        // A file that breaks as a whole has nothing but its own lines to show.
        let broken: BTreeSet<&str> = report.failing().map(|test| test.id.as_str()).collect();
        let mut found = Vec::new();
        let mut order: Vec<&String> = self.files.iter().collect();
        let fails = |file: &&String| {
            !report
                .failing()
                .any(|test| self.home(&test.id) == Some(*file))
        };
        order.sort_by_key(fails);
        for (index, file) in order.into_iter().enumerate() {
            let left = until
                .saturating_duration_since(Instant::now())
                .min(self.test_limit * 2);
            // What passes elsewhere tells little more after a while.
            let known = index >= SAMPLE && fails(&file);
            if known || left.is_zero() {
                break;
            }
            let mut command = self.command(file, left).env("LULA_MARKER", &marker);
            command
                .argv
                .insert(1, format!("data:text/javascript,{}", encode(COVER)));
            command.argv.insert(1, "--import".to_owned());
            let ran = fork.run(&command).ok()?;
            for line in ran
                .err()
                .lines()
                .filter_map(|line| line.strip_prefix(&marker))
            {
                if let Ok(covered) = serde_json::from_str::<TestCoverage>(line) {
                    found.push(LinesOfTest {
                        failed: covered.failed
                            || broken.contains(covered.test.as_str())
                            || broken.contains(file.as_str()),
                        lines: covered.lines,
                    });
                }
            }
        }
        found
            .iter()
            .any(|test| test.failed && !test.lines.is_empty())
            .then_some(found)
    }

    fn judge(
        &self,
        ground: &dyn ForkSource,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        while self.way().kind != NodeJudgingKind::Cold {
            if let Some(seen) = self.judge_warm(fork, goal, batch, until)? {
                for seen in seen {
                    heard(goal.verdict(seen.index, &seen.tests));
                }
                return Ok(());
            }
        }
        apart(ground, batch, until, heard, &mut |fork, trial| {
            let mut tests = Vec::new();
            for file in self.order(goal) {
                let patience = goal.at_most(goal.patience.max(PATIENCE));
                tests.extend(self.run_file(fork, file, patience)?);
                if tests
                    .iter()
                    .any(|test| matches!(test.outcome, TestOutcome::Failed | TestOutcome::Broken))
                {
                    break;
                }
            }
            Ok(goal.verdict(trial.index, &tests))
        })
    }

    fn batch(&self) -> (usize, usize) {
        match self.way().kind {
            NodeJudgingKind::Quick => (48, 400),
            NodeJudgingKind::Thorough => (12, 64),
            NodeJudgingKind::Cold => (4, 16),
        }
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// The tests that have no tests inside them.
fn leaves(mut report: TestReport) -> TestReport {
    let ids: BTreeSet<String> = report.tests.iter().map(|test| test.id.clone()).collect();
    let has_inner = |id: &str| {
        let inner = format!("{id}{IN}");
        let mut after = ids.range(inner.clone()..);
        after.next().is_some_and(|next| next.starts_with(&inner))
    };
    report.tests.retain(|test| !has_inner(&test.id));
    report
}

/// Percent-encodes what a data URL cannot hold.
fn encode(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
