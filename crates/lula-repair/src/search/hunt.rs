//! Judges candidates in parallel forks until something passes or the budget is spent.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::doubt::{doubts, doubts_of, share};
use super::proof::prove;
use super::queue::CandidateQueue;
use super::{RepairError, RepairTask, SearchProgress, millis};
use crate::ground::{ForkSource, ProjectFork};
use crate::locate::Clues;
use crate::outcome::{PatchDoubt, RepairPatch, SearchEffort};
use crate::patches::CandidatePatch;
use crate::suite::{CandidateTrial, RepairGoal, SuiteFileChange, TestSuite};
use crate::syntax::ParsedSource;

/// Share of the time that the first passing candidate took, spent on looking for a better one.
const SECOND_LOOK: f64 = 0.35;
/// Passing candidates after which no other is looked for.
const ENOUGH: usize = 12;

/// Patches that are shown beside the best one where proving them is cheap.
const RUNNERS_UP: usize = 3;

/// Everything that a search needs to know.
pub(super) struct SearchContext<'a> {
    pub(super) ground: &'a dyn ForkSource,
    pub(super) suite: &'a dyn TestSuite,
    pub(super) goal: &'a RepairGoal,
    pub(super) sources: &'a [ParsedSource],
    pub(super) clues: &'a Clues,
    pub(super) task: &'a RepairTask,
    pub(super) start: Instant,
    pub(super) until: Instant,
    pub(super) watch: &'a (dyn Fn(SearchProgress) + Sync),
}

/// A candidate that passed in the search, before it is proved in a fork of its own.
pub(super) struct SurvivingCandidate {
    pub(super) parts: Vec<CandidatePatch>,
    pub(super) files: Vec<SuiteFileChange>,
    pub(super) fixed: Vec<String>,
    pub(super) doubts: Vec<PatchDoubt>,
    pub(super) score: f64,
    pub(super) tried_before: usize,
    pub(super) found_at_ms: u64,
}

struct State<'a> {
    queue: CandidateQueue<'a>,
    survivors: Vec<SurvivingCandidate>,
    stop: Instant,
}

