//! `POST /v1/runs`: from a request to a run that is driven.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use lula_agents::route::TaskLane;
use lula_agents::team::TeamPolicy;
use lula_agents::{CoderChoice, DeliverMode, RunTask};
use lula_graph::EngineError;
use lula_host::task::{ApprovalMode, TaskRequest, recall};
use lula_host::{HostError, drive};
use lula_protocol::{BudgetAmounts, BudgetDimension, Digest, Principal, RunId};
use lula_store::StoreError;
use serde::Deserialize;
use utoipa::ToSchema;

use super::views::RunView;
use crate::audit::{ServerAct, record};
use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::records::RunReservation;
use crate::repositories::RegisteredRepository;
use crate::state::ServerState;
use crate::text::json_with;

/// Longest text of a task, in characters.
const LONGEST: usize = 64 << 10;
/// Most commands, models or tries that a request may name.
const MOST: usize = 32;
const LONGEST_KEY: usize = 128;

/// How a run goes about its task.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunLane {
    /// By the text of the task.
    #[default]
    Auto,
    /// Without a plan before the work.
    Interactive,
    /// With a plan first.
    Deep,
}

/// When people are asked before a change is delivered. Rules may ask for more, never for less.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunConsent {
    /// Where the rules say so.
    #[default]
    ByRules,
    /// Before every delivery of a change.
    Always,
    /// Also where the change is not likely good.
    UnlessSure,
}

/// Where a change goes.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunDelivery {
    /// Onto a branch of its own.
    #[default]
    Branch,
    /// Nowhere but into the record, as a patch.
    Patch,
    /// Nowhere: the run ends with its verdict.
    None,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunLimits {
    /// Money, in millionths of a US dollar.
    pub(crate) micro_usd: Option<u64>,
    /// Requests sent to models.
    pub(crate) model_calls: Option<u64>,
    /// Tokens written by models.
    pub(crate) output_tokens: Option<u64>,
}

/// A run to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRun {
    /// What is to be done.
    #[schema(min_length = 1, max_length = 65536)]
    task: String,
    /// A registered repository; may be left out where there is one.
    repository: Option<String>,
    /// Whether the task is failing tests that are to pass.
    #[serde(default)]
    repair: bool,
    /// The command that runs the tests, in the sandbox; the detected one where it is left out.
    tests: Option<String>,
    /// Commands that must succeed when it is done, in the sandbox.
    #[serde(default)]
    #[schema(max_items = 32)]
    accept: Vec<String>,
    /// Models of `models.use`, the preferred one first; all of them where it is left out.
    #[serde(default)]
    #[schema(max_items = 32)]
    models: Vec<String>,
    #[serde(default)]
    lane: RunLane,
    /// How many agents share a plan.
    #[schema(minimum = 1, maximum = 16)]
    agents: Option<u32>,
    /// How many candidates try it.
    #[schema(minimum = 2, maximum = 5)]
    best_of: Option<u32>,
    #[serde(default)]
    deliver: RunDelivery,
    #[serde(default)]
    consent: RunConsent,
    /// Most retries after a failed attempt.
    #[schema(maximum = 20)]
    max_loops: Option<u32>,
    /// Most turns of a model in one attempt.
    #[schema(minimum = 1, maximum = 500)]
    max_turns: Option<u32>,
    #[serde(default)]
    limits: RunLimits,
}

impl From<RunLimits> for BudgetAmounts {
    fn from(limits: RunLimits) -> Self {
        let given = [
            (BudgetDimension::MicroUsd, limits.micro_usd),
            (BudgetDimension::ModelCalls, limits.model_calls),
            (BudgetDimension::OutputTokens, limits.output_tokens),
        ];
        let given = given.into_iter();
        given
            .filter_map(|(dimension, limit)| Some((dimension, limit?)))
            .collect()
    }
}

