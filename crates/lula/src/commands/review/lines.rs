//! `lula workspaces --lines` and `--archive`: what agents of runs built on together.

use lula_protocol::{Code, Exit};
use lula_workspace::checkout::CheckoutError;
use lula_workspace::{Checkout, Line, line};
use serde::Serialize;

use super::store;
use crate::commands::run::find_git;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, STRONG, Table, bytes, paint, visible};

#[derive(Serialize)]
struct Lines {
    lines: Vec<Row>,
    /// Below `quarantine/` of the state directory.
    quarantined: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    line: String,
    run: String,
    repository: String,
    produced: usize,
    integrated: usize,
    archived: bool,
    bytes: u64,
}

fn row(line: &Line) -> Row {
    let produced = line.produced().unwrap_or_default();
    let is_in = |one: &&line::Produced| line.contains(&one.commit).unwrap_or(false);
    Row {
        line: line.name().to_string(),
        run: line.run().to_string(),
        repository: line.repository().display().to_string(),
        integrated: produced.iter().filter(is_in).count(),
        produced: produced.len(),
        archived: line.is_archived(),
        bytes: line.bytes(),
    }
}

/// Lists lines, and what was set aside.
pub(crate) fn lines(session: &Session) -> Result<Exit, Failure> {
    let state = session.state_directory()?;
    let found = Line::list(&state, &find_git(session)?);
    let lines = Lines {
        lines: found.iter().map(row).collect(),
        quarantined: line::quarantined(&state),
    };
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&lines)?;
        return Ok(Exit::Verified);
    }
    if lines.lines.is_empty() {
        screen.note("no run has agents that build on a line");
    }
    let mut table = Table::default();
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
            bytes(row.bytes),
            visible(&row.repository),
        ]);
    }
    if !lines.lines.is_empty() {
        screen.line(table.render(0).trim_end())?;
    }
    for name in &lines.quarantined {
        screen.line(format!("{} {}", paint(DIM, "set aside"), visible(name)))?;
    }
    Ok(Exit::Verified)
}

/// Puts what was produced for the lines of a run into one file each, and gives their space back.
pub(crate) fn archive(run: &str, session: &Session) -> Result<Exit, Failure> {
    let state = session.state_directory()?;
    let git = find_git(session)?;
    let store = store(session)?;
    let of_run = |line: &Line| line.run().as_str() == run;
    let found: Vec<Line> = Line::list(&state, &git)
        .into_iter()
        .filter(of_run)
        .collect();
    if found.is_empty() {
        return Err(Failure::new(
            Code::NothingThere,
            Exit::Usage,
            format!("{run} has no lines"),
        )
        .remedy("`lula workspaces --lines` lists them"));
    }
    for line in &found {
        let mut over = Vec::new();
        for record in store.list()? {
            let Ok(checkout) = Checkout::find(&state, &record.id, &git) else {
                continue;
            };
            if checkout.origin().line.as_deref() == Some(line.name().as_str()) {
                over.push((store.open(&record.id)?, checkout));
            }
        }
        // Refused while an agent is at work in one of them, before anything is changed.
        for (workspace, _) in &over {
            drop(workspace.layer()?);
        }
        let turn = line.turn()?;
        line.archive()?;
        drop(turn);
        for (workspace, checkout) in over {
            workspace.discard(true)?;
            checkout.clear()?;
        }
    }
    lines(session)
}

impl From<CheckoutError> for Failure {
    fn from(error: CheckoutError) -> Self {
        Self::new(Code::RunRefused, Exit::Failed, error.to_string())
    }
}
