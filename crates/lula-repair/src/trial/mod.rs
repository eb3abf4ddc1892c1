//! Running tests in forks, for evidence about a change or for one. Everything here happens in
//! private copies and leaves nothing behind; nothing here judges.
//!
//! Tests that are named as nearest to a change run first (`near.rs`), and their result can only be
//! a failure; one that passed before counts only if it passes in the same selection without the
//! change.

mod near;
mod others;
mod projects;
mod texts;
mod words;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::detect::TestSelection;
use crate::ground::{ForkCommand, ForkSource, ForkSourceError, ProjectFork};
use crate::outcome::RepairOutcome;
use crate::report::{TestCase, TestOutcome};
use crate::search::{
    RepairError, RepairTask, Reruns, SearchProgress, TestExamination, examine_again, millis, repair,
};
pub use crate::suite::WHOLE;
use crate::syntax::is_test_path;
pub use near::home;
pub use others::others_tests;
use projects::JudgingSuites;
pub use texts::{beside, excerpt, tail, uncoloured};
pub use words::{
    AcceptanceBaseline, AcceptanceResult, ChangedFile, NearestTestsResult, ProjectTestResults,
    RepairSearchResult, TestBaseline, TestRunAttempt, VerificationEvidence,
};

/// Most bytes of a message or output that are kept.
const KEPT: usize = 4096;
/// The part of a deadline that a single run of all tests is given, as the search does it.
const ONE_RUN: f64 = 0.6;
/// What fails without a change is seen twice, as what passes with it.
const TWICE: Reruns<'_> = Reruns {
    failing: 1,
    deciding: None,
};
/// Most failing tests whose messages are kept.
const MESSAGES: usize = 20;

/// Files that govern how tests are run. A change of them is not part of the evidence.
const GOVERNING: [&str; 12] = [
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.ini",
    "tox.ini",
    "setup.cfg",
    ".coveragerc",
    "noxfile.py",
    ".mocharc.json",
    ".mocharc.js",
    ".mocharc.cjs",
    ".mocharc.yml",
];

/// Whether a file is a test, or governs how tests are run.
pub fn is_evidence(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    is_test_path(path)
        || GOVERNING.contains(&name)
        || name.starts_with("jest.config.")
        || name.starts_with("vitest.config.")
}

/// What the tests of a project say before anything is done.
pub fn baseline(
    ground: &dyn ForkSource,
    tests: &TestSelection,
    deadline: Duration,
) -> Result<TestBaseline, RepairError> {
    let mut fork = ground.fork()?;
    let examined = match in_time(fork.as_mut(), tests, Reruns::at_first(), deadline) {
        Ok(examined) => examined,
        Err(error) => {
            return Ok(TestBaseline {
                looked: unable(error)?,
                ..TestBaseline::default()
            });
        }
    };
    Ok(TestBaseline {
        command: Some(examined.tests.argv.join(" ")),
        folder: examined.tests.folder.clone(),
        messages: messages(&examined),
        unfixable: examined.unfixable.clone(),
        looked: TestRunAttempt::Ran(results(&examined)),
        interpreter: examined.interpreter.clone(),
        origins: examined.origins.clone(),
        // What hung says nothing of how long the tests take.
        took_ms: (!examined.report.failing().any(TestCase::hung)).then(|| millis(examined.took)),
        ..TestBaseline::default()
    })
}

/// What acceptance commands do before anything is done: one that succeeds already proves nothing
/// later, and the person should know before it costs something.
pub fn tried_before(
    ground: &dyn ForkSource,
    accept: &[String],
    tests: &TestSelection,
    deadline: Duration,
) -> Result<Vec<AcceptanceBaseline>, RepairError> {
    let mut tried = Vec::new();
    for command in accept {
        let (succeeds, timed_out, output) = succeeds(ground, command, &tests.folder, deadline)?;
        tried.push(AcceptanceBaseline {
            command: command.clone(),
            succeeds,
            timed_out,
            output,
        });
    }
    Ok(tried)
}

