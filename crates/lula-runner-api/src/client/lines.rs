//! How the brain asks for lines.

use super::{Empty, RunnerClient, RunnerClientError};
use crate::{
    CommitAgentChange, CommittedAgentChangeView, DeliverAllRequest, DeliverAllResult,
    FillWorkspaceFromBranch, FilledWorkspaceView, IntegrationBranchList, IntegrationBranchView,
    MergeAgentChange, MergeAgentChangeResult, OpenIntegrationBranch, OpenWorkspaceOnBranch,
    WorkspaceView,
};

impl RunnerClient {
    /// Begins the line of a run in a repository, or finds it again.
    pub async fn open_line(
        &self,
        order: &OpenIntegrationBranch,
    ) -> Result<IntegrationBranchView, RunnerClientError> {
        self.post("/v1/lines", order).await
    }

    /// Every line, and what was set aside.
    pub async fn lines(&self) -> Result<IntegrationBranchList, RunnerClientError> {
        self.get("/v1/lines").await
    }

    /// One line, and what was produced for it.
    pub async fn line(&self, line: &str) -> Result<IntegrationBranchView, RunnerClientError> {
        self.get(&format!("/v1/lines/{line}")).await
    }

    /// Opens a workspace over a line, or finds it again.
    pub async fn open_at_line(
        &self,
        line: &str,
        order: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerClientError> {
        self.post(&format!("/v1/lines/{line}/workspaces"), order)
            .await
    }

    /// Makes a commit of what an agent changed, and keeps it.
    pub async fn produce(
        &self,
        line: &str,
        order: &CommitAgentChange,
    ) -> Result<CommittedAgentChangeView, RunnerClientError> {
        self.post(&format!("/v1/lines/{line}/produce"), order).await
    }

    /// Brings a produced commit into the line. A conflict is a result, not an error.
    pub async fn integrate(
        &self,
        line: &str,
        order: &MergeAgentChange,
    ) -> Result<MergeAgentChangeResult, RunnerClientError> {
        self.post(&format!("/v1/lines/{line}/integrate"), order)
            .await
    }

    /// Makes a workspace of the line's first commit hold what the line holds now.
    pub async fn lay(
        &self,
        line: &str,
        order: &FillWorkspaceFromBranch,
    ) -> Result<FilledWorkspaceView, RunnerClientError> {
        self.post(&format!("/v1/lines/{line}/lay"), order).await
    }

    /// Puts what was produced into one file, and gives the rest of its space back.
    pub async fn archive_line(
        &self,
        line: &str,
    ) -> Result<IntegrationBranchView, RunnerClientError> {
        self.post(&format!("/v1/lines/{line}/archive"), &Empty {})
            .await
    }

    /// Makes branches of judged changes in several repositories: all of them or none. Where a rule
    /// holds it back, [`RunnerClientError::Held`] says so.
    pub async fn deliver_all(
        &self,
        order: &DeliverAllRequest,
    ) -> Result<DeliverAllResult, RunnerClientError> {
        self.gated("/v1/deliveries", order).await
    }
}
