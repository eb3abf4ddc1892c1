//! Deciding about changes that wait in workspaces: `lula diff`, `commit`, `discard`, `undo`, `redo`
//! and `workspaces`.

mod branches;
mod commit;
mod diff;
mod discard;
pub(crate) mod flags;
mod list;
mod undo;

use lula_host::{secrets, workspaces};
use lula_workspace::{
    ExcludedChanges, LayerBackend, PathChange, UncommittableReason, Workspace, WorkspaceDiff,
    WorkspaceStore,
};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, visible};

pub(super) use branches::{archive, branches};
pub(super) use commit::run as commit;
pub(super) use diff::run as diff;
pub(super) use discard::run as discard;
pub(super) use list::run as list;
pub(super) use undo::{redo, undo};

/// So many changes are listed after a command; all of them by `lula diff --stat`.
const LISTED: usize = 12;

/// So many changes are looked at for secrets before they are listed; `lula commit` looks at all.
const LOOKED_AT: usize = 200;

/// The workspaces below the state directory of the installation.
pub(crate) fn store(session: &CliSession) -> Result<WorkspaceStore, CommandFailure> {
    Ok(workspaces::store(&session.host)?)
}

/// After a command: how much waits, where, and what deserves a second look.
pub(crate) fn announce(
    session: &CliSession,
    workspace: &Workspace,
    diff: &WorkspaceDiff,
    aside: &ExcludedChanges,
) {
    let screen = &session.screen;
    let count = diff.changes.len();
    let how = match &workspace.record().backend {
        LayerBackend::Overlay => String::new(),
        LayerBackend::Copy { why } => format!(", in a copy because {why}"),
    };
    let changes = if count == 1 {
        "1 change waits".to_owned()
    } else {
        format!("{count} changes wait")
    };
    let head = format!("{changes} for your review in {}{how}", workspace.id());
    screen.note(&paint(STRONG, head));
    let mut listed: Vec<&PathChange> = diff.changes.iter().collect();
    let looked = diff.changes.iter().take(LOOKED_AT);
    let secret: Vec<_> = looked
        .filter(|change| !secrets::added(workspace, change).is_empty())
        .map(|change| &change.path)
        .collect();
    // What deserves a second look must not be what is cut off.
    listed.sort_by_key(|change| {
        (
            !change.conflict,
            change.risks.is_empty() && !secret.contains(&&change.path),
            is_directory(change),
        )
    });
    screen.note(
        table(workspace, listed.iter().take(LISTED).copied())
            .render(2)
            .trim_end(),
    );
    if count > LISTED {
        screen.note(&format!(
            "  … and {} more: lula diff --stat",
            count - LISTED
        ));
    }
    if aside.files() > 0 {
        screen.note(&format!("  {}: lula diff --all", left_aside(aside)));
    }
    screen.note(&paint(
        DIM,
        "look: lula diff   take: lula commit   drop: lula discard",
    ));
}

fn is_directory(change: &PathChange) -> bool {
    let node = change.new.as_ref().or(change.old.as_ref());
    node.is_some_and(|node| node.kind == lula_workspace::FileNodeKind::Directory)
}

/// Changes, one to a line.
fn table<'a>(workspace: &Workspace, changes: impl Iterator<Item = &'a PathChange>) -> TextTable {
    let mut table = TextTable::default();
    for change in changes {
        let letter = change.what.letter();
        let style = match letter {
            'A' => GOOD,
            'D' => BAD,
            _ => STRONG,
        };
        let slash = if is_directory(change) { "/" } else { "" };
        let path = format!("{}{slash}", visible(&change.path.to_string()));
        table.row([paint(style, letter), path, notes(workspace, change)]);
    }
    table
}

/// What is to be said about a change beside where it is.
fn notes(workspace: &Workspace, change: &PathChange) -> String {
    let mut notes = Vec::new();
    if change.conflict {
        notes.push(paint(BAD, "conflict: changed by you too"));
    }
    match change.held_back {
        Some(UncommittableReason::Special | UncommittableReason::Unreadable) => {
            notes.push(paint(BAD, "never committed"));
        }
        Some(UncommittableReason::GitInternals) => notes.push(paint(WARN, "needs --allow-git")),
        None => {}
    }
    notes.extend(change.risks.iter().map(|risk| paint(WARN, risk.label())));
    if let [kind, ..] = secrets::added(workspace, change)[..] {
        notes.push(paint(BAD, format!("adds a secret ({kind})")));
    }
    if change.new.as_ref().is_some_and(|node| node.binary) {
        notes.push(paint(DIM, "binary"));
    }
    notes.join(", ")
}

/// How many of them there are, in words.
pub(crate) fn left_aside(aside: &ExcludedChanges) -> String {
    match aside.files() {
        1 => "1 ignored file left aside".to_owned(),
        many => format!("{many} ignored files left aside"),
    }
}

/// So many changes, in words.
fn changes(count: impl std::fmt::Display) -> String {
    match count.to_string().as_str() {
        "1" => "1 change".to_owned(),
        many => format!("{many} changes"),
    }
}
