//! When a repository that broke is mended by itself. Pure: what the tests say, what is remembered
//! and the time in, what to do out.
//!
//! `lula heal` is one look: tests in a fork of the checked-out commit, a decision, perhaps a run.
//! The run's name is on disk before its first event, so that a breakage has one run whatever is
//! killed. `--watch` starts each look as a process of its own, because a driver locks itself out of
//! the repository for good.

mod history;

pub use history::{BreakageEpisode, HealRunOutcome, RepositoryHealHistory};

use std::fmt::Write;

use lula_protocol::RunId;
use lula_protocol::units::whole_seconds;
use lula_repair::BrokenEnvironment;
use lula_repair::trial::{TestBaseline, TestRunAttempt, WHOLE};
use serde::{Deserialize, Serialize};

use crate::recovery::{AttemptFailure, AttemptFailureClass};

/// Most failing tests that are named in a task.
const NAMED: usize = 12;
/// What stands before them; a task with such a list says no more than one without it.
pub(crate) const THESE_FAIL: &str = "\n\nThese fail:";
/// Longest name of one.
const LONGEST: usize = 120;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// How a commit does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "health", rename_all = "snake_case", deny_unknown_fields)]
pub enum CommitHealth {
    Green {
        /// How many tests pass.
        passing: usize,
    },
    /// Tests fail, every time.
    Broken {
        /// The same for breakages that are the same.
        fingerprint: String,
        /// The tests that fail.
        failing: Vec<String>,
    },
    /// Tests fail now and then, which proves nothing.
    Unclear {
        /// The tests that decide nothing, in a sentence.
        why: String,
    },
    /// The tests cannot be run here.
    Unknown {
        /// What is missing or went wrong.
        why: String,
        /// What they lack, where that is known: its remedy included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<Box<BrokenEnvironment>>,
    },
}

/// What the tests of a commit mean.
pub fn assess(baseline: &TestBaseline) -> CommitHealth {
    let unknown = |why: String| CommitHealth::Unknown { why, broken: None };
    match &baseline.looked {
        TestRunAttempt::NoTests | TestRunAttempt::NotRun => {
            unknown("no tests were found: give the command to watch with --cmd".to_owned())
        }
        TestRunAttempt::EnvironmentBroken(broken) => {
            let remedy = broken.remedy.as_ref();
            let remedy = remedy.map(|command| format!("; `{command}` installs it"));
            CommitHealth::Unknown {
                why: format!("{broken}{}", remedy.unwrap_or_default()),
                broken: Some(broken.clone()),
            }
        }
        TestRunAttempt::OutOfTime(ms) => unknown(format!(
            "the tests did not end within {}: name fewer with --cmd",
            whole_seconds(*ms)
        )),
        TestRunAttempt::CannotRun(why) => unknown(format!("the tests cannot be run: {why}")),
        TestRunAttempt::Ran(results) if !results.failing.is_empty() => {
            let failing: Vec<String> = results.failing.iter().cloned().collect();
            let marks = marks(&failing, &baseline.messages);
            let failure = AttemptFailure::new(AttemptFailureClass::TestFail, "", &marks, "");
            CommitHealth::Broken {
                fingerprint: failure.fingerprint,
                failing,
            }
        }
        TestRunAttempt::Ran(_) if !baseline.unfixable.is_empty() => unknown(format!(
            "tests need something that is not installed: {}",
            baseline.unfixable.join(", ")
        )),
        TestRunAttempt::Ran(results) if !results.flaky.is_empty() => CommitHealth::Unclear {
            why: format!(
                "tests fail only now and then: {}",
                results.flaky.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
        },
        TestRunAttempt::Ran(results) => CommitHealth::Green {
            passing: results.passing.len(),
        },
    }
}

/// What tells one breakage from another: the tests that fail, or, where a command says only that it
/// failed, what it complained about.
fn marks(failing: &[String], messages: &[(String, String)]) -> Vec<String> {
    if failing != [WHOLE] {
        return failing.iter().map(|id| normal(id)).collect();
    }
    let said = messages.iter().find(|(id, _)| id == WHOLE);
    let lines = || {
        let text = said.map_or("", |(_, text)| text.as_str());
        text.lines().map(str::trim).filter(|line| !line.is_empty())
    };
    let complains = |line: &&str| {
        let line = line.to_lowercase();
        let words = ["error", "fail", "assert", "panic", "exception", "not found"];
        words.iter().any(|word| line.contains(word))
    };
    let mut marks: Vec<String> = lines().filter(complains).map(normal).collect();
    if marks.is_empty() {
        marks = lines().next_back().map(normal).into_iter().collect();
    }
    marks.dedup();
    marks.push(WHOLE.to_owned());
    marks
}

/// A text without what differs from run to run: numbers, addresses, times.
fn normal(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let mut last = ' ';
        let address = word.contains("0x");
        for c in word.chars() {
            let number = c.is_ascii_digit() || (address && c.is_ascii_hexdigit());
            if !number {
                out.push(c);
                last = c;
            } else if last != '#' {
                out.push('#');
                last = '#';
            }
        }
    }
    out
}

