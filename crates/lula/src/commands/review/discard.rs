//! `lula discard`: turns held changes down.

use lula_protocol::Exit;
use serde_json::json;

use super::flags::DiscardFlags;
use super::{open, store};
use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, paint};

pub(crate) fn run(flags: &DiscardFlags, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let workspace = open(&store(session)?, flags.id.as_deref())?;
    let (id, changes) = (workspace.id().clone(), workspace.record().changes);
    workspace.discard(flags.now)?;
    if screen.is_json() {
        screen.document(&json!({ "workspace": id, "discarded": changes, "kept": !flags.now }))?;
        return Ok(Exit::Verified);
    }
    screen.line(format!(
        "discarded {} of {id}; your files are as they were",
        super::changes(changes)
    ))?;
    if !flags.now {
        screen.note(&paint(DIM, format!("bring back: lula undo {id}")));
    }
    Ok(Exit::Verified)
}
