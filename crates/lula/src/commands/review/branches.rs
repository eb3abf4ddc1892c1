//! `lula workspaces --branches` and `--archive`: what agents of runs built on together.

use lula_host::workspaces::IntegrationBranches;
use lula_protocol::RunExit;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint, rough_size, visible};

/// Lists integration branches, and what was set aside.
pub(crate) fn branches(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let found = IntegrationBranches::of(&session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    if found.branches.is_empty() {
        screen.note("no run has an integration branch");
    }
    let mut table = TextTable::default();
    for row in &found.branches {
        let state = if row.archived {
            paint(DIM, "archived")
        } else {
            paint(STRONG, "open")
        };
        table.row([
            row.run.clone(),
            state,
            format!("{} of {} merged", row.merged, row.commits),
            rough_size(row.bytes),
            visible(&row.repository),
        ]);
    }
    if !found.branches.is_empty() {
        screen.line(table.render(0).trim_end())?;
    }
    for name in &found.quarantined {
        screen.line(format!("{} {}", paint(DIM, "set aside"), visible(name)))?;
    }
    Ok(RunExit::Verified)
}

/// Puts the commits of the integration branches of a run into one file each, and gives their space back.
pub(crate) fn archive(run: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    lula_host::workspaces::archive(run, &session.host)?;
    branches(session)
}