/// The task of mending a breakage. Names of tests are a stranger's words: what could be read as a
/// sentence is taken out of them.
pub fn task(failing: &[String]) -> String {
    let mut text = "fix the failing tests".to_owned();
    if failing == [WHOLE] {
        return text;
    }
    text.push_str(THESE_FAIL);
    for id in failing.iter().take(NAMED) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./:-[]".contains(c);
        let name: String = id
            .chars()
            .map(|c| if plain(c) { c } else { '_' })
            .take(LONGEST)
            .collect();
        text.push_str("\n- ");
        text.push_str(&name);
    }
    if failing.len() > NAMED {
        let _ = write!(text, "\n- and {} more", failing.len() - NAMED);
    }
    text
}

/// How much may be done by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealLimits {
    /// Most runs begun in an hour.
    pub per_hour: u32,
    /// Most money in a day, in millionths of a dollar.
    pub per_day: Option<u64>,
    /// Whether a breakage that was worked on is worked on again.
    pub again: bool,
}

/// What to do about a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum HealAction {
    /// Leave the commit as it is.
    Nothing,
    /// Begin a run that mends it.
    Begin,
    /// Go on with the run that was begun for it.
    GoOn { run: RunId },
    /// It was worked on already.
    Known {
        /// The run that worked on it.
        run: RunId,
    },
    /// Too many runs were begun lately.
    TooMany {
        /// When another may begin, Unix time in milliseconds.
        until_ms: u64,
    },
    /// The money of a day is spent.
    Spent {
        /// How much, in millionths of a dollar.
        spent: u64,
    },
}

/// Decides. What lies in the future by this clock counts as now: a clock that is put back gives
/// no repository more runs.
pub fn decide(
    history: &RepositoryHealHistory,
    health: &CommitHealth,
    limits: HealLimits,
    now_ms: u64,
) -> HealAction {
    let CommitHealth::Broken { fingerprint, .. } = health else {
        return HealAction::Nothing;
    };
    if let Some(episode) = history.open(fingerprint)
        && let Some(run) = &episode.run
    {
        match &episode.outcome {
            None => return HealAction::GoOn { run: run.clone() },
            Some(_) if !limits.again => return HealAction::Known { run: run.clone() },
            Some(_) => {}
        }
    }
    let begun = history.begun_since(now_ms.saturating_sub(HOUR_MS));
    if begun.len() >= usize::try_from(limits.per_hour).unwrap_or(usize::MAX) {
        let oldest = begun.iter().min().copied().unwrap_or(now_ms).min(now_ms);
        return HealAction::TooMany {
            until_ms: oldest + HOUR_MS,
        };
    }
    match left(history, limits, now_ms) {
        Some(0) => HealAction::Spent {
            spent: spent(history, now_ms),
        },
        _ => HealAction::Begin,
    }
}

/// What runs of the last day cost, in millionths of a dollar.
fn spent(history: &RepositoryHealHistory, now_ms: u64) -> u64 {
    history.spent_since(now_ms.saturating_sub(DAY_MS))
}

/// What may still be spent today, where that is limited.
pub fn left(history: &RepositoryHealHistory, limits: HealLimits, now_ms: u64) -> Option<u64> {
    let most = limits.per_day?;
    Some(most.saturating_sub(spent(history, now_ms)))
}

#[cfg(test)]
mod tests;
