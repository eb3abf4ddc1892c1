//! `lula index`: the map of a project, and where things are defined.

pub(crate) mod flags;

use std::path::Path;

use lula_host::index::{self, IndexSummary, MapReport, SymbolReport};
use lula_index::{IndexOrigin, IndexUpdate};
use lula_protocol::RunExit;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint};
use flags::IndexCommand;

pub(super) fn run(command: IndexCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        IndexCommand::Map { path, task, tokens } => {
            show_map(open(path.as_deref(), session)?.map(task, tokens), session)
        }
        IndexCommand::Symbols {
            query,
            workspace,
            limit,
        } => {
            let query = query.unwrap_or_default();
            let found = open(workspace.as_deref(), session)?.find(&query, limit);
            show_symbols(found, &query, session)
        }
    }
}

/// The index of a project as it is now, kept for the next time.
fn open(named: Option<&Path>, session: &CliSession) -> Result<IndexSummary, CommandFailure> {
    let screen = &session.screen;
    let live = screen.live("reading the project");
    let indexed = index::open(named, &session.host)?;
    drop(live);
    if indexed.fresh.cache == IndexOrigin::Unusable {
        screen.detail("the kept index was damaged or of another version: made anew");
    }
    if let Some(error) = &indexed.unsaved {
        screen.warn(error);
    }
    if !indexed.fresh.complete {
        screen
            .warn("not every file was listed: the project is too large, too deep or not readable");
    }
    Ok(indexed)
}

fn show_map(report: MapReport, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&report)?;
        return Ok(RunExit::Verified);
    }
    let MapReport {
        map, index, places, ..
    } = report;
    if map.files.is_empty() {
        let reason = if map.definitions == 0 {
            "no definitions in a language that is understood"
        } else {
            "--tokens leaves no room for a single one"
        };
        screen.note(&format!("the map is empty: {reason}"));
    }
    for line in map.text.lines() {
        if line.starts_with(' ') {
            screen.line(line)?;
        } else {
            screen.line(paint(STRONG, line))?;
        }
    }
    for place in places {
        screen.line(place)?;
    }
    let shown: usize = map.files.iter().map(|file| file.symbols.len()).sum();
    screen.note(&paint(
        DIM,
        format!(
            "{shown} of {} definitions in {} of {} files, {} tokens; {} files read, {} parsed",
            map.definitions,
            map.files.len(),
            index.update.files,
            map.tokens,
            index.update.read,
            index.update.parsed
        ),
    ));
    skipped(&index.update, session);
    Ok(RunExit::Verified)
}

fn show_symbols(
    report: SymbolReport,
    query: &str,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let exit = if report.symbols.is_empty() && !query.is_empty() {
        RunExit::Failed
    } else {
        RunExit::Verified
    };
    if screen.is_json() {
        screen.document(&report)?;
        return Ok(exit);
    }
    let SymbolReport { symbols, index, .. } = report;
    if symbols.is_empty() {
        let sources = index.update.sources;
        screen.note(&format!("nothing answers {query:?} in {sources} sources"));
    }
    let mut table = TextTable::default();
    for found in symbols {
        let place: String = found.path.chars().filter(|c| !c.is_control()).collect();
        table.row([
            format!("{place}:{}", found.line),
            paint(DIM, found.kind.name()),
            found.signature,
        ]);
    }
    let lines = table.render(0);
    if !lines.is_empty() {
        screen.line(lines.trim_end())?;
    }
    skipped(&index.update, session);
    Ok(exit)
}

/// Sources that are not in the index are named with `--verbose`.
fn skipped(update: &IndexUpdate, session: &CliSession) {
    for (path, reason) in &update.skipped {
        session
            .screen
            .detail(&format!("{path}: {}", reason.reason()));
    }
}
