//! `lula discard`: turns held changes down.

use lula_host::workspaces::open;
use lula_protocol::RunExit;
use serde_json::json;

use super::flags::DiscardFlags;
use super::store;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint};

pub(crate) fn run(flags: &DiscardFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let workspace = open(&store(session)?, flags.id.as_deref())?;
    let (id, changes) = (workspace.id().clone(), workspace.record().changes);
    workspace.discard(flags.now)?;
    if screen.is_json() {
        screen.document(&json!({ "workspace": id, "discarded": changes, "kept": !flags.now }))?;
        return Ok(RunExit::Verified);
    }
    screen.line(format!(
        "discarded {} of {id}; your files are as they were",
        super::changes(changes)
    ))?;
    if !flags.now {
        screen.note(&paint(DIM, format!("bring back: lula undo {id}")));
    }
    Ok(RunExit::Verified)
}