/// Runs the tests, and some of them again. A command that only fails or succeeds cannot say
/// that it was ended: one that fails after all the time that it had has not failed.
fn in_time(
    fork: &mut dyn ProjectFork,
    tests: &TestSelection,
    reruns: Reruns<'_>,
    deadline: Duration,
) -> Result<TestExamination, RepairError> {
    let started = Instant::now();
    let examined = examine_again(fork, tests, reruns, deadline)?;
    let whole = examined.failing == [WHOLE] && examined.passing.is_empty();
    let limit = deadline.mul_f64(ONE_RUN);
    if whole && started.elapsed() >= limit {
        return Err(RepairError::OutOfTime(limit));
    }
    Ok(examined)
}

/// What failing tests said, those that something is missing for included.
fn messages(examined: &TestExamination) -> Vec<(String, String)> {
    let counts = |id: &String| examined.failing.contains(id) || examined.unfixable.contains(id);
    let failing = examined.report.failing().filter(|test| counts(&test.id));
    failing
        .take(MESSAGES)
        .map(|test| {
            (
                test.id.clone(),
                excerpt(uncoloured(&test.message).trim(), KEPT),
            )
        })
        .collect()
}

/// Why tests did not run, where that is a result and not a fault of the ground.
fn unable(error: RepairError) -> Result<TestRunAttempt, RepairError> {
    match error {
        RepairError::NoTests => Ok(TestRunAttempt::NoTests),
        RepairError::CannotRun(reasons) => Ok(TestRunAttempt::CannotRun(reasons.join("; "))),
        RepairError::EnvironmentBroken(broken) => Ok(TestRunAttempt::EnvironmentBroken(broken)),
        RepairError::OutOfTime(limit) => Ok(TestRunAttempt::OutOfTime(millis(limit))),
        error => Err(error),
    }
}

fn results(examined: &TestExamination) -> ProjectTestResults {
    let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    let skipped = examined
        .report
        .tests
        .iter()
        .filter(|test| test.outcome == TestOutcome::Skipped);
    ProjectTestResults {
        passing: set(&examined.passing),
        failing: set(&examined.failing),
        flaky: set(&examined.flaky),
        skipped: skipped.map(|test| test.id.clone()).collect(),
    }
}

fn looked(examined: Result<TestExamination, RepairError>) -> Result<TestRunAttempt, RepairError> {
    match examined {
        Ok(examined) => {
            let mut results = results(&examined);
            // Not installed is not passed either.
            results.failing.extend(examined.unfixable);
            Ok(TestRunAttempt::Ran(results))
        }
        Err(error) => unable(error),
    }
}

/// Forks of a project with some files of a change as they were before it.
struct PartlyBackForks<'a> {
    ground: &'a dyn ForkSource,
    back: Vec<&'a ChangedFile>,
}

impl ForkSource for PartlyBackForks<'_> {
    fn fork(&self) -> Result<Box<dyn ProjectFork>, ForkSourceError> {
        let mut fork = self.ground.fork()?;
        for file in &self.back {
            put_back(fork.as_mut(), file)?;
        }
        Ok(fork)
    }
}

impl<'a> PartlyBackForks<'a> {
    fn of(
        ground: &'a dyn ForkSource,
        change: &'a [ChangedFile],
        back: impl Fn(&ChangedFile) -> bool,
    ) -> Self {
        let back = change.iter().filter(|file| back(file)).collect();
        Self { ground, back }
    }

    /// With nothing of a change but its new tests.
    fn without(ground: &'a dyn ForkSource, change: &'a [ChangedFile]) -> Self {
        let new_test = |file: &ChangedFile| is_test_path(&file.path) && file.before.is_none();
        Self::of(ground, change, |file| !new_test(file))
    }
}

/// A file of a fork as it was before the change.
fn put_back(fork: &mut dyn ProjectFork, file: &ChangedFile) -> Result<(), ForkSourceError> {
    match (&file.before, &file.after) {
        (Some(bytes), _) => fork.write(&file.path, bytes)?,
        (None, Some(_)) => fork.remove(&file.path)?,
        // A link, which a fork neither follows nor replaces.
        (None, None) => {}
    }
    Ok(())
}

