//! From a request to what the service does, and back.
#![expect(
    clippy::result_large_err,
    reason = "a refusal is an answer like another, and moved once"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};
use lula_protocol::{
    ApprovalId, Code, EffectId, Principal, ToolCall, ToolOutcome, ToolResult, WorkspaceId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Shared;
use super::answer::{self, HttpBody};
use super::routes::{RunnerOperation, RunnerRoute};
use super::streams::{kind, line, run_tests, stream, wants_events};
use super::strict;
use crate::service::{GatedAct, RequestRefusal, RunnerService, StartedCommand};
use lula_runner_api::{
    RunnerHealth, SessionEvent, StartSession, ToolCallBatch, ToolCallBatchItem, ToolCallBatchMode,
    ToolCallBatchResult,
};

/// Longest body of a request, in bytes.
const REQUEST: usize = 16 << 20;
/// How long its body may take.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// How long a call waits for others to end before it is turned away.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most calls of a batch.
const BATCH: usize = 50;

type RouteAnswer = Result<Response<HttpBody>, Response<HttpBody>>;

pub(super) async fn route(
    route: &'static RunnerRoute,
    variable: &str,
    who: Option<Principal>,
    request: Request<Incoming>,
    shared: &Arc<Shared>,
) -> Response<HttpBody> {
    let answered = answered(route, variable, who, request, shared).await;
    answered.unwrap_or_else(|problem| problem)
}

#[allow(clippy::too_many_lines)] // one arm for each operation
async fn answered(
    route: &'static RunnerRoute,
    variable: &str,
    who: Option<Principal>,
    request: Request<Incoming>,
    shared: &Arc<Shared>,
) -> RouteAnswer {
    let name = || variable.to_owned();
    let Some(who) = who else {
        return Ok(health(shared));
    };
    match route.operation {
        RunnerOperation::Health => Ok(health(shared)),
        RunnerOperation::Metrics => {
            let service = Arc::clone(&shared.service);
            let (workspaces, sessions) = service.counts();
            let gauges = [
                ("lula_runner_workspaces", "Workspaces in use.", workspaces),
                (
                    "lula_runner_sessions",
                    "Commands that were started and not closed.",
                    sessions,
                ),
            ];
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            Ok(answer::text(kind, shared.metrics.text(&gauges)))
        }
        RunnerOperation::OpenApi => Ok(answer::json(200, &super::openapi())),
        RunnerOperation::Capabilities => done(route, shared, RunnerService::capabilities).await,
        RunnerOperation::OpenWorkspace => {
            let body = body(request).await?;
            done(route, shared, move |service| service.open(&body)).await
        }
        RunnerOperation::ListWorkspaces => done(route, shared, RunnerService::list).await,
        RunnerOperation::ViewWorkspace => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.view(&id)).await
        }
        RunnerOperation::RemoveWorkspace => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.discard(&id, true)).await
        }
        RunnerOperation::DiscardWorkspace => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.discard(&id, false)).await
        }
        RunnerOperation::DiffWorkspace => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.diff(&id)).await
        }
        RunnerOperation::CommitWorkspace => {
            let (id, body) = (workspace(variable)?, body(request).await?);
            let committed =
                blocking(shared, move |service| service.commit(&who, &id, &body)).await?;
            Ok(match committed {
                GatedAct::Done(committed) => answer::json(route.status, &committed),
                GatedAct::Held(result) => answer::result(&result),
            })
        }
        RunnerOperation::SnapshotWorkspace => {
            let (id, body) = (workspace(variable)?, body(request).await?);
            done(route, shared, move |service| service.snapshot(&id, &body)).await
        }
        RunnerOperation::RestoreWorkspace => {
            let (id, body) = (workspace(variable)?, body(request).await?);
            done(route, shared, move |service| service.restore(&id, &body)).await
        }
        RunnerOperation::ForkWorkspace => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.fork(&id)).await
        }
        RunnerOperation::UndoCommit => {
            let (id, body) = (workspace(variable)?, body(request).await?);
            done(route, shared, move |service| {
                service.undo_commit(&who, &id, &body)
            })
            .await
        }
        RunnerOperation::TakeChange => {
            let id = workspace(variable)?;
            done(route, shared, move |service| service.taken(&id)).await
        }
        RunnerOperation::Judge => {
            let (id, body) = (workspace(variable)?, body(request).await?);
            done(route, shared, move |service| service.judge(&id, &body)).await
        }
        RunnerOperation::RunTests => {
            let events = wants_events(request.headers());
            let (id, body) = (workspace(variable)?, body(request).await?);
            Ok(run_tests(shared, id, body, events))
        }
        RunnerOperation::OpenBranch => {
            let body = body(request).await?;
            done(route, shared, move |service| service.open_branch(&body)).await
        }
        RunnerOperation::ListBranches => done(route, shared, RunnerService::branches).await,
        RunnerOperation::ViewBranch => {
            let branch = name();
            done(route, shared, move |service| service.view_branch(&branch)).await
        }
        RunnerOperation::OpenOnBranch => {
            let body = body(request).await?;
            done(route, shared, move |service| service.open_on_branch(&body)).await
        }
        RunnerOperation::CommitAgentChange => {
            let call = body(request).await?;
            done(route, shared, move |service| {
                service.commit_agent_change(&who, &call)
            })
            .await
        }
        RunnerOperation::Merge => {
            let call = body(request).await?;
            done(route, shared, move |service| service.merge(&who, &call)).await
        }
        RunnerOperation::Fill => {
            let call = body(request).await?;
            done(route, shared, move |service| service.fill(&who, &call)).await
        }
        RunnerOperation::ArchiveBranch => {
            let branch = name();
            done(route, shared, move |service| {
                service.archive_branch(&branch)
            })
            .await
        }
        RunnerOperation::Deliver => {
            let call = body(request).await?;
            let delivered = blocking(shared, move |service| service.deliver(&who, &call)).await?;
            Ok(match delivered {
                GatedAct::Done(delivered) => answer::json(route.status, &delivered),
                GatedAct::Held(result) => answer::result(&result),
            })
        }
        RunnerOperation::Execute => {
            let call: ToolCall = body(request).await?;
            let result = execute(shared, who, call).await?;
            Ok(answer::result(&result))
        }
        RunnerOperation::BatchExecute => batch(shared, who, body(request).await?).await,
        RunnerOperation::StartSession => {
            let events = wants_events(request.headers());
            let body = body(request).await?;
            start(shared, who, body, events).await
        }
        RunnerOperation::ListSessions => {
            done(route, shared, |service| Ok(service.sessions())).await
        }
        RunnerOperation::ViewSession => {
            let session = name();
            done(route, shared, move |service| service.session(&session)).await
        }
        RunnerOperation::SessionEvents => {
            let events = wants_events(request.headers());
            let session = name();
            let heard = blocking(shared, move |service| service.listen(&session)).await?;
            Ok(stream(heard, events, false))
        }
        RunnerOperation::ControlSession => {
            let (session, body) = (name(), body(request).await?);
            blocking(shared, move |service| service.control(&session, &body)).await?;
            Ok(answer::nothing())
        }
        RunnerOperation::StopEffect => {
            let effect = effect(variable)?;
            let service = Arc::clone(&shared.service);
            // Has no place in the queue: what it ends may be what fills it.
            let stopped = tokio::task::spawn_blocking(move || service.stop_effect(&effect));
            match stopped.await {
                Ok(()) => Ok(answer::nothing()),
                Err(error) => Err(answer::problem(500, Code::Internal, &error.to_string())),
            }
        }
        RunnerOperation::CloseSession => {
            let session = name();
            blocking(shared, move |service| service.close_session(&session)).await?;
            Ok(answer::nothing())
        }
        RunnerOperation::ListApprovals => done(route, shared, RunnerService::approvals).await,
        RunnerOperation::ViewApproval => {
            let id = approval(variable)?;
            done(route, shared, move |service| service.approval(&id)).await
        }
        RunnerOperation::Vote => {
            let (id, token) = (approval(variable)?, body(request).await?);
            done(route, shared, move |service| service.vote(&id, &token)).await
        }
    }
}

