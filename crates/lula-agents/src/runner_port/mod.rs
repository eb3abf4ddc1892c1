//! The only way to a workspace: a runner is behind this trait, and holds no keys.
//!
//! The trait speaks the types of the runner's API: what a deed of the log asks for is made into a
//! request in `orders`, and what the runner answers is kept as it is, or put into words for a coder
//! in `reply` and `merge`.

mod merge;
mod orders;
mod reading;
mod reply;

use async_trait::async_trait;
use lula_protocol::{
    ApprovalId, Code, Digest, EffectId, RunId, ToolCall, ToolOutcome, ToolResult, WorkspaceId,
};
use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{
    CommitAgentChange, CommittedAgentChangeView, CommittedChangeView, DeliverAllRequest,
    DeliverAllResult, DeliverChangeRequest, DeliveredView, FillWorkspaceFromBranch,
    FilledWorkspaceView, IntegrationBranchView, MergeAgentChange, MergeAgentChangeResult,
    OpenIntegrationBranch, OpenWorkspace, OpenWorkspaceOnBranch, TestRunRequest, TestRunResult,
    ToolCallBatchItem, WorkspaceView,
};

use crate::world::ProgressObserver;

pub use merge::MergeOutcome;
pub use orders::{
    AgentWorkspace, CommitChangeRequest, DeliverRequest, DeliverRequestPart, IntegrationBranchRef,
    LineWorkspace, MergeOrder, opening,
};
pub(crate) use orders::{deliver_all, lay};
pub(crate) use reading::{adopt, fetch, files, reset};
pub use reply::{Reply, ToolRefusal};
use reply::{held, refused};

/// Why the hands did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunnerPortError {
    /// It was tried and did not work, for certain.
    #[error("{0}")]
    Failed(String),
    /// Nobody knows whether it was done.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, and cannot be now.
    #[error("{0}")]
    Unreachable(String),
    /// It was not done: people are asked first.
    #[error("{reason}")]
    Held {
        /// The question.
        approval: ApprovalId,
        /// Why it is asked.
        reason: String,
    },
    /// It was not done, and will not be.
    #[error("{why}")]
    Refused {
        /// Who said no.
        by: ToolRefusal,
        /// What they said.
        why: String,
    },
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
    /// The run.
    pub run: RunId,
    /// Its identity.
    pub id: EffectId,
    /// Who orders it.
    pub epoch: u64,
}

impl EffectIdentity {
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

    /// Calls a tool.
    async fn call(&self, call: &ToolCall) -> Result<ToolResult, RunnerPortError>;

    /// Calls tools that only look, several at a time; what came of each, in their order.
    async fn batch(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolCallBatchItem>, RunnerPortError>;

    /// Ends what runs for an effect. Returns when nothing of it is left.
    async fn stop(&self, effect: &EffectId);

    /// What was changed since the beginning.
    async fn change(&self, workspace: &WorkspaceId)
    -> Result<CommittedChangeView, RunnerPortError>;

    /// Finds something out in private forks of a workspace as it is now.
    async fn trial(
        &self,
        workspace: &WorkspaceId,
        trial: &TestRunRequest,
        watch: &ProgressObserver,
    ) -> Result<TestRunResult, RunnerPortError>;

    /// Begins a line, or finds it again.
    async fn open_line(
        &self,
        order: &OpenIntegrationBranch,
    ) -> Result<IntegrationBranchView, RunnerPortError>;

    /// Opens a workspace over a line, or finds it again.
    async fn open_at_line(
        &self,
        line: &str,
        order: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerPortError>;

    /// Keeps what an agent did as a commit. Nothing that was kept is lost, whatever becomes of it.
    async fn produce(
        &self,
        line: &str,
        order: &CommitAgentChange,
    ) -> Result<CommittedAgentChangeView, RunnerPortError>;

    /// Brings a commit into its line, if it merges and the tests of the merged files say nothing
    /// worse than before.
    async fn integrate(
        &self,
        line: &str,
        order: &MergeAgentChange,
    ) -> Result<MergeAgentChangeResult, RunnerPortError>;

    /// Makes a workspace of a line's first commit hold everything that is integrated, as its change.
    async fn lay(
        &self,
        line: &str,
        order: &FillWorkspaceFromBranch,
    ) -> Result<FilledWorkspaceView, RunnerPortError>;

    /// Puts a change into the repository it is for. Index, stash and branches that are there stay
    /// as they are, and the checkout too, unless the change is for it: then every file it touches
    /// has to be there as the change found it.
    async fn deliver(
        &self,
        workspace: &WorkspaceId,
        order: &DeliverChangeRequest,
    ) -> Result<DeliveredView, RunnerPortError>;

    /// Puts changes into the repositories they are for, as branches: all of them, or none.
    async fn deliver_all(
        &self,
        order: &DeliverAllRequest,
    ) -> Result<DeliverAllResult, RunnerPortError>;
}

#[cfg(test)]
mod tests;
