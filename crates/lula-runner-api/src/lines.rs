//! The line that the agents of a run build on: opening it, working over it, bringing what they
//! produced into it, and delivering what came of it.

use lula_protocol::{Digest, EffectId, RunId, WorkspaceId};
use lula_repair::trial::{ProjectTestResults, TestBaseline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::workspaces::DeliveredView;

/// Begins the line of a run in a repository, or finds it again. Nothing of it is in the repository
/// before a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenIntegrationBranch {
    /// The run. It has one line in each repository.
    pub run: RunId,
    /// An absolute path of a repository's top below one of the runner's roots.
    pub path: String,
    /// The commit it begins with; that of `HEAD` where none is named. A line that is there keeps
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The line of a run in one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchView {
    /// Its name, which follows from the run and the repository.
    pub line: String,
    /// The run.
    pub run: RunId,
    /// The repository.
    pub path: String,
    /// The commit it began with.
    pub base: String,
    /// The commit it is at.
    pub commit: String,
    /// Everything that was ever produced for it, by task.
    pub produced: Vec<CommittedChangeState>,
    /// Whether it was archived: then only what was produced is kept, as a bundle.
    pub archived: bool,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// What became of one produced commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedChangeState {
    /// The task.
    pub task: String,
    /// The commit.
    pub commit: String,
    /// Whether the line contains it.
    pub integrated: bool,
    /// Whether it left the scope of its task. Such a commit is kept and never integrated.
    pub outside: bool,
}

/// Every line, and what was found and not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchList {
    /// By run and repository.
    pub lines: Vec<IntegrationBranchView>,
    /// Names below the quarantine of the state directory: what lay there and belonged to nothing.
    pub quarantined: Vec<String>,
}

/// Opens a workspace over a line for an agent, or finds the one of this name again, beginning where
/// it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenWorkspaceOnBranch {
    /// The name of the workspace, chosen by the caller: opening it again finds it again.
    pub id: WorkspaceId,
    /// What is to be done there, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where the agent says it will write, as patterns, at most 64. What it writes elsewhere never
    /// reaches the line. Nothing declared means anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub write_scope: Vec<String>,
    /// Commits that the line must contain already, at most 256: what the task depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub contains: Vec<String>,
    /// What it begins with.
    pub start: BranchWorkspaceStart,
}

/// What a workspace over a line begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "at", rename_all = "snake_case", deny_unknown_fields)]
pub enum BranchWorkspaceStart {
    /// The line as it is, and nothing changed: for a task.
    Line,
    /// The line as it is, with what a produced commit changes laid over it, conflict markers where
    /// both changed the same: for the agent that resolves a conflict. What is produced there has that
    /// commit as a second parent.
    Merge {
        /// The produced commit.
        commit: String,
    },
}

/// Makes a commit of what an agent changed, and keeps it under the name of its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitAgentChange {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run, which must be the line's.
    pub run: RunId,
    /// The task: 1 to 64 letters, digits, `-` and `_`. Several commits may be produced for one
    /// task; all of them are kept.
    #[schemars(length(min = 1, max = 64))]
    pub task: String,
    /// The workspace, opened over this line.
    pub workspace: WorkspaceId,
    /// The state that was judged. Another one is refused.
    pub tree: Digest,
    /// The commit's message, trailers included.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// What was produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommittedAgentChangeView {
    /// The commit.
    pub commit: String,
    /// The files it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Those of them outside the scope that was declared when the workspace was opened. If there is
    /// one the commit is kept but will not be integrated.
    pub outside: Vec<String>,
}

/// Brings a produced commit into the line, if it merges without a conflict and the tests of the
/// merged files say nothing worse than before. Otherwise nothing is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeAgentChange {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run, which must be the line's.
    pub run: RunId,
    /// The task it was produced for.
    #[schemars(length(min = 1, max = 64))]
    pub task: String,
    /// The produced commit.
    pub commit: String,
    /// What must hold on the merged files; nothing is run where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<MergeTestRequirement>,
    /// The merge commit's message.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The merge commit's time, Unix time in seconds.
    pub at: u64,
}

/// What must hold on merged files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeTestRequirement {
    /// The command that runs the tests, where it is not to be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder that the tests and the commands belong to; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What the tests said before. What passed must pass, and what it does not know must not fail.
    pub before: Box<TestBaseline>,
    /// Commands that must succeed, as a shell reads them, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub accept: Vec<String>,
    /// For at most so long, in milliseconds.
    pub tests_ms: u64,
}

/// What came of an attempt to integrate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "integration", rename_all = "snake_case", deny_unknown_fields)]
pub enum MergeAgentChangeResult {
    /// The line contains it now.
    Integrated {
        /// The merge commit that brought it in.
        commit: String,
        /// What the tests of the merged files said, where they were run: what the next candidate
        /// is compared with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tests: Option<Box<ProjectTestResults>>,
    },
    /// Both sides changed the same places. The line is as it was.
    Conflict {
        /// Where the line was.
        onto: String,
        /// The conflicts, file by file.
        files: Vec<ConflictFile>,
        /// What the line did to those files since both parted, as a unified diff, at most 64 KiB.
        ours: String,
        /// What the candidate did to them.
        theirs: String,
    },
    /// It merges, and then tests fail that did not: a conflict of meanings. The line is as it was.
    TestConflict {
        /// Where the line was.
        onto: String,
        /// Tests that passed before and do not now, and new ones that fail.
        failing: Vec<String>,
        /// Some of them with the end of what they said.
        messages: Vec<(String, String)>,
        /// Acceptance commands that do not succeed.
        accept: Vec<FailedCommand>,
        /// In one sentence.
        why: String,
    },
    /// It cannot be told: the tests did not end, or could not be run. The line is as it was.
    Unclear {
        /// Where the line was.
        onto: String,
        /// Why.
        why: String,
    },
}

/// A command that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedCommand {
    /// The command.
    pub command: String,
    /// The end of what it printed.
    pub output: String,
}

/// A file that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictFile {
    /// Its path.
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

/// Makes a workspace of the commit that a line began with hold all that the line holds now, as its
/// change: what is then weighed, shown and delivered as the run's result. Whatever else was changed
/// there is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FillWorkspaceFromBranch {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run, which must be the line's.
    pub run: RunId,
    /// The workspace of the line's first commit.
    pub workspace: WorkspaceId,
}

/// What was laid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilledWorkspaceView {
    /// The line's commit whose files the workspace holds now.
    pub commit: String,
    /// Names the state, as taking the change does.
    pub tree: Digest,
    /// The files that are changed.
    pub files: Vec<String>,
}

/// Puts the results of a run into several repositories: branches in all of them, or in none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverAllRequest {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
    /// One for each repository, at most 16.
    #[schemars(length(min = 1, max = 16))]
    pub parts: Vec<DeliverAllPart>,
}

/// The change of one workspace on its way into its repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverAllPart {
    /// The workspace of a commit.
    pub workspace: WorkspaceId,
    /// The state that was judged. Another one is not delivered.
    pub tree: Digest,
    /// The branch to make, which must not be there.
    #[schemars(length(min = 1, max = 200))]
    pub branch: String,
    /// The commit's message.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// Changes that arrived, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverAllResult {
    /// In the order of the parts.
    pub parts: Vec<DeliveredView>,
}
