//! The runner of a run, asked through its client. Nothing here opens a workspace.

use std::future::Future;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lula_graph::RunState;
use lula_protocol::{Code, EffectId, RunId, ToolCall, ToolResult, WorkspaceId};
use lula_runner_api::client::{RunnerClient, RunnerClientError};
use lula_runner_api::{
    ActRulings, CommitAgentChange, CommittedAgentChangeView, CommittedChangeView, DeliverChanges,
    DeliveredChanges, EffectCall, FillWorkspaceFromBranch, FilledWorkspaceView,
    IntegrationBranchRef, IntegrationBranchView, JudgeActs, MergeAgentChange,
    MergeAgentChangeResult, OpenWorkspace, OpenWorkspaceOnBranch, TestRunEvent, TestRunRequest,
    TestRunResult, ToolCallBatchItem, ToolCallBatchMode, WorkspaceView,
};

use super::{RunnerPort, RunnerPortError, workspace_of};
use crate::team::{BEFORE, repository_run};
use crate::work::CodingState;
use crate::world::ProgressObserver;

/// How long a runner that does not answer is asked again: one that was killed is started anew.
const PATIENCE: Duration = Duration::from_secs(30);

/// The runner of a run, asked through its client.
#[derive(Debug, Clone)]
pub struct RunnerPortClient {
    client: RunnerClient,
}

impl RunnerPortClient {
    /// Of a runner that answers.
    pub const fn new(client: RunnerClient) -> Self {
        Self { client }
    }

    /// Gives the space of a run back that is over. Nothing is lost: its change is in its log, and
    /// what was delivered is in the repository.
    pub async fn clear(&self, run: &RunId) -> Result<(), RunnerPortError> {
        self.remove(&workspace_of(run)).await
    }

    /// Gives the space of everything back that agents did for a run that is over. What they
    /// produced is kept in one file.
    pub async fn clear_team(&self, known: &RunState<CodingState>) -> Result<(), RunnerPortError> {
        let run = &known.progress.run;
        let agents = known.state.agents(run);
        if known.state.chat.is_some() {
            self.clear(&repository_run(run, BEFORE)).await?;
        }
        for repo in 1..known.state.repositories.len() {
            self.clear(&repository_run(run, repo)).await?;
        }
        if agents.is_empty() {
            return Ok(());
        }
        for (_, agent) in &agents {
            self.clear(agent).await?;
        }
        for repo in 0..known.state.repositories.len() {
            let Some(place) = known.state.place_of(repo) else {
                continue;
            };
            let branch = IntegrationBranchRef {
                run: run.clone(),
                repository: known.state.repository(repo).to_owned(),
                base: Some(place.origin.commit.clone()),
            };
            let branch = self.open_branch(&branch).await?.branch;
            patiently(|| self.client.archive_branch(&branch)).await?;
        }
        Ok(())
    }

    async fn remove(&self, workspace: &WorkspaceId) -> Result<(), RunnerPortError> {
        match self.client.remove(workspace).await {
            Ok(_) => Ok(()),
            // It was never opened, or is cleared already.
            Err(RunnerClientError::Refused { problem, .. })
                if problem.code == Code::NoWorkspace =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Asks until the runner answers, for a while: the same id never happens twice.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T, RunnerPortError>
where
    F: Future<Output = Result<T, RunnerClientError>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            answered => return Ok(answered?),
        }
    }
}

/// Whether the same may be answered otherwise in a moment.
fn is_passing(error: &RunnerClientError) -> bool {
    error.is_worth_repeating()
        || matches!(error, RunnerClientError::Refused { status, .. }
            if matches!(status.as_u16(), 429 | 503))
}

#[async_trait]
impl RunnerPort for RunnerPortClient {
    async fn open(&self, order: &OpenWorkspace) -> Result<WorkspaceView, RunnerPortError> {
        patiently(|| self.client.open_workspace(order)).await
    }

    async fn workspace(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerPortError> {
        patiently(|| self.client.workspace(id)).await
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolResult, RunnerPortError> {
        patiently(|| self.client.execute(call)).await
    }

    async fn batch(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolCallBatchItem>, RunnerPortError> {
        patiently(|| {
            self.client
                .batch(calls.clone(), ToolCallBatchMode::Parallel)
        })
        .await
    }

    async fn stop(&self, effect: &EffectId) {
        // A runner that does not answer ends with its commands.
        let _ = self.client.stop(effect).await;
    }

    async fn change(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<CommittedChangeView, RunnerPortError> {
        patiently(|| self.client.taken(workspace)).await
    }

    async fn judge(
        &self,
        workspace: &WorkspaceId,
        acts: &JudgeActs,
    ) -> Result<ActRulings, RunnerPortError> {
        patiently(|| self.client.judge(workspace, acts)).await
    }

    async fn run_tests(
        &self,
        workspace: &WorkspaceId,
        request: &TestRunRequest,
        watch: &ProgressObserver,
    ) -> Result<TestRunResult, RunnerPortError> {
        let listen = || async {
            let mut events = self.client.run_tests(workspace, request).await?;
            while let Some(event) = events.next().await? {
                match event {
                    TestRunEvent::Progress { text } => watch(&text),
                    TestRunEvent::Ended { result } => return Ok(*result),
                }
            }
            let message = "the stream ended before the tests".to_owned();
            Err(RunnerClientError::Broken(message))
        };
        // Nothing of a test run stays: one that was cut off is begun anew.
        patiently(listen).await
    }

    async fn open_branch(
        &self,
        branch: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, RunnerPortError> {
        patiently(|| self.client.open_branch(branch)).await
    }

    async fn open_on_branch(
        &self,
        order: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerPortError> {
        patiently(|| self.client.open_on_branch(order)).await
    }

    async fn commit(
        &self,
        call: &EffectCall<CommitAgentChange>,
    ) -> Result<CommittedAgentChangeView, RunnerPortError> {
        patiently(|| self.client.commit_agent_change(call)).await
    }

    async fn merge(
        &self,
        call: &EffectCall<MergeAgentChange>,
    ) -> Result<MergeAgentChangeResult, RunnerPortError> {
        patiently(|| self.client.merge(call)).await
    }

    async fn fill(
        &self,
        call: &EffectCall<FillWorkspaceFromBranch>,
    ) -> Result<FilledWorkspaceView, RunnerPortError> {
        patiently(|| self.client.fill(call)).await
    }

    async fn deliver(
        &self,
        call: &EffectCall<DeliverChanges>,
    ) -> Result<DeliveredChanges, RunnerPortError> {
        patiently(|| self.client.deliver(call)).await
    }
}
