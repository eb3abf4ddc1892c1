//! `lula undo` and `lula redo`.

use lula_host::workspaces::base;
use lula_protocol::RunExit;
use lula_workspace::{Workspace, WorkspaceError, WorkspacePath, WorkspaceStatus, WorkspaceStore};
use serde_json::json;

use super::flags::{RedoFlags, UndoFlags};
use super::{changes, store};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint};

pub(crate) fn undo(flags: &UndoFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let store = store(session)?;
    let id = match flags.id.as_deref() {
        Some(given) => store.find(given)?,
        None => store
            .to_undo(&base()?)?
            .ok_or(WorkspaceError::Nothing("undo"))?,
    };
    let mut workspace = store.open(&id)?;
    let revived = workspace.record().state == WorkspaceStatus::Discarded;
    let paths = workspace.undo()?;
    let said = if revived {
        format!("{} waits for a decision again", workspace.id())
    } else {
        format!("took back {}; see {}", changes(paths.len()), workspace.id())
    };
    tell(session, &workspace, &paths, &said, "redo")
}

pub(crate) fn redo(flags: &RedoFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let store: WorkspaceStore = store(session)?;
    let id = match flags.id.as_deref() {
        Some(given) => store.find(given)?,
        None => store
            .to_redo(&base()?)?
            .ok_or(WorkspaceError::Nothing("redo"))?,
    };
    let mut workspace = store.open(&id)?;
    let paths = workspace.redo()?;
    let said = format!("made {} again", changes(paths.len()));
    tell(session, &workspace, &paths, &said, "undo")
}

fn tell(
    session: &CliSession,
    workspace: &Workspace,
    paths: &[WorkspacePath],
    said: &str,
    back: &str,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        let state = workspace.record().state;
        screen.document(&json!({ "workspace": workspace.id(), "paths": paths, "state": state }))?;
        return Ok(RunExit::Verified);
    }
    screen.line(said)?;
    if !paths.is_empty() {
        screen.note(&paint(
            DIM,
            format!("take that back: lula {back} {}", workspace.id()),
        ));
    }
    Ok(RunExit::Verified)
}
