//! The hands of a run: a runner, asked through its client. Nothing here opens a workspace.

mod hired;
mod lines;
mod told;

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lula_agents::deeds::Taken;
use lula_agents::hands::{
    Consignment, Delivered, Effect, Footing, Harvest, Joined, Joining, Kept, Line, Listed, Listing,
    OverLine, Place, Refused, Said, Trial, TrialResult, workspace_of,
};
use lula_agents::task::Deliver;
use lula_agents::team::site_run;
use lula_agents::{Hands, HandsError, Watch, Work};
use lula_config::keys;
use lula_graph::RunState;
use lula_protocol::call::{ListFiles, ReadFile, Undo};
use lula_protocol::output::EntryKind;
use lula_protocol::{
    Action, Code, Details, Outcome, Output, ProtocolVersion, RunId, ToolCall, ToolResult,
    WorkspaceId,
};
use lula_runner::api::{
    BatchItem, BatchMode, CheckoutWanted, DeliverAll, DeliverChange, DeliverPart, DeliveredView,
    IntegrateChange, LayLine, LineStart, MergeTests, OpenAtLine, OpenLine, ProduceChange, START,
    TrialEvent, WorkspaceView,
};
use lula_runner::client::{Client, ClientError};
use lula_workspace::checkout;
pub(crate) use lula_workspace::checkout::Undone;
use lula_workspace::{Checkout, Git, Store};

pub(crate) use hired::Hired;
use told::{held, refused, said};

use crate::session::Session;

/// How long a runner that does not answer is asked again: one that was killed is started anew.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most files that are asked for at once.
const AT_ONCE: usize = 40;
/// Most pieces that one file is read in.
const PIECES: usize = 64;

/// Hands that are a runner.
#[derive(Debug, Clone)]
pub(crate) struct RunnerHands {
    client: Client,
}

impl RunnerHands {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Gives the space of a run back that is over. Nothing is lost: its change is in its log, and
    /// what was delivered is in the repository.
    pub(crate) async fn clear(&self, run: &RunId) -> Result<(), HandsError> {
        self.remove(&workspace_of(run)).await
    }

    /// Gives the space of everything back that agents did for a run that is over. What they
    /// produced is kept in one file.
    pub(crate) async fn clear_team(&self, known: &RunState<Work>) -> Result<(), HandsError> {
        let run = &known.progress.run;
        let agents = known.state.agents(run);
        for repo in 1..known.state.repositories() {
            self.clear(&site_run(run, repo)).await?;
        }
        if agents.is_empty() {
            return Ok(());
        }
        for (_, agent) in &agents {
            self.clear(agent).await?;
        }
        for repo in 0..known.state.repositories() {
            let Some(place) = known.state.place_of(repo) else {
                continue;
            };
            let line = Line {
                run: run.clone(),
                repository: known.state.repository(repo).to_owned(),
                base: place.commit.clone(),
            };
            let line = self.line(&line).await?;
            patiently(|| self.client.archive_line(&line)).await?;
        }
        Ok(())
    }

    /// The name of a line, which begins where it is first asked for.
    async fn line(&self, line: &Line) -> Result<String, HandsError> {
        let order = OpenLine {
            run: line.run.clone(),
            path: line.repository.clone(),
            commit: Some(line.base.clone()),
        };
        let view = patiently(|| self.client.open_line(&order)).await?;
        Ok(view.line)
    }

    async fn remove(&self, workspace: &WorkspaceId) -> Result<(), HandsError> {
        match self.client.remove(workspace).await {
            Ok(_) => Ok(()),
            // It was never opened, or is cleared already.
            Err(ClientError::Refused { problem, .. }) if problem.code == Code::NoWorkspace => {
                Ok(())
            }
            Err(error) => Err(trouble(error)),
        }
    }

    /// Calls a tool, and asks again while nobody answers: the same id never happens twice.
    async fn execute(&self, call: &ToolCall) -> Result<ToolResult, HandsError> {
        patiently(|| self.client.execute(call)).await
    }

    /// What a tool that only looks put out.
    async fn look(
        &self,
        effect: &Effect,
        workspace: &WorkspaceId,
        action: Action,
    ) -> Result<Result<Output, String>, HandsError> {
        let result = self.execute(&look(effect, workspace, action)).await?;
        output(result)
    }

