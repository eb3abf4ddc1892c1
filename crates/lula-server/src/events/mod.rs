//! Live events: the log of a run as it grows, for as many readers as there are.
//!
//! One follower reads the log of a run for all of them ([`feed`]). A reader has a position and no queue:
//! it takes what comes after its position when its connection takes more, so nothing is held for those
//! that do not read.

mod feed;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use lula_store::RunStatus;

use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::with;

pub(crate) use feed::Feeds;
use stream::EventReader;

/// The handler of `GET /v1/runs/{run}/events`.
pub(crate) async fn follow(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let row = state.row(&call.name, &call.identity).await?;
    let seen = match call.header("last-event-id")? {
        None | Some("") => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| {
            ApiRefusal::bad("Last-Event-ID is not the number of an event of this run")
        })?),
    };
    let next = seen.map_or(0, |seen| seen.saturating_add(1));
    if next > row.head.next {
        let detail = format!("the log of {} has no event {}", row.run, next - 1);
        return Err(ApiRefusal::bad(detail));
    }
    if row.status == RunStatus::Done && next == row.head.next {
        // What a browser takes for an end: it does not come back.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = axum::http::StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let place = state.limits.open_stream()?;
    let feed = state.feeds.of(&row.run, &state.store);
    let reader = EventReader::new(feed, next, place, &state);
    let mut response = with(200, "text/event-stream", Body::from_stream(reader.stream()));
    let headers = response.headers_mut();
    // A proxy that gathers answers would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
