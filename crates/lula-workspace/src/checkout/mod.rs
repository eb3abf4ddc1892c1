//! A commit of a repository, laid out in a directory of ours for agents to work over, and the way
//! back: what was changed as a git tree, and that tree as a branch.
//!
//! The user's repository is only read, until something is delivered; then objects are added and one
//! reference is moved from a known value to another, or the checkout's files are exchanged where they are
//! as the change found them. Index and stash are never touched.

mod deliver;
mod take;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lula_protocol::WorkspaceId;
use serde::{Deserialize, Serialize};

pub use deliver::{Delivered, Delivery, Undone, delivered, put, undo};
pub use take::{Taken, TakenFile};

use crate::error::WorkspaceError;
use crate::git::{Git, GitError};

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
    /// git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The workspace on it did.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The operating system did.
    #[error("cannot use {path}: {source}")]
    Io {
        /// What.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is none of that name.
    #[error("the workspace {0} is gone: start the task anew")]
    Gone(WorkspaceId),
    /// It is not as it would have to be.
    #[error("{0}")]
    Refused(String),
}

pub(crate) type Result<T> = std::result::Result<T, CheckoutError>;

/// Where a checkout came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The repository.
    pub repository: PathBuf,
    /// The commit.
    pub commit: String,
    /// How many tracked files of the repository had changes that are not part of the commit.
    pub uncommitted: usize,
    /// The subjects of the last commits, the newest first.
    pub history: Vec<String>,
}

/// A commit laid out in a directory, beside a private git directory that borrows the repository's
/// objects.
#[derive(Debug, Clone)]
pub struct Checkout {
    id: WorkspaceId,
    directory: PathBuf,
    origin: Origin,
    git: Git,
}

fn io_failed(path: &Path) -> impl FnOnce(std::io::Error) -> CheckoutError {
    let path = path.display().to_string();
    move |source| CheckoutError::Io { path, source }
}

impl Checkout {
    /// Where checkouts lie in a state directory.
    pub fn home(state: &Path) -> PathBuf {
        state.join("checkouts")
    }

    /// One that was made before, also one whose space was given back.
    pub fn find(state: &Path, id: &WorkspaceId, git: &Git) -> Result<Self> {
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
        git: &Git,
    ) -> Result<Self> {
        match Self::find(state, id, git) {
            Err(CheckoutError::Gone(_)) => {}
            found => return found,
        }
        let ask = |arguments: &[&str]| git.run(repository, arguments);
        let wanted = format!("{}^{{commit}}", commit.unwrap_or("HEAD"));
        let commit = ask(&["rev-parse", "--verify", "--end-of-options", &wanted])?;
        let commit = commit.trim().to_owned();
        let objects = ask(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])?;
        let format = ask(&["rev-parse", "--show-object-format"])?;
        let status = ask(&["status", "--porcelain", "--untracked-files=no"])?;
        let history = ask(&["log", HISTORY, "--format=%s", &commit])?;
        let directory = Self::home(state).join(id.as_str());
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_failed(&directory)(error));
            }
            _ => {}
        }
        let made = Self {
            id: id.clone(),
            directory,
            origin: Origin {
                repository: repository.to_owned(),
                commit,
                uncommitted: status.lines().count(),
                history: history.lines().map(str::to_owned).collect(),
            },
            git: git.clone(),
        };
        made.lay_out(&objects, format.trim())?;
        Ok(made)
    }

    fn lay_out(&self, objects: &str, format: &str) -> Result<()> {
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
        for name in DEPENDENCIES {
            let installed = self.origin.repository.join(name);
            let here = self.tree().join(name);
            if installed.is_dir() && !here.exists() {
                // Without the link the tests say what is missing.
                let _ = std::os::unix::fs::symlink(installed, here);
            }
        }
        let origin = serde_json::to_vec(&self.origin)
            .map_err(|error| CheckoutError::Refused(error.to_string()))?;
        let (draft, done) = (
            self.directory.join("origin.draft"),
            self.directory.join(ORIGIN),
        );
        std::fs::write(&draft, origin).map_err(io_failed(&draft))?;
        std::fs::rename(&draft, &done).map_err(io_failed(&done))
    }

    /// Where it came from.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The directory with the files.
    pub fn tree(&self) -> PathBuf {
        self.directory.join(TREE)
    }

    /// Whether its space was given back.
    pub fn is_cleared(&self) -> bool {
        !self.directory.join(PRIVATE).exists()
    }

    /// Gives its space back; only where it came from is kept.
    pub fn clear(&self) -> Result<()> {
        for name in [TREE, PRIVATE] {
            let path = self.directory.join(name);
            match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io_failed(&path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The private git on the laid out files, with an index of the caller's.
    fn command(&self, index: &Path) -> Result<Command> {
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
    fn private(&self, arguments: &[&str], index: &Path, input: &[u8]) -> Result<Vec<u8>> {
        let mut command = self.command(index)?;
        command.args(arguments);
        succeeded(feed(&mut command, input)?, arguments)
    }
}

fn succeeded(output: Output, arguments: &[&str]) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let name = arguments.first().unwrap_or(&"");
    let message = format!("git {name} failed: {}", said.trim());
    Err(CheckoutError::Refused(message))
}

/// Runs a command of git with something to read.
fn feed(command: &mut Command, input: &[u8]) -> Result<Output> {
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
