//! `lula server keys`

use lula_host::record::now_ms;
use lula_protocol::calendar::utc_text;
use lula_protocol::{FailureReport, RunExit};
use lula_server::identity::keys::{ServerKeyRequest, ServerKeys};
use serde_json::json;

use super::flags::ServerKeysCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, STRONG, TextTable, paint};

pub(in crate::commands) fn run(
    command: ServerKeysCommand,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let mut keys =
        ServerKeys::open(&session.host.state_directory()?).map_err(FailureReport::from)?;
    let screen = &session.screen;
    match command {
        ServerKeysCommand::List => return list(&keys, session),
        ServerKeysCommand::Revoke { id } => {
            keys.revoke(&id).map_err(FailureReport::from)?;
            screen.note(&format!("{id} opens nothing from now on"));
        }
        ServerKeysCommand::Add {
            who,
            roles,
            votes_as,
            repositories,
            expires,
        } => {
            let asked = ServerKeyRequest {
                principal: who,
                roles,
                votes_as,
                repositories,
                expires,
            };
            let token = keys.add(asked, now_ms()).map_err(FailureReport::from)?;
            if screen.is_json() {
                screen.document(&json!({"token": token}))?;
                return Ok(RunExit::Verified);
            }
            screen.line(token)?;
            screen.note("hand it over and keep no copy: it cannot be read again");
        }
    }
    Ok(RunExit::Verified)
}

fn list(keys: &ServerKeys, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(&keys.document())?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for key in keys.listed() {
        let roles: Vec<&str> = key.roles.iter().map(|role| role.name()).collect();
        table.row([
            paint(STRONG, &key.id),
            key.principal.to_string(),
            roles.join(", "),
            match key.expires_ms {
                _ if key.revoked => paint(BAD, "revoked"),
                Some(end) => paint(DIM, format!("until {}", utc_text(end))),
                None => String::new(),
            },
        ]);
    }
    session.screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
