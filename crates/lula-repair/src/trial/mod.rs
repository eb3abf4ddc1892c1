//! Running tests in forks, for evidence about a change or for one. Everything here happens in
//! private copies and leaves nothing behind; nothing here judges.

mod near;
mod words;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::detect::TestsWanted;
use crate::ground::{Command, Fork, Ground};
use crate::outcome::RepairOutcome;
use crate::report::Outcome;
use crate::search::{Examined, Progress, RepairError, RepairTask, examine, repair};
pub use crate::suite::WHOLE;
use crate::syntax::is_test_path;
pub use near::home;
pub use words::{Accepted, Baseline, ChangedFile, Evidence, FirstLook, Found, Looked, Results};

/// Longest end of a message or output that is kept.
const TAIL: usize = 3000;
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

/// The last part of a text, on a character boundary.
pub fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// What the tests of a project say before anything is done.
pub fn baseline(
    ground: &dyn Ground,
    tests: &TestsWanted,
    deadline: Duration,
) -> Result<Baseline, RepairError> {
    let mut fork = ground.fork()?;
    let none = |looked| Baseline {
        looked,
        command: None,
        messages: Vec::new(),
        unfixable: Vec::new(),
    };
    let examined = match examine(fork.as_mut(), tests, deadline) {
        Ok(examined) => examined,
        Err(RepairError::NoTests) => return Ok(none(Looked::NoTests)),
        Err(RepairError::CannotRun(reasons)) => {
            return Ok(none(Looked::CannotRun(reasons.join("; "))));
        }
        Err(RepairError::EnvironmentBroken(broken)) => {
            return Ok(none(Looked::EnvironmentBroken(broken)));
        }
        Err(error) => return Err(error),
    };
    let messages = examined
        .report
        .failing()
        .filter(|test| examined.failing.contains(&test.id))
        .take(MESSAGES)
        .map(|test| (test.id.clone(), tail(test.message.trim(), TAIL).to_owned()))
        .collect();
    Ok(Baseline {
        command: Some(examined.tests.argv.join(" ")),
        messages,
        unfixable: examined.unfixable.clone(),
        looked: Looked::Ran(results(&examined)),
    })
}

fn results(examined: &Examined) -> Results {
    let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    let skipped = examined
        .report
        .tests
        .iter()
        .filter(|test| test.outcome == Outcome::Skipped);
    Results {
        passing: set(&examined.passing),
        failing: set(&examined.failing),
        flaky: set(&examined.flaky),
        skipped: skipped.map(|test| test.id.clone()).collect(),
    }
}

fn look(
    fork: &mut dyn Fork,
    tests: &TestsWanted,
    deadline: Duration,
) -> Result<Looked, RepairError> {
    looked(examine(fork, tests, deadline))
}

fn looked(examined: Result<Examined, RepairError>) -> Result<Looked, RepairError> {
    match examined {
        Ok(examined) => {
            let mut results = results(&examined);
            // Not installed is not passed either.
            results.failing.extend(examined.unfixable);
            Ok(Looked::Ran(results))
        }
        Err(RepairError::NoTests) => Ok(Looked::NoTests),
        Err(RepairError::CannotRun(reasons)) => Ok(Looked::CannotRun(reasons.join("; "))),
        Err(RepairError::EnvironmentBroken(broken)) => Ok(Looked::EnvironmentBroken(broken)),
        Err(error) => Err(error),
    }
}

/// A fork with nothing of a change but its new tests.
fn without(ground: &dyn Ground, change: &[ChangedFile]) -> Result<Box<dyn Fork>, RepairError> {
    let mut fork = ground.fork()?;
    let new_test = |file: &&ChangedFile| is_test_path(&file.path) && file.before.is_none();
    for file in change.iter().filter(|file| !new_test(file)) {
        put_back(fork.as_mut(), file)?;
    }
    Ok(fork)
}

