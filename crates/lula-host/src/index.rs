//! The index of a project: made from its files as they are now, and kept for the next time.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lula_index::{
    FileFingerprint, FoundDefinition, IndexOrigin, IndexUpdate, IndexedFile, MAX_FILE, MapQuery,
    ProjectMap, SymbolIndex, TaskPlace, estimate, silent_names, task_places, task_terms,
};
use lula_workspace::sources::{SourceDirectory, SourceFile};
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::sandbox;

/// A file changed so shortly ago may change again within the clock's same tick: its fingerprint
/// proves nothing yet.
const UNSETTLED_NS: i128 = 2_000_000_000;

/// What was done to have the index up to date.
#[derive(Debug, Serialize)]
pub struct Freshness {
    /// What there was before.
    pub cache: IndexOrigin,
    /// Whether every file is in it.
    pub complete: bool,
    #[serde(flatten)]
    pub update: IndexUpdate,
}

/// A project with its index.
pub struct IndexSummary {
    pub project: PathBuf,
    pub index: SymbolIndex,
    sources: SourceDirectory,
    /// How it came about.
    pub fresh: Freshness,
    /// Why it could not be kept.
    pub unsaved: Option<String>,
}

/// The map of a project, for programs.
#[derive(Debug, Serialize)]
pub struct MapReport {
    pub project: PathBuf,
    #[serde(flatten)]
    pub map: ProjectMap,
    /// Where what the task names stands, as `path:line:text`.
    pub places: Vec<String>,
    /// How the index came about.
    pub index: Freshness,
}

/// Definitions of a project, for programs.
#[derive(Debug, Serialize)]
pub struct SymbolReport {
    pub project: PathBuf,
    pub symbols: Vec<FoundDefinition>,
    /// How the index came about.
    pub index: Freshness,
}

impl IndexSummary {
    /// The definitions and places that matter for a task, in so many tokens together.
    pub fn map(self, task: Option<String>, tokens: u64) -> MapReport {
        let mut query = MapQuery {
            text: task.unwrap_or_default(),
            ..MapQuery::default()
        };
        let mut places = Vec::new();
        if !query.text.is_empty() {
            let found = self.places(&mut query, tokens);
            places = found.iter().map(ToString::to_string).collect();
        }
        let used: usize = places.iter().map(|line: &String| line.len() + 1).sum();
        let left = tokens.saturating_sub((used as u64).div_ceil(3));
        MapReport {
            map: self.index.map(&query, left, &estimate),
            places,
            project: self.project,
            index: self.fresh,
        }
    }

    /// Where what a task names stands; the query learns of it.
    fn places(&self, query: &mut MapQuery, tokens: u64) -> Vec<TaskPlace> {
        let own = self.project.to_string_lossy();
        query.silent = silent_names(&own, self.index.sources());
        let read = |path: &str| {
            let bytes = self.sources.read(path, MAX_FILE as u64).ok()?;
            Some((path.to_owned(), String::from_utf8(bytes).ok()?))
        };
        let texts: Vec<(String, String)> = self.index.sources().filter_map(read).collect();
        let texts = texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        let terms = task_terms(&query.text, &query.silent);
        let found = task_places(&terms, texts, usize::try_from(tokens).unwrap_or(usize::MAX));
        query.lines = found
            .lines
            .iter()
            .map(|it| (it.path.clone(), it.line))
            .collect();
        query.silent.extend(found.common);
        found.lines
    }

    /// Where something is defined.
    pub fn find(self, query: &str, limit: usize) -> SymbolReport {
        SymbolReport {
            symbols: self.index.find(query, limit),
            project: self.project,
            index: self.fresh,
        }
    }
}

/// The index of the project that a directory belongs to.
pub fn open(named: Option<&Path>, installation: &Installation) -> Result<IndexSummary, HostError> {
    let home = std::env::var_os("HOME");
    let project = sandbox::workspace(named, home.as_deref().map(Path::new))?;
    let sources = SourceDirectory::at(&project).map_err(|error| HostError::Unlisted {
        path: project.clone(),
        error,
    })?;
    let kept = installation
        .state_directory()?
        .join("index")
        .join(lula_index::cache_name(&project));
    let (mut index, cache) = SymbolIndex::load(&kept);
    let listing = sources.list();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i128::try_from(now.as_nanos()).unwrap_or(i128::MAX));
    let update = index.update(
        listing.files.into_iter().map(|file| listed(file, now)),
        &|path| sources.read(path, MAX_FILE as u64),
    );
    let saved = update.changed.then(|| index.save(&kept));
    let unsaved = saved.and_then(Result::err).map(|error| error.to_string());
    let complete = !listing.incomplete && update.left_out == 0;
    Ok(IndexSummary {
        project,
        index,
        sources,
        fresh: Freshness {
            cache,
            complete,
            update,
        },
        unsaved,
    })
}

fn listed(file: SourceFile, now: i128) -> IndexedFile {
    let settled = file.modified.max(file.changed) < now - UNSETTLED_NS;
    IndexedFile {
        fingerprint: settled.then_some(FileFingerprint {
            modified: file.modified,
            changed: file.changed,
            inode: file.inode,
        }),
        path: file.path,
        size: file.size,
    }
}
