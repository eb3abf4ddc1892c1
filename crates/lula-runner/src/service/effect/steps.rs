//! Where a runner can end between two steps of an effect that last.

/// A place on the path of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EffectStep {
    /// It was looked for in the ledger.
    Known,
    /// It is prepared, and nothing of it lasts.
    Prepared,
    /// It is judged, in the transaction that also holds the intent and is not committed.
    Judged,
    /// The intent is on disk, with the approval spent.
    Intended,
    /// The act is done, and its result is nowhere.
    Performed,
    /// The result is on disk.
    Stored,
    /// The audit has its entry, and the ledger does not know that.
    Audited,
    /// Everything is written, and the caller has no answer.
    Closed,
    /// What a failed act left is taken back, and its intent is still there.
    TakenBack,
    /// It is not to happen, and the audit does not know that.
    Refused,
    /// The audit has the refusal, and the caller has no answer.
    RefusalRecorded,
}

/// Tells a test that a place is reached; there the test can end the runner.
#[cfg(not(test))]
pub(super) const fn reached(_: EffectStep) {}

#[cfg(test)]
pub(super) use super::kills::reached;
