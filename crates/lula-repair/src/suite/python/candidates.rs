//! Candidates, where the project stands: warm in children of one process, or each in a fork and a
//! process of its own.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::harness::PythonTest;
use super::{PythonSuite, lock, words};
use crate::ground::{ForkSource, ProjectFork};
use crate::report::TestCase;
use crate::suite::{
    CandidateTrial, CandidateVerdict, RepairGoal, SuiteError, SuiteFileChange, apart, nonce,
};

/// How much longer than any passing test one may run before it counts as a loop.
const LOOP: u32 = 20;
/// Least time to burn before a test counts as a loop: enough to import what it tests.
const LEAST_LOOP: Duration = Duration::from_millis(75);
/// A suite that takes no longer is run whole for every candidate that mends what failed.
const SHORT: Duration = Duration::from_secs(2);
/// A failing test that takes longer waits for the quicker ones.
const SLOW: Duration = Duration::from_millis(700);
/// Most tests that are run for one candidate beside those that failed, before it is proved.
const NEAREST: usize = 150;

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Judged {
        candidate: usize,
        tests: Option<Vec<PythonTest>>,
    },
    Ready {
        ready: bool,
    },
    Bare {
        bare: bool,
    },
    Same {
        same: bool,
    },
    Cold {
        cold: bool,
    },
}

impl PythonSuite {
    /// The files that hold these tests, or every file where that is not known.
    fn homes(&self, tests: &[String]) -> Vec<String> {
        let seen = lock(&self.seen);
        let mut found: Vec<String> = Vec::new();
        for test in tests {
            match seen.homes.get(test) {
                Some(home) if !found.contains(home) => found.push(home.clone()),
                Some(_) => {}
                None => return self.files.clone(),
            }
        }
        found
    }

    /// Which of the passing tests a candidate has to keep in the search: those that run what it
    /// changes, the quick ones first; none for all. The proof runs everything.
    fn nearest(&self, goal: &RepairGoal, trial: &CandidateTrial) -> Option<Vec<usize>> {
        let seen = lock(&self.seen);
        let whole: Duration = seen.took.values().sum();
        if whole < SHORT || seen.lines.is_empty() {
            return None;
        }
        let touched: Vec<(&str, HashSet<usize>)> = trial
            .files
            .iter()
            .map(|change| (change.path.as_str(), changed_lines(change)))
            .collect();
        let runs = |id: &String| {
            seen.lines.get(id).is_some_and(|lines| {
                touched.iter().any(|(path, wanted)| {
                    lines
                        .get(*path)
                        .is_some_and(|lines| lines.iter().any(|line| wanted.contains(line)))
                })
            })
        };
        let mut found: Vec<usize> = (0..goal.passing.len())
            .filter(|&index| runs(&goal.passing[index]))
            .collect();
        found.sort_by_key(|&index| seen.took.get(&goal.passing[index]));
        let mut spent = Duration::ZERO;
        let fitting = found.iter().take_while(|&&index| {
            spent += seen
                .took
                .get(&goal.passing[index])
                .copied()
                .unwrap_or_default();
            spent < SHORT
        });
        let count = fitting.count().min(NEAREST);
        found.truncate(count);
        Some(found)
    }

