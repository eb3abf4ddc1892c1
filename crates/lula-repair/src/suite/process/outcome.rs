//! What a command that ran tests says: its results, or what its environment lacks.

use std::time::Duration;

use super::ProcessSuite;
use crate::detect::TestFramework;
use crate::ground::{ForkCommand, ProjectFork};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::results;
use crate::suite::SuiteError;
use crate::suite::broken::{self, ProjectFolderFiles, SuiteCommandAttempt};
use crate::suite::reporter::{ReportedRun, ReporterOutput};

/// The name of the only test of a command that says nothing but its exit code.
pub const WHOLE: &str = "the test command";

impl ProcessSuite {
    /// Whether the program of a runner is not there at all.
    pub(super) fn absent(&self, fork: &mut dyn ProjectFork) -> Option<SuiteError> {
        let program = self.argv.first()?;
        let runs = matches!(
            self.framework,
            TestFramework::GoTest
                | TestFramework::Ctest
                | TestFramework::Rspec
                | TestFramework::Phpunit
                | TestFramework::BunTest
                | TestFramework::DenoTest
                | TestFramework::Maven
                | TestFramework::Gradle
        );
        // A script of composer's can be run without it.
        if !runs || program == "composer" {
            return None;
        }
        let words = ["sh", "-c", "command -v \"$1\"", "sh", program];
        let look = ForkCommand::new(words, Duration::from_secs(20)).in_folder(&self.folder);
        let there = fork.run(&look).ok()?.exit == Some(0);
        let broken = || broken::absent(program, &self.attempt(""));
        (!there).then(|| SuiteError::EnvironmentBroken(Box::new(broken())))
    }

    pub(super) fn attempt<'a>(&'a self, output: &'a str) -> SuiteCommandAttempt<'a> {
        SuiteCommandAttempt {
            command: &self.line,
            folder: &self.folder,
            interpreter: None,
            output,
        }
    }

    /// Whether what was printed says that something is not installed.
    fn broken(&self, fork: &dyn ProjectFork, output: &str) -> Option<SuiteError> {
        let project = ProjectFolderFiles::of(fork, &self.folder);
        let attempt = self.attempt(output);
        let found = broken::toolchain(&attempt)
            .or_else(|| broken::runner(&project, &attempt))
            .or_else(|| {
                let node = project.has("package.json");
                node.then(|| broken::node(&project, &attempt)).flatten()
            })
            .or_else(|| broken::python(&project, &attempt))?;
        Some(SuiteError::EnvironmentBroken(Box::new(found)))
    }

    pub(super) fn read(
        &self,
        fork: &dyn ProjectFork,
        reported: &ReportedRun,
    ) -> Result<TestReport, SuiteError> {
        let ran = &reported.ran;
        let printed = reported.printed();
        let passed = ran.exit == Some(0) && !ran.timed_out;
        let began = reported.begun().is_some();
        let unfinished = |written: &ReporterOutput| !written.finished();
        if began && !reported.finished() || reported.written.iter().any(unfinished) {
            return Err(if ran.timed_out {
                SuiteError::OutOfTime
            } else {
                self.broken(fork, &printed).unwrap_or_else(|| {
                    SuiteError::NoResults(format!(
                        "the runner ended before it had told everything\n{printed}"
                    ))
                })
            });
        }
        let told = reported.every();
        let sure = began || reported.written.iter().any(ReporterOutput::sure);
        if sure && (passed || !told.is_empty()) {
            return self.believed(fork, told, &printed);
        }
        let out = ran.out();
        let of_framework = match self.framework {
            TestFramework::Jest | TestFramework::Vitest => results::jest(&out),
            TestFramework::Mocha => results::mocha(&out),
            _ => Vec::new(),
        };
        let told = [
            of_framework,
            results::libtest(&out),
            results::tap(&out),
            results::ctest(&out),
            results::deno(&out),
            told,
        ]
        .into_iter()
        .find(|tests| !tests.is_empty());
        let fine =
            |test: &TestCase| matches!(test.outcome, TestOutcome::Passed | TestOutcome::Skipped);
        if let Some(tests) = told.filter(|tests| passed == tests.iter().all(fine)) {
            return self.believed(fork, tests, &printed);
        }
        // CTest takes a folder without tests for a success.
        if passed && printed.contains("No test configuration file found!") {
            return self.believed(fork, Vec::new(), &printed);
        }
        if !passed && !ran.timed_out {
            if let Some(error) = self.broken(fork, &printed) {
                return Err(error);
            }
            if matches!(ran.exit, Some(126 | 127)) {
                let what = printed.lines().last().unwrap_or("a program is not there");
                let found = self
                    .attempt(&printed)
                    .failed(what.to_owned(), Vec::new(), None);
                return Err(SuiteError::EnvironmentBroken(Box::new(found)));
            }
        }
        Ok(TestReport {
            tests: vec![TestCase {
                id: WHOLE.to_owned(),
                outcome: if passed {
                    TestOutcome::Passed
                } else {
                    TestOutcome::Failed
                },
                message: printed,
            }],
        })
    }

    fn believed(
        &self,
        fork: &dyn ProjectFork,
        mut tests: Vec<TestCase>,
        printed: &str,
    ) -> Result<TestReport, SuiteError> {
        if tests.is_empty() {
            return Err(self
                .broken(fork, printed)
                .unwrap_or_else(|| SuiteError::NoResults(format!("no test ran\n{printed}"))));
        }
        for test in &mut tests {
            if test.outcome == TestOutcome::Broken && test.message.is_empty() {
                printed.clone_into(&mut test.message);
            }
        }
        if !tests.iter().any(|test| test.outcome == TestOutcome::Passed) {
            let messages: Vec<&str> = tests.iter().map(|test| test.message.as_str()).collect();
            if let Some(error) = self.broken(fork, &messages.join("\n")) {
                return Err(error);
            }
        }
        relative(fork, &mut tests);
        results::number(&mut tests);
        Ok(TestReport { tests })
    }
}

/// Whether nothing is known but that the command failed.
pub(super) fn silent(report: &TestReport) -> bool {
    matches!(report.tests.as_slice(), [only] if only.id == WHOLE && only.outcome == TestOutcome::Failed)
}

/// Names files from the project's root, wherever the fork lies.
fn relative(fork: &dyn ProjectFork, tests: &mut [TestCase]) {
    if !tests.iter().any(|test| test.id.starts_with('/')) {
        return;
    }
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
