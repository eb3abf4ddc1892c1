//! The index of a project: made from its files as they are now, and kept for the next time.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lula_index::{
    FileFingerprint, FoundDefinition, IndexOrigin, IndexUpdate, IndexedFile, MAX_FILE, MapQuery,
    ProjectMap, SymbolIndex, estimate,
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
    /// The definitions that matter for a task, in so many tokens.
    pub fn map(self, task: Option<String>, tokens: u64) -> MapReport {
        let task = MapQuery {
            text: task.unwrap_or_default(),
            ..MapQuery::default()
        };
        MapReport {
            map: self.index.map(&task, tokens, &estimate),
            project: self.project,
            index: self.fresh,
        }
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
