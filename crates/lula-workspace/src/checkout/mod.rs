//! A commit of a repository, laid out in a directory of ours for agents to work over, and the way
//! back: what was changed as a git tree, and that tree as a branch.
//!
//! The user's repository is only read, until something is delivered; then objects are added and one
//! reference is moved from a known value to another. Checkout, index and stash are never touched.

pub(crate) mod deliver;
mod own_git;
pub(crate) mod take;
mod together;
mod undo;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lula_protocol::WorkspaceId;
use serde::{Deserialize, Serialize};

pub use deliver::{BranchDelivery, DeliveredCommit, delivered, name_commit};
pub use own_git::WorkspaceGit;
pub use take::{ChangedGitFile, GitChange};
pub use together::{
    BranchUpdate, RepositoryDelivery, all_there, create_all, prepare, prepare_commit, take_back,
};
pub use undo::{UndoneDelivery, undo};

use crate::commit::put::PathReplacement;
use crate::creation_lock::CreationLock;
use crate::error::WorkspaceError;
use crate::git::{GitError, GitProgram};
use crate::ignored::{IgnoredExtent, IgnoredLayers};
use crate::integration_branch::IntegrationBranch;
use crate::tree::{RootedTree, disk_usage};

/// What builds and tests leave behind, never part of a change unless it is tracked.
const LEFT_BEHIND: &str = "\
/node_modules\n/.venv\n/venv\n/.tox\n__pycache__/\n*.pyc\n.pytest_cache/\n.mypy_cache/\n\
.ruff_cache/\n.coverage\n/target/\n.lula/\n";
/// Installed dependencies that a commit lacks: linked, never copied.
const DEPENDENCIES: [&str; 4] = ["node_modules", ".venv", "venv", ".tox"];
/// How many commits before it are told.
const HISTORY: &str = "--max-count=10";

const ORIGIN: &str = "origin.json";
const TREE: &str = "tree";
const PRIVATE: &str = "git";

/// Why a checkout did not do what it was asked to. The user's repository is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// git failed or was not found.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The workspace on it did.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The operating system did.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path that could not be used.
        path: String,
        source: std::io::Error,
    },
    /// There is none of that name.
    #[error("the workspace {0} is gone: start the task anew")]
    Gone(WorkspaceId),
    /// It is not as it would have to be.
    #[error("{0}")]
    Refused(String),
}

pub(crate) type CheckoutResult<T> = std::result::Result<T, CheckoutError>;

/// Where a checkout came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckoutOrigin {
    /// The repository it was made from.
    pub repository: PathBuf,
    /// The commit that was checked out.
    pub commit: String,
    /// How many tracked files of the repository had changes that are not part of the commit.
    pub uncommitted: usize,
    /// The subjects of the last commits, the newest first.
    pub history: Vec<String>,
    /// The line it is a checkout of, if it is one of a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The produced commit that is merged over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// The tree of that merge, conflict markers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// How many bytes its files take.
    #[serde(default)]
    pub bytes: u64,
    /// What git ignores in the repository's checkout, and is shown below its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredExtent>,
}

/// What a checkout is laid out from.
struct Source<'a> {
    /// Where the commit is known.
    repository: &'a Path,
    line: Option<&'a IntegrationBranch>,
    commit: String,
    merge: Option<crate::integration_branch::Merge>,
}

/// A commit laid out in a directory, beside a private git directory that borrows the repository's
/// objects.
#[derive(Debug, Clone)]
pub struct Checkout {
    id: WorkspaceId,
    directory: PathBuf,
    origin: CheckoutOrigin,
    git: GitProgram,
}

pub(crate) fn io_failed(path: &Path) -> impl FnOnce(std::io::Error) -> CheckoutError {
    let path = path.display().to_string();
    move |source| CheckoutError::Io { path, source }
}

fn making(state: &Path, id: &WorkspaceId) -> CheckoutResult<CreationLock> {
    let home = state.join("checkouts.making");
    CreationLock::begin(&home, id).map_err(io_failed(&home))
}

impl Checkout {
    /// Where checkouts lie in a state directory.
    pub fn home(state: &Path) -> PathBuf {
        state.join("checkouts")
    }

    /// One that was made before, also one whose space was given back.
    pub fn find(state: &Path, id: &WorkspaceId, git: &GitProgram) -> CheckoutResult<Self> {
        let directory = Self::home(state).join(id.as_str());
        let bytes =
            std::fs::read(directory.join(ORIGIN)).map_err(|_| CheckoutError::Gone(id.clone()))?;
        let damaged = |error| CheckoutError::Refused(format!("{ORIGIN} of {id}: {error}"));
        Ok(Self {
            id: id.clone(),
            origin: serde_json::from_slice(&bytes).map_err(damaged)?,
            directory,
            git: git.clone(),
        })
    }

