//! The change of a run: its files and hunks, read from the unified diff that is on record.

mod diff;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_host::report::RunReport;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::RouteCall;
use crate::problem::ApiResult;
use crate::runs::OpenDocument;
use crate::state::ServerState;
use crate::text::{json, with};
pub(crate) use diff::ChangedFile;

/// What a run changes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeSetView {
    run: String,
    files: Vec<ChangedFile>,
    /// Lines that are added.
    added: usize,
    /// Lines that are taken away.
    removed: usize,
    /// What the tests say of it.
    verdict: Option<OpenDocument>,
    /// Where the change was delivered.
    delivered: Option<OpenDocument>,
}

/// The handler of `GET /v1/runs/{run}/changes`.
pub(crate) async fn get(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let known = state.known(&call.name, &call.identity).await?;
    let report = RunReport::of(&known);
    let files = diff::files(&report.diff);
    let document = |value: serde_json::Value| (!value.is_null()).then_some(OpenDocument(value));
    let value = |value: Result<serde_json::Value, _>| value.unwrap_or_default();
    json(&ChangeSetView {
        run: known.progress.run.to_string(),
        added: files.iter().map(|file| file.added).sum(),
        removed: files.iter().map(|file| file.removed).sum(),
        files,
        verdict: document(value(serde_json::to_value(&known.state.verdict))),
        delivered: document(value(serde_json::to_value(&report.delivered))),
    })
}

/// The handler of `GET /v1/runs/{run}/patch`.
pub(crate) async fn patch(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let known = state.known(&call.name, &call.identity).await?;
    let diff = RunReport::of(&known).diff;
    Ok(with(200, "text/x-diff; charset=utf-8", Body::from(diff)))
}
