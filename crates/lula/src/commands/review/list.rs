//! `lula workspaces`: what waits, what was decided, and what it takes.

use std::time::Duration;

use lula_host::record::now_ms;
use lula_protocol::RunExit;
use lula_protocol::units::distance;
use lula_workspace::{WorkspaceRecord, WorkspaceStatus};
use serde::Serialize;

use super::store;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint, rough_size, visible};

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    state: WorkspaceStatus,
    base: String,
    title: &'a str,
    backend: &'a lula_workspace::LayerBackend,
    changes: u64,
    bytes: u64,
    opened_ms: u64,
}

pub(crate) fn run(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let records = store(session)?.list()?;
    if screen.is_json() {
        let rows: Vec<Row<'_>> = records.iter().map(row).collect();
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

fn row(record: &WorkspaceRecord) -> Row<'_> {
    Row {
        id: record.id.as_str(),
        state: record.state,
        base: record.base().display().to_string(),
        title: &record.title,
        backend: &record.backend,
        changes: record.changes,
        bytes: record.bytes,
        opened_ms: record.opened_ms,
    }
}

fn age(opened_ms: u64) -> String {
    distance(Duration::from_millis(now_ms().saturating_sub(opened_ms)))
}
