//! What is remembered of a repository that is looked after.

use lula_protocol::{RunExit, RunId};
use lula_repair::trial::WHOLE;
use serde::{Deserialize, Serialize};

/// Most breakages that are remembered.
pub(super) const KEPT: usize = 200;
/// Most failing tests of each that are named.
const NAMED: usize = 50;

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealRunOutcome {
    pub exit: RunExit,
    pub summary: String,
    /// Where its change is, where it made a branch.
    pub branch: Option<String>,
    /// What it cost, in millionths of a dollar.
    pub spent: u64,
}

/// A breakage, from when it was first seen until it was gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakageEpisode {
    /// The same for breakages that are the same.
    pub fingerprint: String,
    /// The tests that failed.
    pub failing: Vec<String>,
    /// The commit it was first seen in.
    pub commit: String,
    /// When it was first seen, Unix time in milliseconds.
    pub first_ms: u64,
    /// When it was last seen.
    pub last_ms: u64,
    /// How often it was seen.
    pub seen: u32,
    /// The run that was begun for it.
    pub run: Option<RunId>,
    /// When that run was begun, Unix time in milliseconds.
    pub begun_ms: Option<u64>,
    /// What came of it.
    pub outcome: Option<HealRunOutcome>,
    /// When the tests were seen without it.
    pub gone_ms: Option<u64>,
}

/// Everything that is remembered of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryHealHistory {
    pub repository: String,
    /// In order, the oldest first.
    pub episodes: Vec<BreakageEpisode>,
    /// The name of the look under way: what a killed one left behind is found by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looking: Option<RunId>,
}

impl RepositoryHealHistory {
    /// The breakage of this kind that is not gone.
    pub fn open(&self, fingerprint: &str) -> Option<&BreakageEpisode> {
        let is = |one: &&BreakageEpisode| one.fingerprint == fingerprint && one.gone_ms.is_none();
        self.episodes.iter().rev().find(is)
    }

    fn open_mut(&mut self, fingerprint: &str) -> Option<&mut BreakageEpisode> {
        let is =
            |one: &&mut BreakageEpisode| one.fingerprint == fingerprint && one.gone_ms.is_none();
        self.episodes.iter_mut().rev().find(is)
    }

    /// When runs were begun since then.
    pub fn begun_since(&self, since_ms: u64) -> Vec<u64> {
        let begun = self.episodes.iter().filter_map(|one| one.begun_ms);
        begun.filter(|at| *at > since_ms).collect()
    }

    /// What runs cost that were begun since then, in millionths of a dollar.
    pub fn spent_since(&self, since_ms: u64) -> u64 {
        self.episodes
            .iter()
            .filter(|one| one.begun_ms.is_some_and(|at| at > since_ms))
            .filter_map(|one| one.outcome.as_ref())
            .fold(0, |sum, outcome| sum.saturating_add(outcome.spent))
    }

    /// Nothing is broken any more.
    pub fn green(&mut self, now_ms: u64) {
        self.close(now_ms, |_| true);
    }

    fn close(&mut self, now_ms: u64, is_gone: impl Fn(&BreakageEpisode) -> bool) {
        for one in &mut self.episodes {
            if one.gone_ms.is_none() && is_gone(one) {
                one.gone_ms = Some(now_ms);
            }
        }
    }

    /// A breakage was seen. Others are gone unless everything that failed there still fails.
    pub fn saw(&mut self, fingerprint: &str, failing: &[String], commit: &str, now_ms: u64) {
        // A command that only fails cannot tell what else would fail behind its first complaint.
        let whole = failing == [WHOLE];
        let fails = |id: &String| failing.contains(id);
        self.close(now_ms, |one| {
            one.fingerprint != fingerprint && (whole || !one.failing.iter().all(fails))
        });
        if let Some(known) = self.open_mut(fingerprint) {
            known.last_ms = now_ms;
            known.seen = known.seen.saturating_add(1);
            return;
        }
        self.episodes.push(BreakageEpisode {
            fingerprint: fingerprint.to_owned(),
            failing: failing.iter().take(NAMED).cloned().collect(),
            commit: commit.to_owned(),
            first_ms: now_ms,
            last_ms: now_ms,
            seen: 1,
            run: None,
            begun_ms: None,
            outcome: None,
            gone_ms: None,
        });
        while self.episodes.len() > KEPT {
            // Runs that were begun count for the limits: they are forgotten last.
            let idle = self.episodes.iter().position(|one| one.run.is_none());
            self.episodes.remove(idle.unwrap_or(0));
        }
    }

    /// A run is about to be begun for a breakage. One that was worked on before begins another
    /// episode, so that no run is forgotten.
    pub fn begins(&mut self, fingerprint: &str, run: &RunId, now_ms: u64) {
        let Some(mut episode) = self.open(fingerprint).cloned() else {
            return;
        };
        if episode.run.is_some() {
            if let Some(before) = self.open_mut(fingerprint) {
                before.gone_ms = Some(now_ms);
            }
            episode.outcome = None;
            episode.run = None;
            self.episodes.push(episode);
        }
        if let Some(episode) = self.open_mut(fingerprint) {
            episode.run = Some(run.clone());
            episode.begun_ms = Some(now_ms);
        }
    }

    /// A run came to rest: for good where it has an outcome.
    pub fn ended(&mut self, run: &RunId, outcome: HealRunOutcome) {
        let is = |one: &&mut BreakageEpisode| one.run.as_ref() == Some(run);
        if let Some(episode) = self.episodes.iter_mut().find(is) {
            episode.outcome = Some(outcome);
        }
    }
}