/// Searches for a patch.
pub fn search(
    ground: &dyn ForkSource,
    tests: &TestSelection,
    budget: Duration,
    watch: &(dyn Fn(&str) + Sync),
) -> Result<RepairSearchResult, RepairError> {
    let task = RepairTask {
        tests: tests.clone(),
        budget,
        ..RepairTask::default()
    };
    let report = repair(ground, &task, &|progress| {
        if let SearchProgress::Tried { tried, .. } = progress {
            watch(&format!("{tried} candidates tried"));
        }
    })?;
    let effort = report.effort;
    Ok(match report.patches.into_iter().next() {
        Some(best) => RepairSearchResult {
            summary: format!(
                "found by search after {} candidates ({:?})",
                best.evidence.tried_before + 1,
                best.family
            ),
            files: best.files,
        },
        None => RepairSearchResult {
            files: Vec::new(),
            summary: match report.outcome {
                RepairOutcome::NothingFailing => "nothing fails".to_owned(),
                _ if effort.exhausted => {
                    format!("none of {} candidates mends the tests", effort.tried)
                }
                _ => format!(
                    "none of {} candidates that the time allowed mends the tests",
                    effort.tried
                ),
            },
        },
    })
}

/// What is weighed, and how.
#[derive(Debug, Clone, Copy)]
pub struct VerificationRequest<'a> {
    /// The change, file by file.
    pub change: &'a [ChangedFile],
    /// What the tests said before.
    pub before: &'a TestBaseline,
    /// The tests that are run.
    pub tests: &'a TestSelection,
    /// Tests to run before the others. They can end it early by failing; whatever is named here,
    /// nothing counts as passed unless all tests ran.
    pub first: &'a [String],
    /// Commands that must succeed.
    pub accept: &'a [String],
    /// How long each run of tests may take.
    pub deadline: Duration,
}

/// Collects the evidence about a change.
pub fn verify(
    ground: &dyn ForkSource,
    asked: &VerificationRequest<'_>,
) -> Result<VerificationEvidence, RepairError> {
    let VerificationRequest { change, before, .. } = *asked;
    let mut evidence = VerificationEvidence {
        before: before.looked.clone(),
        command_before: before.command.clone(),
        given: before.unfixable.clone(),
        changed_files: change.len(),
        ..VerificationEvidence::default()
    };
    if change.is_empty() {
        evidence.accepted = accepted(ground, asked)?;
        return Ok(evidence);
    }
    // New test files count; existing ones, and whatever governs tests, are as they were.
    let governs = |file: &ChangedFile| {
        is_evidence(&file.path) && (file.before.is_some() || !is_test_path(&file.path))
    };
    let judged = PartlyBackForks::of(ground, change, governs);
    let touched = !judged.back.is_empty();
    evidence.touched_tests = judged.back.iter().map(|file| file.path.clone()).collect();

    // Where tests were touched, only all of them tell tampering from failure.
    if !touched && let Some((first, said)) = near::look(ground, asked)? {
        let enough = first.enough;
        evidence.first = Some(first);
        if enough {
            evidence.after = TestRunAttempt::NotRun;
            evidence.messages = said;
            return Ok(evidence);
        }
    }
    let suites = JudgingSuites::touched(ground, asked, &mut evidence)?;
    let known = evidence.before.results().cloned().unwrap_or_default();
    let look = |forks: &dyn ForkSource, decides: Option<&dyn Fn(&str) -> bool>| {
        suites.look(forks, decides).map(|mut run| {
            if let TestRunAttempt::Ran(results) = run.looked {
                run.looked = TestRunAttempt::Ran(results.named_as(&known));
            }
            run
        })
    };
    // What passes with the change alone is what speaks for it, and has to do so twice.
    let after = look(&judged, Some(&|id| !known.passing.contains(id)))?;
    (evidence.after, evidence.command) = (after.looked, after.command);
    evidence.messages.extend(after.messages);
    if touched {
        let after = evidence.after.results().cloned().unwrap_or_default();
        let new = |id: &str| !known.knows(id) && !after.knows(id);
        let as_is = look(ground, Some(&new))?;
        let known = |id: &String| evidence.messages.iter().any(|(known, _)| known == id);
        let new = as_is.messages.into_iter().filter(|(id, _)| !known(id));
        let new: Vec<_> = new.collect();
        evidence.messages.extend(new);
        let adds = adds(&as_is.looked, &evidence.after);
        evidence.as_is = Some(as_is.looked);
        if adds {
            // With the tests of the change and what governs them, and nothing else of it.
            let tests = PartlyBackForks::of(ground, change, |file| !is_evidence(&file.path));
            evidence.tests_alone = Some(look(&tests, None)?.looked);
        }
    }
    if evidence.after.results().is_some() {
        let without = PartlyBackForks::without(ground, change);
        evidence.without = Some(look(&without, None)?.looked);
    }
    evidence.accepted = accepted(ground, asked)?;
    Ok(evidence)
}

