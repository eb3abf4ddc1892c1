//! What a repair has to show for itself.

use serde::{Deserialize, Serialize};

use crate::detect::TestFramework;
use crate::patches::PatchFamily;
use crate::report::{TestOutcome, TestReport};

/// How many tests ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestCounts {
    pub passed: usize,
    /// Failed, or broke before it could tell.
    pub failed: usize,
    pub skipped: usize,
}

impl TestCounts {
    pub(crate) fn of(report: &TestReport) -> Self {
        Self {
            passed: report.count(TestOutcome::Passed),
            failed: report.failing().count(),
            skipped: report.count(TestOutcome::Skipped),
        }
    }
}

/// How a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairOutcome {
    /// At least one patch makes the failing tests pass and breaks none.
    Fixed,
    /// Every test passes already.
    NothingFailing,
    /// No patch was found before the candidates or the budget ran out.
    NotFound,
}

/// A reason to doubt a patch that passes every test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchDoubt {
    /// It writes down a value that a failing test compares with.
    NamesTestValue,
    /// It takes code away.
    DeletesBehaviour,
    /// It makes a branch unconditional or dead.
    FixesCondition,
    /// It returns a fixed value early.
    ReturnsEarly,
    /// It computes something of a value and itself.
    RepeatsOperand,
    /// It no longer uses something that the function is given.
    DropsInput,
    /// The failing tests did not fail again without it.
    NotReverted,
}

/// A place where the mistake was looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuspectLocation {
    pub path: String,
    /// The line, from one.
    pub line: usize,
    /// From zero to one.
    pub suspicion: f64,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatchedFile {
    /// Relative to the project's root.
    pub path: String,
    /// The file's whole new text.
    pub text: String,
}

/// What speaks for a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchEvidence {
    /// Tests that failed before and pass with it.
    pub fixed: Vec<String>,
    /// All tests with it, in a fresh fork.
    pub after: TestCounts,
    /// Whether taking it back made the failing tests fail again.
    pub reverted: bool,
    /// How many candidates were tried before it.
    pub tried_before: usize,
    /// When it was found, in milliseconds from the start.
    pub found_at_ms: u64,
}

/// A patch that passes every test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairPatch {
    /// As a unified diff against the project.
    pub diff: String,
    /// The new texts, ready to be written.
    pub files: Vec<PatchedFile>,
    /// The mistake that it supposes.
    pub family: PatchFamily,
    /// The line where it starts, in its first file.
    pub line: usize,
    /// Its rank: suspicion times prior, less for every doubt.
    pub score: f64,
    /// Reasons to look twice.
    pub doubts: Vec<PatchDoubt>,
    /// What speaks for it.
    pub evidence: PatchEvidence,
}

/// What the search cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SearchEffort {
    /// Candidates that the families proposed.
    pub proposed: usize,
    /// Candidates that the tests judged.
    pub tried: usize,
    /// From start to end, in milliseconds.
    pub total_ms: u64,
    /// Of these, spent judging candidates.
    pub search_ms: u64,
    /// Whether every candidate was tried.
    pub exhausted: bool,
}

impl SearchEffort {
    /// Candidates judged in a second of search.
    pub fn per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        {
            self.tried as f64 * 1000.0 / self.search_ms.max(1) as f64
        }
    }
}

/// What a repair came to, as it is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    pub outcome: RepairOutcome,
    /// The framework that ran the tests.
    pub framework: TestFramework,
    /// The command a person would type.
    pub command: Vec<String>,
    /// Why we think that this framework is the project's.
    pub reason: String,
    /// How all tests ended before anything was changed.
    pub before: TestCounts,
    /// The tests that fail every time.
    pub failing: Vec<String>,
    /// The tests that fail now and then; they prove nothing and are left aside.
    pub flaky: Vec<String>,
    /// Failing tests that no patch can help, because something is not installed.
    pub unfixable: Vec<String>,
    /// Failing tests that have nothing to do with what was mended: none of them runs what the patch
    /// changes, and each fails with it as before.
    #[serde(default)]
    pub given: Vec<String>,
    /// Where the mistake was looked for, the most suspicious first.
    pub suspects: Vec<SuspectLocation>,
    /// Source files that were not looked into, each with the reason.
    #[serde(default)]
    pub left_aside: Vec<String>,
    /// Patches that pass, best first.
    pub patches: Vec<RepairPatch>,
    pub effort: SearchEffort,
}
