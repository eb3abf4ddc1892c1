//! The router, made from the table of routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{MatchedPath, Path, Request};
use axum::routing::{MethodFilter, on};
use lula_protocol::Code;

use super::gate::RequestGate;
use super::origin::OriginRules;
use crate::problem::ApiRefusal;
use crate::routes::{ROUTES, RouteMethod};
use crate::state::ServerState;

/// Longest path that is repeated in an answer.
const LONGEST: usize = 80;

const fn filter(method: RouteMethod) -> MethodFilter {
    match method {
        RouteMethod::Get => MethodFilter::GET,
        RouteMethod::Post => MethodFilter::POST,
    }
}

/// Answers every request: by its route, or by saying that there is none.
pub(crate) fn router(state: Arc<ServerState>, origins: OriginRules, longest_body: usize) -> Router {
    let gate = Arc::new(RequestGate {
        state,
        origins,
        longest_body,
    });
    let mut router = Router::new();
    let mut methods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for route in ROUTES {
        let gate = Arc::clone(&gate);
        methods
            .entry(route.path)
            .or_default()
            .push(route.method.name());
        let answer = on(
            filter(route.method),
            move |name: Result<Path<String>, PathRejection>, request: Request<Body>| {
                let gate = Arc::clone(&gate);
                // A name that is no text names nothing, and is refused as such by its route.
                let name = name.map(|Path(name)| name).unwrap_or_default();
                async move { gate.answer(route, name, request).await }
            },
        );
        router = router.route(route.path, answer);
    }
    let nowhere = Arc::clone(&gate);
    let elsewhere = gate;
    let methods = Arc::new(methods);
    router
        .fallback(move |request: Request<Body>| {
            let gate = Arc::clone(&nowhere);
            async move {
                let path: String = request.uri().path().chars().take(LONGEST).collect();
                let refusal =
                    ApiRefusal::new(404, Code::BadRequest, format!("nothing is at {path}"));
                gate.refuse(request, refusal).await
            }
        })
        .method_not_allowed_fallback(move |path: MatchedPath, request: Request<Body>| {
            let gate = Arc::clone(&elsewhere);
            let taken = methods.get(path.as_str()).map(|names| names.join(", "));
            let taken = taken.unwrap_or_default();
            let detail = format!("{} takes {taken}", path.as_str());
            let refusal = ApiRefusal::new(405, Code::BadRequest, detail).allowing(taken);
            async move { gate.refuse(request, refusal).await }
        })
}