impl SearchContext<'_> {
    pub(super) fn run(
        &self,
        first: Box<dyn ProjectFork>,
        candidates: Vec<CandidatePatch>,
    ) -> Result<(Vec<RepairPatch>, Vec<String>, SearchEffort), RepairError> {
        let began = Instant::now();
        // What proving takes must be left at the end.
        let reserve = (self.goal.patience * 2).min(self.task.budget / 4);
        let last = self.until.checked_sub(reserve).unwrap_or(self.until);
        let state = Mutex::new(State {
            queue: CandidateQueue::new(self.sources, candidates, self.goal.failing.len()),
            survivors: Vec::new(),
            stop: last,
        });
        let mut lanes = Vec::new();
        if self.suite.keeps_builds() {
            lanes.push(first);
        }
        let mut patches: Vec<RepairPatch> = Vec::new();
        let mut search = Duration::ZERO;
        let mut exhausted = false;
        while patches.is_empty() && Instant::now() < last && !exhausted {
            let spell = Instant::now();
            exhausted = self.search(&mut lanes, &state)?;
            search += spell.elapsed();
            let mut survivors = std::mem::take(&mut lock(&state).survivors);
            survivors.sort_by(|a, b| b.score.total_cmp(&a.score));
            let mut quick = true;
            for survivor in survivors {
                let enough = !self.task.all
                    && !patches.is_empty()
                    && (patches.len() >= RUNNERS_UP || !quick);
                if enough || Instant::now() >= self.until {
                    break;
                }
                let thorough = patches.is_empty() || self.task.all;
                let began = Instant::now();
                patches.extend(prove(self, self.goal, &survivor, thorough)?);
                quick = began.elapsed() < Duration::from_secs(1);
            }
            lock(&state).stop = last;
        }
        let mut state = state
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut given = Vec::new();
        if patches.is_empty()
            && let Some((patch, rest)) = self.part(&mut state)?
        {
            patches.push(patch);
            given = rest;
        }
        patches.sort_by(|a, b| b.score.total_cmp(&a.score));
        let effort = SearchEffort {
            proposed: state.queue.proposed(),
            tried: state.queue.judged,
            total_ms: millis(began.elapsed()),
            search_ms: millis(search),
            exhausted,
        };
        Ok((patches, given, effort))
    }

    /// A patch that mends what one place causes, where the tests that it leaves failing are known not to
    /// run that place: they failed before for reasons of their own.
    fn part(
        &self,
        state: &mut State<'_>,
    ) -> Result<Option<(RepairPatch, Vec<String>)>, RepairError> {
        for (candidate, files, fixed) in state.queue.partial() {
            let rest: Vec<String> = self
                .goal
                .failing
                .iter()
                .filter(|id| !fixed.contains(id))
                .cloned()
                .collect();
            let apart = |id: &String| self.suite.runs(id, &files) == Some(false);
            if rest.is_empty() || !rest.iter().all(apart) || Instant::now() >= self.until {
                continue;
            }
            let goal = RepairGoal {
                failing: fixed.clone(),
                ..self.goal.clone()
            };
            let survivor = self.survivor(&state.queue, vec![candidate], &files, fixed);
            if let Some(patch) = prove(self, &goal, &survivor, true)? {
                return Ok(Some((patch, rest)));
            }
        }
        Ok(None)
    }

    /// Works until something passes, nothing is left or time is up; true when nothing is left.
    fn search(
        &self,
        lanes: &mut Vec<Box<dyn ProjectFork>>,
        state: &Mutex<State<'_>>,
    ) -> Result<bool, RepairError> {
        while lanes.len() < self.suite.lanes(self.task.lanes.max(1)) {
            lanes.push(self.ground.fork()?);
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = lanes
                .iter_mut()
                .map(|fork| scope.spawn(|| self.work(fork.as_mut(), state)))
                .collect();
            let mut exhausted = true;
            for worker in workers {
                match worker.join() {
                    Ok(done) => exhausted &= done?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(exhausted)
        })
    }

    fn work(
        &self,
        fork: &mut dyn ProjectFork,
        state: &Mutex<State<'_>>,
    ) -> Result<bool, RepairError> {
        let (mut size, most) = self.suite.batch();
        loop {
            let (batch, stop) = {
                let mut state = lock(state);
                if Instant::now() >= state.stop || !self.task.all && state.survivors.len() >= ENOUGH
                {
                    return Ok(false);
                }
                (state.queue.take(size), state.stop)
            };
            if batch.is_empty() {
                return Ok(true);
            }
            let began = Instant::now();
            let mut heard = HashSet::new();
            let until = stop.min(began + self.suite.spell().max(self.goal.patience * 2));
            let outcome = self.suite.judge(
                self.ground,
                fork,
                self.goal,
                &batch,
                until,
                &mut |verdict| {
                    heard.insert(verdict.index);
                    let mut state = lock(state);
                    state.queue.heard(&verdict);
                    if verdict.passes {
                        self.keep(&mut state, &batch, verdict);
                    }
                    Instant::now() < state.stop && (self.task.all || state.survivors.len() < ENOUGH)
                },
            );
            outcome.map_err(|error| RepairError::CannotRun(vec![error.to_string()]))?;
            let rate = f64::from(u32::try_from(heard.len()).unwrap_or(u32::MAX))
                / began.elapsed().as_secs_f64().max(0.001);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let fitting = (rate * self.suite.spell().as_secs_f64() * 1.5) as usize;
            size = fitting.clamp(self.suite.batch().0, most);
            let mut state = lock(state);
            // Where no candidate was judged, the first is what stood in the way.
            let skip = usize::from(heard.is_empty());
            let unheard = batch
                .into_iter()
                .filter(|trial| !heard.contains(&trial.index));
            state
                .queue
                .postpone(unheard.skip(skip).collect::<Vec<_>>().into_iter());
            (self.watch)(SearchProgress::Tried {
                tried: state.queue.judged,
                passing: state.survivors.len(),
            });
        }
    }

    fn keep(
        &self,
        state: &mut State<'_>,
        batch: &[CandidateTrial],
        verdict: crate::suite::CandidateVerdict,
    ) {
        let Some(trial) = batch.iter().find(|trial| trial.index == verdict.index) else {
            return;
        };
        let parts = state.queue.candidates(verdict.index).to_vec();
        if state.survivors.is_empty() && !self.task.all {
            let spent = self.start.elapsed();
            let more = spent
                .mul_f64(SECOND_LOOK)
                .clamp(Duration::from_millis(300), Duration::from_secs(5));
            state.stop = state.stop.min(Instant::now() + more);
        }
        let survivor = self.survivor(&state.queue, parts, &trial.files, verdict.fixed);
        state.survivors.push(survivor);
    }

    /// What passed, with what speaks for and against it.
    fn survivor(
        &self,
        queue: &CandidateQueue<'_>,
        parts: Vec<CandidatePatch>,
        files: &[SuiteFileChange],
        fixed: Vec<String>,
    ) -> SurvivingCandidate {
        let text_of = |path: &str| {
            files
                .iter()
                .find(|change| change.path == path)
                .map(|change| change.old.clone())
        };
        let mut found = doubts(&parts, self.clues, text_of);
        for doubt in files.iter().flat_map(doubts_of) {
            if !found.contains(&doubt) {
                found.push(doubt);
            }
        }
        let size: usize = parts
            .iter()
            .flat_map(|part| &part.edits)
            .map(|edit| edit.text.len())
            .sum();
        #[allow(clippy::cast_precision_loss)]
        let small = 1.0 / (1.0 + size as f64 / 120.0);
        let weight: f64 = parts.iter().map(CandidatePatch::weight).product();
        let score = found.iter().map(|doubt| share(*doubt)).product::<f64>() * weight * small;
        SurvivingCandidate {
            parts,
            files: files.to_vec(),
            fixed,
            doubts: found,
            score,
            tried_before: queue.judged.saturating_sub(1),
            found_at_ms: millis(self.start.elapsed()),
        }
    }
}

fn lock<'m, 'a>(state: &'m Mutex<State<'a>>) -> std::sync::MutexGuard<'m, State<'a>> {
    state
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