    /// Lays a commit out, that of `HEAD` where none is named, or finds the one of this name again.
    /// One that a crash cut off is made anew: nothing was ever done in it.
    pub fn make(
        state: &Path,
        id: &WorkspaceId,
        repository: &Path,
        commit: Option<&str>,
        git: &GitProgram,
    ) -> CheckoutResult<Self> {
        match Self::find(state, id, git) {
            Err(CheckoutError::Gone(_)) => {}
            found => return found,
        }
        let making = making(state, id)?;
        match Self::find(state, id, git) {
            Err(CheckoutError::Gone(_)) => {}
            found => {
                making.end();
                return found;
            }
        }
        let wanted = format!("{}^{{commit}}", commit.unwrap_or("HEAD"));
        let arguments = ["rev-parse", "--verify", "--end-of-options", &wanted];
        let commit = git.run(repository, &arguments)?.trim().to_owned();
        let source = Source {
            repository,
            line: None,
            commit,
            merge: None,
        };
        let made = Self::make_from(state, id, source, git)?;
        making.end();
        Ok(made)
    }

    /// Lays the commit of a line out, with a produced commit merged over it where one is named, or
    /// finds the one of this name again, as it was laid out.
    pub fn make_over(
        state: &Path,
        id: &WorkspaceId,
        line: &IntegrationBranch,
        with: Option<&str>,
        git: &GitProgram,
    ) -> CheckoutResult<Self> {
        match Self::find(state, id, git) {
            Err(CheckoutError::Gone(_)) => {}
            found => return found,
        }
        let making = making(state, id)?;
        match Self::find(state, id, git) {
            Err(CheckoutError::Gone(_)) => {}
            found => {
                making.end();
                return found;
            }
        }
        let merge = with.map(|candidate| line.merge(candidate)).transpose()?;
        let source = Source {
            repository: line.repository(),
            line: Some(line),
            commit: match &merge {
                Some(merge) => merge.onto.clone(),
                None => line.commit()?,
            },
            merge,
        };
        let made = Self::make_from(state, id, source, git)?;
        making.end();
        Ok(made)
    }

