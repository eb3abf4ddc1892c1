//! What tests say, and what is known of a change: the words a verdict is made of.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::environment::{BrokenEnvironment, CodeOrigin};
use crate::outcome::PatchedFile;
use crate::renamed::renamed;

/// What the tests of a project say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProjectTestResults {
    /// Tests that pass every time.
    pub passing: BTreeSet<String>,
    /// Tests that fail every time.
    pub failing: BTreeSet<String>,
    /// Tests that fail now and then; they prove nothing.
    pub flaky: BTreeSet<String>,
    /// Tests that were not run.
    pub skipped: BTreeSet<String>,
}

impl ProjectTestResults {
    /// Whether a test is known, however it ended.
    pub fn knows(&self, id: &str) -> bool {
        [&self.passing, &self.failing, &self.flaky, &self.skipped]
            .into_iter()
            .any(|set| set.contains(id))
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        [&self.passing, &self.failing, &self.flaky, &self.skipped]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// The same with the names of an earlier run, where a test is called otherwise in each.
    pub(super) fn named_as(self, before: &Self) -> Self {
        let gone = before.ids().filter(|id| !self.knows(id));
        let new = self.ids().filter(|id| !before.knows(id));
        let pairs: HashMap<String, String> = renamed(gone, new)
            .into_iter()
            .map(|(now, before)| (now.to_owned(), before.to_owned()))
            .collect();
        if pairs.is_empty() {
            return self;
        }
        let named = |ids: BTreeSet<String>| {
            ids.into_iter()
                .map(|id| pairs.get(&id).cloned().unwrap_or(id))
                .collect()
        };
        Self {
            passing: named(self.passing),
            failing: named(self.failing),
            flaky: named(self.flaky),
            skipped: named(self.skipped),
        }
    }

    /// How many tests there are.
    pub fn len(&self) -> usize {
        self.passing.len() + self.failing.len() + self.flaky.len() + self.skipped.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What came of an attempt to run tests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestRunAttempt {
    /// The tests ran to their end.
    Ran(ProjectTestResults),
    /// The project has no tests.
    #[default]
    NoTests,
    /// They cannot be run.
    CannotRun(String),
    /// They cannot be run here: something is not installed, or they test other code.
    EnvironmentBroken(Box<BrokenEnvironment>),
    /// They did not end within so many milliseconds, so nothing is known of them.
    OutOfTime(u64),
    /// They were not run: those nearest to the change had shown enough.
    NotRun,
}

impl TestRunAttempt {
    /// The same, with a broken environment told as any other reason not to run.
    #[must_use]
    pub fn plain(&self) -> Self {
        match self {
            Self::EnvironmentBroken(broken) => Self::CannotRun(broken.to_string()),
            other => other.clone(),
        }
    }

    /// The results, where there are some.
    pub const fn results(&self) -> Option<&ProjectTestResults> {
        match self {
            Self::Ran(results) => Some(results),
            Self::NoTests
            | Self::CannotRun(_)
            | Self::EnvironmentBroken(_)
            | Self::OutOfTime(_)
            | Self::NotRun => None,
        }
    }
}

/// An acceptance command, before and after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact by itself, and named so in logs"
)]
pub struct AcceptanceResult {
    /// The command, as a shell reads it.
    pub command: String,
    /// Whether it succeeded before.
    pub before: bool,
    /// Whether it succeeds now.
    pub after: bool,
    /// Whether its time ran out.
    pub timed_out: bool,
    /// Whether it succeeded, and then did not: where its success would have shown something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsteady: bool,
    /// The end of what it printed.
    pub output: String,
}

/// An acceptance command on the project as it is before anything is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptanceBaseline {
    /// The command, as a shell reads it.
    pub command: String,
    /// Whether it succeeds already.
    pub succeeds: bool,
    /// Whether its time ran out.
    pub timed_out: bool,
    /// What it printed, its middle left out where it is long.
    pub output: String,
}

/// A look at the tests nearest to a change, before all of them are run. It can spare the rest where it
/// shows a failure, and shows nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NearestTestsResult {
    /// The tests that were picked, of those that are known.
    pub picked: BTreeSet<String>,
    /// What they say with the change; their files run as a whole, so there may be more of them.
    pub with: TestRunAttempt,
    /// What they say without it, where one of them fails that passed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<TestRunAttempt>,
    /// Whether that is a failure for certain: then no other test was run.
    pub enough: bool,
}

