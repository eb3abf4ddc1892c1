//! Node's own test runner: results in TAP, lines from V8's coverage, candidates in worker threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{Goal, Suite, SuiteError, Trial, Verdict, apart, nonce};
use crate::detect::TestsFound;
use crate::ground::{Command, Fork, Ground};
use crate::locate::LinesOfTest;
use crate::report::{Outcome, TestCase, TestReport};
use crate::results;

const COVER: &str = include_str!("cover.mjs");
const JUDGE: &str = include_str!("judge.cjs");
const WORKER: &str = include_str!("worker.cjs");
const RUNNER: &str = include_str!("runner.cjs");

/// Test files that node runs.
pub(crate) struct Node {
    files: Vec<String>,
    options: Vec<String>,
    test_limit: Duration,
    way: Mutex<Way>,
}

/// How candidates are judged, the quickest way that shows what processes show.
#[derive(Debug, Clone)]
struct Way {
    kind: Kind,
    /// Which tests pass in the project as it is.
    expected: BTreeMap<String, bool>,
    /// What all tests took that way.
    usual: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Many candidates in one thread, with a stand-in for the test runner.
    Quick,
    /// Every test file in a thread of its own.
    Thorough,
    /// Every test file in a process of its own.
    Cold,
}

/// The name of the project as it is among candidates.
const UNCHANGED: usize = u32::MAX as usize;

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
    #[serde(default)]
    out: String,
    /// From the stand-in; node's runner writes TAP.
    tests: Option<Vec<Seen>>,
    fine: bool,
}

#[derive(Deserialize)]
struct Seen {
    id: String,
    outcome: Outcome,
}

impl FileRun {
    fn tests(&self) -> Vec<TestCase> {
        let Some(seen) = &self.tests else {
            return Node::read(&self.file, &self.out, self.fine, String::new);
        };
        seen.iter()
            .map(|test| TestCase {
                id: if test.id.is_empty() {
                    self.file.clone()
                } else {
                    format!("{}{IN}{}", self.file, test.id)
                },
                outcome: test.outcome,
                message: String::new(),
            })
            .collect()
    }
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
            way: Mutex::new(Way {
                kind: Kind::Cold,
                expected: BTreeMap::new(),
                usual: Duration::ZERO,
            }),
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

    fn way(&self) -> std::sync::MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs candidates in worker threads of one process.
    fn serve(
        &self,
        fork: &mut dyn Fork,
        kind: Kind,
        request: &Request<'_>,
        deadline: Duration,
    ) -> Result<Vec<(usize, Vec<TestCase>)>, SuiteError> {
        let marker = format!("lula-verdict {} ", nonce());
        let options: Vec<&str> = ["--test-reporter=tap"]
            .into_iter()
            .chain(self.options.iter().map(String::as_str))
            .collect();
        let text = json!({
            "marker": marker,
            "files": request.files,
            "options": options,
            "patience": request.patience.as_secs_f64(),
            "burn": request.burn.as_secs_f64(),
            "seconds": request.seconds.as_secs_f64(),
            "candidates": request.candidates,
            "quick": kind == Kind::Quick,
            "check": request.check.then_some(UNCHANGED),
            "worker": WORKER,
            "runner": RUNNER,
        });
        let command = Command::new(["node", "-e", JUDGE], deadline)
            .stdin(text.to_string().into_bytes())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1");
        let ran = fork.run(&command)?;
        Ok(ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix(&marker))
            .filter_map(|line| serde_json::from_str::<Judged>(line).ok())
            .map(|judged| {
                let tests = judged.runs.iter().flat_map(FileRun::tests).collect();
                (judged.id, tests)
            })
            .collect())
    }

    /// Finds the quickest way of judging that sees what processes see.
    fn warm_up(&self, fork: &mut dyn Fork, report: &TestReport, deadline: Duration) {
        let expected: BTreeMap<String, bool> = report
            .tests
            .iter()
            .map(|test| (test.id.clone(), test.outcome == Outcome::Passed))
            .collect();
        let files: Vec<&String> = self.files.iter().collect();
        let limit = (self.test_limit * 2).min(deadline / 3);
        for kind in [Kind::Quick, Kind::Thorough] {
            let began = Instant::now();
            let request = Request {
                files: &files,
                candidates: json!([{"id": UNCHANGED, "files": [], "whole": true}]),
                patience: limit,
                burn: limit,
                seconds: limit,
                check: false,
            };
            let tried = self.serve(fork, kind, &request, limit + Duration::from_secs(2));
            if tried.is_ok_and(|seen| seen.iter().any(|(_, tests)| agree(&expected, tests))) {
                *self.way() = Way {
                    kind,
                    expected,
                    usual: began.elapsed(),
                };
                return;
            }
        }
    }

    /// Judges in worker threads; none where the threads turned out not to be apart enough.
    fn judge_warm(
        &self,
        fork: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
    ) -> Result<Option<Vec<(usize, Vec<TestCase>)>>, SuiteError> {
        let way = self.way().clone();
        let files = self.order(goal);
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
        let patience = goal.patience.max(PATIENCE);
        let seconds = until.saturating_duration_since(Instant::now());
        let request = Request {
            files: &files,
            candidates: json!(candidates),
            patience,
            burn: (way.usual * 4).clamp(LEAST_LOOP, patience),
            seconds,
            check: way.kind == Kind::Quick,
        };
        let deadline = goal.at_most(seconds + patience * 2 + Duration::from_secs(2));
        let mut seen = self.serve(fork, way.kind, &request, deadline)?;
        let spilled = seen
            .extract_if(.., |(index, _)| *index == UNCHANGED)
            .any(|(_, tests)| !agree(&way.expected, &tests));
        if spilled {
            self.way().kind = Kind::Thorough;
            return Ok(None);
        }
        Ok(Some(seen))
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
        self.warm_up(fork, report, deadline);
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
        ground: &dyn Ground,
        fork: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
    ) -> Result<(), SuiteError> {
        while self.way().kind != Kind::Cold {
            if let Some(seen) = self.judge_warm(fork, goal, batch, until)? {
                for (index, tests) in seen {
                    heard(goal.verdict(index, &tests));
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
                    .any(|test| matches!(test.outcome, Outcome::Failed | Outcome::Broken))
                {
                    break;
                }
            }
            Ok(goal.verdict(trial.index, &tests))
        })
    }

    fn batch(&self) -> (usize, usize) {
        match self.way().kind {
            Kind::Quick => (32, 400),
            Kind::Thorough => (12, 64),
            Kind::Cold => (4, 16),
        }
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// What is asked of the threads.
struct Request<'a> {
    files: &'a [&'a String],
    candidates: serde_json::Value,
    patience: Duration,
    /// How much time one test file may burn.
    burn: Duration,
    seconds: Duration,
    /// Whether to run the project as it is at the end.
    check: bool,
}

/// Least time to burn before a candidate counts as a loop.
const LEAST_LOOP: Duration = Duration::from_millis(400);

/// Whether just the tests pass that should.
fn agree(expected: &BTreeMap<String, bool>, seen: &[TestCase]) -> bool {
    let passed: BTreeSet<&str> = seen
        .iter()
        .filter(|test| test.outcome == Outcome::Passed)
        .map(|test| test.id.as_str())
        .collect();
    expected
        .iter()
        .all(|(id, passes)| passed.contains(id.as_str()) == *passes)
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
