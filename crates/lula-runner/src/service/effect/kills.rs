//! The end of a runner at a chosen place of an effect, for tests.
//!
//! It is an unwinding that no code of the path catches: nothing more is written, transactions that are
//! not committed are lost, and the next service finds what is on disk.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::steps::EffectStep;

thread_local! {
    static AT: Cell<Option<EffectStep>> = const { Cell::new(None) };
}

/// The end of a runner.
struct RunnerKill(EffectStep);

pub(super) fn reached(step: EffectStep) {
    if AT.get() == Some(step) {
        AT.set(None);
        // Not a panic: nothing is printed.
        resume_unwind(Box::new(RunnerKill(step)));
    }
}

/// Does something that ends where `step` is reached, and tells where it ended.
pub(super) fn ending_at<T>(
    step: Option<EffectStep>,
    act: impl FnOnce() -> T,
) -> Result<T, EffectStep> {
    AT.set(step);
    let came = catch_unwind(AssertUnwindSafe(act));
    AT.set(None);
    came.or_else(|thrown| match thrown.downcast::<RunnerKill>() {
        Ok(killed) => Err(killed.0),
        Err(panic) => resume_unwind(panic),
    })
}