/// Whether tests pass as the change has them that nothing knows of as they were.
fn adds(as_is: &TestRunAttempt, after: &TestRunAttempt) -> bool {
    let known = after.results();
    let new = |id: &String| known.is_none_or(|results| !results.knows(id));
    as_is
        .results()
        .is_some_and(|results| results.passing.iter().any(new))
}

/// Acceptance commands, with the change and without any of it.
fn accepted(
    ground: &dyn ForkSource,
    asked: &VerificationRequest<'_>,
) -> Result<Vec<AcceptanceResult>, RepairError> {
    let (folder, deadline) = (asked.tests.folder.as_str(), asked.deadline);
    let base = PartlyBackForks::of(ground, asked.change, |_| true);
    let mut accepted = Vec::new();
    for line in asked.accept {
        let (after, timed_out, mut output) = succeeds(ground, line, folder, deadline)?;
        let (before, ..) = succeeds(&base, line, folder, deadline)?;
        // What speaks for the change has to do so twice.
        let mut unsteady = false;
        if after && !before {
            let (again, _, said) = succeeds(ground, line, folder, deadline)?;
            if !again {
                (unsteady, output) = (true, said);
            }
        }
        accepted.push(AcceptanceResult {
            command: line.clone(),
            before,
            after,
            timed_out,
            unsteady,
            output,
        });
    }
    Ok(accepted)
}

/// Whether a command succeeds in a folder of a fork, whether its time ran out, and what it printed.
pub fn succeeds(
    ground: &dyn ForkSource,
    line: &str,
    folder: &str,
    deadline: Duration,
) -> Result<(bool, bool, String), RepairError> {
    let command = ForkCommand::new(["/bin/sh", "-c", line], deadline)
        .in_folder(folder)
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8");
    let ran = ground.fork()?.run(&command)?;
    let output = format!("{}{}", ran.out(), ran.err());
    let succeeded = ran.exit == Some(0) && !ran.timed_out;
    Ok((succeeded, ran.timed_out, excerpt(output.trim(), KEPT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_governs_tests_is_evidence_and_code_is_not() {
        for path in [
            "tests/test_a.py",
            "conftest.py",
            "a/jest.config.js",
            "pytest.ini",
        ] {
            assert!(is_evidence(path), "{path}");
        }
        assert!(!is_evidence("src/cart.py"));
    }

    #[test]
    fn the_end_of_a_text_is_whole_characters() {
        assert_eq!(tail("añb", 2), "b");
        assert_eq!(tail("ab", 9), "ab");
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_says_what_it_lost() {
        assert_eq!(excerpt("short", 100), "short");
        let long = format!("begin{}end", "ñ".repeat(5000));
        let cut = excerpt(&long, 900);
        assert!(cut.starts_with("begin"), "{cut}");
        assert!(cut.ends_with("end"), "{cut}");
        assert!(cut.contains("bytes left out"), "{cut}");
        assert!(cut.len() < 1000);
    }
}
