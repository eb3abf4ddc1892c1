//! `lula try`

use lula_protocol::Exit;

use crate::cli::TryFlags;
use crate::failure::Failure;
use crate::session::Session;

pub(super) fn run(_flags: &TryFlags, _session: &Session) -> Result<Exit, Failure> {
    Ok(Exit::Failed)
}
