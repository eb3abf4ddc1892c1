//! `lula workspaces --lines` and `--archive`: what agents of runs built on together.

use lula_host::workspaces::Lines;
use lula_protocol::RunExit;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint, rough_size, visible};

/// Lists lines, and what was set aside.
pub(crate) fn lines(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let lines = Lines::of(&session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&lines)?;
        return Ok(RunExit::Verified);
    }
    if lines.lines.is_empty() {
        screen.note("no run has agents that build on a line");
    }
    let mut table = TextTable::default();
    for row in &lines.lines {
        let state = if row.archived {
            paint(DIM, "archived")
        } else {
            paint(STRONG, "open")
        };
        table.row([
            row.run.clone(),
            state,
            format!("{} of {} integrated", row.integrated, row.produced),
            rough_size(row.bytes),
            visible(&row.repository),
        ]);
    }
    if !lines.lines.is_empty() {
        screen.line(table.render(0).trim_end())?;
    }
    for name in &lines.quarantined {
        screen.line(format!("{} {}", paint(DIM, "set aside"), visible(name)))?;
    }
    Ok(RunExit::Verified)
}

/// Puts what was produced for the lines of a run into one file each, and gives their space back.
pub(crate) fn archive(run: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    lula_host::workspaces::archive(run, &session.host)?;
    lines(session)
}
