//! The only way to a workspace: whoever does the work is behind this trait, and holds no keys.

use std::sync::Arc;

use async_trait::async_trait;
use lula_protocol::{Digest, RunId, ToolCall, WorkspaceId};
use lula_repair::Ground;
use serde::{Deserialize, Serialize};

use crate::task::Deliver;

/// A workspace: a private copy of a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its name.
    pub workspace: WorkspaceId,
    /// The commit it began with.
    pub commit: String,
    /// How many tracked files of the repository have changes that are not committed, and so are
    /// not part of it.
    pub uncommitted: usize,
}

/// What a tool said, as a model may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The text. Material, never an instruction.
    pub text: String,
    /// Whether the tool did not do what was asked.
    pub failed: bool,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// Its bytes before; `None` for a new one.
    pub before: Option<Vec<u8>>,
    /// Its bytes now; `None` for one that is gone.
    pub after: Option<Vec<u8>>,
}

/// What was changed in a workspace since it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// As a unified diff.
    pub diff: String,
    /// File by file.
    pub files: Vec<ChangedFile>,
    /// Names the state of the workspace.
    pub tree: Digest,
}

/// A change on its way into a repository. The same order always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consignment {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The repository.
    pub repository: String,
    /// How.
    pub deliver: Deliver,
    /// The branch to make.
    pub branch: String,
    /// The commit's message, trailers included.
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
    /// The state of the workspace that was judged; another one is not delivered.
    pub tree: Digest,
}

/// A change that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivered {
    /// The branch, where one was made.
    pub branch: Option<String>,
    /// The commit, where one was made.
    pub commit: Option<String>,
    /// The directory whose files were changed, where some were.
    pub directory: Option<String>,
    /// What remembers how those files were, so that they can be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}

/// Why the hands did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandsError {
    /// It was tried and did not work, for certain.
    #[error("{0}")]
    Failed(String),
    /// Nobody knows whether it was done.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, and cannot be now.
    #[error("{0}")]
    Unreachable(String),
}

/// The workspace of a run.
pub fn workspace_of(run: &RunId) -> WorkspaceId {
    let body = run.as_str().trim_start_matches("run_");
    // Both kinds of names have the same body.
    format!("ws_{body}")
        .parse()
        .unwrap_or_else(|_| WorkspaceId::from_parts(0, [0; 10]))
}

/// Where the work is done.
#[async_trait]
pub trait Hands: Send + Sync + 'static {
    /// Opens the workspace of a run, or finds it again.
    async fn open(&self, run: &RunId, repository: &str) -> Result<Place, HandsError>;

    /// Opens a workspace of its own for a run that was forked, beginning as another began. One
    /// that is open already stays as it is.
    async fn adopt(&self, run: &RunId, of: &WorkspaceId) -> Result<(), HandsError>;

    /// Every file of a workspace, relative to its top.
    async fn files(&self, workspace: &WorkspaceId) -> Result<Vec<String>, HandsError>;

    /// The text of a whole file; `None` where there is none.
    async fn fetch(
        &self,
        workspace: &WorkspaceId,
        path: &str,
    ) -> Result<Option<String>, HandsError>;

    /// Calls a tool.
    async fn call(&self, call: &ToolCall) -> Result<Said, HandsError>;

    /// Names the state of a workspace, so that it can be returned to.
    async fn snapshot(&self, workspace: &WorkspaceId) -> Result<Digest, HandsError>;

    /// Returns to a state, or to the beginning.
    async fn restore(&self, workspace: &WorkspaceId, to: Option<Digest>) -> Result<(), HandsError>;

    /// What was changed since the beginning.
    async fn change(&self, workspace: &WorkspaceId) -> Result<Change, HandsError>;

    /// Private forks of a workspace as it is now, to run things in.
    async fn ground(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Arc<dyn Ground + Send + Sync>, HandsError>;

    /// Puts a change into the repository it is for. Index, stash and branches that are there stay
    /// as they are, and the checkout too, unless the change is for it: then every file it touches
    /// has to be there as the change found it.
    async fn deliver(&self, order: &Consignment) -> Result<Delivered, HandsError>;

    /// Whether a change arrived already.
    async fn delivered(&self, order: &Consignment) -> Result<Option<Delivered>, HandsError>;
}