    /// The rest of a file of which the first piece was read.
    async fn rest(
        &self,
        effect: &Effect,
        workspace: &WorkspaceId,
        path: &str,
        first: Output,
    ) -> Result<Option<String>, HandsError> {
        let mut text = String::new();
        let mut piece = first;
        for _ in 0..PIECES {
            let Some(Details::File {
                lines,
                to_line,
                binary: false,
                lossy: false,
                ..
            }) = piece.details
            else {
                return Ok(None);
            };
            text.push_str(&piece.text);
            if !piece.truncated || to_line >= lines {
                // A line that was cut is not the whole text.
                return Ok((!piece.truncated).then_some(text));
            }
            let more = Action::ReadFile(ReadFile {
                path: path.to_owned(),
                from_line: Some(to_line + 1),
                to_line: None,
            });
            match self.look(effect, workspace, more).await? {
                Ok(next) => piece = next,
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// A call that only looks. Its identity follows from the effect it is part of and what it asks for.
fn look(effect: &Effect, workspace: &WorkspaceId, action: Action) -> ToolCall {
    let part = effect.part(&serde_json::to_string(&action).unwrap_or_default());
    ToolCall {
        protocol: ProtocolVersion,
        effect: part.id,
        epoch: part.epoch,
        run: part.run,
        workspace: workspace.clone(),
        action,
    }
}

/// The output of a result, or why there is none.
fn output(result: ToolResult) -> Result<Result<Output, String>, HandsError> {
    match result.outcome {
        Outcome::Done { output } => Ok(Ok(output)),
        Outcome::Failed { message, .. } => Ok(Err(message)),
        Outcome::Denied { denials } => Ok(Err(refused(&denials).1)),
        Outcome::NeedsApproval { challenge } => Err(held(&challenge)),
    }
}

/// Asks until somebody answers, for a while.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T, HandsError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(error) if is_passing(&error) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            answered => return answered.map_err(trouble),
        }
    }
}

/// Whether the same may be answered otherwise in a moment.
fn is_passing(error: &ClientError) -> bool {
    error.is_worth_repeating()
        || matches!(error, ClientError::Refused { status, .. }
            if matches!(status.as_u16(), 429 | 503))
}

fn trouble(error: ClientError) -> HandsError {
    match error {
        // Ordering it again with the same id tells what came of it: nothing can be lost.
        ClientError::Unreachable { .. }
        | ClientError::Broken(_)
        | ClientError::NotStarted { .. } => HandsError::Unreachable(error.to_string()),
        ClientError::Refused { problem, .. } if problem.code == Code::Fenced => {
            HandsError::Unreachable(problem.message)
        }
        ClientError::Refused { problem, .. } => HandsError::Failed(problem.message),
        ClientError::Held(result) => match result.outcome {
            Outcome::NeedsApproval { challenge } => held(&challenge),
            Outcome::Denied { denials } => {
                let (by, why) = refused(&denials);
                HandsError::Refused { by, why }
            }
            _ => HandsError::Failed("the runner held it back".to_owned()),
        },
        ClientError::Nonsense(message) => HandsError::Failed(message),
    }
}

fn place(view: WorkspaceView) -> Result<Place, HandsError> {
    let Some(origin) = view.origin else {
        return Err(HandsError::Failed(format!(
            "{} is not the workspace of a commit",
            view.id
        )));
    };
    Ok(Place {
        workspace: view.id,
        commit: origin.commit,
        uncommitted: usize::try_from(origin.uncommitted).unwrap_or(usize::MAX),
        history: origin.history,
        ignored: origin.ignored,
    })
}

#[async_trait]
impl Hands for RunnerHands {
    async fn open(&self, run: &RunId, repository: &str) -> Result<Place, HandsError> {
        let title = format!("lula run {run}");
        let open = || {
            let wanted = CheckoutWanted {
                id: workspace_of(run),
                commit: None,
            };
            self.client.open_commit(repository, &title, wanted)
        };
        place(patiently(open).await?)
    }

    async fn adopt(&self, run: &RunId, of: &WorkspaceId) -> Result<(), HandsError> {
        let parent = patiently(|| self.client.workspace(of)).await?;
        let repository = parent.path.clone();
        let commit = place(parent)?.commit;
        let title = format!("lula run {run}");
        let open = || {
            let wanted = CheckoutWanted {
                id: workspace_of(run),
                commit: Some(commit.clone()),
            };
            self.client.open_commit(&repository, &title, wanted)
        };
        patiently(open).await.map(drop)
    }

