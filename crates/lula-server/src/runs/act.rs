//! What people have done with a run: end it, go on with it, choose, say something, take it back.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_host::drive::signals::{self, Note};
use lula_host::drive::{consent, worker};
use lula_host::undo::{self, UndoOutcome};
use lula_protocol::BudgetAmounts;
use lula_store::{RunRow, RunStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::begin::{RunLimits, check_task};
use super::views::RunView;
use crate::audit::{ServerAct, record};
use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::{json, json_with};

/// Longest reason for the end of a run, in characters.
const LONGEST: usize = 1000;

/// Why a run is ended.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRun {
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// How a run goes on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRun {
    /// Limits that are higher than before.
    #[serde(default)]
    limits: RunLimits,
}

/// One of what a run offers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerRun {
    choice: String,
}

/// A note to the model that works on a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SteerRun {
    #[schema(min_length = 1, max_length = 4000)]
    text: String,
    /// Only the agent of this step hears it.
    task: Option<String>,
}

/// Who hears a note.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SteeredView {
    run: String,
    /// Whether a model works on the run at all.
    model: bool,
    /// The steps whose agents hear it with their next turn.
    agents: Vec<String>,
}

/// What was taken back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndoneView {
    run: String,
    /// Branches that are gone, and where their commits are kept.
    branches: Vec<UndoneBranch>,
    /// Files that are as before.
    files: Vec<String>,
}

/// A branch that is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndoneBranch {
    branch: String,
    /// The commit it named.
    commit: String,
    /// What brings it back.
    kept_as: String,
}

/// Where a run is taken up anew.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkRun {
    /// How many of its events are kept.
    #[schema(minimum = 1)]
    at: u64,
    /// Another task, for what comes after them.
    #[schema(max_length = 65536)]
    task: Option<String>,
    /// Another model, of `models.use`.
    model: Option<String>,
}

/// Writes down what is about to be done to a run.
async fn note(
    what: &'static str,
    row: &RunRow,
    call: &RouteCall,
    state: &Arc<ServerState>,
) -> ApiResult<()> {
    let act = ServerAct {
        tool: what,
        about: format!("asked for it of {}", row.run),
        run: Some(&row.run),
    };
    record(&act, &call.digestible(what), &call.identity, state).await
}

/// The handler of `POST /v1/runs/{run}/cancel`.
pub(crate) async fn cancel(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: CancelRun = call.json_or_default()?;
    if asked.reason.chars().count() > LONGEST {
        return Err(ApiRefusal::bad(format!(
            "the reason is longer than {LONGEST} characters"
        )));
    }
    let row = state.row(&call.name, &call.identity).await?;
    note("server.cancel_run", &row, &call, &state).await?;
    let by = &call.identity.principal;
    signals::cancel(
        &row.run,
        &asked.reason,
        by,
        &state.store,
        &state.installation,
    )
    .await?;
    state.records.over(&row.run)?;
    let row = state.row(&call.name, &call.identity).await?;
    json(&RunView::of(&row, &state).await?)
}

/// Has a run driven from here on, also one that was begun elsewhere.
async fn go_on(row: &RunRow, call: &RouteCall, state: &Arc<ServerState>) -> ApiResult<RunView> {
    let repository = state.summaries.repository(row, state).await;
    let repository = repository.unwrap_or_default();
    state
        .records
        .adopt(&row.run, &call.identity.principal, &repository)?;
    state.drivers.drive(&row.run);
    RunView::of(row, state).await
}

/// The handler of `POST /v1/runs/{run}/resume`.
pub(crate) async fn resume(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: ResumeRun = call.json_or_default()?;
    let row = state.row(&call.name, &call.identity).await?;
    if row.status == RunStatus::Done {
        return Err(lula_host::HostError::RunOver(row.run).into());
    }
    note("server.resume_run", &row, &call, &state).await?;
    let known = state.reader.show(&row.run, None).await?;
    let (limits, by) = (BudgetAmounts::from(asked.limits), &call.identity.principal);
    worker::prepare(&state.reader, &known, &limits, None, by).await?;
    json_with(202, &go_on(&row, &call, &state).await?)
}

/// The handler of `POST /v1/runs/{run}/answers`.
pub(crate) async fn answer(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: AnswerRun = call.json()?;
    let row = state.row(&call.name, &call.identity).await?;
    let known = state.reader.show(&row.run, None).await?;
    let signal = consent::choose(&known, &asked.choice, &call.identity.principal)?;
    note("server.answer_run", &row, &call, &state).await?;
    state.reader.send(&row.run, &signal).await?;
    json_with(202, &go_on(&row, &call, &state).await?)
}

/// The handler of `POST /v1/runs/{run}/notes`.
pub(crate) async fn steer(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: SteerRun = call.json()?;
    let text = Note::new(&asked.text)?;
    let row = state.row(&call.name, &call.identity).await?;
    note("server.steer_run", &row, &call, &state).await?;
    let by = &call.identity.principal;
    let task = asked.task.as_deref();
    let heard = signals::steer(&row.run, task, text, by, &state.store).await?;
    let view = SteeredView {
        run: row.run.to_string(),
        model: heard.model,
        agents: heard.agents,
    };
    json_with(202, &view)
}

/// The handler of `POST /v1/runs/{run}/undo`.
pub(crate) async fn undo(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let row = state.row(&call.name, &call.identity).await?;
    note("server.undo_run", &row, &call, &state).await?;
    let undone = undo::undo(&row.run, Arc::clone(&state.store), &state.installation).await?;
    let mut view = UndoneView {
        run: row.run.to_string(),
        branches: Vec::new(),
        files: Vec::new(),
    };
    match undone {
        UndoOutcome::Files { files, .. } => view.files = files,
        UndoOutcome::Branches(branches) => {
            let one = |(_, one): (_, lula_host::runner_client::UndoneDelivery)| UndoneBranch {
                branch: one.branch,
                commit: one.commit,
                kept_as: one.kept_as,
            };
            view.branches = branches.into_iter().map(one).collect();
        }
    }
    json(&view)
}

/// The handler of `POST /v1/runs/{run}/fork`. The fork waits: to resume it has it driven.
pub(crate) async fn fork(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: ForkRun = call.json()?;
    let row = state.row(&call.name, &call.identity).await?;
    let name = state.summaries.repository(&row, &state).await;
    let repository = state.repositories.meant(name.as_deref(), &call.identity)?;
    if let Some(model) = &asked.model {
        repository.offers(model)?;
    }
    if let Some(task) = &asked.task {
        check_task(task)?;
    }
    note("server.fork_run", &row, &call, &state).await?;
    let given = [("task", asked.task), ("model", asked.model)].into_iter();
    let set: Vec<_> = given
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect();
    let fork = state.reader.fork(&row.run, asked.at, &set).await?;
    let by = &call.identity.principal;
    state.records.adopt(&fork, by, &repository.name)?;
    state.records.over(&fork)?;
    let row = state.row(fork.as_str(), &call.identity).await?;
    json_with(201, &RunView::of(&row, &state).await?)
}
