//! The only way to a workspace: a runner is behind this trait, and holds no keys.
//!
//! The trait speaks the types of the runner's API, and so do the effects of a run: an order of the
//! log becomes a request by the identity of its effect (`EffectIdentity::call`). What the runner
//! answers is kept as it is, or put into words for a coder in `reply` and `merge`.

mod client;
mod excerpt;
mod merge;
mod reading;
mod reply;
mod workspace;

use async_trait::async_trait;
use lula_protocol::{
    ApprovalId, Code, Digest, EffectId, RunId, ToolCall, ToolOutcome, ToolResult, WorkspaceId,
};
use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{
    ActRulings, CommitAgentChange, CommittedAgentChangeView, CommittedChangeView, DeliverChanges,
    DeliveredChanges, EffectCall, FillWorkspaceFromBranch, FilledWorkspaceView,
    IntegrationBranchRef, IntegrationBranchView, JudgeActs, MergeAgentChange,
    MergeAgentChangeResult, OpenWorkspace, OpenWorkspaceOnBranch, TestRunRequest, TestRunResult,
    ToolCallBatchItem, WorkspaceView,
};

use crate::world::ProgressObserver;

pub use client::RunnerPortClient;
pub(crate) use excerpt::excerpt;
pub use merge::MergeOutcome;
pub(crate) use reading::{adopt, fetch, files, reset};
pub(crate) use reply::USUAL;
pub use reply::{Reply, ReplyPicture, ToolRefusal};
use reply::{held, refused};
pub use workspace::{AgentWorkspace, opening};

/// Why the runner did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerPortError {
    /// It was tried and did not work, for certain.
    #[error("{0}")]
    Failed(String),
    /// It is not known whether it was done.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, and cannot be now.
    #[error("{0}")]
    Unreachable(String),
    /// It was not done: people are asked first.
    #[error("{reason}")]
    Held {
        approval: ApprovalId,
        /// Why it is asked.
        reason: String,
    },
    /// It was not done, and will not be.
    #[error("{why}")]
    Refused { by: ToolRefusal, why: String },
}

impl From<RunnerClientError> for RunnerPortError {
    fn from(error: RunnerClientError) -> Self {
        match error {
            // Ordering it again with the same id tells what came of it: nothing can be lost.
            RunnerClientError::Unreachable { .. }
            | RunnerClientError::Broken(_)
            | RunnerClientError::NotStarted { .. } => Self::Unreachable(error.to_string()),
            RunnerClientError::Refused { problem, .. } if problem.code == Code::Fenced => {
                Self::Unreachable(problem.message)
            }
            RunnerClientError::Refused { problem, .. } => Self::Failed(problem.message),
            RunnerClientError::Held(result) => match result.outcome {
                ToolOutcome::NeedsApproval { challenge } => held(&challenge),
                ToolOutcome::Denied { denials } => {
                    let (by, why) = refused(&denials);
                    Self::Refused { by, why }
                }
                _ => Self::Failed("the runner held it back".to_owned()),
            },
            RunnerClientError::Nonsense(message) => Self::Failed(message),
        }
    }
}

/// The workspace of a run.
pub fn workspace_of(run: &RunId) -> WorkspaceId {
    let body = run.as_str().trim_start_matches("run_");
    // Both kinds of names have the same body.
    format!("ws_{body}")
        .parse()
        .unwrap_or_else(|_| WorkspaceId::from_parts(0, [0; 10]))
}

/// Whose effect it is: what makes it happen once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectIdentity {
    pub run: RunId,
    pub id: EffectId,
    /// The epoch of the driver that orders it.
    pub epoch: u64,
}

impl EffectIdentity {
    /// An order as this effect.
    pub(crate) fn call<T>(&self, order: T) -> EffectCall<T> {
        EffectCall {
            effect: self.id.clone(),
            epoch: self.epoch,
            run: self.run.clone(),
            order,
        }
    }

    /// A part of it that only looks: its identity follows from what it is about.
    #[must_use]
    pub fn part(&self, about: &str) -> Self {
        let digest = Digest::of_bytes(format!("{}/{about}", self.id).as_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&digest.as_bytes()[..10]);
        Self {
            id: EffectId::from_parts(0, random),
            ..self.clone()
        }
    }
}

/// Where the work is done. The runner behind it keeps a ledger: an effect that was done is not done
/// again, its result is told; one that was cut off is taken back before it is done again.
#[async_trait]
pub trait RunnerPort: Send + Sync + 'static {
    /// Opens a workspace, or finds it again.
    async fn open(&self, order: &OpenWorkspace) -> Result<WorkspaceView, RunnerPortError>;

    /// A workspace that was opened.
    async fn workspace(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerPortError>;

    async fn call(&self, call: &ToolCall) -> Result<ToolResult, RunnerPortError>;

    /// Calls tools that only look, several at a time; what came of each, in their order.
    async fn batch(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolCallBatchItem>, RunnerPortError>;

    /// Ends what runs for an effect. Returns when nothing of it is left.
    async fn stop(&self, effect: &EffectId);

    /// What was changed since the beginning.
    async fn change(&self, workspace: &WorkspaceId)
    -> Result<CommittedChangeView, RunnerPortError>;

    /// What the rules of a workspace say about acts, none of which is done.
    async fn judge(
        &self,
        workspace: &WorkspaceId,
        acts: &JudgeActs,
    ) -> Result<ActRulings, RunnerPortError>;

    /// Runs tests, verifies or searches in private forks of a workspace as it is now.
    async fn run_tests(
        &self,
        workspace: &WorkspaceId,
        request: &TestRunRequest,
        watch: &ProgressObserver,
    ) -> Result<TestRunResult, RunnerPortError>;

    /// Begins an integration branch, or finds it again.
    async fn open_branch(
        &self,
        branch: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, RunnerPortError>;

    /// Opens a workspace over an integration branch, or finds it again.
    async fn open_on_branch(
        &self,
        order: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerPortError>;

    /// Makes a commit of what an agent changed. No such commit is lost, whatever becomes of it.
    async fn commit(
        &self,
        call: &EffectCall<CommitAgentChange>,
    ) -> Result<CommittedAgentChangeView, RunnerPortError>;

    /// Merges an agent's commit into its integration branch, if the tests of the merged files say
    /// nothing worse than before.
    async fn merge(
        &self,
        call: &EffectCall<MergeAgentChange>,
    ) -> Result<MergeAgentChangeResult, RunnerPortError>;

    /// Makes a workspace of the branch's first commit hold everything that is merged, as its change.
    async fn fill(
        &self,
        call: &EffectCall<FillWorkspaceFromBranch>,
    ) -> Result<FilledWorkspaceView, RunnerPortError>;

    /// Puts changes into the repositories they are for: all of them, or none. Index, stash and
    /// branches that are there stay as they are, and the checkout too, unless a change is for it:
    /// then every file it touches has to be there as the change found it.
    async fn deliver(
        &self,
        call: &EffectCall<DeliverChanges>,
    ) -> Result<DeliveredChanges, RunnerPortError>;
}

#[cfg(test)]
mod tests;
