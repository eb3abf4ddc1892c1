//! How a driver asks the runner.
//!
//! [`RunnerClient`] speaks HTTP over a Unix socket or TCP; [`RunnerChild`] is a runner started as a child. No
//! call can happen twice: each carries an effect id, so one that was cut off can be sent again.

mod branches;
mod connection;
mod correlation;
mod error;
mod events;
mod spawn;

use hyper::{Method, StatusCode};
use lula_protocol::{
    ApprovalId, ApprovalToken, Digest, EffectId, ToolCall, ToolResult, WorkspaceId,
};
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    ActRulings, ApprovalList, ApprovalView, CheckoutRequest, CommitWorkspace, CommittedChangeView,
    CommittedWorkspace, DeliverChanges, DeliveredChanges, DiffView, EffectCall, JudgeActs,
    OpenWorkspace, RestoreSnapshot, RunnerCapabilities, RunnerHealth, SessionControl, SessionList,
    StartSession, TakeSnapshot, TestRunRequest, ToolCallBatch, ToolCallBatchItem,
    ToolCallBatchMode, ToolCallBatchResult, UndoCommit, WorkspaceList, WorkspaceView,
};

pub use connection::RunnerAddress;
use connection::{Connections, RunnerHttpAnswer};
pub use correlation::{RequestCorrelation, on_behalf_of};
pub use error::RunnerClientError;
pub use events::{RunnerEventStream, SessionEvents, TestRunEvents};
pub use spawn::{RunnerChild, RunnerCommand};

/// A runner as its callers see it. Clones share connections.
#[derive(Debug, Clone)]
pub struct RunnerClient {
    connections: Connections,
}

