//! Candidates in the order in which they are worth trying.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::patches::{CandidatePatch, NormalForms, PatchFamily};
use crate::suite::{CandidateTrial, CandidateVerdict, SuiteFileChange};
use crate::syntax::ParsedSource;

/// How many candidates that help a little are joined with one another.
const PARTNERS: usize = 40;

/// What is to be tried, what was, and what came of it.
pub(crate) struct CandidateQueue<'a> {
    sources: HashMap<&'a str, &'a ParsedSource>,
    order: Vec<CandidatePatch>,
    next: usize,
    forms: NormalForms,
    /// What each trial tries.
    tried: Vec<Vec<CandidatePatch>>,
    /// Candidates that fixed some of the failing tests and were not seen to break any.
    helpful: Vec<(CandidatePatch, Vec<String>)>,
    paired: HashSet<(usize, usize)>,
    pairs: Vec<Vec<CandidatePatch>>,
    /// Pairs that fix everything between them: not worth waiting for.
    urgent: Vec<Vec<CandidatePatch>>,
    /// Trials that there was no time for.
    postponed: VecDeque<CandidateTrial>,
    failing: usize,
    pub(crate) judged: usize,
}

impl<'a> CandidateQueue<'a> {
    pub(crate) fn new(
        sources: &'a [ParsedSource],
        mut order: Vec<CandidatePatch>,
        failing: usize,
    ) -> Self {
        order.sort_by(|a, b| {
            b.weight()
                .total_cmp(&a.weight())
                .then_with(|| (&a.path, &a.edits).cmp(&(&b.path, &b.edits)))
        });
        let mut forms = NormalForms::default();
        for source in sources {
            forms.know(source);
        }
        Self {
            sources: sources
                .iter()
                .map(|source| (source.path.as_str(), source))
                .collect(),
            order,
            next: 0,
            forms,
            tried: Vec::new(),
            helpful: Vec::new(),
            paired: HashSet::new(),
            pairs: Vec::new(),
            urgent: Vec::new(),
            postponed: VecDeque::new(),
            failing,
            judged: 0,
        }
    }

    pub(crate) fn proposed(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn candidates(&self, index: usize) -> &[CandidatePatch] {
        self.tried.get(index).map_or(&[], Vec::as_slice)
    }

    /// The next candidates, fewer when there are no more.
    pub(crate) fn take(&mut self, count: usize) -> Vec<CandidateTrial> {
        let ready = self.postponed.len().min(count);
        let mut batch: Vec<CandidateTrial> = self.postponed.drain(..ready).collect();
        while batch.len() < count {
            let parts = if let Some(pair) = self.urgent.pop() {
                pair
            } else if let Some(candidate) = self.order.get(self.next) {
                self.next += 1;
                vec![candidate.clone()]
            } else {
                if self.pairs.is_empty() {
                    self.pair_up();
                }
                match self.pairs.pop() {
                    Some(pair) => pair,
                    None => break,
                }
            };
            if let Some(files) = self.changes(&parts) {
                batch.push(CandidateTrial {
                    index: self.tried.len(),
                    files,
                });
                self.tried.push(parts);
            }
        }
        batch
    }

    /// Takes back what was not judged, to hand it out again before anything else.
    pub(crate) fn postpone(&mut self, trials: impl DoubleEndedIterator<Item = CandidateTrial>) {
        for trial in trials.rev() {
            self.postponed.push_front(trial);
        }
    }

    /// Notes a verdict, to join what helps a little with what helps with the rest.
    pub(crate) fn heard(&mut self, verdict: &CandidateVerdict) {
        self.judged += 1;
        if let [candidate] = self.candidates(verdict.index)
            && !verdict.passes
            && !verdict.fixed.is_empty()
            && !verdict.broke
            && self.helpful.len() < PARTNERS
        {
            let entry = (candidate.clone(), verdict.fixed.clone());
            for (other, also) in &self.helpful {
                let new = also.iter().filter(|test| !entry.1.contains(test)).count();
                if new + entry.1.len() == self.failing {
                    self.urgent.push(vec![other.clone(), entry.0.clone()]);
                }
            }
            self.helpful.push(entry);
        }
    }

    /// Candidates that mend some of the failing tests, with their texts; those that mend most first.
    pub(crate) fn partial(&mut self) -> Vec<(CandidatePatch, Vec<SuiteFileChange>, Vec<String>)> {
        let mut helpful = std::mem::take(&mut self.helpful);
        helpful.sort_by(|(a, also), (b, fixed)| {
            let most = fixed.len().cmp(&also.len());
            most.then_with(|| b.weight().total_cmp(&a.weight()))
        });
        let texts = |candidate: &CandidatePatch| {
            let source = *self.sources.get(candidate.path.as_str())?;
            Some(vec![SuiteFileChange {
                path: candidate.path.clone(),
                old: source.text.clone(),
                new: candidate.apply(&source.text)?,
                edits: candidate.edits.clone(),
            }])
        };
        helpful
            .into_iter()
            .filter_map(|(candidate, fixed)| {
                let files = texts(&candidate)?;
                Some((candidate, files, fixed))
            })
            .collect()
    }

    /// Pairs of which each part fixes something that the other does not.
    fn pair_up(&mut self) {
        let mut found: Vec<Vec<CandidatePatch>> = Vec::new();
        for (i, (first, fixed)) in self.helpful.iter().enumerate() {
            for (j, (second, also)) in self.helpful.iter().enumerate().skip(i + 1) {
                let complements = also.iter().any(|test| !fixed.contains(test))
                    && fixed.iter().any(|test| !also.contains(test));
                if complements && self.paired.insert((i, j)) {
                    found.push(vec![first.clone(), second.clone()]);
                }
            }
            // One part is half of the answer: what else near it?
            for (j, second) in self.order.iter().take(250).enumerate() {
                if second.path == first.path
                    && second.edits != first.edits
                    && self.paired.insert((i, PARTNERS + j))
                {
                    found.push(vec![first.clone(), second.clone()]);
                }
            }
        }
        let weight =
            |pair: &Vec<CandidatePatch>| pair.iter().map(CandidatePatch::weight).product::<f64>();
        found.sort_by(|a, b| weight(a).total_cmp(&weight(b)));
        self.pairs = found;
    }

    fn changes(&mut self, parts: &[CandidatePatch]) -> Option<Vec<SuiteFileChange>> {
        let mut merged: Vec<CandidatePatch> = Vec::new();
        for part in parts {
            match merged.iter_mut().find(|known| known.path == part.path) {
                Some(known) => {
                    let apart = known.edits.iter().all(|a| {
                        part.edits
                            .iter()
                            .all(|b| a.start != b.start && (a.end <= b.start || b.end <= a.start))
                    });
                    if !apart {
                        return None;
                    }
                    known.edits.extend(part.edits.iter().cloned());
                    known.family = PatchFamily::Pair;
                }
                None => merged.push(part.clone()),
            }
        }
        let mut files = Vec::new();
        for candidate in merged {
            let source = *self.sources.get(candidate.path.as_str())?;
            // Parts of a pair in two files were each admitted before, alone.
            let new = if parts.len() > 1
                && files.is_empty()
                && parts.iter().any(|part| part.path != candidate.path)
            {
                candidate.apply(&source.text)?
            } else {
                self.forms.admit(source, &candidate)?
            };
            files.push(SuiteFileChange {
                path: candidate.path.clone(),
                old: source.text.clone(),
                new,
                edits: candidate.edits,
            });
        }
        Some(files)
    }
}
