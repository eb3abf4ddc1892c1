//! `lula mcp`

pub(crate) mod flags;
mod install;

use std::path::Path;
use std::sync::Arc;

use lula_host::sandbox;
use lula_mcp::{McpServeError, McpServerOptions, serve_stdio};
use lula_protocol::{Code, RunExit};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use flags::{CommitDecision, McpCommand, McpServeFlags};

pub(super) fn run(command: McpCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        McpCommand::Serve(flags) => serve(&flags, session),
        McpCommand::Install(flags) => install::run(&flags, session),
    }
}

fn serve(flags: &McpServeFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let home = std::env::var_os("HOME");
    let directory = sandbox::workspace(flags.dir.as_deref(), home.as_deref().map(Path::new))?;
    let options = McpServerOptions {
        installation: Arc::new(session.host.around(&directory)?),
        directory,
        hold_commits: flags.commits == CommitDecision::Ask,
        settings: session.host.flags_given(std::env::args().skip(1)),
    };
    let held = serve_stdio(options).map_err(|error| match error {
        McpServeError::Host(error) => error.into(),
        error @ McpServeError::Handshake(_) => {
            CommandFailure::new(Code::BadRequest, RunExit::Failed, error.to_string())
                .remedy("start this command from an MCP client; `lula mcp serve --help` shows how")
        }
    })?;
    if let Some(workspace) = held {
        session.screen.note(&format!(
            "{workspace} holds what the client left: lula diff {workspace}, then lula commit or lula discard"
        ));
    }
    Ok(RunExit::Verified)
}