fn health(shared: &Shared) -> Response<HttpBody> {
    let status = if shared.draining.load(Ordering::Relaxed) {
        "draining"
    } else {
        "ok"
    };
    let status = status.to_owned();
    answer::json(200, &RunnerHealth { status })
}

/// A path's id. One that is none names nothing.
fn workspace(text: &str) -> Result<WorkspaceId, Response<HttpBody>> {
    let id = text.parse::<WorkspaceId>();
    id.map_err(|error| answer::problem(404, Code::NoWorkspace, &error.to_string()))
}

fn effect(text: &str) -> Result<EffectId, Response<HttpBody>> {
    let id = text.parse::<EffectId>();
    id.map_err(|error| answer::problem(400, Code::BadRequest, &error.to_string()))
}

fn approval(text: &str) -> Result<ApprovalId, Response<HttpBody>> {
    let id = text.parse::<ApprovalId>();
    id.map_err(|error| answer::problem(404, Code::UnknownApproval, &error.to_string()))
}

/// The body of a request, within its limits, as exactly the type that is asked for.
async fn body<T: DeserializeOwned + Serialize>(
    request: Request<Incoming>,
) -> Result<T, Response<HttpBody>> {
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = "send the body as application/json";
        return Err(answer::problem(415, Code::BadRequest, message));
    }
    let too_large = || {
        let message = format!("a request has at most {REQUEST} bytes");
        answer::problem(413, Code::OverLimit, &message)
    };
    // What announces itself as too large is not waited for.
    if request.body().size_hint().lower() > REQUEST as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(request.into_body(), REQUEST).collect();
    let bytes: Bytes = match tokio::time::timeout(BODY_WITHIN, collected).await {
        Err(_) => {
            let message = "the body did not arrive in time";
            return Err(answer::problem(408, Code::BadRequest, message));
        }
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => return Err(answer::problem(400, Code::BadRequest, &error.to_string())),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    let unclear = |why: String| {
        let message = format!("the body is not understood: {why}");
        answer::problem(400, Code::BadRequest, &message)
    };
    let read = |error: serde_json::Error| unclear(error.to_string());
    let value: T = serde_json::from_slice(&bytes).map_err(read)?;
    let sent = serde_json::from_slice(&bytes).map_err(read)?;
    let understood = serde_json::to_value(&value).map_err(read)?;
    match strict::ignored(&sent, &understood) {
        None => Ok(value),
        Some(place) => Err(unclear(format!(
            "{place} would be ignored or read otherwise"
        ))),
    }
}

