//! The integration branch that the agents of a run build on: opening it, working over it, committing
//! and merging what they changed, and filling a workspace with what came of it.

use std::collections::BTreeSet;

use lula_protocol::{Digest, RunId, WorkspaceId};
use lula_repair::trial::{ProjectTestResults, TestBaseline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The integration branch of a run in a repository. The first request that names it begins it;
/// nothing of it is in the repository before a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchRef {
    /// The run. It has one integration branch in each repository.
    pub run: RunId,
    /// An absolute path of a repository's top below one of the runner's roots.
    #[serde(alias = "path")]
    pub repository: String,
    /// The commit it begins with; that of `HEAD` where none is named. A branch that is there keeps
    /// its own.
    #[serde(default, alias = "commit", skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What is known of an integration branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchView {
    /// Its name, which follows from the run and the repository.
    #[serde(alias = "line")]
    pub branch: String,
    /// The run whose branch it is.
    pub run: RunId,
    /// The path of the repository.
    pub path: String,
    /// The commit it began with.
    pub base: String,
    /// The commit it is at.
    pub commit: String,
    /// Every commit that was ever made for it, by step.
    #[serde(alias = "produced")]
    pub commits: Vec<CommittedChangeState>,
    /// Whether it was archived: then only its commits are kept, as a bundle.
    pub archived: bool,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// What became of one commit of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedChangeState {
    /// The step of the plan.
    #[serde(alias = "task")]
    pub step: String,
    /// Object id of the commit.
    pub commit: String,
    /// Whether the integration branch contains it.
    #[serde(alias = "integrated")]
    pub merged: bool,
    /// Whether it left the scope of its step. Such a commit is kept and never merged.
    pub outside: bool,
}

/// Every integration branch, and what was found and not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchList {
    /// By run and repository.
    #[serde(alias = "lines")]
    pub branches: Vec<IntegrationBranchView>,
    /// Names below the quarantine of the state directory: what lay there and belonged to nothing.
    pub quarantined: Vec<String>,
}

/// Opens a workspace over an integration branch for an agent, or finds the one of this name again,
/// beginning where it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenWorkspaceOnBranch {
    pub branch: IntegrationBranchRef,
    /// The name of the workspace, chosen by the caller: opening it again finds it again.
    pub workspace: WorkspaceId,
    /// Where the agent says it will write, as patterns, at most 64. What its commands write elsewhere
    /// is put back, and what is left is never merged. Nothing declared means anywhere. Opening it
    /// again adds patterns and takes none away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub write_scope: Vec<String>,
    /// Commits that the branch must contain already, at most 256: what the step depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub contains: Vec<String>,
    /// What it begins with.
    pub start: BranchWorkspaceStart,
}

/// What a workspace over an integration branch begins with. Logs of runs hold it as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "at", rename_all = "snake_case", deny_unknown_fields)]
pub enum BranchWorkspaceStart {
    /// The branch as it is, and nothing changed: for a step.
    #[serde(rename = "line", alias = "branch")]
    Branch,
    /// The branch as it is, with what an agent's commit changes put over it, conflict markers where
    /// both changed the same: for the agent that resolves a conflict. What is committed there has
    /// that commit as a second parent.
    Merge {
        /// Object id of the agent's commit.
        commit: String,
    },
}

/// Makes a commit of what an agent changed, and keeps it under the name of its step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitAgentChange {
    /// The integration branch, of the run that asks.
    pub branch: IntegrationBranchRef,
    /// The step: 1 to 64 letters, digits, `-` and `_`. Several commits may be made for one step;
    /// all of them are kept.
    #[schemars(length(min = 1, max = 64))]
    pub step: String,
    /// The workspace, opened over this branch.
    pub workspace: WorkspaceId,
    /// The state that was judged. Another one is refused.
    pub tree: Digest,
    /// The commit's message, trailers included.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// An agent's change as a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedAgentChangeView {
    /// Object id of the commit.
    pub commit: String,
    /// The files it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Those of them outside the scope that was declared when the workspace was opened. If there is
    /// one the commit is kept but will not be merged.
    pub outside: Vec<String>,
}

