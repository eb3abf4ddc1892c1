//! Candidates judged in worker threads of one process, as far as threads show what processes show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{IN, NodeSuite, PATIENCE};
use crate::ground::{ForkCommand, ProjectFork};
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::suite::{CandidateTrial, RepairGoal, SuiteError, nonce};

const JUDGE: &str = include_str!("judge.cjs");
const WORKER: &str = include_str!("worker.cjs");
const RUNNER: &str = include_str!("runner.cjs");

/// How candidates are judged, the quickest way that shows what processes show.
#[derive(Debug, Clone)]
pub(super) struct NodeJudgingMethod {
    pub(super) kind: NodeJudgingKind,
    /// Which tests pass in the project as it is.
    pub(super) expected: BTreeMap<String, bool>,
    /// The processor time that all tests took that way.
    pub(super) usual: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeJudgingKind {
    /// Many candidates in one thread, with a stand-in for the test runner.
    Quick,
    /// Every test file in a thread of its own.
    Thorough,
    /// Every test file in a process of its own.
    Cold,
}

/// The name of the project as it is among candidates.
const UNCHANGED: usize = u32::MAX as usize;

#[derive(Deserialize)]
struct CandidateRuns {
    id: usize,
    runs: Vec<FileRun>,
    /// Seconds of processor time.
    burnt: f64,
}

#[derive(Deserialize)]
struct FileRun {
    file: String,
    #[serde(default)]
    out: String,
    /// From the stand-in; node's runner writes TAP.
    tests: Option<Vec<WarmTestResult>>,
    fine: bool,
}

#[derive(Deserialize)]
struct WarmTestResult {
    id: String,
    outcome: TestOutcome,
}

/// What the tests of one candidate showed.
pub(super) struct NodeObservation {
    pub(super) index: usize,
    pub(super) tests: Vec<TestCase>,
    burnt: Duration,
}

impl FileRun {
    fn tests(&self) -> Vec<TestCase> {
        let Some(seen) = &self.tests else {
            return NodeSuite::read(&self.file, &self.out, self.fine, String::new);
        };
        let mut tests: Vec<TestCase> = seen
            .iter()
            .map(|test| TestCase {
                id: if test.id.is_empty() {
                    self.file.clone()
                } else {
                    format!("{}{IN}{}", self.file, test.id)
                },
                outcome: test.outcome,
                message: String::new(),
            })
            .collect();
        crate::results::number(&mut tests);
        tests
    }
}

/// What is asked of the threads.
struct Request<'a> {
    files: &'a [&'a String],
    candidates: serde_json::Value,
    patience: Duration,
    /// How much time one test file may burn.
    burn: Duration,
    seconds: Duration,
    /// Whether to run the project as it is at the end.
    check: bool,
}

/// Least time to burn before a candidate counts as a loop.
const LEAST_LOOP: Duration = Duration::from_millis(250);

/// Whether just the tests pass that should.
fn agree(expected: &BTreeMap<String, bool>, seen: &[TestCase]) -> bool {
    let passed: BTreeSet<&str> = seen
        .iter()
        .filter(|test| test.outcome == TestOutcome::Passed)
        .map(|test| test.id.as_str())
        .collect();
    expected
        .iter()
        .all(|(id, passes)| passed.contains(id.as_str()) == *passes)
}

impl NodeSuite {
    pub(super) fn way(&self) -> std::sync::MutexGuard<'_, NodeJudgingMethod> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs candidates in worker threads of one process.
    fn serve(
        &self,
        fork: &mut dyn ProjectFork,
        kind: NodeJudgingKind,
        request: &Request<'_>,
        deadline: Duration,
    ) -> Result<Vec<NodeObservation>, SuiteError> {
        let marker = format!("lula-verdict {} ", nonce());
        let options: Vec<&str> = ["--test-reporter=tap"]
            .into_iter()
            .chain(self.options.iter().map(String::as_str))
            .collect();
        let text = json!({
            "marker": marker,
            "files": request.files,
            "options": options,
            "patience": request.patience.as_secs_f64(),
            "burn": request.burn.as_secs_f64(),
            "seconds": request.seconds.as_secs_f64(),
            "candidates": request.candidates,
            "quick": kind == NodeJudgingKind::Quick,
            "check": request.check.then_some(UNCHANGED),
            "worker": WORKER,
            "runner": RUNNER,
        });
        let command =
            ForkCommand::new(["node", "-e", JUDGE], deadline).stdin(text.to_string().into_bytes());
        let ran = fork.run(&command)?;
        Ok(ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix(&marker))
            .filter_map(|line| serde_json::from_str::<CandidateRuns>(line).ok())
            .map(|judged| NodeObservation {
                index: judged.id,
                tests: judged.runs.iter().flat_map(FileRun::tests).collect(),
                burnt: Duration::try_from_secs_f64(judged.burnt).unwrap_or_default(),
            })
            .collect())
    }

    /// Finds the quickest way of judging that sees what processes see.
    pub(super) fn warm_up(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) {
        let expected: BTreeMap<String, bool> = report
            .tests
            .iter()
            .map(|test| (test.id.clone(), test.outcome == TestOutcome::Passed))
            .collect();
        let files: Vec<&String> = self.files.iter().collect();
        let limit = (self.test_limit * 2).min(deadline / 3);
        for kind in [NodeJudgingKind::Quick, NodeJudgingKind::Thorough] {
            let request = Request {
                files: &files,
                candidates: json!([{"id": UNCHANGED, "files": [], "whole": true}]),
                patience: limit,
                burn: limit,
                seconds: limit,
                check: false,
            };
            let tried = self.serve(fork, kind, &request, limit + Duration::from_secs(2));
            let unchanged = tried.ok().and_then(|seen| seen.into_iter().next());
            if let Some(seen) = unchanged.filter(|seen| agree(&expected, &seen.tests)) {
                *self.way() = NodeJudgingMethod {
                    kind,
                    expected,
                    usual: seen.burnt,
                };
                return;
            }
        }
    }

    /// Judges in worker threads; none where the threads turned out not to be apart enough.
    pub(super) fn judge_warm(
        &self,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
    ) -> Result<Option<Vec<NodeObservation>>, SuiteError> {
        let way = self.way().clone();
        let files = self.order(goal);
        let candidates: Vec<_> = batch
            .iter()
            .map(|trial| {
                let files: Vec<_> = trial
                    .files
                    .iter()
                    .map(|change| (&change.path, &change.new))
                    .collect();
                json!({"id": trial.index, "files": files})
            })
            .collect();
        let patience = goal.patience.max(PATIENCE);
        let seconds = until.saturating_duration_since(Instant::now());
        let request = Request {
            files: &files,
            candidates: json!(candidates),
            patience,
            burn: (way.usual * 2).clamp(LEAST_LOOP, patience),
            seconds,
            check: way.kind == NodeJudgingKind::Quick,
        };
        let deadline = goal.at_most(seconds + patience * 2 + Duration::from_secs(2));
        let mut seen = self.serve(fork, way.kind, &request, deadline)?;
        let spilled = seen
            .extract_if(.., |seen| seen.index == UNCHANGED)
            .any(|seen| !agree(&way.expected, &seen.tests));
        if spilled {
            self.way().kind = NodeJudgingKind::Thorough;
            return Ok(None);
        }
        Ok(Some(seen))
    }
}
