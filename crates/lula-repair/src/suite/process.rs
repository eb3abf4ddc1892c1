//! Frameworks that are started anew for every run: Jest, Vitest, Mocha, Go, Make, and any command.

use std::time::{Duration, Instant};

use super::{Goal, Suite, SuiteError, Trial, Verdict, apart};
use crate::detect::{Framework, TestsFound};
use crate::ground::{Command, Fork, Ground, Ran};
use crate::locate::LinesOfTest;
use crate::report::{Outcome, TestCase, TestReport};
use crate::results;

/// The name of the only test of a command that says nothing but its exit code.
const WHOLE: &str = "the test command";

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

    /// What `JUnit` files a build left; they count only where they agree with its exit code.
    fn junit(fork: &dyn Fork) -> Vec<TestCase> {
        let files = fork.files().unwrap_or_default();
        files
            .iter()
            .filter(|path| {
                path.rsplit('.').next() == Some("xml")
                    && (path.contains("surefire-reports/") || path.contains("test-results/"))
            })
            .filter_map(|path| fork.read(path).ok())
            .flat_map(|bytes| results::junit(&String::from_utf8_lossy(&bytes)))
            .collect()
    }

    fn read(&self, fork: &dyn Fork, ran: &Ran) -> Result<TestReport, SuiteError> {
        let out = ran.out();
        let tests = match self.framework {
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
                    Self::junit(fork),
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
        Ok(TestReport { tests })
    }
}

impl Suite for Process {
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        let ran = fork.run(&self.command(deadline))?;
        if ran.exit == Some(127) || ran.exit == Some(126) {
            return Err(SuiteError::Absent {
                framework: self.argv.join(" "),
                reason: ran.err().lines().last().unwrap_or("not found").to_owned(),
            });
        }
        self.read(fork, &ran)
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
        apart(ground, batch, until, heard, &mut |fork, trial| {
            let ran = fork.run(&self.command(goal.at_most(goal.patience)))?;
            let tests = self
                .read(fork, &ran)
                .map_or(Vec::new(), |report| report.tests);
            Ok(goal.verdict(trial.index, &tests))
        })
    }

    fn batch(&self) -> (usize, usize) {
        (1, 4)
    }
}