/// Runs what blocks on a thread that may. It goes on when the client hangs up: what was begun is
/// finished and written down.
pub(super) async fn blocking<T: Send + 'static>(
    shared: &Arc<Shared>,
    act: impl FnOnce(&Arc<RunnerService>) -> Result<T, RequestRefusal> + Send + 'static,
) -> Result<T, Response<HttpBody>> {
    let calls = Arc::clone(&shared.calls);
    let Ok(Ok(permit)) = tokio::time::timeout(PATIENCE, calls.acquire_owned()).await else {
        let message = "too many calls at once: send it again later";
        return Err(answer::problem(429, Code::Busy, message));
    };
    let service = Arc::clone(&shared.service);
    let span = tracing::Span::current();
    let acted = tokio::task::spawn_blocking(move || {
        let done = span.in_scope(|| act(&service));
        drop(permit);
        done
    });
    match acted.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(refusal)) => Err(answer::refusal(&refusal)),
        Err(_) => Err(answer::problem(
            500,
            Code::Internal,
            "the runner broke while it did this",
        )),
    }
}

async fn done<T: Serialize + Send + 'static>(
    route: &RunnerRoute,
    shared: &Arc<Shared>,
    act: impl FnOnce(&RunnerService) -> Result<T, RequestRefusal> + Send + 'static,
) -> RouteAnswer {
    let value = blocking(shared, move |service| act(service)).await?;
    Ok(answer::json(route.status, &value))
}

