//! Secrets in what changes would add to the user's files.

use lula_gate::invariants::{InvariantViolation, secrets_added};
use lula_workspace::{ChangeSelection, ExcludedChanges, PathChange, Workspace, WorkspaceDiff};

use crate::error::HostError;
use crate::text::visible;

/// The kinds of secrets that a change adds. Files that are not text, or too long to be shown, are
/// not looked at.
pub fn added(workspace: &Workspace, change: &PathChange) -> Vec<&'static str> {
    let patch = lula_workspace::patch(workspace, change).unwrap_or_default();
    let mut kinds: Vec<_> = secrets_added(&patch)
        .into_iter()
        .filter_map(|violation| match violation {
            InvariantViolation::SecretAdded { kind, .. } => Some(kind),
            _ => None,
        })
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Refuses to commit secrets in what is not left aside.
pub fn refuse(
    workspace: &Workspace,
    selection: &ChangeSelection,
    (diff, aside): (&WorkspaceDiff, &ExcludedChanges),
) -> Result<(), HostError> {
    let aside = aside.except(&selection.paths);
    let chosen = |change: &&PathChange| {
        let mut paths = selection.paths.iter();
        selection.paths.is_empty() || paths.any(|path| change.path.is_within(path))
    };
    for change in aside.rest(diff).filter(chosen) {
        if let [kind, ..] = added(workspace, change)[..] {
            return Err(HostError::AddsSecret {
                path: visible(&change.path.to_string()),
                kind,
            });
        }
    }
    Ok(())
}
