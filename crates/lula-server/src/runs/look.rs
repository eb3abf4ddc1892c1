//! Looking at one run.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use futures_util::stream;
use lula_graph::bundle;
use lula_host::history::listing::is_driven;
use lula_host::remote::RunLogPage;
use lula_host::trace::Trace;
use lula_store::RunStatus;
use serde::Deserialize;

use super::views::{PlanView, RunView, document};
use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::{json, with};

/// How much of a bundle is sent at once.
const PIECE: usize = 64 << 10;

/// The handler of `GET /v1/runs/{run}`.
pub(crate) async fn get(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let row = state.row(&call.name, &call.identity).await?;
    json(&RunView::of(&row, &state).await?)
}

/// From where a log is read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    from: Option<u64>,
}

/// The handler of `GET /v1/runs/{run}/log`.
pub(crate) async fn log(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let query: LogQuery = call.query()?;
    let row = state.row_or_agent(&call.name, &call.identity).await?;
    let from = query.from.unwrap_or_default();
    if from > row.head.next {
        let detail = format!("the log of {} has {} events", row.run, row.head.next);
        return Err(ApiRefusal::bad(detail));
    }
    let is_over = row.status == RunStatus::Done;
    let driven = !is_over && (is_driven(&row) || state.drivers.has(&row.run));
    let page = RunLogPage::read(&*state.store, row, from, driven).await?;
    json(&document(&page)?)
}

/// The handler of `GET /v1/runs/{run}/timeline`.
pub(crate) async fn timeline(
    state: Arc<ServerState>,
    call: RouteCall,
) -> ApiResult<Response<Body>> {
    let row = state.row(&call.name, &call.identity).await?;
    let trace = Trace::read(&state.store, &row.run).await?;
    json(&document(&trace.document())?)
}

/// The handler of `GET /v1/runs/{run}/plan`.
pub(crate) async fn plan(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let known = state.known(&call.name, &call.identity).await?;
    json(&PlanView::of(&known)?)
}

/// The handler of `GET /v1/runs/{run}/bundle`. It is made in a file without a name and sent piece by piece.
pub(crate) async fn export(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let row = state.row(&call.name, &call.identity).await?;
    let file = tempfile::tempfile().map_err(|error| ApiRefusal::internal(&error))?;
    let out = file
        .try_clone()
        .map_err(|error| ApiRefusal::internal(&error))?;
    bundle::export(&*state.store, &row.run, out).await?;
    let mut file = file;
    let rewound = file.seek(SeekFrom::Start(0));
    rewound.map_err(|error| ApiRefusal::internal(&error))?;
    let pieces = stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            Ok::<_, std::io::Error>((piece, file))
        });
        match read.await {
            Ok(Ok((piece, _))) if piece.is_empty() => None,
            Ok(Ok((piece, file))) => Some((Ok(Bytes::from(piece)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    });
    let mut response = with(200, "application/zstd", Body::from_stream(pieces));
    let name = format!("attachment; filename=\"{}.lula\"", row.run);
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert("content-disposition", name);
    }
    Ok(response)
}
