//! What a run looks like from outside, as a few numbers.

use serde::{Deserialize, Serialize};

use crate::verdict::TestRunAttempt;
use crate::work::CodingState;

/// How many there are, the constant one included.
pub const FEATURES: usize = 12;
/// Ratings at the end that count for themselves.
const LAST: usize = 5;
/// More violations, attempts or lines say nothing more.
const MOST_VIOLATIONS: usize = 5;
const MOST_RETRIES: u32 = 4;
const MANY_LINES: f64 = 1000.0;
const MILLI: f64 = 1000.0;

/// Their names, in their order.
const NAMES: [&str; FEATURES] = [
    "always",
    "mean rating",
    "worst rating",
    "share rated",
    "last ratings",
    "violations",
    "tests lost",
    "tests mended",
    "size of the change",
    "attempts before",
    "fails without the change",
    "touches existing tests",
];

/// Numbers between −1 and 1, in thousandths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfidenceFeatures(Vec<i32>);

impl ConfidenceFeatures {
    /// Of numbers between −1 and 1; the first one is always 1.
    #[allow(clippy::cast_possible_truncation)] // Between -1000 and 1000.
    pub fn new(values: [f64; FEATURES]) -> Self {
        let milli = |value: &f64| (value.clamp(-1.0, 1.0) * MILLI).round() as i32;
        Self(values.iter().map(milli).collect())
    }

    /// As numbers. Those that are missing are 0.
    pub fn values(&self) -> [f64; FEATURES] {
        let mut values = [0.0; FEATURES];
        for (to, from) in values.iter_mut().zip(&self.0) {
            *to = f64::from(*from) / MILLI;
        }
        values
    }

    /// The values, each with the name of its feature.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        NAMES.into_iter().zip(self.values())
    }
}

#[allow(clippy::cast_precision_loss)] // Counts of tests and lines.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// The features of a run that was judged. Pure.
pub fn features(work: &CodingState) -> ConfidenceFeatures {
    let last: Vec<Option<i8>> = work
        .ratings
        .iter()
        .filter(|rating| rating.attempt == work.loops)
        .flat_map(|rating| rating.scores.iter().map(|score| score.score))
        .collect();
    let rated: Vec<f64> = last.iter().flatten().map(|one| f64::from(*one)).collect();
    let mean = |scores: &[f64]| {
        if scores.is_empty() {
            0.0
        } else {
            scores.iter().sum::<f64>() / share(scores.len(), 1) / 2.0
        }
    };
    let worst = rated.iter().fold(2.0_f64, |worst, one| worst.min(*one)) / 2.0;
    let violations = rated.iter().filter(|one| **one < 0.0).count();
    let evidence = work.evidence.as_ref();
    let results = |looked: Option<&TestRunAttempt>| {
        let results = looked.and_then(TestRunAttempt::results).cloned();
        results.unwrap_or_default()
    };
    let before = results(evidence.map(|evidence| &evidence.before));
    let after = results(evidence.map(|evidence| &evidence.after));
    let without = evidence.and_then(|evidence| evidence.without.as_ref());
    let gone = match evidence.and_then(|evidence| evidence.first.as_ref()) {
        // The others were not run: nothing is known of them.
        Some(first) if first.enough => {
            let shown = first.shown(&before);
            shown.filter(|id| before.passing.contains(*id)).count()
        }
        _ => before.passing.difference(&after.passing).count(),
    };
    let mended: Vec<&String> = before.failing.intersection(&after.passing).collect();
    let gained = after.passing.difference(&before.passing);
    let needs_change = gained.clone().count() > 0
        && match without {
            None
            | Some(
                TestRunAttempt::NoTests | TestRunAttempt::NotRun | TestRunAttempt::OutOfTime(_),
            ) => false,
            Some(TestRunAttempt::CannotRun(_) | TestRunAttempt::EnvironmentBroken(_)) => true,
            Some(TestRunAttempt::Ran(results)) => {
                gained.clone().all(|id| !results.passing.contains(id))
            }
        };
    let accepted = evidence.is_some_and(|evidence| {
        let mut proofs = evidence.accepted.iter();
        proofs.any(|one| one.after && !one.before)
    });
    let lines = work.proposal.as_ref().map_or(0, |made| {
        let changed = |line: &&str| {
            (line.starts_with('+') && !line.starts_with("+++"))
                || (line.starts_with('-') && !line.starts_with("---"))
        };
        made.diff.lines().filter(changed).count()
    });
    let touched = evidence.is_some_and(|evidence| !evidence.touched_tests.is_empty());
    let tail = &rated[rated.len().saturating_sub(LAST)..];
    ConfidenceFeatures::new([
        1.0,
        mean(&rated),
        worst,
        share(rated.len(), last.len()),
        mean(tail),
        share(violations.min(MOST_VIOLATIONS), MOST_VIOLATIONS),
        share(gone, before.passing.len()),
        share(mended.len(), before.failing.len()),
        size(lines),
        f64::from(work.loops.min(MOST_RETRIES)) / f64::from(MOST_RETRIES),
        f64::from(u8::from(needs_change || accepted)),
        f64::from(u8::from(touched)),
    ])
}

/// From 0 for nothing to 1 for a thousand lines, with half of it at about thirty.
fn size(lines: usize) -> f64 {
    (share(lines, 1).min(MANY_LINES) / MANY_LINES).sqrt().sqrt()
}