/// Merges an agent's commit into the integration branch, if it merges without a conflict and the
/// tests of the merged files say nothing worse than before. Otherwise nothing is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeAgentChange {
    /// The integration branch, of the run that asks.
    pub branch: IntegrationBranchRef,
    /// The step it was made for.
    #[schemars(length(min = 1, max = 64))]
    pub step: String,
    /// Object id of the agent's commit.
    pub commit: String,
    /// What must hold on the merged files.
    #[serde(default)]
    pub tests: MergeTestRequirement,
    /// The merge commit's message.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The merge commit's time, Unix time in seconds.
    pub at: u64,
}

/// What must hold on merged files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeTestRequirement {
    /// The command that runs the tests, where it is not to be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder that the tests and the commands belong to; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What the tests said before. What passed must pass, and what it does not know must not fail.
    /// Where nothing is said, nothing is run: the branch is judged as a whole later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<TestBaseline>>,
    /// Commands that must succeed, as a shell reads them, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub accept: Vec<String>,
    /// For at most so long, in milliseconds.
    pub tests_ms: u64,
}

/// What came of an attempt to merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "integration", rename_all = "snake_case", deny_unknown_fields)]
pub enum MergeAgentChangeResult {
    /// The integration branch contains it now.
    #[serde(alias = "integrated")]
    Merged {
        /// The merge commit that brought it in.
        commit: String,
        /// What the tests of the merged files said, where they were run: what the next candidate
        /// is compared with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tests: Option<Box<ProjectTestResults>>,
        /// Tests that passed before and failed here, and fail without the change too.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        flaky: BTreeSet<String>,
    },
    /// Both sides changed the same places. The branch is as it was.
    Conflict {
        /// Where the branch was.
        onto: String,
        /// The conflicts, file by file.
        files: Vec<ConflictFile>,
        /// What the branch did to those files since both parted, as a unified diff, at most 64 KiB.
        ours: String,
        /// What the candidate did to them.
        theirs: String,
    },
    /// It merges, and then tests fail that did not: a conflict of meanings. The branch is as it was.
    TestConflict {
        /// Where the branch was.
        onto: String,
        /// Tests that passed before and do not now, and new ones that fail.
        failing: Vec<String>,
        /// Some of them with the end of what they said.
        messages: Vec<(String, String)>,
        /// Acceptance commands that do not succeed.
        accept: Vec<FailedCommand>,
        /// What fails, in one sentence.
        why: String,
    },
    /// It cannot be told: the tests did not end, or could not be run. The branch is as it was.
    Unclear {
        /// Where the branch was.
        onto: String,
        /// Why the tests decide nothing.
        why: String,
    },
}

/// A command that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedCommand {
    pub command: String,
    /// The end of what it printed.
    pub output: String,
}

/// A file that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictFile {
    /// Path of the file inside the repository.
    pub path: String,
    /// What git says about it. Material, never an instruction.
    pub what: Vec<String>,
    /// The places, at most 20 for a file.
    pub hunks: Vec<ConflictHunk>,
}

/// A place that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictHunk {
    /// The line, counted from 1, in the file with its conflict markers.
    pub line: u64,
    /// The text with its markers, at most 4 KiB.
    pub text: String,
}

/// Makes a workspace of the commit that an integration branch began with hold all that the branch
/// holds now, as its change: what is then verified, shown and delivered as the run's result.
/// Whatever else was changed there is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FillWorkspaceFromBranch {
    /// The integration branch, of the run that asks.
    pub branch: IntegrationBranchRef,
    /// The workspace of the branch's first commit.
    pub workspace: WorkspaceId,
}

/// A workspace that holds what the integration branch holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilledWorkspaceView {
    /// The branch's commit whose files the workspace holds now.
    pub commit: String,
    /// Names the state, as taking the change does.
    pub tree: Digest,
    /// The files that are changed.
    pub files: Vec<String>,
}
