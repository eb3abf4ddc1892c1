//! Shows, in a fresh fork, that a patch is what makes the difference.

use std::time::Instant;

use similar::TextDiff;

use super::RepairError;
use super::doubt::share;
use super::hunt::{Hunt, Survivor};
use crate::outcome::{Doubt, Evidence, Patch, PatchedFile, Tally};
use crate::patches::Family;
use crate::suite::{Goal, SuiteError};
use crate::syntax::is_test_path;

/// Runs everything with the patch, and once more without it where that was asked for; none where
/// the patch does not hold.
pub(super) fn prove(
    hunt: &Hunt<'_>,
    goal: &Goal,
    survivor: &Survivor,
    thorough: bool,
) -> Result<Option<Patch>, RepairError> {
    if survivor
        .files
        .iter()
        .any(|change| is_test_path(&change.path))
    {
        return Ok(None);
    }
    let left = || hunt.until.saturating_duration_since(Instant::now());
    let mut fork = hunt.ground.fork()?;
    for change in &survivor.files {
        fork.write(&change.path, change.new.as_bytes())?;
    }
    let after = match hunt.suite.run(fork.as_mut(), left()) {
        Ok(report) => report,
        Err(SuiteError::Ground(error)) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let verdict = goal.judge(
        0,
        after
            .tests
            .iter()
            .map(|test| (test.id.as_str(), test.outcome)),
    );
    if !verdict.passes {
        return Ok(None);
    }
    let mut doubts = survivor.doubts.clone();
    let mut reverted = false;
    if thorough {
        for change in &survivor.files {
            fork.write(&change.path, change.old.as_bytes())?;
        }
        let without = hunt.suite.run_again(fork.as_mut(), &goal.failing, left());
        reverted = without.is_ok_and(|report| {
            let verdict = goal.judge(
                0,
                report
                    .tests
                    .iter()
                    .map(|test| (test.id.as_str(), test.outcome)),
            );
            verdict.fixed.is_empty()
        });
        if !reverted {
            doubts.push(Doubt::NotReverted);
        }
    }
    let last = if thorough && !reverted {
        share(Doubt::NotReverted)
    } else {
        1.0
    };
    let family = match survivor.parts.as_slice() {
        [only] => only.family,
        _ => Family::Pair,
    };
    Ok(Some(Patch {
        diff: survivor
            .files
            .iter()
            .map(|change| {
                TextDiff::from_lines(change.old.as_str(), change.new.as_str())
                    .unified_diff()
                    .header(&format!("a/{}", change.path), &format!("b/{}", change.path))
                    .to_string()
            })
            .collect(),
        files: survivor
            .files
            .iter()
            .map(|change| PatchedFile {
                path: change.path.clone(),
                text: change.new.clone(),
            })
            .collect(),
        family,
        line: survivor.parts.first().map_or(0, |part| part.line),
        score: survivor.score * last,
        doubts,
        evidence: Evidence {
            fixed: survivor.fixed.clone(),
            after: Tally::of(&after),
            reverted,
            tried_before: survivor.tried_before,
            found_at_ms: survivor.found_at_ms,
        },
    }))
}
