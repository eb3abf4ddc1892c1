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
    pub(crate) fn open(tests: &TestsFound) -> Self {
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
        argv.extend(extra.iter().map(|&part| part.to_owned()));
        Self {
            framework: tests.framework,
            argv,
        }
    }

    fn command(&self, deadline: Duration) -> Command {
        Command::new(self.argv.clone(), deadline)
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

    fn report(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        let before = reports(fork);
        let ran = fork.run(&self.command(deadline))?;
        if ran.exit == Some(127) || ran.exit == Some(126) {
            return Err(SuiteError::Absent {
                framework: self.argv.join(" "),
                reason: ran.err().lines().last().unwrap_or("not found").to_owned(),
            });
        }
        self.read(fork, &ran, &before)
    }
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
        self.report(fork, deadline)
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
        apart(ground, batch, until, heard, &mut |fork, trial| match self
            .report(fork, goal.at_most(goal.patience))
        {
            Ok(report) => Ok(goal.verdict(trial.index, &report.tests)),
            Err(SuiteError::Ground(error)) => Err(error.into()),
            Err(_) => Ok(goal.verdict(trial.index, &[])),
        })
    }

    fn batch(&self) -> (usize, usize) {
        (1, 4)
    }
}
