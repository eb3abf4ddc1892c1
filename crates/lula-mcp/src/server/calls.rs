//! What a call does.

use std::fmt::Write as _;

use lula_agents::toolset;
use lula_models::normal::ModelToolCall;
use lula_protocol::{Digest, ToolAction, ToolOutcome};
use lula_repair::TestSelection;
use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{
    ChangeView, CommitWorkspace, CommittedWorkspace, DiffView, TestRunEvent, TestRunRequest,
    TestRunResult, UndoCommit,
};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ToolServer;
use super::answers::{CallFailure, failed, held, reply, text, with_data};
use super::workspace::patiently;

/// Most bytes of an answer: what clients give a tool by default.
const BYTES: usize = 40_000;
/// How long a run of the tests may take; the policy's own limit holds beside it.
const TESTS_MS: u64 = 600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestArguments {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    folder: String,
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitArguments {
    digest: Digest,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkspaceArguments {
    action: WorkspaceVerb,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WorkspaceVerb {
    Status,
    Snapshot,
    Restore,
    Discard,
    UndoCommit,
}

pub(super) fn typed<T: DeserializeOwned>(arguments: &Value) -> Result<T, CallFailure> {
    serde_json::from_value(arguments.clone()).map_err(|error| CallFailure(error.to_string()))
}

impl ToolServer {
    /// Does a call. A failure is an answer too: the model reads it and goes on.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        if let Some(client) = context.peer.peer_info() {
            self.workspace.call_it(&client.client_info.name).await;
        }
        let name = request.name.into_owned();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        tracing::debug!(tool = name, "call");
        let done = match name.as_str() {
            "diff" => self.diff().await,
            "test" => self.test(&arguments, &context).await,
            "commit" => self.commit(&arguments).await,
            "workspace" => self.settle(&arguments).await,
            "task" => self.tasks.call(&arguments, &context).await,
            _ => self.act(name, arguments, &context).await,
        };
        done.unwrap_or_else(|CallFailure(why)| failed(why))
    }

    /// One of a coder's tools.
    async fn act(
        &self,
        name: String,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, CallFailure> {
        let asked = Digest::of_bytes(format!("{name}\0{arguments}").as_bytes());
        let call = ModelToolCall {
            id: String::new(),
            name,
            arguments,
        };
        let action: ToolAction = toolset::action(&call, BYTES)?;
        let effect = self.workspace.effect(&asked).await?;
        let act = self.workspace.act(action, effect.clone());
        let result = tokio::select! {
            result = act => result?,
            // The client does not wait for it any more: what runs for it ends.
            () = context.ct.cancelled() => {
                self.workspace.runner.stop(&effect).await?;
                return Ok(failed("it was cancelled"));
            }
        };
        if let ToolOutcome::NeedsApproval { challenge } = &result.outcome {
            self.workspace.waits(asked, Some(&effect)).await;
            return Ok(held(challenge));
        }
        self.workspace.waits(asked, None).await;
        let receipt = result.receipt.clone();
        let said = toolset::reply(result, BYTES).map_err(|error| error.to_string())?;
        Ok(reply(said, receipt.as_ref()))
    }

    async fn diff(&self) -> Result<CallToolResult, CallFailure> {
        let id = self.workspace.id().await?;
        let diff = patiently(|| self.workspace.runner.diff(&id)).await?;
        if diff.changes.is_empty() {
            return Ok(text("nothing is changed"));
        }
        Ok(text(shown(&diff)))
    }

    async fn test(
        &self,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, CallFailure> {
        let asked: TestArguments = typed(arguments)?;
        let id = self.workspace.id().await?;
        let request = TestRunRequest::RunTests {
            tests: TestSelection {
                command: asked.command,
                folder: asked.folder,
            },
            accept: Vec::new(),
            tests_ms: TESTS_MS,
        };
        let mut events = self.workspace.runner.run_tests(&id, &request).await?;
        let mut step = 0;
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                // Dropping the stream ends the tests.
                () = context.ct.cancelled() => return Ok(failed("it was cancelled")),
            };
            match event {
                Some(TestRunEvent::Progress { text }) => {
                    step += 1;
                    progress(context, step, text).await;
                }
                Some(TestRunEvent::Ended { result }) => return tested(*result, &asked.names),
                None => return Ok(failed("the runner ended before the tests: call again")),
            }
        }
    }

    async fn commit(&self, arguments: &Value) -> Result<CallToolResult, CallFailure> {
        let asked: CommitArguments = typed(arguments)?;
        let (Some(id), _) = self.workspace.known().await else {
            return Ok(failed("nothing is held: there is nothing to commit"));
        };
        // Said before an approver is asked about something that could not be committed anyway.
        if !self
            .workspace
            .runner
            .is_unchanged(&id, &asked.digest)
            .await?
        {
            let why =
                "the change is not what that digest names any more: look at it with diff again";
            return Ok(failed(why));
        }
        let named = Digest::of_bytes(format!("commit\0{id}\0{arguments}").as_bytes());
        let effect = self.workspace.effect(&named).await?;
        let order = CommitWorkspace {
            effect: effect.clone(),
            epoch: 1,
            run: self.workspace.run().clone(),
            digest: asked.digest,
            paths: asked.paths,
            include_git: false,
        };
        let done = patiently(|| self.workspace.runner.commit(&id, &order)).await;
        if let Err(RunnerClientError::Held(result)) = done {
            if let ToolOutcome::NeedsApproval { challenge } = &result.outcome {
                self.workspace.waits(named, Some(&effect)).await;
                return Ok(held(challenge));
            }
            self.workspace.waits(named, None).await;
            let said = toolset::reply(*result, BYTES).map_err(|error| error.to_string())?;
            return Ok(reply(said, None));
        }
        self.workspace.waits(named, None).await;
        let done = done?;
        let left = patiently(|| self.workspace.runner.diff(&id)).await;
        if left.is_ok_and(|diff| diff.changes.is_empty()) {
            self.workspace.leave(true).await;
        }
        Ok(with_data(
            committed("committed", &done),
            data("committed", &done),
        ))
    }

    /// What becomes of the workspace.
    async fn settle(&self, arguments: &Value) -> Result<CallToolResult, CallFailure> {
        let asked: WorkspaceArguments = typed(arguments)?;
        let runner = &self.workspace.runner;
        let label = || {
            let label = asked.label.clone().filter(|label| !label.is_empty());
            label.ok_or_else(|| CallFailure("`label` is missing: which state?".to_owned()))
        };
        match asked.action {
            WorkspaceVerb::Status => {
                let id = self.workspace.id().await?;
                let view = patiently(|| runner.workspace(&id)).await?;
                let labels: Vec<&str> = view
                    .snapshots
                    .iter()
                    .map(|one| one.label.as_str())
                    .collect();
                let shown = format!(
                    "{} over {}; snapshots: {}",
                    view.id,
                    view.path,
                    if labels.is_empty() {
                        "none".to_owned()
                    } else {
                        labels.join(", ")
                    }
                );
                Ok(with_data(
                    shown,
                    json!({"workspace": view.id, "path": view.path,
                    "snapshots": labels}),
                ))
            }
            WorkspaceVerb::Snapshot => {
                let (id, label) = (self.workspace.id().await?, label()?);
                runner.snapshot(&id, &label).await?;
                Ok(text(format!("remembered as {label}")))
            }
            WorkspaceVerb::Restore => {
                let (id, label) = (self.workspace.id().await?, label()?);
                runner.restore(&id, &label).await?;
                Ok(text(format!("returned to {label}")))
            }
            WorkspaceVerb::Discard => {
                let (open, _) = self.workspace.known().await;
                if let Some(id) = open {
                    patiently(|| runner.discard(&id)).await?;
                    self.workspace.leave(false).await;
                }
                Ok(text(
                    "its change is dropped; the next call works on the files as they are",
                ))
            }
            WorkspaceVerb::UndoCommit => self.undo_commit().await,
        }
    }

    async fn undo_commit(&self) -> Result<CallToolResult, CallFailure> {
        let (_, Some(id)) = self.workspace.known().await else {
            return Ok(failed(
                "nothing was committed from here: there is nothing to take back",
            ));
        };
        let fresh = Digest::of_bytes(b"undo_commit");
        let order = UndoCommit {
            effect: self.workspace.effect(&fresh).await?,
            epoch: 1,
            run: self.workspace.run().clone(),
        };
        let done = patiently(|| self.workspace.runner.undo_commit(&id, &order)).await?;
        Ok(with_data(
            committed("taken back", &done),
            data("undone", &done),
        ))
    }
}

/// Tells the client how far something is, where it asked to be told.
async fn progress(context: &RequestContext<RoleServer>, step: u32, message: String) {
    if let Some(token) = context.meta.get_progress_token() {
        let told = ProgressNotificationParam::new(token, f64::from(step)).with_message(message);
        // A client that is gone is noticed by the call itself.
        let _ = context.peer.notify_progress(told).await;
    }
}

fn tested(result: TestRunResult, names: &[String]) -> Result<CallToolResult, CallFailure> {
    match result {
        TestRunResult::Ran { baseline } => Ok(reply(
            toolset::test_report(&baseline, None, names, BYTES),
            None,
        )),
        TestRunResult::Failed { message } => Ok(failed(message)),
        _ => Err(CallFailure("the runner answered something else".to_owned())),
    }
}

/// A change with its digest, what a reviewer should look at twice, and as much of the text as there is room for.
fn shown(diff: &DiffView) -> String {
    let mut shown = format!("digest {}\n", diff.digest);
    for change in &diff.changes {
        shown.push_str(&line(change));
    }
    shown.push('\n');
    shown.push_str(&toolset::diff_report(&diff.text, BYTES));
    if diff.truncated {
        shown.push_str("\n[the change is longer: commit puts all of it there]\n");
    }
    shown
}

fn line(change: &ChangeView) -> String {
    let mut line = format!("{} {}", change.what, change.path);
    if !change.risks.is_empty() {
        let _ = write!(line, " (look twice: {})", change.risks.join(", "));
    }
    if change.conflict {
        line.push_str(" (the user changed it too)");
    }
    if let Some(why) = &change.held_back {
        let _ = write!(line, " (not committed: {why})");
    }
    line.push('\n');
    line
}

fn committed(what: &str, done: &CommittedWorkspace) -> String {
    let mut shown = format!("{what}: {}", done.paths.join(", "));
    if !done.held_back.is_empty() {
        let _ = write!(shown, "\nheld back: {}", done.held_back.join(", "));
    }
    shown
}

fn data(status: &str, done: &CommittedWorkspace) -> Value {
    json!({"status": status, "digest": done.digest, "paths": done.paths, "held_back": done.held_back})
}
