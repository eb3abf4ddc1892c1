//! `lula mcp install`

use std::path::PathBuf;

use lula_mcp::install::{ClientHome, InstallError, McpClientKind, ServerCommandLine};
use lula_protocol::{Code, RunExit};
use serde_json::json;

use super::flags::McpInstallFlags;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term;

pub(super) fn run(
    flags: &McpInstallFlags,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Err(refused(
            "HOME is not set".to_owned(),
            "set HOME to your home directory",
        ));
    };
    let of = ClientHome {
        home,
        variable: |name| std::env::var_os(name).map(PathBuf::from),
    };
    let server = ServerCommandLine {
        program: std::env::current_exe()?,
        arguments: vec!["mcp".to_owned(), "serve".to_owned()],
    };
    let client = McpClientKind::from(flags.agent);
    let wanted = (!flags.remove).then_some(&server);
    let change = client
        .change(wanted, &of)
        .map_err(|error| failure(&error))?;
    let screen = &session.screen;
    let path = change.path.display().to_string();
    let written = !change.is_empty();
    if written {
        if !screen.is_json() {
            let shown = path.trim_start_matches('/');
            screen.line(term::unified(shown, &change.before, &change.after))?;
        }
        if !flags.yes && !term::confirmed("write this")? {
            screen.note("nothing was written");
            return Ok(RunExit::Failed);
        }
        change.write().map_err(|error| failure(&error))?;
    }
    if screen.is_json() {
        screen.document(&json!({"file": path, "written": written}))?;
    } else if written {
        screen.note(&format!("{path} is written; start the agent anew"));
    } else {
        screen.note(&format!("{path} is as it should be"));
    }
    Ok(RunExit::Verified)
}

fn refused(message: String, remedy: &'static str) -> CommandFailure {
    CommandFailure::new(Code::FileAccess, RunExit::Environment, message).remedy(remedy)
}

fn failure(error: &InstallError) -> CommandFailure {
    let remedy = match error {
        InstallError::File { .. } => "see who owns the file, and whether there is room",
        InstallError::Unreadable { .. } => {
            "correct the file, or add the entry by hand: docs/mcp.md shows it"
        }
        InstallError::Taken { .. } => "give that server another name first",
        InstallError::ByHand { .. } => "docs/mcp.md says more",
        InstallError::Changed(_) => "give the command again",
    };
    refused(error.to_string(), remedy)
}
