//! Secrets in what changes would add to the user's files.

use lula_gate::invariants::{Violation, secrets_added};
use lula_protocol::{Code, Exit};
use lula_workspace::{Aside, Change, Diff, Selection, Workspace};

use crate::failure::Failure;
use crate::term::visible;

/// The kinds of secrets that a change adds. Files that are not text, or too long to be shown, are
/// not looked at.
pub(super) fn added(workspace: &Workspace, change: &Change) -> Vec<&'static str> {
    let patch = lula_workspace::patch(workspace, change).unwrap_or_default();
    let mut kinds: Vec<_> = secrets_added(&patch)
        .into_iter()
        .filter_map(|violation| match violation {
            Violation::SecretAdded { kind, .. } => Some(kind),
            _ => None,
        })
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Refuses to commit secrets in what is not left aside.
pub(super) fn refuse(
    workspace: &Workspace,
    selection: &Selection,
    (diff, aside): (&Diff, &Aside),
) -> Result<(), Failure> {
    let aside = aside.except(&selection.paths);
    let chosen = |change: &&Change| {
        let mut paths = selection.paths.iter();
        selection.paths.is_empty() || paths.any(|path| change.path.is_within(path))
    };
    for change in aside.rest(diff).filter(chosen) {
        if let [kind, ..] = added(workspace, change)[..] {
            let path = visible(&change.path.to_string());
            let message = format!("{path} would add a secret ({kind}); nothing was committed");
            return Err(
                Failure::new(Code::HeldBack, Exit::WaitingForApproval, message).remedy(
                    "look at it with `lula diff`, choose other paths with --path, or add \
                     --allow-secrets if it is none",
                ),
            );
        }
    }
    Ok(())
}
