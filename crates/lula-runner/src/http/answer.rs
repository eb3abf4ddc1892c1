//! Answers.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use lula_protocol::{Code, ToolOutcome, ToolResult};
use serde::Serialize;

use crate::service::RequestRefusal;
use lula_runner_api::RunnerProblem;

pub(super) type HttpBody = UnsyncBoxBody<Bytes, std::convert::Infallible>;

fn with(status: StatusCode, kind: &'static str, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
}

pub(super) fn json(status: u16, value: &impl Serialize) -> Response<HttpBody> {
    match serde_json::to_vec(value) {
        Ok(bytes) => with(code(status), "application/json", full(bytes)),
        Err(error) => problem(500, Code::Internal, &error.to_string()),
    }
}

pub(super) fn text(kind: &'static str, text: String) -> Response<HttpBody> {
    with(StatusCode::OK, kind, full(text.into_bytes()))
}

pub(super) fn nothing() -> Response<HttpBody> {
    let mut response = Response::new(full(Vec::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(super) fn stream(kind: &'static str, pieces: BoxStream<'static, Bytes>) -> Response<HttpBody> {
    let frames = pieces.map(|bytes| Ok(Frame::data(bytes)));
    with(StatusCode::OK, kind, StreamBody::new(frames).boxed_unsync())
}

/// A tool's result, with the status that says whether it was done.
pub(super) fn result(result: &ToolResult) -> Response<HttpBody> {
    let status = match &result.outcome {
        ToolOutcome::Done { .. } | ToolOutcome::Failed { .. } => 200,
        ToolOutcome::Denied { .. } => 403,
        ToolOutcome::NeedsApproval { .. } => 428,
    };
    json(status, result)
}

pub(super) fn refusal(refusal: &RequestRefusal) -> Response<HttpBody> {
    json(refusal.status(), &refusal.problem())
}

pub(super) fn problem(status: u16, code: Code, message: &str) -> Response<HttpBody> {
    let problem = RunnerProblem {
        code,
        message: message.to_owned(),
    };
    let bytes = serde_json::to_vec(&problem).unwrap_or_default();
    with(self::code(status), "application/json", full(bytes))
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn full(bytes: Vec<u8>) -> HttpBody {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}
