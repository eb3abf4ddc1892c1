//! What every request passes before its route sees it, in this order: the name it asks for and the page it
//! comes from, who sends it, how much they asked for already, whether they may, and how long it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use lula_protocol::Code;

use super::call::RouteCall;
use super::origin::{self, OriginRules};
use crate::identity::{Identity, RoutePermission};
use crate::limits::RequestPlace;
use crate::problem::{ApiRefusal, ApiResult};
use crate::routes::ServerRoute;
use crate::state::ServerState;

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// The gate of one server.
pub(crate) struct RequestGate {
    pub(crate) state: Arc<ServerState>,
    pub(crate) origins: OriginRules,
    /// Longest body, in bytes.
    pub(crate) longest_body: usize,
}

impl RequestGate {
    /// Answers a request to a route.
    pub(crate) async fn answer(
        &self,
        route: &'static ServerRoute,
        name: String,
        request: Request<Body>,
    ) -> Response<Body> {
        let begun = Instant::now();
        let answered = match self.origins.check(request.headers()) {
            Ok(origin) => {
                let answered = self.call(route, name, request).await;
                finished(answered, origin)
            }
            Err(refusal) => finished(Err(refusal), None),
        };
        let status = answered.status().as_u16();
        self.state
            .metrics
            .answered(route.id, status, begun.elapsed());
        tracing::debug!(route = route.id, status, "request");
        answered
    }

    /// Answers a request that no route is for. Strangers do not learn what there is.
    pub(crate) async fn refuse(
        &self,
        request: Request<Body>,
        refusal: ApiRefusal,
    ) -> Response<Body> {
        let begun = Instant::now();
        let (parts, _) = request.into_parts();
        let headers = &parts.headers;
        let answered = match self.origins.check(headers) {
            Ok(Some(origin)) if origin::is_preflight(&parts.method, headers) => {
                let mut response = finished(Ok(Response::new(Body::empty())), Some(origin));
                origin::allow(response.headers_mut());
                response
            }
            Ok(origin) => match self.enter(headers).await {
                Ok(_) => finished(Err(refusal), origin),
                Err(unknown) => finished(Err(unknown), origin),
            },
            Err(refusal) => finished(Err(refusal), None),
        };
        let status = answered.status().as_u16();
        self.state.metrics.answered("none", status, begun.elapsed());
        answered
    }

    async fn enter(&self, headers: &HeaderMap) -> ApiResult<(Identity, RequestPlace)> {
        let identity = self.state.identity.identify(headers).await?;
        let place = self.state.limits.enter(&identity.principal)?;
        Ok((identity, place))
    }

    async fn call(
        &self,
        route: &'static ServerRoute,
        name: String,
        request: Request<Body>,
    ) -> ApiResult<Response<Body>> {
        if route.permission == RoutePermission::Open {
            return (route.handler)(Arc::clone(&self.state), None).await;
        }
        let (parts, body) = request.into_parts();
        let (identity, _place) = self.enter(&parts.headers).await?;
        if !identity.may(route.permission) {
            let roles: Vec<&str> = identity.roles.iter().map(|role| role.name()).collect();
            let detail = format!(
                "{} does not let {} do that",
                if roles.is_empty() {
                    "no role".to_owned()
                } else {
                    roles.join(", ")
                },
                identity.principal
            );
            return Err(ApiRefusal::forbidden(detail).remedy("ask an admin for a role that does"));
        }
        if parts.method == Method::POST && route.body.is_some() {
            let kind = parts.headers.get(CONTENT_TYPE);
            let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let essence = kind.split(';').next().unwrap_or_default().trim();
            // A form of a page of elsewhere cannot say this without being asked for its origin.
            if !essence.eq_ignore_ascii_case("application/json") {
                let detail = "the body has to be application/json";
                return Err(ApiRefusal::new(415, Code::BadRequest, detail));
            }
        }
        let body = self.body(body).await?;
        let call = RouteCall {
            identity,
            name,
            uri: parts.uri,
            headers: parts.headers,
            body,
        };
        (route.handler)(Arc::clone(&self.state), Some(call)).await
    }

    async fn body(&self, body: Body) -> ApiResult<Bytes> {
        let read = Limited::new(body, self.longest_body).collect();
        match tokio::time::timeout(BODY_WITHIN, read).await {
            Ok(Ok(read)) => Ok(read.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let detail = format!("the body is longer than {} bytes", self.longest_body);
                Err(ApiRefusal::new(413, Code::OverLimit, detail).remedy("server.body allows more"))
            }
            Ok(Err(_)) => Err(ApiRefusal::bad("the body cannot be read")),
            Err(_) => Err(ApiRefusal::new(
                408,
                Code::BadRequest,
                "the body did not arrive in time",
            )),
        }
    }
}

fn finished(
    answered: ApiResult<Response<Body>>,
    origin: Option<axum::http::HeaderValue>,
) -> Response<Body> {
    let mut response = answered.unwrap_or_else(ApiRefusal::answer);
    origin::protect(response.headers_mut(), origin);
    response
}
