//! The workspace of one client: opened with its first call, removed with its end where nothing is held in it.

use std::path::Path;
use std::time::{Duration, Instant};

use lula_host::HostError;
use lula_host::record::now_ms;
use lula_protocol::{
    Digest, EffectId, ProtocolVersion, RunId, ToolAction, ToolCall, ToolResult, WorkspaceId,
};
use lula_runner_api::client::{RunnerClient, RunnerClientError};
use tokio::sync::Mutex;

/// How long a runner that does not answer is asked again: one that was killed is started anew.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most calls that wait for approvals at one time; the oldest is forgotten, and then asks anew.
const WAITING: usize = 64;

/// What a client asks of, and its runner.
pub(super) struct ClientWorkspace {
    pub(super) runner: RunnerClient,
    directory: String,
    /// What the client's acts are recorded under.
    run: RunId,
    state: Mutex<WorkspaceOfClient>,
}

#[derive(Default)]
struct WorkspaceOfClient {
    title: String,
    open: Option<WorkspaceId>,
    /// The one whose change was committed last: what an undo takes back.
    committed: Option<WorkspaceId>,
    /// Calls that wait for an approval, by what they ask: sent again they are the same effect.
    waiting: Vec<(Digest, EffectId)>,
}

/// An id of something that is new.
fn fresh() -> Result<[u8; 10], HostError> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| HostError::Internal(error.to_string()))?;
    Ok(random)
}

/// Asks until the runner answers, for a while: no effect happens twice.
pub(super) async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T, RunnerClientError>
where
    F: Future<Output = Result<T, RunnerClientError>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(error) if error.is_worth_repeating() && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            answered => return answered,
        }
    }
}

impl ClientWorkspace {
    pub(super) fn new(runner: RunnerClient, directory: &Path) -> Result<Self, HostError> {
        Ok(Self {
            runner,
            directory: directory.to_string_lossy().into_owned(),
            run: RunId::from_parts(now_ms(), fresh()?),
            state: Mutex::default(),
        })
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// What people see of the workspace, as the client calls itself: shown as data, never believed.
    pub(super) async fn call_it(&self, client: &str) {
        let mut state = self.state.lock().await;
        if state.title.is_empty() {
            let plain = client.chars().filter(char::is_ascii_graphic).take(40);
            state.title = format!("mcp: {}", plain.collect::<String>());
        }
    }

    /// The workspace, opened where there is none yet.
    pub(super) async fn id(&self) -> Result<WorkspaceId, RunnerClientError> {
        let mut state = self.state.lock().await;
        if let Some(id) = &state.open {
            return Ok(id.clone());
        }
        // Not asked again: what a cut-off request opened would be left behind.
        let view = self.runner.open(&self.directory, &state.title).await?;
        state.open = Some(view.id.clone());
        Ok(view.id)
    }

    /// The one that is open, and the one that was committed last.
    pub(super) async fn known(&self) -> (Option<WorkspaceId>, Option<WorkspaceId>) {
        let state = self.state.lock().await;
        (state.open.clone(), state.committed.clone())
    }

    /// The next call works on a new one.
    pub(super) async fn leave(&self, committed: bool) {
        let mut state = self.state.lock().await;
        let left = state.open.take();
        if committed {
            state.committed = left;
        }
    }

    /// The effect that a call asks for: a new one, unless the same waits for an approval.
    pub(super) async fn effect(&self, asked: &Digest) -> Result<EffectId, HostError> {
        let state = self.state.lock().await;
        let waiting = state.waiting.iter().find(|(digest, _)| digest == asked);
        match waiting {
            Some((_, effect)) => Ok(effect.clone()),
            None => Ok(EffectId::from_parts(now_ms(), fresh()?)),
        }
    }

    /// Remembers that a call waits for an approval, or that it does no more.
    pub(super) async fn waits(&self, asked: Digest, effect: Option<&EffectId>) {
        let mut state = self.state.lock().await;
        state.waiting.retain(|(digest, _)| *digest != asked);
        if let Some(effect) = effect {
            if state.waiting.len() >= WAITING {
                state.waiting.remove(0);
            }
            state.waiting.push((asked, effect.clone()));
        }
    }

    /// Does an act of the workspace, once.
    pub(super) async fn act(
        &self,
        action: ToolAction,
        effect: EffectId,
    ) -> Result<ToolResult, RunnerClientError> {
        let call = ToolCall {
            protocol: ProtocolVersion,
            effect,
            epoch: 1,
            run: self.run.clone(),
            workspace: self.id().await?,
            action,
        };
        patiently(|| self.runner.execute(&call)).await
    }

    /// Removes the workspace where it holds nothing. Tells which one is left for the operator to decide about.
    pub(super) async fn close(&self) -> Option<String> {
        let id = self.state.lock().await.open.take()?;
        match self.runner.diff(&id).await {
            Ok(diff) if diff.changes.is_empty() => {
                if let Err(error) = self.runner.remove(&id).await {
                    tracing::warn!(workspace = %id, %error, "an empty workspace is left behind");
                }
                None
            }
            // What cannot be looked at is not thrown away.
            _ => Some(id.to_string()),
        }
    }
}