    async fn files(&self, effect: &Effect, workspace: &WorkspaceId) -> Result<Listing, HandsError> {
        let list = Action::ListFiles(ListFiles {
            path: String::new(),
            glob: None,
            depth: None,
        });
        let output = self.look(effect, workspace, list).await?;
        let output = output.map_err(HandsError::Failed)?;
        let Some(Details::Files { entries }) = output.details else {
            return Err(HandsError::Failed("a listing without files".to_owned()));
        };
        let files = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::File)
            .map(|entry| Listed {
                path: entry.path,
                bytes: entry.bytes,
            });
        Ok(Listing {
            files: files.collect(),
            more: output.truncated,
        })
    }

    async fn fetch(
        &self,
        effect: &Effect,
        workspace: &WorkspaceId,
        paths: &[String],
    ) -> Result<Vec<Option<String>>, HandsError> {
        let mut texts = Vec::with_capacity(paths.len());
        for part in paths.chunks(AT_ONCE) {
            let calls: Vec<ToolCall> = part
                .iter()
                .map(|path| {
                    let read = Action::ReadFile(ReadFile {
                        path: path.clone(),
                        from_line: None,
                        to_line: None,
                    });
                    look(effect, workspace, read)
                })
                .collect();
            let batch = || self.client.batch(calls.clone(), BatchMode::Parallel);
            for (path, item) in part.iter().zip(patiently(batch).await?) {
                let found = match item {
                    BatchItem::Result(result) => output(*result)?,
                    BatchItem::Problem(problem) => Err(problem.message),
                };
                texts.push(match found {
                    Ok(first) => self.rest(effect, workspace, path, first).await?,
                    Err(_) => None,
                });
            }
        }
        Ok(texts)
    }

    async fn call(&self, call: &ToolCall) -> Result<Said, HandsError> {
        said(self.execute(call).await?)
    }

    async fn stop(&self, effect: &Effect) {
        // A runner that does not answer ends with its commands.
        let _ = self.client.stop(&effect.id).await;
    }

    async fn reset(&self, effect: &Effect, workspace: &WorkspaceId) -> Result<(), HandsError> {
        let call = ToolCall {
            protocol: ProtocolVersion,
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            workspace: workspace.clone(),
            action: Action::Undo(Undo {
                to: Some(START.to_owned()),
            }),
        };
        let said = said(self.execute(&call).await?)?;
        match said {
            Said {
                refused: Some(by),
                text: why,
                ..
            } => Err(HandsError::Refused { by, why }),
            Said {
                failed: true, text, ..
            } => Err(HandsError::Failed(text)),
            _ => Ok(()),
        }
    }

    async fn change(&self, workspace: &WorkspaceId) -> Result<Taken, HandsError> {
        let taken = patiently(|| self.client.taken(workspace)).await?;
        Ok(Taken {
            diff: taken.diff,
            files: taken.files,
            tree: taken.tree,
        })
    }

    async fn trial(
        &self,
        workspace: &WorkspaceId,
        trial: &Trial,
        watch: &Watch,
    ) -> Result<TrialResult, HandsError> {
        let listen = || async {
            let mut events = self.client.trial(workspace, trial).await?;
            while let Some(event) = events.next().await? {
                match event {
                    TrialEvent::Progress { text } => watch(&text),
                    TrialEvent::Ended { result } => return Ok(*result),
                }
            }
            let message = "the stream ended before the trial".to_owned();
            Err(ClientError::Broken(message))
        };
        // Nothing of a trial stays: one that was cut off is begun anew.
        patiently(listen).await
    }

    async fn open_over(&self, wanted: &OverLine) -> Result<Place, HandsError> {
        let line = self.line(&wanted.line).await?;
        let order = OpenAtLine {
            id: wanted.workspace.clone(),
            title: format!("lula run {}", wanted.line.run),
            write_scope: wanted.scope.clone(),
            contains: wanted.contains.clone(),
            start: match &wanted.footing {
                Footing::Line => LineStart::Line,
                Footing::Merge { commit } => LineStart::Merge {
                    commit: commit.clone(),
                },
            },
        };
        place(patiently(|| self.client.open_at_line(&line, &order)).await?)
    }

    async fn harvest(&self, effect: &Effect, order: &Harvest) -> Result<Kept, HandsError> {
        let line = self.line(&order.line).await?;
        let wanted = ProduceChange {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            task: order.job.to_string(),
            workspace: order.workspace.clone(),
            tree: order.tree,
            message: order.message.clone(),
            at: order.at,
        };
        let produced = patiently(|| self.client.produce(&line, &wanted)).await?;
        Ok(Kept {
            commit: produced.commit,
            outside: produced.outside,
        })
    }