async fn execute(
    shared: &Arc<Shared>,
    who: Principal,
    call: ToolCall,
) -> Result<ToolResult, Response<HttpBody>> {
    let tool = call.action.tool();
    let result = blocking(shared, move |service| service.execute(&who, &call)).await;
    shared.metrics.tool(tool, counted(result.as_ref().ok()));
    result
}

const fn counted(result: Option<&ToolResult>) -> &'static str {
    match result {
        None => "refused",
        Some(result) => match result.outcome {
            ToolOutcome::Done { .. } => "done",
            ToolOutcome::Failed { .. } => "failed",
            ToolOutcome::Denied { .. } => "denied",
            ToolOutcome::NeedsApproval { .. } => "needs_approval",
        },
    }
}

async fn batch(shared: &Arc<Shared>, who: Principal, batch: ToolCallBatch) -> RouteAnswer {
    if batch.calls.is_empty() || batch.calls.len() > BATCH {
        let message = format!("a batch has 1 to {BATCH} calls");
        return Err(answer::problem(400, Code::OverLimit, &message));
    }
    // A number that a JSON reader could round is refused before anything is done.
    if let Some(error) = batch.calls.iter().find_map(|call| call.digest().err()) {
        let message = format!("a call has no digest: {error}");
        return Err(answer::problem(400, Code::BadRequest, &message));
    }
    let results = match batch.mode {
        // One trip to a blocking thread for all of them.
        ToolCallBatchMode::Ordered => {
            let shared_metrics = Arc::clone(shared);
            blocking(shared, move |service| {
                let mut results = Vec::new();
                for call in batch.calls {
                    let result = service.execute(&who, &call);
                    let tool = call.action.tool();
                    shared_metrics
                        .metrics
                        .tool(tool, counted(result.as_ref().ok()));
                    let goes_on = matches!(
                        &result,
                        Ok(ToolResult {
                            outcome: ToolOutcome::Done { .. },
                            ..
                        })
                    );
                    results.push(item(result));
                    if !goes_on {
                        break;
                    }
                }
                Ok(results)
            })
            .await?
        }
        ToolCallBatchMode::Parallel => {
            let calls = batch.calls.into_iter().map(|call| {
                let (shared, who) = (Arc::clone(shared), who.clone());
                tokio::spawn(async move {
                    let tool = call.action.tool();
                    let result =
                        blocking(&shared, move |service| Ok(service.execute(&who, &call))).await;
                    let result = result.unwrap_or_else(|_| {
                        Err(RequestRefusal::Busy("too many calls at once".to_owned()))
                    });
                    shared.metrics.tool(tool, counted(result.as_ref().ok()));
                    item(result)
                })
            });
            let mut results = Vec::new();
            for call in calls.collect::<Vec<_>>() {
                let broke =
                    |_| RequestRefusal::Internal("the runner broke while it did this".to_owned());
                results.push(
                    call.await
                        .map_err(broke)
                        .unwrap_or_else(|refusal| item(Err(refusal))),
                );
            }
            results
        }
    };
    Ok(answer::json(200, &ToolCallBatchResult { results }))
}

fn item(result: Result<ToolResult, RequestRefusal>) -> ToolCallBatchItem {
    match result {
        Ok(result) => ToolCallBatchItem::Result(Box::new(result)),
        Err(refusal) => ToolCallBatchItem::Problem(refusal.problem()),
    }
}

async fn start(
    shared: &Arc<Shared>,
    who: Principal,
    body: StartSession,
    events: bool,
) -> RouteAnswer {
    let background = body.background;
    match blocking(shared, move |service| service.start_session(&who, body)).await? {
        StartedCommand::Over(result)
            if matches!(
                result.outcome,
                ToolOutcome::Denied { .. } | ToolOutcome::NeedsApproval { .. }
            ) =>
        {
            Ok(answer::result(&result))
        }
        StartedCommand::Over(result) => {
            let bytes = line(&SessionEvent::Ended { result }, events);
            let once = futures_util::stream::once(async move { bytes });
            Ok(answer::stream(kind(events), Box::pin(once)))
        }
        StartedCommand::Running(heard) => Ok(stream(heard, events, !background)),
    }
}
