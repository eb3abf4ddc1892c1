//! What a test run showed.

use serde::{Deserialize, Serialize};

/// How one test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Passed,
    /// An assertion did not hold.
    Failed,
    /// It broke before it could tell.
    Broken,
    /// It was not run.
    Skipped,
}

/// One test and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// Stable name, as the framework takes it on its command line.
    pub id: String,
    pub outcome: TestOutcome,
    /// Why, for one that did not pass.
    #[serde(default)]
    pub message: String,
}

/// One run of a project's tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestReport {
    /// Every test that was found.
    pub tests: Vec<TestCase>,
}

impl TestCase {
    /// Whether it was ended because it took too long.
    pub fn hung(&self) -> bool {
        ["did not end in", "timed out"]
            .iter()
            .any(|words| self.message.contains(words))
    }
}

impl TestReport {
    /// How many ended that way.
    pub fn count(&self, outcome: TestOutcome) -> usize {
        self.tests
            .iter()
            .filter(|test| test.outcome == outcome)
            .count()
    }

    /// The tests that failed or broke.
    pub fn failing(&self) -> impl Iterator<Item = &TestCase> {
        self.tests
            .iter()
            .filter(|test| matches!(test.outcome, TestOutcome::Failed | TestOutcome::Broken))
    }
}
