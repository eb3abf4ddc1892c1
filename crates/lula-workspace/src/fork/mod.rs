//! Private versions of a project, for tests and candidates.
//!
//! A fork is a layer over the project, seen at the project's own path: what links, build results and
//! installed packages say about where the project is stays true in it. Where a sandbox has no mounts
//! of its own it is a copy, at another path.
//!
//! Code that ran in a fork may have left anything in it: links to elsewhere, pipes, directories in
//! the place of files. So every path is opened below a handle and follows no link.

mod changes;
mod copied;
mod directory;
mod layered;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::WorkspaceError;
use crate::ignored::IgnoredLayers;
use crate::store::workspace::Workspace;
use changes::SortedChanges;
pub use copied::{CopiedFork, dependencies};
pub(crate) use copied::{DEPENDENCIES, list};
pub use directory::OpenDirectory;
pub use layered::{ForkLayers, LayeredFork};

/// Directories that no fork lists: version control's own, dependencies, caches and build results.
pub(crate) const LEFT_OUT: [&str; 6] = [
    ".git",
    "target",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".lula",
];

/// Most files a fork has.
const MAX_FILES: usize = 50_000;
/// Most bytes a copy takes.
const MAX_BYTES: u64 = 2 << 30;
/// Deepest directory a fork has.
const MAX_DEPTH: usize = 64;

/// Why a project cannot be forked, or a file of a fork not used.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The operating system said no.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which file, relative to the project.
        path: String,
        source: io::Error,
    },
    /// Too large to be listed or copied again and again.
    #[error("the project is too large to fork: more than {MAX_FILES} files or {} GiB", MAX_BYTES >> 30)]
    TooLarge,
    /// Not a name of a file inside.
    #[error("{0:?} is not a path inside the project")]
    BadPath(String),
}

pub(crate) fn failed(path: &str, source: io::Error) -> ForkError {
    ForkError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Removes what processes that are no more have left in a home of forks.
pub fn sweep(home: &Path) {
    layered::sweep(home);
}

/// A directory that forks are taken of. It is read, never written.
#[derive(Debug)]
pub struct ForkableProject {
    root: PathBuf,
    below: Vec<PathBuf>,
    laid: SortedChanges,
    /// Where forks keep their layers; none where they are copies.
    home: Option<PathBuf>,
}

impl ForkableProject {
    /// The project at that directory.
    pub fn at(root: &Path) -> Result<Self, ForkError> {
        let root = root
            .canonicalize()
            .map_err(|source| failed(&root.to_string_lossy(), source))?;
        Ok(Self {
            root,
            below: Vec::new(),
            laid: SortedChanges::default(),
            home: None,
        })
    }

    /// The base of a workspace with what is changed there now: forks are the workspace as it is at
    /// this moment, without what git ignores.
    pub fn of(
        workspace: &Workspace,
        below: Option<&IgnoredLayers>,
    ) -> Result<Self, WorkspaceError> {
        Ok(Self {
            root: workspace.record().base(),
            below: below.map(IgnoredLayers::layers).unwrap_or_default(),
            laid: SortedChanges::of(workspace, below)?,
            home: None,
        })
    }

    /// With these layers below it: it is then seen at the path of the last of them.
    #[must_use]
    pub fn over(mut self, below: Option<&IgnoredLayers>) -> Self {
        self.below = below.map(IgnoredLayers::layers).unwrap_or_default();
        self
    }

    /// Forks are layers, kept in this directory, which is made where it is missing.
    #[must_use]
    pub fn in_layers(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Whether forks are layers.
    pub const fn is_in_layers(&self) -> bool {
        self.home.is_some()
    }

    /// Forks are copies: a sandbox cannot mount layers here.
    pub fn in_copies(&mut self) {
        self.home = None;
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where forks in layers are seen.
    pub fn shown(&self) -> &Path {
        self.below.last().unwrap_or(&self.root)
    }

    /// Directories of dependencies that copies link to; a sandbox has to show them read-only.
    pub fn dependencies(&self) -> Vec<PathBuf> {
        if self.home.is_some() {
            return Vec::new();
        }
        copied::dependencies(self.shown())
    }

    /// A private version of it is now.
    pub fn fork(&self) -> Result<WorkspaceFork, ForkError> {
        let Some(home) = &self.home else {
            let fork = CopiedFork::make(&self.root, &self.dependencies(), &self.laid)?;
            return Ok(WorkspaceFork::Copied(fork));
        };
        let lowers = std::iter::once(&self.root).chain(&self.below);
        let fork = LayeredFork::make(home, lowers.cloned().collect())?;
        self.laid.put_over(&fork)?;
        Ok(WorkspaceFork::Layered(fork))
    }
}

/// One private version, gone when dropped.
#[derive(Debug)]
pub enum WorkspaceFork {
    /// A layer over the project.
    Layered(LayeredFork),
    /// A copy of it.
    Copied(CopiedFork),
}

impl WorkspaceFork {
    /// Where commands see it.
    pub fn path(&self) -> &Path {
        match self {
            Self::Layered(fork) => fork.shown(),
            Self::Copied(fork) => fork.path(),
        }
    }

    /// The directories to mount, for one in layers.
    pub fn layers(&self) -> Result<Option<ForkLayers>, ForkError> {
        match self {
            Self::Layered(fork) => fork.layers().map(Some),
            Self::Copied(_) => Ok(None),
        }
    }

    /// Every regular file of the project's own, relative to the top.
    pub fn files(&self) -> Result<Vec<String>, ForkError> {
        match self {
            Self::Layered(fork) => fork.files(),
            Self::Copied(fork) => fork.files().files(),
        }
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ForkError> {
        match self {
            Self::Layered(fork) => fork.read(path),
            Self::Copied(fork) => fork.files().read(path),
        }
    }

    /// Replaces or creates a file. A sandbox that stands around a layer does not see that.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ForkError> {
        match self {
            Self::Layered(fork) => fork.write(path, bytes),
            Self::Copied(fork) => fork.files().write(path, bytes, None),
        }
    }

    /// Removes a file. A sandbox that stands around a layer does not see that.
    pub fn remove(&self, path: &str) -> Result<(), ForkError> {
        match self {
            Self::Layered(fork) => fork.remove(path),
            Self::Copied(fork) => fork.files().remove(path),
        }
    }
}

/// Whether it is a path of plain names.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
