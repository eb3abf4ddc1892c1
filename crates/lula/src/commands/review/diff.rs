//! `lula diff`: what waits for a decision.

use lula_host::secrets;
use lula_host::workspaces::{HeldWorkspaceView, aside, inside, open};
use lula_protocol::RunExit;
use lula_workspace::{ExcludedChanges, PathChange, WorkspacePath};

use super::flags::DiffFlags;
use super::{left_aside, store, table};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint};

/// More than this is not printed; `lula diff PATH` shows parts.
const MAX_PRINTED: usize = 8 << 20;

pub(crate) fn run(flags: &DiffFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if let [question] = flags.what.as_slice()
        && question.starts_with("apr_")
    {
        return crate::commands::approvals::show_one(question, session);
    }
    let store = store(session)?;
    // The first word is a workspace if there is one of that id.
    let (id, paths) = match flags.what.split_first() {
        Some((first, rest)) if first.starts_with("ws_") || store.find(first).is_ok() => {
            (Some(first.as_str()), rest)
        }
        _ => (None, flags.what.as_slice()),
    };
    let workspace = open(&store, id)?;
    let paths = inside(workspace.record(), paths)?;
    let mut diff = workspace.diff()?;
    for path in &paths {
        if !diff
            .changes
            .iter()
            .any(|change| change.path.is_within(path))
        {
            let (id, path) = (workspace.id().clone(), path.clone());
            return Err(lula_workspace::WorkspaceError::NoSuchChange { id, path }.into());
        }
    }
    let aside = if flags.all {
        ExcludedChanges::none()
    } else {
        aside(&session.host, &workspace, &diff).except(&paths)
    };
    let shown = |change: &PathChange| {
        let named = |path: &WorkspacePath| change.path.is_within(path);
        (paths.is_empty() || paths.iter().any(named)) && !aside.contains(&change.path)
    };
    if screen.is_json() {
        diff.changes.retain(shown);
        screen.document(&HeldWorkspaceView::new(&workspace, &diff, &aside))?;
        return Ok(RunExit::Verified);
    }
    let changes = diff.changes.iter().filter(|change| shown(change));
    if flags.stat {
        screen.line(table(&workspace, changes).render(0).trim_end())?;
        tell_aside(session, &aside);
        screen.note(&paint(DIM, format!("{} {}", workspace.id(), diff.digest)));
        return Ok(RunExit::Verified);
    }
    let mut printed = 0;
    for change in changes {
        let secret = !secrets::added(&workspace, change).is_empty();
        if secret || !change.risks.is_empty() || change.conflict || change.held_back.is_some() {
            screen.note(
                table(&workspace, std::iter::once(change))
                    .render(0)
                    .trim_end(),
            );
        }
        let patch = lula_workspace::patch(&workspace, change)?;
        printed += patch.len();
        if printed > MAX_PRINTED {
            screen.warn("there is more than can be shown at once: name paths, or use --stat");
            break;
        }
        screen.patch(&patch)?;
    }
    tell_aside(session, &aside);
    screen.note(&paint(DIM, format!("{} {}", workspace.id(), diff.digest)));
    Ok(RunExit::Verified)
}

fn tell_aside(session: &CliSession, aside: &ExcludedChanges) {
    if aside.files() > 0 {
        let told = format!("{}: lula diff --all", left_aside(aside));
        session.screen.note(&paint(DIM, told));
    }
}
