//! unittest and bare functions, run by a runner of ours that tells what it saw.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{Plan, PythonSuite, home, lock};
use crate::ground::{ForkCommand, ProjectFork};
use crate::locate::{LinesOfTest, TypesByVariable};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::suite::{SuiteError, nonce};
use crate::trial::tail;

pub(super) const HARNESS: &str = concat!(
    include_str!("tests.py"),
    include_str!("cover.py"),
    include_str!("candidates.py")
);

#[derive(Deserialize)]
struct Report {
    tests: Vec<PythonTest>,
    #[serde(default)]
    preload: Vec<String>,
    /// Types by variable, by the first line of its function, by file.
    #[serde(default)]
    kinds: BTreeMap<String, BTreeMap<usize, BTreeMap<String, Vec<String>>>>,
    #[serde(default)]
    plan: Plan,
}

#[derive(Deserialize)]
pub(super) struct PythonTest {
    pub(super) id: String,
    pub(super) outcome: TestOutcome,
    #[serde(default)]
    message: String,
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    lines: BTreeMap<String, Vec<usize>>,
}

impl PythonSuite {
    pub(super) fn command(&self, request: &serde_json::Value, deadline: Duration) -> ForkCommand {
        let mut command = ForkCommand::new([self.interpreter.as_str(), "-c", HARNESS], deadline)
            .in_folder(&self.folder)
            .stdin(request.to_string().into_bytes());
        for (name, value) in [
            ("PYTHONHASHSEED", "0"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONIOENCODING", "utf-8"),
        ] {
            command = command.env(name, value);
        }
        command
    }

    fn report(
        &self,
        fork: &mut dyn ProjectFork,
        mode: &str,
        limit: Duration,
        deadline: Duration,
    ) -> Result<Report, SuiteError> {
        let marker = format!("lula-test-report {} ", nonce());
        let request = json!({
            "mode": mode,
            "marker": marker,
            "root": fork.root(),
            "framework": self.framework,
            "files": self.files,
            "test_seconds": limit.as_secs_f64(),
            "seconds": deadline.as_secs_f64(),
            "groups": [{"tests": null, "stop": "never"}],
        });
        let ran = fork.run(&self.command(&request, deadline))?;
        let out = ran.out();
        let line = out
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(&marker));
        let Some(line) = line else {
            return Err(if ran.timed_out {
                SuiteError::OutOfTime
            } else {
                SuiteError::NoResults(tail(ran.err().trim(), 3000).to_owned())
            });
        };
        serde_json::from_str(line).map_err(|error| SuiteError::NoResults(error.to_string()))
    }

    pub(super) fn run_harness(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let report = self.report(fork, "run", self.test_limit, deadline)?;
        let mut seen = lock(&self.seen);
        if !report.plan.is_empty() {
            seen.plan.clone_from(&report.plan);
        }
        for test in &report.tests {
            if test.outcome == TestOutcome::Passed {
                let took = Duration::from_millis(test.ms);
                seen.slowest = seen.slowest.max(took);
                seen.took.insert(test.id.clone(), took);
            }
            if let Some(file) = home(&test.id, &self.files) {
                seen.homes.insert(test.id.clone(), file.clone());
            }
        }
        Ok(TestReport {
            tests: report
                .tests
                .into_iter()
                .map(|test| TestCase {
                    id: test.id,
                    outcome: test.outcome,
                    message: test.message,
                })
                .collect(),
        })
    }

    pub(super) fn cover_harness(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        // What a test that hangs runs shows early on.
        let hangs = report.failing().any(TestCase::hung);
        let limit = if hangs {
            self.test_limit.min(Duration::from_secs(1))
        } else {
            self.test_limit
        };
        let report = self.report(fork, "cover", limit, deadline).ok()?;
        let mut seen = lock(&self.seen);
        seen.preload = report.preload;
        seen.kinds = TypesByVariable::new(report.kinds);
        let mut found = Vec::new();
        for test in report.tests {
            if test.outcome == TestOutcome::Skipped {
                continue;
            }
            seen.lines.insert(test.id, test.lines.clone());
            found.push(LinesOfTest {
                failed: test.outcome != TestOutcome::Passed,
                lines: test.lines,
            });
        }
        Some(found)
    }
}
