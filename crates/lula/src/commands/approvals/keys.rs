//! `lula approvals keys`: who may answer, and as what.

use lula_gate::approvals::ApprovalKeyring;
use lula_protocol::{Code, RunExit};
use serde_json::json;

use super::flags::KeysCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, STRONG, TextTable, paint};

pub(super) fn run(
    command: Option<KeysCommand>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let mut ring = ApprovalKeyring::open(&session.host.state_directory()?)?;
    let screen = &session.screen;
    let (done, id) = match command {
        None => return list(&ring, session),
        Some(KeysCommand::Add { who, roles, file }) => {
            if file.exists() {
                let message = format!("{} is there already", file.display());
                return Err(
                    CommandFailure::new(Code::FileAccess, RunExit::Usage, message)
                        .remedy("name a file that does not exist"),
                );
            }
            let note = format!(
                "{} signs for {who} as {}: hand it to them, and keep no copy",
                file.display(),
                roles.join(", ")
            );
            let id = ring.add_for(who, roles)?;
            if let Err(error) = ring.hand_out(&id, &file) {
                // A key that was not handed out signs nothing.
                ring.retire(&id)?;
                return Err(error.into());
            }
            (note, id)
        }
        Some(KeysCommand::Rotate) => {
            let id = ring.rotate()?;
            (format!("you sign with {id} from now on"), id)
        }
        Some(KeysCommand::Retire { id }) => {
            ring.retire(&id)?;
            (format!("{id} counts for nothing from now on"), id)
        }
    };
    if screen.is_json() {
        screen.document(&json!({"key": id}))?;
    } else {
        screen.note(&done);
    }
    Ok(RunExit::Verified)
}

fn list(ring: &ApprovalKeyring, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let keys = ring.listed();
    if session.screen.is_json() {
        session.screen.document(&keys)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for key in &keys {
        let holder = key.principal.as_ref();
        table.row([
            paint(STRONG, &key.id),
            holder.map_or_else(|| "you".to_owned(), ToString::to_string),
            paint(DIM, key.roles.join(", ")),
            if key.retired {
                paint(BAD, "retired")
            } else {
                String::new()
            },
        ]);
    }
    session.screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
