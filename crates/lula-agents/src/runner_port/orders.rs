//! What is ordered, as the log keeps it, and as the runner is asked for it.
//!
//! An order of the log names no effect and no epoch: those are the graph's. Each is made into the
//! request of the runner's API where it is done, with the [`Effect`] it is.

use lula_protocol::{Digest, RunId, WorkspaceId};
use lula_repair::trial::TestBaseline;
use lula_runner_api::{
    BranchWorkspaceStart, CheckoutOriginView, CheckoutRequest, CommitAgentChange, DeliverAllPart,
    DeliverAllRequest, DeliverChangeRequest, FillWorkspaceFromBranch, MergeAgentChange,
    MergeTestRequirement, OpenIntegrationBranch, OpenWorkspace, OpenWorkspaceOnBranch,
    WorkspaceView,
};
use serde::{Deserialize, Serialize};

use super::{EffectIdentity, RunnerPortError, workspace_of};
use crate::plan::StepId;
use crate::task::DeliverMode;

/// A workspace: a private copy of a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWorkspace {
    /// Its name.
    pub workspace: WorkspaceId,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: CheckoutOriginView,
}

impl AgentWorkspace {
    /// A workspace that was opened.
    pub fn of(view: WorkspaceView) -> Result<Self, RunnerPortError> {
        let WorkspaceView { id, origin, .. } = view;
        match origin {
            Some(origin) => Ok(Self {
                workspace: id,
                origin,
            }),
            None => Err(RunnerPortError::Failed(format!(
                "{id} is not the workspace of a commit"
            ))),
        }
    }
}

/// A change on its way into a repository. The same order always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverRequest {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How.
    pub deliver: DeliverMode,
    /// The branch to make.
    pub branch: String,
    /// The commit's message, trailers included.
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
    /// The state of the workspace that was judged; another one is not delivered.
    pub tree: Digest,
}

impl DeliverRequest {
    /// What is asked of the runner.
    pub(crate) fn request(&self, effect: &EffectIdentity) -> DeliverChangeRequest {
        DeliverChangeRequest {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            tree: self.tree,
            branch: self.branch.clone(),
            message: self.message.clone(),
            at: self.at,
            into_files: self.deliver == DeliverMode::Worktree,
        }
    }

    /// The same as a part of a delivery to several repositories.
    fn part(self) -> DeliverAllPart {
        DeliverAllPart {
            workspace: self.workspace,
            tree: self.tree,
            branch: self.branch,
            message: self.message,
            at: self.at,
        }
    }
}

/// The change of one of several repositories on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverRequestPart {
    /// Which: a number in the list of the run's repositories.
    pub site: usize,
    /// What, and how.
    pub order: DeliverRequest,
}

/// The line that the agents of a run build on: what is integrated so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrationBranchRef {
    /// The run whose line it is.
    pub run: RunId,
    /// In which repository.
    pub repository: String,
    /// The commit it began with.
    pub base: String,
}

impl IntegrationBranchRef {
    /// What begins it, or finds it again.
    pub fn request(&self) -> OpenIntegrationBranch {
        OpenIntegrationBranch {
            run: self.run.clone(),
            path: self.repository.clone(),
            commit: Some(self.base.clone()),
        }
    }
}

/// A workspace over a line, as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineWorkspace {
    /// The line.
    pub line: IntegrationBranchRef,
    /// The name of the workspace.
    pub workspace: WorkspaceId,
    /// What may be written there; anything where nothing is said.
    pub scope: Vec<String>,
    /// Commits that have to be integrated already.
    pub contains: Vec<String>,
    /// What it begins with.
    pub footing: BranchWorkspaceStart,
}

impl LineWorkspace {
    /// What is asked of the runner.
    pub(crate) fn request(&self) -> OpenWorkspaceOnBranch {
        OpenWorkspaceOnBranch {
            id: self.workspace.clone(),
            title: title(&self.line.run),
            write_scope: self.scope.clone(),
            contains: self.contains.clone(),
            start: self.footing.clone(),
        }
    }
}

/// What an agent did, to be kept as a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitChangeRequest {
    /// For this line.
    pub line: IntegrationBranchRef,
    /// By this job.
    pub job: StepId,
    /// In this workspace.
    pub workspace: WorkspaceId,
    /// The state that was judged.
    pub tree: Digest,
    /// The commit's message.
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

impl CommitChangeRequest {
    /// What is asked of the runner.
    pub(crate) fn request(&self, effect: &EffectIdentity) -> CommitAgentChange {
        CommitAgentChange {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            task: self.job.to_string(),
            workspace: self.workspace.clone(),
            tree: self.tree,
            message: self.message.clone(),
            at: self.at,
        }
    }
}

/// A commit on its way into a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeOrder {
    /// The line.
    pub line: IntegrationBranchRef,
    /// The job.
    pub job: StepId,
    /// The commit.
    pub commit: String,
    /// The command that runs the tests, where one was given.
    pub tests: Option<String>,
    /// The folder that they belong to; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What the tests say of the line. Where nothing is said they are not run: whatever is in the
    /// line is judged as a whole before it goes anywhere.
    pub before: Option<Box<TestBaseline>>,
    /// Commands that must succeed on the merged files.
    pub accept: Vec<String>,
    /// For at most so long.
    pub tests_ms: u64,
    /// The merge's message.
    pub message: String,
    /// The merge's time, Unix time in seconds.
    pub at: u64,
}

impl MergeOrder {
    /// What is asked of the runner.
    pub(crate) fn request(&self, effect: &EffectIdentity) -> MergeAgentChange {
        MergeAgentChange {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            task: self.job.to_string(),
            commit: self.commit.clone(),
            tests: self.before.clone().map(|before| MergeTestRequirement {
                command: self.tests.clone(),
                folder: self.folder.clone(),
                before,
                accept: self.accept.clone(),
                tests_ms: self.tests_ms,
            }),
            message: self.message.clone(),
            at: self.at,
        }
    }
}

/// What takes everything that a line holds into a workspace.
pub(crate) fn lay(effect: &EffectIdentity, workspace: &WorkspaceId) -> FillWorkspaceFromBranch {
    FillWorkspaceFromBranch {
        effect: effect.id.clone(),
        epoch: effect.epoch,
        run: effect.run.clone(),
        workspace: workspace.clone(),
    }
}

/// What delivers changes to all of their repositories, or to none.
pub(crate) fn deliver_all(
    effect: &EffectIdentity,
    parts: Vec<DeliverRequestPart>,
) -> DeliverAllRequest {
    DeliverAllRequest {
        effect: effect.id.clone(),
        epoch: effect.epoch,
        run: effect.run.clone(),
        parts: parts.into_iter().map(|part| part.order.part()).collect(),
    }
}

/// What opens the workspace of a run, or finds it again: of this commit, or of the one that is
/// checked out.
pub fn opening(run: &RunId, repository: &str, commit: Option<String>) -> OpenWorkspace {
    OpenWorkspace {
        path: repository.to_owned(),
        title: title(run),
        write_scope: Vec::new(),
        checkout: Some(CheckoutRequest {
            id: workspace_of(run),
            commit,
        }),
    }
}

fn title(run: &RunId) -> String {
    format!("lula run {run}")
}
