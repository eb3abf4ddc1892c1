//! Cutting a commit off at any of its steps, as a crash would.

use std::cell::Cell;

use crate::error::{WorkspaceError, WorkspaceResult};

thread_local! {
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Lets so many steps through on this thread, and stops at the next.
pub(crate) fn stop_after(steps: Option<u32>) {
    LEFT.set(steps);
}

/// Called before each step of a commit: fails where a test wants a crash.
pub(crate) fn step() -> WorkspaceResult<()> {
    match LEFT.get() {
        None => Ok(()),
        Some(0) => Err(WorkspaceError::Stopped),
        Some(left) => {
            LEFT.set(Some(left - 1));
            Ok(())
        }
    }
}