impl RunnerClient {
    /// The runner at that address; TCP needs its key.
    pub fn new(address: RunnerAddress, key: Option<SecretString>) -> Self {
        Self {
            connections: Connections::new(address, key),
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<T, RunnerClientError> {
        let answer = self.connections.ask(method, path, body).await?;
        answer.expect(|status| status.is_success())
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RunnerClientError> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, RunnerClientError> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Whether it is well.
    pub async fn health(&self) -> Result<RunnerHealth, RunnerClientError> {
        self.get("/healthz").await
    }

    /// What the runner is and gives: its tools, roots and limits.
    pub async fn capabilities(&self) -> Result<RunnerCapabilities, RunnerClientError> {
        self.get("/v1/capabilities").await
    }

    /// Opens a workspace: a private view of a directory below one of the runner's roots.
    pub async fn open(&self, path: &str, title: &str) -> Result<WorkspaceView, RunnerClientError> {
        self.open_within(path, title, &[]).await
    }

    /// The same for an agent that says where it will write: nothing elsewhere is written or
    /// committed.
    pub async fn open_within(
        &self,
        path: &str,
        title: &str,
        write_scope: &[String],
    ) -> Result<WorkspaceView, RunnerClientError> {
        let body = OpenWorkspace {
            path: path.to_owned(),
            title: title.to_owned(),
            write_scope: write_scope.to_vec(),
            checkout: None,
        };
        self.open_workspace(&body).await
    }

    /// Opens the workspace of a commit of the repository at `path`, or finds it again.
    pub async fn open_commit(
        &self,
        path: &str,
        title: &str,
        checkout: CheckoutRequest,
    ) -> Result<WorkspaceView, RunnerClientError> {
        let body = OpenWorkspace {
            path: path.to_owned(),
            title: title.to_owned(),
            write_scope: Vec::new(),
            checkout: Some(checkout),
        };
        self.open_workspace(&body).await
    }

    /// Opens a workspace as it is ordered, or finds it again where the order names it.
    pub async fn open_workspace(
        &self,
        order: &OpenWorkspace,
    ) -> Result<WorkspaceView, RunnerClientError> {
        self.post("/v1/workspaces", order).await
    }

    /// What was changed since the commit, as git sees it.
    pub async fn taken(&self, id: &WorkspaceId) -> Result<CommittedChangeView, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/change"), &Empty {})
            .await
    }

    /// Runs tests, searches or verifies in private forks, and tells how it goes. Dropping the stream
    /// ends it.
    pub async fn run_tests(
        &self,
        id: &WorkspaceId,
        request: &TestRunRequest,
    ) -> Result<TestRunEvents, RunnerClientError> {
        let path = format!("/v1/workspaces/{id}/test-runs");
        match self
            .connections
            .events(Method::POST, &path, Some(request))
            .await?
        {
            Ok(events) => Ok(events),
            Err(answer) => Err(answer.refusal()),
        }
    }

    /// Asks what the rules of a workspace say about acts, without doing any.
    pub async fn judge(
        &self,
        id: &WorkspaceId,
        acts: &JudgeActs,
    ) -> Result<ActRulings, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/rulings"), acts)
            .await
    }

    /// Puts exactly the judged changes into their repositories: all of them or none. Where a rule
    /// holds it back, [`RunnerClientError::Held`] says so.
    pub async fn deliver(
        &self,
        call: &EffectCall<DeliverChanges>,
    ) -> Result<DeliveredChanges, RunnerClientError> {
        self.gated("/v1/deliveries", call).await
    }

    /// Removes a workspace with everything in it.
    pub async fn remove(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerClientError> {
        let path = format!("/v1/workspaces/{id}");
        self.ask(Method::DELETE, &path, None::<&()>).await
    }

    /// Something that a rule may hold back.
    async fn gated<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, RunnerClientError> {
        let answer = self.connections.ask(Method::POST, path, Some(body)).await?;
        match answer.expect(is_held) {
            Ok(result) => Err(RunnerClientError::Held(Box::new(result))),
            Err(_) => answer.expect(|status| status.is_success()),
        }
    }

    pub async fn workspaces(&self) -> Result<WorkspaceList, RunnerClientError> {
        self.get("/v1/workspaces").await
    }

    /// Looks one workspace up by its id.
    pub async fn workspace(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerClientError> {
        self.get(&format!("/v1/workspaces/{id}")).await
    }

    /// What the workspace changed so far.
    pub async fn diff(&self, id: &WorkspaceId) -> Result<DiffView, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/diff"), &Empty {})
            .await
    }

    /// Puts exactly the reviewed change into the user's tree. Where a rule holds it back,
    /// [`RunnerClientError::Held`] says so; after an approval the same request is sent again.
    pub async fn commit(
        &self,
        id: &WorkspaceId,
        commit: &CommitWorkspace,
    ) -> Result<CommittedWorkspace, RunnerClientError> {
        let path = format!("/v1/workspaces/{id}/commit");
        self.gated(&path, commit).await
    }

    /// Takes the last commit back.
    pub async fn undo_commit(
        &self,
        id: &WorkspaceId,
        undo: &UndoCommit,
    ) -> Result<CommittedWorkspace, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/undo"), undo).await
    }

    /// Turns the change down.
    pub async fn discard(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/discard"), &Empty {})
            .await
    }

    /// Remembers the workspace as it is.
    pub async fn snapshot(
        &self,
        id: &WorkspaceId,
        label: &str,
    ) -> Result<WorkspaceView, RunnerClientError> {
        let body = TakeSnapshot {
            label: label.to_owned(),
        };
        self.post(&format!("/v1/workspaces/{id}/snapshot"), &body)
            .await
    }

    /// Returns the workspace to a remembered state.
    pub async fn restore(
        &self,
        id: &WorkspaceId,
        label: &str,
    ) -> Result<WorkspaceView, RunnerClientError> {
        let body = RestoreSnapshot {
            label: label.to_owned(),
        };
        self.post(&format!("/v1/workspaces/{id}/restore"), &body)
            .await
    }

    /// A second workspace that starts with this one's changes.
    pub async fn fork(&self, id: &WorkspaceId) -> Result<WorkspaceView, RunnerClientError> {
        self.post(&format!("/v1/workspaces/{id}/fork"), &Empty {})
            .await
    }

    /// Calls a tool. A refusal by a rule and a question to a person are results, not errors.
    pub async fn execute(&self, call: &ToolCall) -> Result<ToolResult, RunnerClientError> {
        let answer = self
            .connections
            .ask(Method::POST, "/v1/tools/execute", Some(call))
            .await?;
        answer.expect(is_tool_result)
    }

    /// Ends what runs for a call, and what would.
    pub async fn stop(&self, effect: &EffectId) -> Result<(), RunnerClientError> {
        let path = format!("/v1/effects/{effect}/stop");
        let answer = self
            .connections
            .ask(Method::POST, &path, Some(&Empty {}))
            .await?;
        answer.nothing()
    }

    /// Calls up to 50 tools at once.
    pub async fn batch(
        &self,
        calls: Vec<ToolCall>,
        mode: ToolCallBatchMode,
    ) -> Result<Vec<ToolCallBatchItem>, RunnerClientError> {
        let result: ToolCallBatchResult = self
            .post("/v1/tools/batch_execute", &ToolCallBatch { calls, mode })
            .await?;
        Ok(result.results)
    }

    /// Starts a command and listens to it. Dropping the stream of a foreground command ends it.
    pub async fn start(&self, session: &StartSession) -> Result<SessionEvents, RunnerClientError> {
        let stream = self
            .connections
            .stream(Method::POST, "/v1/sessions", Some(session));
        stream.await
    }

    /// Listens to a background command, from what was not heard yet.
    pub async fn attach(&self, session: &str) -> Result<SessionEvents, RunnerClientError> {
        let path = format!("/v1/sessions/{session}/events");
        self.connections
            .stream(Method::GET, &path, None::<&()>)
            .await
    }

    /// Every command that was started and not yet closed.
    pub async fn sessions(&self) -> Result<SessionList, RunnerClientError> {
        self.get("/v1/sessions").await
    }

    /// Sends input, a signal or a size to a command.
    pub async fn control(
        &self,
        session: &str,
        control: &SessionControl,
    ) -> Result<(), RunnerClientError> {
        let path = format!("/v1/sessions/{session}/control");
        let answer = self
            .connections
            .ask(Method::POST, &path, Some(control))
            .await?;
        answer.nothing()
    }

    /// Ends a command with everything it started.
    pub async fn close(&self, session: &str) -> Result<(), RunnerClientError> {
        let path = format!("/v1/sessions/{session}");
        let answer: RunnerHttpAnswer = self
            .connections
            .ask(Method::DELETE, &path, None::<&()>)
            .await?;
        answer.nothing()
    }

    /// Every question that waits for an answer.
    pub async fn approvals(&self) -> Result<ApprovalList, RunnerClientError> {
        self.get("/v1/approvals").await
    }

    /// One question, with exactly what would be done.
    pub async fn approval(&self, id: &ApprovalId) -> Result<ApprovalView, RunnerClientError> {
        self.get(&format!("/v1/approvals/{id}")).await
    }

    /// Hands in a signed answer. The call it is about is then sent again by the caller that made it.
    pub async fn vote(&self, token: &ApprovalToken) -> Result<ApprovalView, RunnerClientError> {
        self.post(&format!("/v1/approvals/{}/votes", token.id), token)
            .await
    }

    /// Whether the diff of a workspace still is the one that was looked at.
    pub async fn is_unchanged(
        &self,
        id: &WorkspaceId,
        digest: &Digest,
    ) -> Result<bool, RunnerClientError> {
        Ok(self.diff(id).await?.digest == *digest)
    }
}

#[derive(Serialize)]
struct Empty {}

fn is_held(status: StatusCode) -> bool {
    is_tool_result(status) && status != StatusCode::OK
}

/// A denial and a question carry a tool's result too.
fn is_tool_result(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::OK | StatusCode::FORBIDDEN | StatusCode::PRECONDITION_REQUIRED
    )
}
