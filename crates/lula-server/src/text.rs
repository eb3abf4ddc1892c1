//! Answers in the forms that are sent.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::problem::{ApiRefusal, ApiResult};

pub(crate) fn with(status: u16, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let status = StatusCode::from_u16(status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(crate) fn json_with(status: u16, value: &impl Serialize) -> ApiResult<Response<Body>> {
    let bytes = serde_json::to_vec(value).map_err(|error| ApiRefusal::internal(&error))?;
    Ok(with(status, "application/json", Body::from(bytes)))
}

pub(crate) fn json(value: &impl Serialize) -> ApiResult<Response<Body>> {
    json_with(200, value)
}
