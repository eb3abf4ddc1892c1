//! `lula workspaces`: what waits, what was decided, and what it takes.

use lula_host::record::age;
use lula_host::workspaces::WorkspaceRow;
use lula_protocol::RunExit;
use lula_workspace::WorkspaceStatus;

use super::store;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint, rough_size, visible};

pub(crate) fn run(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let records = store(session)?.list()?;
    if screen.is_json() {
        let rows: Vec<WorkspaceRow<'_>> = records.iter().map(Into::into).collect();
        screen.document(&rows)?;
        return Ok(RunExit::Verified);
    }
    if records.is_empty() {
        screen.note("no changes wait, and none were committed or discarded lately");
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for record in &records {
        let state = match record.state {
            WorkspaceStatus::Pending => paint(STRONG, "pending"),
            WorkspaceStatus::Committed => paint(DIM, "committed"),
            WorkspaceStatus::Discarded => paint(DIM, "discarded"),
        };
        let age = age(record.opened_ms);
        let what = format!(
            "{}: {}",
            visible(&record.base().display().to_string()),
            visible(&record.title)
        );
        let changes = super::changes(record.changes);
        table.row([
            record.id.to_string(),
            state,
            age,
            changes,
            rough_size(record.bytes),
            what,
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