impl NearestTestsResult {
    /// The picked tests that the change makes fail, or leaves failing.
    pub fn shown<'a>(&'a self, before: &'a ProjectTestResults) -> impl Iterator<Item = &'a String> {
        let alone = self.without.as_ref().and_then(TestRunAttempt::results);
        let with = self.with.results();
        self.picked.iter().filter(move |id| {
            // A test that passed before and fails without the others says nothing of the change.
            let counts = before.failing.contains(*id)
                || (before.passing.contains(*id)
                    && alone.is_some_and(|results| results.passing.contains(*id)));
            counts && with.is_some_and(|results| results.failing.contains(*id))
        })
    }
}

/// Everything a verdict is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VerificationEvidence {
    /// The tests before anything was done.
    pub before: TestRunAttempt,
    /// The tests with the change, existing tests and what governs them as they were before.
    pub after: TestRunAttempt,
    /// The tests with the change exactly as it is, where it touches existing tests.
    pub as_is: Option<TestRunAttempt>,
    /// The tests with only the test files of the change: what fails here needs the change.
    pub without: Option<TestRunAttempt>,
    /// Acceptance commands, before and after the change.
    pub accepted: Vec<AcceptanceResult>,
    /// Existing tests, or files that govern them, that the change touches.
    pub touched_tests: Vec<String>,
    /// How many files the change touches.
    pub changed_files: usize,
    /// What the tests nearest to the change showed first, where some were picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<NearestTestsResult>,
    /// The tests exactly as the change has them, over the code as it was, where the change touches
    /// existing tests: what is new there and fails here needs the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_alone: Option<TestRunAttempt>,
    /// Tests that failed before because something is not installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// What failing tests said with the change, each with its middle left out where it is long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<(String, String)>,
    /// The exact command that ran the tests before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_before: Option<String>,
    /// The exact command that ran them with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl VerificationEvidence {
    /// Whether any look saw a test that comes and goes.
    pub fn is_unsteady(&self) -> bool {
        let first = self.first.as_ref().map(|first| &first.with);
        let looks = [Some(&self.before), Some(&self.after), first];
        let more = [&self.as_is, &self.without, &self.tests_alone];
        let all = looks.into_iter().chain(more.map(Option::as_ref)).flatten();
        let mut results = all.filter_map(TestRunAttempt::results);
        results.any(|results| !results.flaky.is_empty())
    }
}

/// What the tests said before anything was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TestBaseline {
    /// How the attempt to run the tests ended.
    pub looked: TestRunAttempt,
    /// The command that a person would type, where there are tests.
    pub command: Option<String>,
    /// The folder of the project whose tests they are, from the top; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The failing tests and the ends of what they said.
    pub messages: Vec<(String, String)>,
    /// Failing tests that lack something that is not installed.
    pub unfixable: Vec<String>,
    /// The interpreter or toolchain that ran them, with its version, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Where the code that they test was found to come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<CodeOrigin>,
    /// Acceptance commands on the project as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<AcceptanceBaseline>,
    /// How long all tests took once, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

impl TestBaseline {
    /// The tests that fail every time and could be mended.
    pub fn failing(&self) -> Vec<String> {
        let results = self.looked.results();
        results.map_or_else(Vec::new, |results| {
            results.failing.iter().cloned().collect()
        })
    }

    /// Everything that fails already, whatever the reason: no change can be blamed for it.
    pub fn given(&self) -> BTreeSet<String> {
        let failing = self.failing().into_iter();
        failing.chain(self.unfixable.iter().cloned()).collect()
    }
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepairSearchResult {
    /// The new texts of the best patch; empty where there is none.
    pub files: Vec<PatchedFile>,
    /// The patch, or why there is none, in one sentence.
    pub summary: String,
}

/// A file of the change, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// Its bytes before; `None` for a new one.
    pub before: Option<Vec<u8>>,
    /// Its bytes now; `None` for one that is gone.
    pub after: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_older_logs_say_is_read_and_written_as_it_was() {
        let evidence = r#"{"before":"no_tests","after":"not_run","as_is":null,"without":null,"accepted":[],"touched_tests":[],"changed_files":1}"#;
        let read: VerificationEvidence = serde_json::from_str(evidence).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), evidence);
        let baseline =
            r#"{"looked":{"cannot_run":"x"},"command":null,"messages":[],"unfixable":[]}"#;
        let read: TestBaseline = serde_json::from_str(baseline).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), baseline);
    }

    #[test]
    fn given_is_everything_that_fails_already() {
        let baseline = TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                failing: ["a".to_owned()].into(),
                ..ProjectTestResults::default()
            }),
            unfixable: vec!["b".to_owned()],
            ..TestBaseline::default()
        };
        assert_eq!(baseline.given().len(), 2);
        assert_eq!(baseline.failing(), ["a"]);
    }
}
