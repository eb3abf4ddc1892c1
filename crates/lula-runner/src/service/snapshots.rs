//! Snapshots of a workspace, by name: those that a caller asked for, and those that are our own.

use super::room::RunnerWorkspace;

/// The snapshot of that name, or the last one, that a caller asked for.
pub(super) fn snapshot_named(room: &RunnerWorkspace, label: Option<&str>) -> Option<String> {
    let workspace = room.workspace();
    let snapshots = &workspace.record().snapshots;
    let mut own = snapshots.iter().filter(|one| !is_ours(&one.label)).rev();
    let found = match label {
        Some(label) => own.find(|one| one.label == label),
        None => own.next(),
    };
    found.map(|one| one.label.clone())
}

/// Labels of snapshots that are taken for the ledger's own use.
pub(super) const OURS: &str = "lula:before:";

pub(super) fn is_ours(label: &str) -> bool {
    label.starts_with(OURS)
}

/// Why a text cannot be a snapshot's name.
pub(super) fn label_problem(label: &str) -> Option<&'static str> {
    if label.is_empty() || label.len() > 100 || label.chars().any(char::is_control) {
        return Some("a label has 1 to 100 bytes and no control characters");
    }
    is_ours(label).then_some("a label does not begin with lula:before:")
}