/// A file of a fork as it was before the change.
fn put_back(fork: &mut dyn Fork, file: &ChangedFile) -> Result<(), RepairError> {
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
    ground: &dyn Ground,
    tests: &TestsWanted,
    budget: Duration,
    watch: &(dyn Fn(&str) + Sync),
) -> Result<Found, RepairError> {
    let task = RepairTask {
        tests: tests.clone(),
        budget,
        ..RepairTask::default()
    };
    let report = repair(ground, &task, &|progress| {
        if let Progress::Tried { tried, .. } = progress {
            watch(&format!("{tried} candidates tried"));
        }
    })?;
    let effort = report.effort;
    Ok(match report.patches.into_iter().next() {
        Some(best) => Found {
            summary: format!(
                "found by search after {} candidates ({:?})",
                best.evidence.tried_before + 1,
                best.family
            ),
            files: best.files,
        },
        None => Found {
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
pub struct Weighing<'a> {
    /// The change.
    pub change: &'a [ChangedFile],
    /// What the tests said before.
    pub before: &'a Baseline,
    /// Which tests.
    pub tests: &'a TestsWanted,
    /// Tests to run before the others. They can end it early by failing; whatever is named here,
    /// nothing counts as passed unless all tests ran.
    pub first: &'a [String],
    /// Commands that must succeed.
    pub accept: &'a [String],
    /// How long each run of tests may take.
    pub deadline: Duration,
}

/// Collects the evidence about a change.
pub fn weigh(ground: &dyn Ground, asked: &Weighing<'_>) -> Result<Evidence, RepairError> {
    let Weighing {
        change,
        before,
        tests,
        accept,
        deadline,
        ..
    } = *asked;
    let mut evidence = Evidence {
        before: before.looked.clone(),
        after: Looked::NoTests,
        as_is: None,
        without: None,
        accepted: Vec::new(),
        touched_tests: Vec::new(),
        changed_files: change.len(),
        first: None,
    };
    if change.is_empty() {
        return Ok(evidence);
    }
    // New test files count; existing ones, and whatever governs tests, are as they were.
    let governs = |file: &&ChangedFile| {
        is_evidence(&file.path) && (file.before.is_some() || !is_test_path(&file.path))
    };
    let touched: Vec<&ChangedFile> = change.iter().filter(governs).collect();
    evidence.touched_tests = touched.iter().map(|file| file.path.clone()).collect();

    // Where tests were touched, only all of them tell tampering from failure.
    if touched.is_empty() {
        evidence.first = near::look(ground, asked)?;
        if evidence.first.as_ref().is_some_and(|first| first.enough) {
            evidence.after = Looked::NotRun;
            return Ok(evidence);
        }
    }
    let mut fork = ground.fork()?;
    for file in &touched {
        put_back(fork.as_mut(), file)?;
    }
    evidence.after = look(fork.as_mut(), tests, deadline)?;
    if !touched.is_empty() {
        let mut fork = ground.fork()?;
        evidence.as_is = Some(look(fork.as_mut(), tests, deadline)?);
    }
    if evidence.after.results().is_some() {
        let mut fork = without(ground, change)?;
        evidence.without = Some(look(fork.as_mut(), tests, deadline)?);
    }
    for line in accept {
        let mut with = ground.fork()?;
        let (after, timed_out, output) = run(with.as_mut(), line, deadline)?;
        let mut base = ground.fork()?;
        for file in change {
            put_back(base.as_mut(), file)?;
        }
        let (before, ..) = run(base.as_mut(), line, deadline)?;
        evidence.accepted.push(Accepted {
            command: line.clone(),
            before,
            after,
            timed_out,
            output,
        });
    }
    Ok(evidence)
}

/// Whether a command succeeds in a fork, whether its time ran out, and the end of what it printed.
pub fn succeeds(
    ground: &dyn Ground,
    line: &str,
    deadline: Duration,
) -> Result<(bool, bool, String), RepairError> {
    run(ground.fork()?.as_mut(), line, deadline)
}

fn run(
    fork: &mut dyn Fork,
    line: &str,
    deadline: Duration,
) -> Result<(bool, bool, String), RepairError> {
    let command = Command::new(["/bin/sh", "-c", line], deadline)
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8");
    let ran = fork.run(&command)?;
    let output = format!("{}{}", ran.out(), ran.err());
    let succeeded = ran.exit == Some(0) && !ran.timed_out;
    Ok((
        succeeded,
        ran.timed_out,
        tail(output.trim(), TAIL).to_owned(),
    ))
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
}