fn within(what: &str, number: Option<u32>, range: std::ops::RangeInclusive<u32>) -> ApiResult<()> {
    match number {
        Some(number) if !range.contains(&number) => {
            let (least, most) = (range.start(), range.end());
            Err(ApiRefusal::bad(format!(
                "{what} is a number from {least} to {most}"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses a task that says nothing, or too much.
pub(super) fn check_task(task: &str) -> ApiResult<()> {
    if task.trim().is_empty() || task.chars().count() > LONGEST {
        return Err(ApiRefusal::bad(format!(
            "task is a text of 1 to {LONGEST} characters"
        )));
    }
    Ok(())
}

impl CreateRun {
    fn check(&self) -> ApiResult<()> {
        check_task(&self.task)?;
        if self.accept.len() > MOST || self.models.len() > MOST {
            return Err(ApiRefusal::bad(format!(
                "accept and models name {MOST} at most"
            )));
        }
        within("agents", self.agents, 1..=16)?;
        within("best_of", self.best_of, 2..=5)?;
        within("max_loops", self.max_loops, 0..=20)?;
        within("max_turns", self.max_turns, 1..=500)?;
        if self.agents.is_some() && self.best_of.is_some() {
            return Err(ApiRefusal::bad("agents and best_of do not go together"));
        }
        Ok(())
    }

    /// What the command line would ask for. Models are those of the configuration: a request names no
    /// place of its own that a key would be sent to.
    fn request(
        &self,
        repository: &RegisteredRepository,
        traceparent: Option<&str>,
    ) -> ApiResult<TaskRequest> {
        for model in &self.models {
            repository.offers(model)?;
        }
        Ok(TaskRequest {
            text: self.task.clone(),
            repositories: vec![repository.path.clone()],
            repair: self.repair,
            tests: self.tests.clone(),
            accept: self.accept.clone(),
            finish: Vec::new(),
            models: self.models.clone(),
            effort: None,
            judges: Vec::new(),
            lane: match self.lane {
                RunLane::Auto => None,
                RunLane::Interactive => Some(TaskLane::Interactive),
                RunLane::Deep => Some(TaskLane::DeepPlanning),
            },
            team: self.agents.map(|at_once| TeamPolicy {
                at_once,
                plan_only: false,
                fail_fast: false,
                commit_per_task: true,
                reviewed: true,
            }),
            best_of: self.best_of,
            coder: CoderChoice::Auto,
            deliver: match self.deliver {
                RunDelivery::Branch => DeliverMode::Branch,
                RunDelivery::Patch => DeliverMode::Patch,
                RunDelivery::None => DeliverMode::None,
            },
            approval: match self.consent {
                RunConsent::ByRules => ApprovalMode::ByRules,
                RunConsent::Always => ApprovalMode::First,
                RunConsent::UnlessSure => ApprovalMode::Unsure,
            },
            max_loops: self.max_loops.unwrap_or(3),
            max_turns: self.max_turns.unwrap_or(40),
            search: Duration::from_mins(2),
            traceparent: traceparent.map(str::to_owned),
        })
    }
}

/// The key that makes a repeated request the same one.
fn idempotency_key(call: &RouteCall) -> ApiResult<Option<&str>> {
    let key = call.header("idempotency-key")?;
    let plain = |key: &&str| {
        let fits = (1..=LONGEST_KEY).contains(&key.len());
        fits && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match key {
        None => Ok(None),
        Some(key) if plain(&key) => Ok(Some(key)),
        Some(_) => Err(ApiRefusal::bad(format!(
            "Idempotency-Key is 1 to {LONGEST_KEY} printable characters without spaces"
        ))),
    }
}

/// Requests whose runs are being begun: a repeat of one waits until it is.
static UNDER_WAY: Mutex<Option<HashSet<(Principal, String)>>> = Mutex::new(None);

/// Holds the key of a request while its run is begun.
struct HeldKey(Option<(Principal, String)>);

impl HeldKey {
    fn take(by: &Principal, key: Option<&str>) -> ApiResult<Self> {
        let Some(key) = key else {
            return Ok(Self(None));
        };
        let held = (by.clone(), key.to_owned());
        let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.get_or_insert_default().insert(held.clone()) {
            let text = "a request with this Idempotency-Key is under way";
            return Err(ApiRefusal::busy(429, text, 1));
        }
        Ok(Self(Some(held)))
    }
}

impl Drop for HeldKey {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
            all.get_or_insert_default().remove(held);
        }
    }
}

/// The handler of `POST /v1/runs`.
pub(crate) async fn create(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let asked: CreateRun = call.json()?;
    asked.check()?;
    let repository = state
        .repositories
        .meant(asked.repository.as_deref(), &call.identity)?;
    let request = asked.request(repository, call.header("traceparent").ok().flatten())?;
    if !state.drivers.has_room() {
        let text = "as many runs wait as server.queue allows";
        return Err(ApiRefusal::busy(503, text, 10));
    }
    let by = &call.identity.principal;
    let key = idempotency_key(&call)?;
    let _held = HeldKey::take(by, key)?;
    let fresh = drive::fresh()?;
    let known = state.records.reserve(&RunReservation {
        run: &fresh,
        by,
        repository: &repository.name,
        key,
        request: Digest::of_bytes(&call.body),
    })?;
    let run = known.clone().unwrap_or(fresh);
    // A run whose place was taken just before the server died has no log yet.
    let is_there = state.store.run(&run).await?.is_some();
    if !is_there {
        let begun = begin(&run, request, &asked, repository, &call, &state).await;
        if let Err(refusal) = begun {
            state.records.release(&run)?;
            return Err(refusal);
        }
        state.metrics.runs_begun.inc();
    }
    state.drivers.drive(&run);
    let row = state.row(run.as_str(), &call.identity).await?;
    let mut response = json_with(201, &RunView::of(&row, &state).await?)?;
    let headers = response.headers_mut();
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{run}")) {
        headers.insert("location", place);
    }
    if is_there {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

async fn begin(
    run: &RunId,
    request: TaskRequest,
    asked: &CreateRun,
    repository: &RegisteredRepository,
    call: &RouteCall,
    state: &Arc<ServerState>,
) -> ApiResult<()> {
    let installation = Arc::clone(&repository.installation);
    let made = tokio::task::spawn_blocking({
        let installation = Arc::clone(&installation);
        move || request.task(&installation)
    });
    let made = made.await.map_err(|error| ApiRefusal::internal(&error))?;
    let mut task: RunTask = made?;
    recall(&mut task, Arc::clone(&state.store), &installation).await?;
    let act = ServerAct {
        tool: "server.create_run",
        about: format!("asked to begin {run} in {}", repository.name),
        run: Some(run),
    };
    record(&act, &call.digestible("create_run"), &call.identity, state).await?;
    match drive::begin_as(run.clone(), &state.reader, &task, asked.limits.into()).await {
        // The same request began it a moment ago.
        Ok(_) | Err(HostError::Engine(EngineError::Store(StoreError::RunExists(_)))) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<CreateRun, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn nothing_of_a_request_can_be_a_way_around_a_question() {
        for field in [
            r#""approve": "auto""#,
            r#""consent": "never""#,
            r#""consent": "beforehand""#,
            r#""skip_approval": true"#,
            r#""by": "local:0""#,
            r#""deliver": "worktree""#,
            r#""path": "/etc""#,
            r#""finish": ["true"]"#,
        ] {
            let text = format!(r#"{{"task": "x", {field}}}"#);
            assert!(asked(&text).is_err(), "{field}");
        }
    }

    #[test]
    fn numbers_have_bounds_and_texts_have_lengths() {
        let refused = |text: &str| asked(text).unwrap().check().is_err();
        assert!(!refused(r#"{"task": "x"}"#));
        for bad in [
            r#"{"task": " "}"#,
            r#"{"task": "x", "agents": 0}"#,
            r#"{"task": "x", "agents": 17}"#,
            r#"{"task": "x", "best_of": 1}"#,
            r#"{"task": "x", "max_turns": 0}"#,
            r#"{"task": "x", "agents": 2, "best_of": 2}"#,
        ] {
            assert!(refused(bad), "{bad}");
        }
    }
}
