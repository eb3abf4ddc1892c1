//! How a driver asks for integration branches.

use super::{Empty, RunnerClient, RunnerClientError};
use crate::{
    CommitAgentChange, CommittedAgentChangeView, EffectCall, FillWorkspaceFromBranch,
    FilledWorkspaceView, IntegrationBranchList, IntegrationBranchRef, IntegrationBranchView,
    MergeAgentChange, MergeAgentChangeResult, OpenWorkspaceOnBranch, WorkspaceView,
};

impl RunnerClient {
    /// Begins the integration branch of a run in a repository, or finds it again.
    pub async fn open_branch(
        &self,
        branch: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, RunnerClientError> {
        self.post("/v1/branches", branch).await
    }

    /// Every integration branch, and what was set aside.
    pub async fn branches(&self) -> Result<IntegrationBranchList, RunnerClientError> {
        self.get("/v1/branches").await
    }

    /// One integration branch, and the commits that were made for it.
    pub async fn branch(&self, name: &str) -> Result<IntegrationBranchView, RunnerClientError> {
        self.get(&format!("/v1/branches/{name}")).await
    }

    /// Opens a workspace over an integration branch, or finds it again.
    pub async fn open_on_branch(
        &self,
        order: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerClientError> {
        self.post("/v1/branch-workspaces", order).await
    }

    /// Makes a commit of what an agent changed, and keeps it.
    pub async fn commit_agent_change(
        &self,
        call: &EffectCall<CommitAgentChange>,
    ) -> Result<CommittedAgentChangeView, RunnerClientError> {
        self.post("/v1/agent-commits", call).await
    }

    /// Merges an agent's commit into its integration branch. A conflict is a result, not an error.
    pub async fn merge(
        &self,
        call: &EffectCall<MergeAgentChange>,
    ) -> Result<MergeAgentChangeResult, RunnerClientError> {
        self.post("/v1/merges", call).await
    }

    /// Makes a workspace of the branch's first commit hold what the branch holds now.
    pub async fn fill(
        &self,
        call: &EffectCall<FillWorkspaceFromBranch>,
    ) -> Result<FilledWorkspaceView, RunnerClientError> {
        self.post("/v1/fills", call).await
    }

    /// Puts the commits of a branch into one file, and gives the rest of its space back.
    pub async fn archive_branch(
        &self,
        name: &str,
    ) -> Result<IntegrationBranchView, RunnerClientError> {
        self.post(&format!("/v1/branches/{name}/archive"), &Empty {})
            .await
    }
}
