//! Shows, in a fresh fork, that a patch is what makes the difference.

use std::time::Instant;

use similar::TextDiff;

use super::RepairError;
use super::doubt::share;
use super::hunt::{SearchContext, SurvivingCandidate};
use crate::outcome::{PatchDoubt, PatchEvidence, PatchedFile, RepairPatch, TestCounts};
use crate::patches::PatchFamily;
use crate::suite::{RepairGoal, SuiteError};
use crate::syntax::is_test_path;

/// Runs everything with the patch, and once more without it where that was asked for; none where
/// the patch does not hold.
pub(super) fn prove(
    hunt: &SearchContext<'_>,
    goal: &RepairGoal,
    survivor: &SurvivingCandidate,
    thorough: bool,
) -> Result<Option<RepairPatch>, RepairError> {
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
            doubts.push(PatchDoubt::NotReverted);
        }
    }
    let last = if thorough && !reverted {
        share(PatchDoubt::NotReverted)
    } else {
        1.0
    };
    let family = match survivor.parts.as_slice() {
        [only] => only.family,
        _ => PatchFamily::Pair,
    };
    Ok(Some(RepairPatch {
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
        evidence: PatchEvidence {
            fixed: survivor.fixed.clone(),
            after: TestCounts::of(&after),
            reverted,
            tried_before: survivor.tried_before,
            found_at_ms: survivor.found_at_ms,
        },
    }))
}
