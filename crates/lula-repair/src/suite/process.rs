//! Frameworks that are started anew for every run: Jest, Vitest, Mocha, Go, Make, and any command.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Goal, Suite, SuiteError, Trial, Verdict, apart};
use crate::detect::{Framework, TestsFound};
use crate::ground::{Command, Fork, Ground, Ran};
use crate::locate::LinesOfTest;
use crate::report::{Outcome, TestCase, TestReport};
use crate::results;

/// The name of the only test of a command that says nothing but its exit code.
pub const WHOLE: &str = "the test command";

/// A command that runs all tests.
pub(crate) struct Process {
    framework: Framework,
    argv: Vec<String>,
}

impl Process {
    pub(crate) fn open(tests: &TestsFound, fork: &dyn Fork) -> Self {
        let extra: &[&str] = match tests.framework {
            Framework::Jest => &["--json", "--silent"],
            Framework::Vitest => &["run", "--reporter=json"],
            Framework::Mocha => &["--reporter", "json"],
            _ => &[],
        };
        let mut argv: Vec<String> = tests
            .argv
            .iter()
            .filter(|part| *part != "run")
            .cloned()
            .collect();
        installed(&mut argv, fork);
        argv.extend(extra.iter().map(|&part| part.to_owned()));
        Self {
            framework: tests.framework,
            argv,
        }
    }

    fn command(&self, only: &[&str], deadline: Duration) -> Command {
        let argv = self
            .argv
            .iter()
            .map(String::as_str)
            .chain(only.iter().copied());
        Command::new(argv, deadline)
            .env("CI", "1")
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
    }

    /// What the run wrote as `JUnit`'s XML; what stood there before says nothing of it.
    fn junit(fork: &dyn Fork, before: &Reports) -> Vec<TestCase> {
        reports(fork)
            .into_iter()
            .filter(|(path, bytes)| before.get(path) != Some(bytes))
            .flat_map(|(_, bytes)| results::junit(&String::from_utf8_lossy(&bytes)))
            .collect()
    }

    /// Names files from the project's root, wherever the fork lies.
    fn relative(fork: &dyn Fork, tests: &mut [TestCase]) {
        let files = fork.files().unwrap_or_default();
        for test in tests.iter_mut().filter(|test| test.id.starts_with('/')) {
            let (place, rest) = test.id.split_once(" > ").unwrap_or((&test.id, ""));
            let known = files
                .iter()
                .filter(|file| place.ends_with(&format!("/{file}")))
                .max_by_key(|file| file.len());
            if let Some(file) = known {
                test.id = if rest.is_empty() {
                    file.clone()
                } else {
                    format!("{file} > {rest}")
                };
            }
        }
    }

    fn read(&self, fork: &dyn Fork, ran: &Ran, before: &Reports) -> Result<TestReport, SuiteError> {
        let out = ran.out();
        let mut tests = match self.framework {
            Framework::Jest | Framework::Vitest => results::jest(&out),
            Framework::Mocha => results::mocha(&out),
            Framework::GoTest => results::go(&out),
            _ => {
                let (passed, text) = (
                    ran.exit == Some(0) && !ran.timed_out,
                    format!("{out}\n{}", ran.err()),
                );
                let known = [
                    results::libtest(&out),
                    results::tap(&out),
                    Self::junit(fork, before),
                ]
                .into_iter()
                .find(|tests| !tests.is_empty());
                match known {
                    Some(tests)
                        if passed
                            == tests.iter().all(|test| {
                                matches!(test.outcome, Outcome::Passed | Outcome::Skipped)
                            }) =>
                    {
                        tests
                    }
                    _ => {
                        let outcome = if passed {
                            Outcome::Passed
                        } else {
                            Outcome::Failed
                        };
                        let tail = text.char_indices().rev().nth(5999).map_or(0, |(at, _)| at);
                        vec![TestCase {
                            id: WHOLE.to_owned(),
                            outcome,
                            message: text[tail..].to_owned(),
                        }]
                    }
                }
            }
        };
        if tests.is_empty() {
            let reason = format!("{out}\n{}", ran.err());
            return Err(SuiteError::NoResults(
                reason
                    .lines()
                    .rev()
                    .find(|line| !line.trim().is_empty())
                    .unwrap_or("nothing was printed")
                    .to_owned(),
            ));
        }
        Self::relative(fork, &mut tests);
        Ok(TestReport { tests })
    }

