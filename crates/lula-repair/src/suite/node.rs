//! Node's own test runner: one process per test file, results in TAP, lines from V8's coverage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::process::with_changes;
use super::{Goal, Suite, SuiteError, Trial, Verdict, nonce};
use crate::detect::TestsFound;
use crate::ground::{Command, Fork};
use crate::locate::LinesOfTest;
use crate::report::{Outcome, TestCase, TestReport};
use crate::results;

const COVER: &str = include_str!("node_cover.mjs");
const WORKER: &str = include_str!("node_worker.cjs");

/// Test files that node runs.
pub(crate) struct Node {
    files: Vec<String>,
    options: Vec<String>,
    test_limit: Duration,
    /// Whether the tests pass in worker threads as they do in processes.
    warm: AtomicBool,
}

/// Least time that a test file gets: starting node on a busy machine takes long enough.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between the file and the names of a test in its id.
const IN: &str = " > ";

#[derive(Deserialize)]
struct Covered {
    test: String,
    failed: bool,
    lines: BTreeMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
struct Judged {
    id: usize,
    runs: Vec<FileRun>,
}

#[derive(Deserialize)]
struct FileRun {
    file: String,
    out: String,
    fine: bool,
}

impl Node {
    pub(crate) fn open(tests: &TestsFound, test_limit: Duration) -> Result<Self, SuiteError> {
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
                .cloned()
                .collect(),
            test_limit,
            warm: AtomicBool::new(false),
        })
    }

    fn command(&self, file: &str, deadline: Duration) -> Command {
        let argv = ["node".to_owned(), "--test-reporter=tap".to_owned()]
            .into_iter()
            .chain(self.options.iter().cloned())
            .chain([file.to_owned()]);
        Command::new(argv, deadline)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1")
    }

    /// Runs one file; a file that breaks before its first test is one broken test.
    fn run_file(
        &self,
        fork: &mut dyn Fork,
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

    fn run_files(
        &self,
        fork: &mut dyn Fork,
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
        if !passed && !tests.iter().any(|test| test.outcome == Outcome::Failed) {
            tests.push(TestCase {
                id: path.to_owned(),
                outcome: Outcome::Broken,
                message: reason(),
            });
        }
        tests
    }

    /// Test files in the order in which they tell the most: those that fail first.
    fn order(&self, goal: &Goal) -> Vec<&String> {
        let mut order: Vec<&String> = goal.failing.iter().filter_map(|id| self.home(id)).collect();
        order.dedup();
        let rest: Vec<&String> = self
            .files
            .iter()
            .filter(|file| !order.contains(file))
            .collect();
        order.into_iter().chain(rest).collect()
    }

    /// Runs candidates in worker threads of one process.
    fn serve(
        &self,
        fork: &mut dyn Fork,
        files: &[&String],
        candidates: &serde_json::Value,
        patience: Duration,
        seconds: Duration,
        heard: &mut dyn FnMut(usize, Vec<TestCase>),
    ) -> Result<(), SuiteError> {
        let marker = format!("lula-verdict {} ", nonce());
        let options: Vec<&str> = ["--test-reporter=tap"]
            .into_iter()
            .chain(self.options.iter().map(String::as_str))
            .collect();
        let request = json!({
            "marker": marker,
            "files": files,
            "options": options,
            "patience": patience.as_secs_f64(),
            "seconds": seconds.as_secs_f64(),
            "candidates": candidates,
        });
        let command = Command::new(
            ["node", "-e", WORKER],
            seconds + patience * 2 + Duration::from_secs(2),
        )
        .stdin(request.to_string().into_bytes())
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1");
        let ran = fork.run(&command)?;
        for line in ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix(&marker))
        {
            if let Ok(judged) = serde_json::from_str::<Judged>(line) {
                let tests = judged
                    .runs
                    .iter()
                    .flat_map(|run| Self::read(&run.file, &run.out, run.fine, String::new))
                    .collect();
                heard(judged.id, tests);
            }
        }
        Ok(())
    }

    /// Tries whether worker threads see what processes see.
    fn warm_up(&self, fork: &mut dyn Fork, report: &TestReport) {
        let files: Vec<&String> = self.files.iter().collect();
        let mut same = false;
        let nothing = json!([{"id": 0, "files": [], "whole": true}]);
        let tried = self.serve(
            fork,
            &files,
            &nothing,
            self.test_limit * 2,
            self.test_limit * 2,
            &mut |_, tests| {
                let passing = |test: &TestCase| {
                    tests
                        .iter()
                        .any(|seen| seen.id == test.id && seen.outcome == Outcome::Passed)
                };
                same = report
                    .tests
                    .iter()
                    .all(|test| passing(test) == (test.outcome == Outcome::Passed));
            },
        );
        self.warm.store(tried.is_ok() && same, Ordering::Relaxed);
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

impl Suite for Node {
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        let files: Vec<&String> = self.files.iter().collect();
        self.run_files(fork, &files, deadline)
    }

    fn run_again(
        &self,
        fork: &mut dyn Fork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let mut files: Vec<&String> = tests.iter().filter_map(|id| self.home(id)).collect();
        files.dedup();
        self.run_files(fork, &files, deadline)
    }

    fn cover(
        &self,
        fork: &mut dyn Fork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        self.warm_up(fork, report);
        let until = Instant::now() + deadline;
        let marker = format!("lula-lines {} ", nonce());
        // A file that breaks as a whole has nothing but its own lines to show.
        let broken: BTreeSet<&str> = report.failing().map(|test| test.id.as_str()).collect();
        let mut found = Vec::new();
        for file in &self.files {
            let left = until
                .saturating_duration_since(Instant::now())
                .min(self.test_limit * 2);
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
                if let Ok(covered) = serde_json::from_str::<Covered>(line) {
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
        fork: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
    ) -> Result<(), SuiteError> {
        let order = self.order(goal);
        if self.warm.load(Ordering::Relaxed) {
            let candidates: Vec<_> = batch
                .iter()
                .map(|trial| {
                    let files: Vec<_> = trial
                        .files
                        .iter()
                        .map(|change| (&change.path, &change.new))
                        .collect();
                    json!({"id": trial.index, "files": files})
                })
                .collect();
            let seconds = until.saturating_duration_since(Instant::now());
            return self.serve(
                fork,
                &order,
                &json!(candidates),
                goal.patience.max(PATIENCE),
                seconds,
                &mut |index, tests| {
                    heard(goal.judge(
                        index,
                        tests.iter().map(|test| (test.id.as_str(), test.outcome)),
                    ));
                },
            );
        }
        let mut go_on = true;
        for trial in batch {
            if !go_on || Instant::now() >= until {
                break;
            }
            with_changes(fork, trial, |fork| {
                let mut tests = Vec::new();
                for file in &order {
                    tests.extend(self.run_file(fork, file, goal.patience.max(PATIENCE))?);
                    if tests
                        .iter()
                        .any(|test| matches!(test.outcome, Outcome::Failed | Outcome::Broken))
                    {
                        break;
                    }
                }
                go_on = heard(goal.judge(
                    trial.index,
                    tests.iter().map(|test| (test.id.as_str(), test.outcome)),
                ));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn batch(&self) -> (usize, usize) {
        (12, 64)
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(3)
    }
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