    fn make_from(
        state: &Path,
        id: &WorkspaceId,
        source: Source<'_>,
        git: &GitProgram,
    ) -> CheckoutResult<Self> {
        let Source {
            repository, line, ..
        } = source;
        let known = line.map_or_else(|| repository.to_owned(), IntegrationBranch::private);
        let ask = |arguments: &[&str]| git.run(&known, arguments);
        let objects = ask(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])?;
        let format = ask(&["rev-parse", "--show-object-format"])?;
        let status = git.run(
            repository,
            &["status", "--porcelain", "--untracked-files=no"],
        )?;
        let history = ask(&["log", HISTORY, "--format=%s", &source.commit])?;
        let directory = Self::home(state).join(id.as_str());
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_failed(&directory)(error));
            }
            _ => {}
        }
        let mut made = Self {
            id: id.clone(),
            directory,
            origin: CheckoutOrigin {
                repository: repository.to_owned(),
                commit: source.commit,
                uncommitted: status.lines().count(),
                history: history.lines().map(str::to_owned).collect(),
                line: line.map(|line| line.name().to_string()),
                with: source.merge.as_ref().map(|merge| merge.candidate.clone()),
                over: source.merge.map(|merge| merge.tree),
                bytes: 0,
                ignored: None,
            },
            git: git.clone(),
        };
        made.lay_out(&objects, format.trim())?;
        Ok(made)
    }

    fn lay_out(&mut self, objects: &str, format: &str) -> CheckoutResult<()> {
        let private = self.directory.join(PRIVATE);
        for directory in [self.tree(), private.clone()] {
            std::fs::create_dir_all(&directory).map_err(io_failed(&directory))?;
        }
        let init = format!("--object-format={format}");
        self.git.run(
            &private,
            &["init", "--quiet", "--bare", "--template=", &init],
        )?;
        for (name, text) in [
            ("objects/info/alternates", objects),
            ("info/exclude", LEFT_BEHIND),
        ] {
            let path = private.join(name);
            let above = path.parent().unwrap_or(&private);
            std::fs::create_dir_all(above).map_err(io_failed(above))?;
            std::fs::write(&path, text).map_err(io_failed(&path))?;
        }
        let index = private.join("index");
        self.private(&["read-tree", &self.origin.commit], &index, &[])?;
        self.private(&["checkout-index", "--all", "--force"], &index, &[])?;
        let below = IgnoredLayers::make(
            &self.git,
            &self.origin.repository,
            &self.tree(),
            &self.directory,
        )?;
        self.origin.ignored = below.map(|below| below.extent()).transpose()?;
        self.origin.bytes = disk_usage(&RootedTree::open(&self.directory)?.top);
        let origin = serde_json::to_vec(&self.origin)
            .map_err(|error| CheckoutError::Refused(error.to_string()))?;
        let (draft, done) = (
            self.directory.join("origin.draft"),
            self.directory.join(ORIGIN),
        );
        std::fs::write(&draft, origin).map_err(io_failed(&draft))?;
        std::fs::rename(&draft, &done).map_err(io_failed(&done))
    }

    pub const fn id(&self) -> &WorkspaceId {
        &self.id
    }

    /// Where it came from.
    pub const fn origin(&self) -> &CheckoutOrigin {
        &self.origin
    }

    /// The directory with the files.
    pub fn tree(&self) -> PathBuf {
        self.directory.join(TREE)
    }

    /// What is shown below the files: the checkout's ignored files, where it has a checkout.
    pub fn below(&self) -> Option<IgnoredLayers> {
        IgnoredLayers::find(&self.directory, &self.origin.repository)
    }

    /// Has paths count as ignored: a directory with everything in it where it ends with a slash.
    pub fn leave_aside(&self, paths: impl Iterator<Item = String>) -> CheckoutResult<()> {
        IgnoredLayers::add(&self.directory, paths)
    }

    /// Links what is installed beside the repository's files into a copy of the files.
    pub fn link_dependencies(&self, copy: &Path) {
        link_dependencies(&self.origin.repository, copy);
    }

    /// What is merged over its commit, path by path; nothing where nothing is.
    pub fn laid_over(&self) -> CheckoutResult<Vec<PathReplacement>> {
        let index = self.directory.join("no-index");
        let git = |arguments: &[&str], input: &[u8]| self.private(arguments, &index, input);
        match &self.origin.over {
            Some(over) => take::pieces(&self.origin.commit, over, &git),
            None => Ok(Vec::new()),
        }
    }

    /// Whether its space was given back.
    pub fn is_cleared(&self) -> bool {
        !self.directory.join(PRIVATE).exists()
    }

    /// Gives its space back; only where it came from is kept.
    pub fn clear(&self) -> CheckoutResult<()> {
        let [own, point] = Self::own_git_names();
        for name in [TREE, PRIVATE, own, point] {
            let path = self.directory.join(name);
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io_failed(&path)(error));
                }
                _ => {}
            }
        }
        IgnoredLayers::clear(&self.directory)
    }

    /// Removes one that nothing was done in yet.
    pub fn forget(&self) -> CheckoutResult<()> {
        std::fs::remove_dir_all(&self.directory).map_err(io_failed(&self.directory))
    }

    /// The private git on the laid out files, with an index of the caller's.
    fn command(&self, index: &Path) -> CheckoutResult<Command> {
        if self.is_cleared() {
            return Err(CheckoutError::Gone(self.id.clone()));
        }
        let private = self.directory.join(PRIVATE);
        let mut command = self.git.command(&private)?;
        command
            .current_dir(self.tree())
            .env("GIT_DIR", &private)
            .env("GIT_WORK_TREE", self.tree())
            .env("GIT_INDEX_FILE", index);
        Ok(command)
    }

    /// Asks the private git, and returns the bytes it printed.
    fn private(&self, arguments: &[&str], index: &Path, input: &[u8]) -> CheckoutResult<Vec<u8>> {
        let mut command = self.command(index)?;
        command.args(arguments);
        succeeded(feed(&mut command, input)?, arguments)
    }
}

/// Links what is installed beside the repository's files.
pub(crate) fn link_dependencies(repository: &Path, files: &Path) {
    for name in DEPENDENCIES {
        let installed = repository.join(name);
        let here = files.join(name);
        if installed.is_dir() && !here.exists() {
            // Without the link the tests say what is missing.
            let _ = std::os::unix::fs::symlink(installed, here);
        }
    }
}

pub(crate) fn succeeded(output: Output, arguments: &[&str]) -> CheckoutResult<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let name = arguments.first().unwrap_or(&"");
    let message = format!("git {name} failed: {}", said.trim());
    Err(CheckoutError::Refused(message))
}

/// Runs a command of git with something to read.
pub(crate) fn feed(command: &mut Command, input: &[u8]) -> CheckoutResult<Output> {
    let failed = |source| CheckoutError::Io {
        path: "git".to_owned(),
        source,
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A git that does not read all says why on its standard error.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    })
    .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::ScratchRepository;

    #[test]
    fn two_who_make_the_same_checkout_at_once_both_get_it() {
        let git = GitProgram::find("", None).unwrap();
        let repository = ScratchRepository::new(&git, &[("a.txt", "a\n")]).unwrap();
        for round in 0..5_u8 {
            let state = tempfile::tempdir().unwrap();
            let id = WorkspaceId::from_parts(u64::from(round), [round; 10]);
            let make = || Checkout::make(state.path(), &id, repository.path(), None, &git);
            std::thread::scope(|scope| {
                let makers: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
                for maker in makers {
                    let checkout = maker.join().unwrap().unwrap();
                    assert_eq!(
                        std::fs::read(checkout.tree().join("a.txt")).unwrap(),
                        b"a\n"
                    );
                }
            });
            let left = std::fs::read_dir(state.path().join("checkouts.making")).unwrap();
            assert_eq!(left.count(), 0, "nothing of the making stays");
        }
    }
}