    fn report(
        &self,
        fork: &mut dyn Fork,
        only: &[&str],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let before = reports(fork);
        let ran = fork.run(&self.command(only, deadline))?;
        if ran.exit == Some(127) || ran.exit == Some(126) {
            return Err(SuiteError::Absent {
                framework: self.argv.join(" "),
                reason: ran.err().lines().last().unwrap_or("not found").to_owned(),
            });
        }
        self.read(fork, &ran, &before)
    }
}

/// Starts a program that the project has installed itself, rather than `npx`, which takes longer
/// to find it than many a suite takes to run.
fn installed(argv: &mut Vec<String>, fork: &dyn Fork) {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let (before, name) = match words.as_slice() {
        ["npx", "--no-install", name, ..] => (2, *name),
        ["npx", name, ..] => (1, *name),
        _ => return,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let there = || {
        fork.read(&format!("node_modules/{name}/package.json"))
            .is_ok()
    };
    if name.chars().all(plain) && there() {
        let program = format!("node_modules/.bin/{name}");
        argv.splice(..=before, [program]);
    }
}

/// The files of the failing tests, where the framework takes files and every test names its own.
fn failing_files(framework: Framework, goal: &Goal) -> Vec<&str> {
    if !matches!(
        framework,
        Framework::Jest | Framework::Vitest | Framework::Mocha
    ) {
        return Vec::new();
    }
    let mut files = Vec::new();
    for id in &goal.failing {
        let Some((name, _)) = id.split_once(" > ") else {
            return Vec::new();
        };
        if name.starts_with('-') || !name.contains('.') {
            return Vec::new();
        }
        if !files.contains(&name) {
            files.push(name);
        }
    }
    files
}

/// Files that may hold results, with what they hold.
type Reports = BTreeMap<String, Vec<u8>>;

/// XML files with test cases in them.
fn reports(fork: &dyn Fork) -> Reports {
    let files = fork.files().unwrap_or_default();
    files
        .into_iter()
        .filter(|path| path.rsplit('.').next() == Some("xml"))
        .filter_map(|path| {
            let bytes = fork.read(&path).ok()?;
            let holds = bytes.windows(9).any(|part| part == b"<testcase");
            holds.then_some((path, bytes))
        })
        .collect()
}

impl Suite for Process {
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        self.report(fork, &[], deadline)
    }

    fn cover(&self, _: &mut dyn Fork, _: &TestReport, _: Duration) -> Option<Vec<LinesOfTest>> {
        None
    }

    fn judge(
        &self,
        ground: &dyn Ground,
        _: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
    ) -> Result<(), SuiteError> {
        let first = failing_files(self.framework, goal);
        let outcome = |fork: &mut dyn Fork, only: &[&str], trial: &Trial| match self.report(
            fork,
            only,
            goal.at_most(goal.patience),
        ) {
            Ok(report) => Ok(goal.verdict(trial.index, &report.tests)),
            Err(SuiteError::Ground(error)) => Err(error.into()),
            Err(_) => Ok(goal.verdict(trial.index, &[])),
        };
        apart(ground, batch, until, heard, &mut |fork, trial| {
            // Most candidates do not even help the tests that fail.
            if !first.is_empty() {
                let verdict = outcome(fork, &first, trial)?;
                if verdict.passes || verdict.fixed.len() < goal.failing.len() {
                    return Ok(verdict);
                }
            }
            outcome(fork, &[], trial)
        })
    }

    fn batch(&self) -> (usize, usize) {
        (1, 4)
    }
}