    pub(super) fn judge_warm(
        &self,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        let seconds = until.saturating_duration_since(Instant::now());
        let marker = format!("lula-verdict {} ", nonce());
        let picked: BTreeMap<usize, Option<Vec<usize>>> = batch
            .iter()
            .map(|trial| (trial.index, self.nearest(goal, trial)))
            .collect();
        let candidates: Vec<_> = batch
            .iter()
            .map(|trial| {
                let files: BTreeMap<&str, &str> = trial
                    .files
                    .iter()
                    .map(|change| (change.path.as_str(), change.new.as_str()))
                    .collect();
                json!({"id": trial.index, "files": files, "passing": picked.get(&trial.index)})
            })
            .collect();
        let options: Vec<String> = if self.is_pytest() {
            let argv = self.bare_argv(fork);
            let start = words::own(&argv).unwrap_or(argv.len());
            let plainly = self.plainly().into_iter().map(str::to_owned);
            argv[start..].iter().cloned().chain(plainly).collect()
        } else {
            Vec::new()
        };
        let seen = lock(&self.seen);
        let burn = (seen.slowest * LOOP).clamp(LEAST_LOOP, goal.patience.max(LEAST_LOOP));
        let first = |tests: &[String]| (!self.is_pytest()).then(|| tests.to_vec());
        // What fails slowly, often for want of a network, is asked only where the rest is mended.
        let slow = |id: &&String| seen.took.get(*id).is_some_and(|took| *took > SLOW);
        let (mut late, mut early): (Vec<&String>, Vec<&String>) =
            goal.failing.iter().partition(slow);
        if early.is_empty() {
            std::mem::swap(&mut late, &mut early);
        }
        let (failing, passing) = (first(&goal.failing), first(&goal.passing));
        let path = seen.begun.as_ref().map(|begun| begun.path.clone());
        let (preload, warm) = (seen.preload.clone(), seen.warm.clone());
        let (ready, bare, same, plan) = (seen.ready, seen.bare, seen.same, seen.plan.clone());
        drop(seen);
        let homes = failing.map(|tests| self.homes(&tests));
        let request = json!({
            "mode": "serve",
            "marker": marker,
            "root": fork.root(),
            "framework": self.framework,
            "files": self.files,
            "options": options,
            "path": path,
            "preload": preload,
            "warm": warm,
            "test_seconds": goal.patience.as_secs_f64(),
            "burn_seconds": burn.as_secs_f64(),
            "candidate_seconds": goal.patience.as_secs_f64(),
            "seconds": seconds.as_secs_f64(),
            "groups": [
                {"tests": early, "stop": "after", "files": homes.clone()},
                {"tests": late, "stop": "after", "files": homes},
                {"tests": goal.passing, "stop": "first", "files": passing.map(|tests| self.homes(&tests))},
            ],
            "ready": ready,
            "bare": bare,
            "same": same,
            "plan": plan,
            "candidates": candidates,
        });
        let ran = fork.run(&self.command(
            &request,
            goal.at_most(seconds + goal.patience + Duration::from_secs(2)),
        ))?;
        let mut answered = false;
        for line in ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix(&marker))
        {
            answered = true;
            match serde_json::from_str(line) {
                Ok(Answer::Judged { candidate, tests }) => {
                    let tests = tests.unwrap_or_default();
                    let outcomes = tests.iter().map(|test| (test.id.as_str(), test.outcome));
                    let needed = picked.get(&candidate).and_then(Option::as_deref);
                    heard(goal.judge_part(candidate, outcomes, needed));
                }
                Ok(Answer::Ready { ready }) => lock(&self.seen).ready = Some(ready),
                Ok(Answer::Bare { bare }) => lock(&self.seen).bare = Some(bare),
                Ok(Answer::Same { same }) => {
                    let mut seen = lock(&self.seen);
                    seen.same = Some(same);
                    seen.cold |= !same;
                }
                Ok(Answer::Cold { cold }) => lock(&self.seen).cold |= cold,
                Err(_) => {}
            }
        }
        // A harness that says nothing at all does not work here.
        if !answered && !ran.timed_out {
            lock(&self.seen).cold = true;
        }
        Ok(())
    }

    /// Each candidate in a fork of its own, with the project's command.
    pub(super) fn judge_cold(
        &self,
        ground: &dyn ForkSource,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        apart(ground, batch, until, heard, &mut |fork, trial| {
            let needed = self.nearest(goal, trial);
            let Some(tests) = self.run_some(fork, &goal.failing, goal)? else {
                return Ok(goal.verdict(trial.index, &[]));
            };
            let first = goal.verdict(trial.index, &tests);
            if first.fixed.len() < goal.failing.len() {
                return Ok(first);
            }
            let passing: Vec<String> = match &needed {
                Some(some) => some.iter().map(|&i| goal.passing[i].clone()).collect(),
                None => goal.passing.clone(),
            };
            let mut all = tests;
            if !passing.is_empty() {
                all.extend(self.run_some(fork, &passing, goal)?.unwrap_or_default());
            }
            let outcomes = all.iter().map(|test| (test.id.as_str(), test.outcome));
            Ok(goal.judge_part(trial.index, outcomes, needed.as_deref()))
        })
    }

    fn run_some(
        &self,
        fork: &mut dyn ProjectFork,
        tests: &[String],
        goal: &RepairGoal,
    ) -> Result<Option<Vec<TestCase>>, SuiteError> {
        use crate::suite::TestSuite;
        let patience = goal.at_most(goal.patience.max(Duration::from_secs(5)));
        match self.run_again(fork, tests, patience) {
            Ok(report) => Ok(Some(report.tests)),
            Err(SuiteError::Ground(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

/// The lines of the old text that a change touches.
pub(super) fn changed_lines(change: &SuiteFileChange) -> HashSet<usize> {
    let line_of = |at: usize| {
        let before = change
            .old
            .get(..at.min(change.old.len()))
            .unwrap_or_default();
        before.matches('\n').count() + 1
    };
    change
        .edits
        .iter()
        .flat_map(|edit| line_of(edit.start)..=line_of(edit.end))
        .collect()
}
