//! The projects of a repository that a change touches. Each is judged by its own tests: those of one
//! say nothing of another.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{
    PartlyBackForks, ProjectTestResults, TWICE, TestRunAttempt, VerificationEvidence,
    VerificationRequest, in_time, looked, messages,
};
use crate::detect::{TestFramework, TestSelection, detect_in, project_of};
use crate::ground::{ForkSource, ProjectFork};
use crate::search::{DecidingTests, RepairError, Reruns};
use lula_protocol::units::whole_seconds;

/// Most projects whose tests are run beside those of the first.
const MOST: usize = 8;

/// One run of tests in a fork.
pub(super) struct TestRun {
    pub(super) looked: TestRunAttempt,
    pub(super) command: Option<String>,
    pub(super) messages: Vec<(String, String)>,
}

impl TestRun {
    fn at(
        fork: &mut dyn ProjectFork,
        tests: &TestSelection,
        reruns: Reruns<'_>,
        within: Duration,
    ) -> Result<Self, RepairError> {
        let examined = in_time(fork, tests, reruns, within);
        let seen = examined.as_ref().ok();
        Ok(Self {
            command: seen.map(|examined| examined.tests.argv.join(" ")),
            messages: seen.map(messages).unwrap_or_default(),
            looked: looked(examined)?,
        })
    }

    /// The same, as seen from the top: test ids begin with the folder of their project.
    fn named_from_top(self, folder: &str) -> Self {
        let named = |id: String| format!("{folder}/{id}");
        let all = |ids: BTreeSet<String>| ids.into_iter().map(named).collect();
        Self {
            command: self.command.map(|line| format!("(cd {folder} && {line})")),
            messages: self
                .messages
                .into_iter()
                .map(|(id, said)| (named(id), said))
                .collect(),
            looked: match self.looked {
                TestRunAttempt::Ran(results) => TestRunAttempt::Ran(ProjectTestResults {
                    passing: all(results.passing),
                    failing: all(results.failing),
                    flaky: all(results.flaky),
                    skipped: all(results.skipped),
                }),
                other => other,
            },
        }
    }

    /// Two projects seen as one. Where one of them has no results, neither has the whole.
    fn and(self, other: Self) -> Self {
        let mut messages = self.messages;
        messages.extend(other.messages);
        Self {
            looked: match (self.looked, other.looked) {
                (TestRunAttempt::Ran(mut all), TestRunAttempt::Ran(more)) => {
                    all.passing.extend(more.passing);
                    all.failing.extend(more.failing);
                    all.flaky.extend(more.flaky);
                    all.skipped.extend(more.skipped);
                    TestRunAttempt::Ran(all)
                }
                (TestRunAttempt::Ran(_), unable) | (unable, _) => unable,
            },
            command: match (self.command, other.command) {
                (Some(first), Some(second)) => Some(format!("{first}; {second}")),
                (first, second) => first.or(second),
            },
            messages,
        }
    }
}

/// The tests that a change is judged by.
pub(super) struct JudgingSuites {
    /// Those of the project that the baseline is about.
    first: Option<TestSelection>,
    /// Folders of the other projects that the change touches.
    others: Vec<String>,
    within: Duration,
}

impl JudgingSuites {
    /// Finds out which projects a change touches, and what the tests of those that the baseline says
    /// nothing of said before the change.
    pub(super) fn touched(
        ground: &dyn ForkSource,
        asked: &VerificationRequest<'_>,
        evidence: &mut VerificationEvidence,
    ) -> Result<Self, RepairError> {
        let first = TestSelection {
            command: asked.tests.command.clone(),
            folder: match asked.before.folder.as_str() {
                "" => asked.tests.folder.clone(),
                folder => folder.to_owned(),
            },
        };
        let mut suites = Self {
            first: None,
            others: Vec::new(),
            within: asked.deadline,
        };
        let found = others(ground.fork()?.as_ref(), asked, &first)?;
        if !found.is_empty() {
            let mut base = PartlyBackForks::of(ground, asked.change, |_| true).fork()?;
            let mut before: Option<TestRun> = None;
            for folder in found {
                let look = suites.other(base.as_mut(), &folder, Reruns::at_first())?;
                if look.looked.results().is_none() {
                    evidence.messages.push((folder, unable(&look.looked)));
                    continue;
                }
                suites.others.push(folder);
                before = Some(match before {
                    Some(all) => all.and(look),
                    None => look,
                });
            }
            if let Some(before) = before {
                let all = match evidence.before.results() {
                    Some(_) => TestRun {
                        looked: evidence.before.clone(),
                        command: evidence.command_before.clone(),
                        messages: Vec::new(),
                    }
                    .and(before),
                    None => before,
                };
                // A project without results before the change has none to compare with.
                if evidence.before.results().is_some() {
                    suites.first = Some(first.clone());
                }
                (evidence.before, evidence.command_before) = (all.looked, all.command);
            }
        }
        if suites.others.is_empty() {
            suites.first = Some(first);
        }
        Ok(suites)
    }

