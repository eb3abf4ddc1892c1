//! Judged changes on their way into the repositories they are for.

use lula_protocol::{Digest, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Puts judged changes into their repositories: into all of them or into none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverChanges {
    /// One for each repository, at most 16.
    #[schemars(length(min = 1, max = 16))]
    pub deliveries: Vec<ChangeDelivery>,
}

/// The change of one workspace on its way into its repository: as a new branch, touching neither
/// checkout nor index, or into the files of the checkout, where those it touches are as they were
/// committed. The same delivery always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeDelivery {
    /// The workspace of a commit.
    pub workspace: WorkspaceId,
    /// The state that was judged. Another one is not delivered.
    pub tree: Digest,
    /// The branch to make, which must not be there.
    #[schemars(length(min = 1, max = 200))]
    pub branch: String,
    /// The commit's message, trailers included.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
    /// Whether it goes into the files of the checkout instead; only where it is the only one. The
    /// branch then only names it.
    #[serde(default)]
    pub into_files: bool,
    /// The tasks that the change came together from, where the branch is to have a commit for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<TaskHistory>,
}

/// A change as the tasks that it came together from, on the integration branch of the run that asks.
/// The branch knows their order. Whatever the judged state has beside them is one commit more, with
/// the message of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskHistory {
    /// The tasks, in any order, at most 64.
    #[schemars(length(max = 64))]
    pub tasks: Vec<TaskCommit>,
    /// What stands at the end of the last task's message, where that is the last commit.
    #[schemars(length(max = 65536))]
    pub end: String,
}

/// The commit of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCommit {
    /// Object id of the commit by which the integration branch got it.
    pub commit: String,
    /// The message of the commit that is delivered, trailers included.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
}

/// Changes that arrived, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveredChanges {
    /// In the order of the deliveries.
    pub parts: Vec<DeliveredView>,
}

/// A change that arrived. Runs keep it in their logs, where what is not there is written as `null`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveredView {
    /// The branch, where one was made.
    #[serde(default)]
    pub branch: Option<String>,
    /// The commit it names.
    #[serde(default)]
    pub commit: Option<String>,
    /// The directory whose files were changed, where some were.
    #[serde(default)]
    pub directory: Option<String>,
    /// The workspace that can put those files back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}
