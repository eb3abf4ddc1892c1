//! What is found out in private forks of a workspace.

use lula_protocol::WorkspaceId;
use lula_repair::TestSelection;
use lula_repair::trial::{RepairSearchResult, TestBaseline, VerificationEvidence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something to find out in private forks of a workspace. Nothing of it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "test_run", rename_all = "snake_case", deny_unknown_fields)]
pub enum TestRunRequest {
    /// What the tests say.
    #[serde(rename = "run", alias = "examine")]
    RunTests {
        /// The tests to run; without a selection, all of them.
        #[serde(default)]
        tests: TestSelection,
        /// Commands that must succeed later, to see what they do now, at most 32.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(length(max = 32))]
        accept: Vec<String>,
        /// For at most so long, in milliseconds.
        tests_ms: u64,
    },
    /// A patch that makes failing tests pass, found by search.
    Search {
        /// The tests to look at; without a selection, all of them.
        #[serde(default)]
        tests: TestSelection,
        /// For at most so long, in milliseconds.
        search_ms: u64,
    },
    /// What the new test files of another workspace's change say of this one: they are put over its
    /// files, and all tests are run.
    RunOthersTests {
        /// The tests to run; without a selection, all of them.
        #[serde(default)]
        tests: TestSelection,
        /// The workspace of a commit whose new test files those are.
        of: WorkspaceId,
        /// For at most so long, in milliseconds.
        tests_ms: u64,
    },
    /// What shows that the change does what it should: tests with it and without it.
    #[serde(alias = "weigh")]
    Verify {
        /// The tests to run; without a selection, all of them.
        #[serde(default)]
        tests: TestSelection,
        /// What the tests said before.
        before: Box<TestBaseline>,
        /// Tests to run before the others, at most 2,000: one that fails for certain spares the
        /// rest. Nothing passes without all of them, whatever is named here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(length(max = 2000))]
        first: Vec<String>,
        /// Commands that must succeed, as a shell reads them, at most 32.
        #[schemars(length(max = 32))]
        accept: Vec<String>,
        /// For at most so long, in milliseconds.
        tests_ms: u64,
    },
}

/// One line of a test run's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum TestRunEvent {
    /// The test run goes on.
    Progress {
        /// How far it is.
        text: String,
    },
    /// It ended; the last line.
    Ended {
        /// What was found out.
        result: Box<TestRunResult>,
    },
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case", deny_unknown_fields)]
pub enum TestRunResult {
    /// What the tests say.
    #[serde(alias = "examined")]
    Ran {
        /// What the tests and commands say now.
        baseline: Box<TestBaseline>,
    },
    /// What the search found.
    Searched {
        /// The patch, and what finding it cost.
        found: RepairSearchResult,
    },
    /// What shows something of the change.
    #[serde(alias = "weighed")]
    Verified {
        /// What is compared with the baseline.
        evidence: Box<VerificationEvidence>,
    },
    /// Nothing could be found out for certain.
    Failed {
        /// What was in the way.
        message: String,
    },
}