    /// Runs the tests of every project, and those that decide something twice.
    pub(super) fn look(
        &self,
        forks: &dyn ForkSource,
        decides: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<TestRun, RepairError> {
        let mut fork = forks.fork()?;
        let mut seen = match &self.first {
            Some(tests) => {
                let deciding = decides.map(|decides| DecidingTests { decides, forks });
                let reruns = reruns(deciding);
                Some(TestRun::at(fork.as_mut(), tests, reruns, self.within)?)
            }
            None => None,
        };
        for folder in &self.others {
            let from_top = |id: &str| match folder.as_str() {
                "" => id.to_owned(),
                folder => format!("{folder}/{id}"),
            };
            let named = |id: &str| decides.is_some_and(|decides| decides(&from_top(id)));
            let deciding = decides.map(|_| DecidingTests {
                decides: &named,
                forks,
            });
            let look = self.other(fork.as_mut(), folder, reruns(deciding))?;
            seen = Some(match seen {
                Some(all) => all.and(look),
                None => look,
            });
        }
        seen.ok_or(RepairError::NoTests)
    }

    fn other(
        &self,
        fork: &mut dyn ProjectFork,
        folder: &str,
        reruns: Reruns<'_>,
    ) -> Result<TestRun, RepairError> {
        let tests = TestSelection {
            command: None,
            folder: folder.to_owned(),
        };
        let look = TestRun::at(fork, &tests, reruns, self.within)?;
        Ok(match folder {
            "" => look,
            folder => look.named_from_top(folder),
        })
    }
}

/// What is run again: with the change what fails, as always, and what decides; without it what fails, once.
fn reruns(deciding: Option<DecidingTests<'_>>) -> Reruns<'_> {
    match deciding {
        Some(_) => Reruns {
            deciding,
            ..Reruns::at_first()
        },
        None => TWICE,
    }
}

/// Folders of the projects that the change touches, beside the one whose tests are run anyway and
/// those that its tests reach into. Where a person said how to test, that is how.
fn others(
    fork: &dyn ProjectFork,
    asked: &VerificationRequest<'_>,
    first: &TestSelection,
) -> Result<Vec<String>, RepairError> {
    if first.command.is_some() {
        return Ok(Vec::new());
    }
    let files = fork.files()?;
    let read = |path: &str| String::from_utf8(fork.read(path).ok()?).ok();
    let own = detect_in(&files, &read, &first.folder);
    let reached = |folder: &str| {
        let below = |id: &String| id.starts_with(&format!("{folder}/"));
        let seen = asked.before.looked.results();
        seen.is_some_and(|seen| seen.passing.iter().chain(&seen.failing).any(below))
    };
    // `cargo test` at the top of a workspace that is no package itself runs every member.
    let manifest = read(&joined(&own.folder, "Cargo.toml")).unwrap_or_default();
    let members = manifest.contains("[workspace]") && !manifest.contains("[package]");
    let mut found = BTreeSet::new();
    for file in asked.change {
        let Some(project) = project_of(&files, &read, &file.path) else {
            continue;
        };
        let cargo = project.tests[0].framework == TestFramework::CargoTest;
        let member = cargo
            && members
            && own.tests.first().map(|t| t.framework) == Some(TestFramework::CargoTest);
        if project.folder != own.folder && !reached(&project.folder) && !member {
            found.insert(project.folder);
        }
    }
    Ok(found.into_iter().take(MOST).collect())
}

fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Why the tests of a project say nothing of the change.
fn unable(looked: &TestRunAttempt) -> String {
    let why = match looked {
        TestRunAttempt::Ran(_) | TestRunAttempt::NotRun => "they did not run".to_owned(),
        TestRunAttempt::NoTests => "there are none".to_owned(),
        TestRunAttempt::CannotRun(why) => why.clone(),
        TestRunAttempt::EnvironmentBroken(broken) => broken.to_string(),
        TestRunAttempt::OutOfTime(ms) => {
            format!("they did not end within {}", whole_seconds(*ms))
        }
    };
    format!("the change touches this project, and its tests say nothing of it: {why}")
}
