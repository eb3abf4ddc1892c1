//! Whether an environment is good: its project's tests, all of them run twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lula_repair::{
    BrokenEnvironment, CodeOrigin, ForkSource, RepairError, TestExamination, TestOutcome,
    TestSelection, examine,
};
use serde::{Deserialize, Serialize};

/// Most failing tests that are remembered.
const REMEMBERED: usize = 2_000;
/// Longest message of one.
const MESSAGE: usize = 400;

/// What the tests of a clean project said in an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentCheck {
    /// When, in Unix milliseconds.
    pub checked_ms: u64,
    pub command: String,
    pub interpreter: Option<String>,
    /// Where the tested code came from.
    pub origins: Vec<CodeOrigin>,
    pub passed: usize,
    pub skipped: usize,
    /// Tests that fail every time, by name.
    pub failing: Vec<FailingTest>,
    /// Tests that fail now and then.
    pub flaky: Vec<String>,
    /// Why they cannot be run, where they cannot.
    pub broken: Option<BrokenEnvironment>,
    /// How long one run of all took.
    pub took_ms: u64,
}

/// A test that fails in an environment without any change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTest {
    pub id: String,
    pub message: String,
    /// Whether it failed for want of a network.
    pub network: bool,
}

impl EnvironmentCheck {
    /// Runs all tests twice, each time in a fork of its own. `say` hears how far it is.
    pub fn of(
        ground: &dyn ForkSource,
        tests: &TestSelection,
        deadline: Duration,
        say: &dyn Fn(&str),
    ) -> Result<Self, RepairError> {
        say("running the tests");
        let first = match examine(ground.fork()?.as_mut(), tests, deadline) {
            Err(RepairError::EnvironmentBroken(broken)) => {
                return Ok(Self {
                    command: broken.command.clone(),
                    interpreter: broken.interpreter.clone(),
                    broken: Some(*broken),
                    ..Self::default()
                });
            }
            found => found?,
        };
        say("running them again");
        let second = examine(ground.fork()?.as_mut(), tests, deadline)?;
        Ok(Self::from_runs(&first, &second))
    }

    fn from_runs(first: &TestExamination, second: &TestExamination) -> Self {
        let names = |list: &[String]| -> BTreeSet<String> { list.iter().cloned().collect() };
        let (bad, again) = (names(&first.failing), names(&second.failing));
        let mut flaky: BTreeSet<String> = &names(&first.flaky) | &names(&second.flaky);
        flaky.extend(bad.symmetric_difference(&again).cloned());
        let messages: BTreeMap<&str, &str> = first
            .report
            .failing()
            .map(|test| (test.id.as_str(), test.message.as_str()))
            .collect();
        let failing = bad.intersection(&again).filter(|id| !flaky.contains(*id));
        let failing = failing.take(REMEMBERED).map(|id| {
            let message = messages.get(id.as_str()).copied().unwrap_or_default();
            FailingTest {
                id: id.clone(),
                network: wants_network(message),
                message: message.chars().take(MESSAGE).collect(),
            }
        });
        Self {
            command: first.tests.line(),
            interpreter: first.interpreter.clone(),
            origins: first.origins.clone(),
            passed: first
                .passing
                .iter()
                .filter(|id| !flaky.contains(*id))
                .count(),
            skipped: first.report.count(TestOutcome::Skipped),
            failing: failing.collect(),
            flaky: flaky.into_iter().collect(),
            broken: None,
            took_ms: u64::try_from(first.took.as_millis()).unwrap_or(u64::MAX),
            checked_ms: 0,
        }
    }

    /// How many fail for want of a network.
    pub fn want_network(&self) -> usize {
        self.failing.iter().filter(|test| test.network).count()
    }

    /// Whether tests ran, and one passed.
    pub fn is_good(&self) -> bool {
        self.broken.is_none() && self.passed > 0
    }
}

/// What programs say where a name has no address, or nothing can be reached.
const UNREACHED: [&str; 10] = [
    "name or service not known",
    "temporary failure in name resolution",
    "nodename nor servname",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "network is unreachable",
    "could not resolve host",
    "no such host",
    "unknownhostexception",
];

fn wants_network(message: &str) -> bool {
    let message = message.to_lowercase();
    UNREACHED.iter().any(|sign| message.contains(sign))
}
