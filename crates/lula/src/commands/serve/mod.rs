//! `lula serve` and `lula server keys`

pub(crate) mod flags;
mod keys;

use std::sync::Arc;

use lula_protocol::{FailureReport, RunExit};
use lula_server::{ListeningServer, ServerOptions, serve};

use crate::failure::CommandFailure;
use crate::session::CliSession;
pub(super) use keys::run as keys;

pub(super) fn run(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let here = std::env::current_dir()?;
    let options = ServerOptions {
        settings: session.host.flags_given(std::env::args().skip(1)),
        installation: Arc::new(session.host.around(&here)?),
    };
    let screen = &session.screen;
    let ready = |server: &ListeningServer| {
        if screen.is_json() {
            // Fails where it is not read: then it is not missed either.
            let _ = screen.document(server);
        } else {
            screen.note(&format!("listening on {}", server.listening));
            let names = server.repositories.join(", ");
            screen.note(&format!("auth {}; repositories: {names}", server.auth));
        }
    };
    serve(options, ready).map_err(FailureReport::from)?;
    Ok(RunExit::Verified)
}
