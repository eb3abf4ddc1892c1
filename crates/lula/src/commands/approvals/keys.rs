//! `lula approvals keys`: who may answer, and as what.

use std::path::Path;

use lula_gate::approvals::{KeyError, Keyring};
use lula_protocol::{ApprovalChallenge, ApprovalToken, Code, Decision, Exit};
use serde_json::json;

use crate::cli::KeysCommand;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::{BAD, DIM, STRONG, Table, paint};

pub(super) fn run(command: Option<KeysCommand>, session: &Session) -> Result<Exit, Failure> {
    let mut ring = Keyring::open(&session.state_directory()?)?;
    let screen = &session.screen;
    let (done, id) = match command {
        None => return list(&ring, session),
        Some(KeysCommand::Add { who, roles, file }) => {
            if file.exists() {
                let message = format!("{} is there already", file.display());
                return Err(Failure::new(Code::FileAccess, Exit::Usage, message)
                    .remedy("name a file that does not exist"));
            }
            let note = format!(
                "{} signs for {who} as {}: hand it to them, and keep no copy",
                file.display(),
                roles.join(", ")
            );
            let id = ring.add_for(who, roles)?;
            if let Err(error) = ring.hand_out(&id, &file) {
                // A key that nobody holds signs nothing.
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
    Ok(Exit::Verified)
}

fn list(ring: &Keyring, session: &Session) -> Result<Exit, Failure> {
    let keys = ring.listed();
    if session.screen.is_json() {
        session.screen.document(&keys)?;
        return Ok(Exit::Verified);
    }
    let mut table = Table::default();
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
    Ok(Exit::Verified)
}

/// Signs with a key that was handed out, as whoever it is for.
pub(super) fn sign(
    file: &Path,
    challenge: &ApprovalChallenge,
    role: Option<&str>,
    decision: Decision,
) -> Result<ApprovalToken, Failure> {
    let ring = Keyring::from_file(file)?;
    let held = ring.listed();
    let holder = held
        .iter()
        .rev()
        .find_map(|key| Some((key.principal.clone()?, key.roles.first()?.clone())));
    let Some((who, first)) = holder else {
        let reason = "its keys are for nobody by name".to_owned();
        return Err(KeyError::Damaged {
            path: file.to_owned(),
            reason,
        }
        .into());
    };
    Ok(ring.sign(challenge, &who, role.unwrap_or(&first), decision)?)
}
