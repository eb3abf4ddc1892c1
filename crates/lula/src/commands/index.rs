//! `lula index`: the map of a project, and where things are defined.

use std::path::{Path, PathBuf};

use lula_host::index::{self, Freshness, IndexSummary};
use lula_index::{FoundDefinition, IndexOrigin, IndexUpdate, MapQuery, ProjectMap, estimate};
use lula_protocol::RunExit;
use serde::Serialize;

use crate::cli::IndexCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint};

#[derive(Serialize)]
struct MapDocument {
    project: PathBuf,
    #[serde(flatten)]
    map: ProjectMap,
    index: Freshness,
}

#[derive(Serialize)]
struct SymbolsDocument {
    project: PathBuf,
    symbols: Vec<FoundDefinition>,
    index: Freshness,
}

pub(super) fn run(command: IndexCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        IndexCommand::Map { path, task, tokens } => {
            let IndexSummary {
                project,
                index,
                fresh,
                ..
            } = open(path.as_deref(), session)?;
            let task = MapQuery {
                text: task.unwrap_or_default(),
                ..MapQuery::default()
            };
            let map = index.map(&task, tokens, &estimate);
            show_map(project, map, fresh, session)
        }
        IndexCommand::Symbols {
            query,
            workspace,
            limit,
        } => {
            let IndexSummary {
                project,
                index,
                fresh,
                ..
            } = open(workspace.as_deref(), session)?;
            let query = query.unwrap_or_default();
            let symbols = index.find(&query, limit);
            show_symbols(project, symbols, &query, fresh, session)
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

fn show_map(
    project: PathBuf,
    map: ProjectMap,
    fresh: Freshness,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&MapDocument {
            project,
            map,
            index: fresh,
        })?;
        return Ok(RunExit::Verified);
    }
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
    let shown: usize = map.files.iter().map(|file| file.symbols.len()).sum();
    screen.note(&paint(
        DIM,
        format!(
            "{shown} of {} definitions in {} of {} files, {} tokens; {} files read, {} parsed",
            map.definitions,
            map.files.len(),
            fresh.update.files,
            map.tokens,
            fresh.update.read,
            fresh.update.parsed
        ),
    ));
    skipped(&fresh.update, session);
    Ok(RunExit::Verified)
}

fn show_symbols(
    project: PathBuf,
    symbols: Vec<FoundDefinition>,
    query: &str,
    fresh: Freshness,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let exit = if symbols.is_empty() && !query.is_empty() {
        RunExit::Failed
    } else {
        RunExit::Verified
    };
    if screen.is_json() {
        screen.document(&SymbolsDocument {
            project,
            symbols,
            index: fresh,
        })?;
        return Ok(exit);
    }
    if symbols.is_empty() {
        let sources = fresh.update.sources;
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
    skipped(&fresh.update, session);
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
