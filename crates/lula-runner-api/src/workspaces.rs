//! Workspaces: opening one, what it changed, and putting that where it belongs.

use lula_protocol::{Digest, EffectId, RunId, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Opens a workspace over a directory of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenWorkspace {
    /// An absolute path of a directory below one of the runner's roots.
    pub path: String,
    /// What is to be done there, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where the agent says it will write, as patterns such as `src/**`, at most 64. Writing
    /// elsewhere is refused, and so is a commit of what was written elsewhere. It cannot be
    /// widened later. Nothing declared means anywhere in the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub write_scope: Vec<String>,
    /// Not the directory as it is, but one commit of the repository whose top it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<CheckoutRequest>,
}

/// A commit to work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckoutRequest {
    /// The name of the workspace, chosen by the caller: opening it again finds it again.
    pub id: WorkspaceId,
    /// The commit; that of `HEAD` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Where the workspace of a commit came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckoutOriginView {
    /// Object id of the commit.
    pub commit: String,
    /// How many tracked files of the repository had changes that are not part of it.
    pub uncommitted: u64,
    /// The subjects of the last commits, the newest first. Material, never an instruction.
    #[serde(default)]
    pub history: Vec<String>,
    /// What git ignores in the repository's checkout, and is shown read-only below the commit's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredFilesView>,
}

/// What git ignores in a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IgnoredFilesView {
    /// Files and directories that it ignores as a whole, the largest first; not all of many.
    pub paths: Vec<String>,
    /// How many bytes they take on the disk.
    pub bytes: u64,
    /// Whether there are more files than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Those that are not shown, because they are known to hold secrets; not all of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

/// A workspace. Nothing in it reaches the user's tree before a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceView {
    pub id: WorkspaceId,
    /// The directory of the user that it is a view of.
    pub path: String,
    /// What is to be done there.
    pub title: String,
    /// What became of it.
    pub state: WorkspaceState,
    /// How its private layer is kept: `overlay` or `copy`.
    pub backend: String,
    /// When it was opened, in Unix milliseconds.
    pub opened_ms: u64,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<SnapshotView>,
    /// Where it came from, if it is that of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CheckoutOriginView>,
}

/// What became of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// Its changes wait for a decision.
    Pending,
    /// They are in the user's tree.
    Committed,
    /// They were turned down.
    Discarded,
}

/// Every workspace the runner holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceList {
    /// In order, the oldest first.
    pub workspaces: Vec<WorkspaceView>,
}

/// A state of a workspace that can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotView {
    pub label: String,
    /// When it was taken, in Unix milliseconds.
    pub at_ms: u64,
}

/// What a workspace changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffView {
    /// Names exactly this change. A commit repeats it.
    pub digest: Digest,
    /// Every path that was changed.
    pub changes: Vec<ChangeView>,
    /// The change as a unified diff, as people read it.
    pub text: String,
    /// Whether the text was cut.
    pub truncated: bool,
}

/// What happened to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeView {
    /// Path inside the workspace.
    pub path: String,
    /// `added`, `modified`, `deleted`, …
    pub what: String,
    /// What a reviewer should look at twice.
    pub risks: Vec<String>,
    /// Whether the user's tree changed here too since the workspace was opened.
    pub conflict: bool,
    /// Why it is never committed, or not without being allowed, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
}

/// Puts a reviewed change into the user's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitWorkspace {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
    /// Digest of the reviewed diff. Anything else is refused.
    pub digest: Digest,
    /// Only these paths; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether changes inside git directories are put there too.
    #[serde(default)]
    pub include_git: bool,
}

/// A change that reached the user's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedWorkspace {
    /// Digest of the change as it was made.
    pub digest: Digest,
    /// Paths that were changed in the user's tree.
    pub paths: Vec<String>,
    /// Paths that were held back.
    pub held_back: Vec<String>,
}

/// Takes the last commit of a workspace back, in the user's tree. It can itself be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoCommit {
    /// Identity of the effect.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
}

/// The change of a workspace that is that of a commit, as git sees it: without what is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedChangeView {
    /// Names the state; a delivery repeats it.
    pub tree: Digest,
    /// The files that are changed.
    pub files: Vec<String>,
    /// The change as a unified diff that `git apply` takes.
    pub diff: String,
}

/// The snapshot that every workspace of a commit begins with.
pub const START: &str = "start";

/// Remembers the state of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeSnapshot {
    /// What to call it.
    pub label: String,
}

/// Returns a workspace to a remembered state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// Label of the snapshot to return to.
    pub label: String,
}
