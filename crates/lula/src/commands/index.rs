//! `lula index`: the map of a project, and where things are defined.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lula_index::{
    Fingerprint, Found, Index, Listed, MAX_FILE, Map, Origin, Task, Update, estimate,
};
use lula_protocol::{Code, Exit};
use lula_workspace::sources::{SourceFile, Sources};
use serde::Serialize;

use crate::cli::IndexCommand;
use crate::failure::Failure;
use crate::sandboxed;
use crate::session::Session;
use crate::term::{DIM, STRONG, Table, paint};

/// A file changed so shortly ago may change again within the clock's same tick: its fingerprint
/// proves nothing yet.
const UNSETTLED_NS: i128 = 2_000_000_000;

#[derive(Serialize)]
struct MapDocument {
    project: PathBuf,
    #[serde(flatten)]
    map: Map,
    index: Freshness,
}

#[derive(Serialize)]
struct SymbolsDocument {
    project: PathBuf,
    symbols: Vec<Found>,
    index: Freshness,
}

/// What was done to have the index up to date.
#[derive(Serialize)]
struct Freshness {
    cache: Origin,
    complete: bool,
    #[serde(flatten)]
    update: Update,
}

pub(super) fn run(command: IndexCommand, session: &Session) -> Result<Exit, Failure> {
    match command {
        IndexCommand::Map { path, task, tokens } => {
            let (project, index, fresh) = open(path.as_deref(), session)?;
            let task = Task {
                text: task.unwrap_or_default(),
                ..Task::default()
            };
            let map = index.map(&task, tokens, &estimate);
            show_map(project, map, fresh, session)
        }
        IndexCommand::Symbols {
            query,
            workspace,
            limit,
        } => {
            let (project, index, fresh) = open(workspace.as_deref(), session)?;
            let query = query.unwrap_or_default();
            let symbols = index.find(&query, limit);
            show_symbols(project, symbols, &query, fresh, session)
        }
    }
}

/// The index of a project as it is now, kept for the next time.
fn open(named: Option<&Path>, session: &Session) -> Result<(PathBuf, Index, Freshness), Failure> {
    let home = std::env::var_os("HOME");
    let project = sandboxed::workspace(named, home.as_deref().map(Path::new))?;
    let sources = Sources::at(&project).map_err(|error| {
        let message = format!("cannot list {}: {error}", project.display());
        Failure::new(Code::FileAccess, Exit::Environment, message)
            .remedy("check that you may read the directory")
    })?;
    let kept = session
        .state_directory()?
        .join("index")
        .join(lula_index::cache_name(&project));
    let (mut index, cache) = Index::load(&kept);
    if cache == Origin::Unusable {
        session
            .screen
            .detail("the kept index was damaged or of another version: made anew");
    }
    let listing = sources.list();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX));
    let live = session.screen.live("reading the project");
    let update = index.update(
        listing.files.into_iter().map(|file| listed(file, now)),
        &|path| sources.read(path, MAX_FILE as u64),
    );
    drop(live);
    if update.changed
        && let Err(error) = index.save(&kept)
    {
        session.screen.warn(&error.to_string());
    }
    let complete = !listing.incomplete && update.left_out == 0;
    if !complete {
        session
            .screen
            .warn("not every file was listed: the project is too large, too deep or not readable");
    }
    let fresh = Freshness {
        cache,
        complete,
        update,
    };
    Ok((project, index, fresh))
}

fn listed(file: SourceFile, now: i128) -> Listed {
    let settled = file.modified.max(file.changed) < now - UNSETTLED_NS;
    Listed {
        fingerprint: settled.then_some(Fingerprint {
            modified: file.modified,
            changed: file.changed,
            inode: file.inode,
        }),
        path: file.path,
        size: file.size,
    }
}

fn show_map(
    project: PathBuf,
    map: Map,
    fresh: Freshness,
    session: &Session,
) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&MapDocument {
            project,
            map,
            index: fresh,
        })?;
        return Ok(Exit::Verified);
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
    Ok(Exit::Verified)
}

fn show_symbols(
    project: PathBuf,
    symbols: Vec<Found>,
    query: &str,
    fresh: Freshness,
    session: &Session,
) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let exit = if symbols.is_empty() && !query.is_empty() {
        Exit::Failed
    } else {
        Exit::Verified
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
    let mut table = Table::default();
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

/// Sources that are not in the index are named to whoever asks.
fn skipped(update: &Update, session: &Session) {
    for (path, reason) in &update.skipped {
        session
            .screen
            .detail(&format!("{path}: {}", reason.reason()));
    }
}