    async fn join(&self, effect: &Effect, order: &Joining) -> Result<Joined, HandsError> {
        let line = self.line(&order.line).await?;
        let wanted = IntegrateChange {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            task: order.job.to_string(),
            commit: order.commit.clone(),
            tests: order.before.clone().map(|before| MergeTests {
                command: order.tests.clone(),
                folder: order.folder.clone(),
                before,
                accept: order.accept.clone(),
                tests_ms: order.tests_ms,
            }),
            message: order.message.clone(),
            at: order.at,
        };
        let came = patiently(|| self.client.integrate(&line, &wanted)).await?;
        Ok(lines::joined(came))
    }

    async fn lay(
        &self,
        effect: &Effect,
        line: &Line,
        workspace: &WorkspaceId,
    ) -> Result<(), HandsError> {
        let name = self.line(line).await?;
        let order = LayLine {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            workspace: workspace.clone(),
        };
        patiently(|| self.client.lay(&name, &order)).await.map(drop)
    }

    async fn deliver(&self, effect: &Effect, order: &Consignment) -> Result<Delivered, HandsError> {
        if !matches!(order.deliver, Deliver::Branch | Deliver::Worktree) {
            return Ok(Delivered {
                branch: None,
                commit: None,
                directory: None,
                workspace: None,
            });
        }
        let wanted = DeliverChange {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            tree: order.tree,
            branch: order.branch.clone(),
            message: order.message.clone(),
            at: order.at,
            into_files: order.deliver == Deliver::Worktree,
        };
        let arrived = patiently(|| self.client.deliver(&order.workspace, &wanted)).await?;
        Ok(delivered(arrived))
    }

    async fn deliver_all(
        &self,
        effect: &Effect,
        orders: &[Consignment],
    ) -> Result<Vec<Delivered>, HandsError> {
        let wanted = DeliverAll {
            effect: effect.id.clone(),
            epoch: effect.epoch,
            run: effect.run.clone(),
            parts: orders.iter().map(part).collect(),
        };
        let arrived = patiently(|| self.client.deliver_all(&wanted)).await?;
        Ok(arrived.parts.into_iter().map(delivered).collect())
    }
}

fn delivered(view: DeliveredView) -> Delivered {
    Delivered {
        branch: view.branch,
        commit: view.commit,
        directory: view.directory,
        workspace: view.workspace,
    }
}

fn part(order: &Consignment) -> DeliverPart {
    DeliverPart {
        workspace: order.workspace.clone(),
        tree: order.tree,
        branch: order.branch.clone(),
        message: order.message.clone(),
        at: order.at,
    }
}

/// Takes deliveries to these repositories back, if nobody has built on any of them: all, or none.
pub(crate) fn undo(
    git: &Git,
    delivered: &[(&Path, &Delivered)],
) -> Result<Vec<Undone>, HandsError> {
    let branch = |(repository, delivered): &(&Path, &Delivered)| {
        let (name, commit) = (delivered.branch.as_ref()?, delivered.commit.as_ref()?);
        Some(checkout::Branch::named(repository, name, commit))
    };
    let branches: Option<Vec<_>> = delivered.iter().map(branch).collect();
    let Some(branches) = branches else {
        let message = "the run delivered nothing that could be taken back";
        return Err(HandsError::Failed(message.to_owned()));
    };
    checkout::undo(git, &branches).map_err(|error| HandsError::Failed(error.to_string()))
}

/// Gives the space of a run back that is over and that no runner works on, in this process.
pub(crate) fn clear_here(run: &RunId, git: &Git, session: &Session) -> Result<(), HandsError> {
    let failed = |error: &dyn std::fmt::Display| HandsError::Failed(error.to_string());
    let state = session
        .state_directory()
        .map_err(|failure| HandsError::Failed(failure.message))?;
    let id = workspace_of(run);
    let store = Store::at(&state, session.config.get(&keys::WORKSPACE_MAX_BYTES));
    if let Ok(workspace) = store.open(&id) {
        workspace.discard(true).map_err(|error| failed(&error))?;
    }
    match Checkout::find(&state, &id, git) {
        Ok(checkout) => checkout.clear().map_err(|error| failed(&error)),
        Err(_) => Ok(()),
    }
}

/// Who said no.
pub(crate) const fn by_whom(by_people: bool) -> Refused {
    if by_people {
        Refused::ByPeople
    } else {
        Refused::ByRule
    }
}
