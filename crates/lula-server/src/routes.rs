//! The table of routes: what exists, who may call it, what goes in and what comes out. Everything else is
//! made from it.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::http::call::RouteCall;
use crate::identity::RoutePermission::{self, Administer, Approve, Open, Operate, Read};
use crate::problem::ApiResult;
use crate::state::ServerState;
use crate::{approvals, audit, changes, events, runs, serve};

/// A method of HTTP that routes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteMethod {
    Get,
    Post,
}

impl RouteMethod {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

type RouteAnswer = Pin<Box<dyn Future<Output = ApiResult<Response<Body>>> + Send>>;
type RouteHandler = fn(Arc<ServerState>, Option<RouteCall>) -> RouteAnswer;

/// A schema with those it refers to.
pub(crate) struct RouteSchema {
    pub(crate) of: fn() -> RefOr<Schema>,
    pub(crate) name: fn() -> String,
    pub(crate) others: fn(&mut Vec<(String, RefOr<Schema>)>),
}

const fn schema<T: ToSchema + PartialSchema>() -> RouteSchema {
    RouteSchema {
        of: T::schema,
        name: || T::name().into_owned(),
        others: T::schemas,
    }
}

/// What a route answers with where it does what it is asked.
pub(crate) enum RouteReply {
    Json(u16, RouteSchema),
    /// Another kind of content.
    Content(&'static str),
}

/// A parameter of a query or a header.
pub(crate) struct RouteParameter {
    pub(crate) name: &'static str,
    pub(crate) is_header: bool,
    pub(crate) is_number: bool,
    pub(crate) about: &'static str,
}

const fn query(name: &'static str, about: &'static str) -> RouteParameter {
    RouteParameter {
        name,
        is_header: false,
        is_number: false,
        about,
    }
}

const fn number(name: &'static str, about: &'static str) -> RouteParameter {
    RouteParameter {
        is_number: true,
        ..query(name, about)
    }
}

const fn header(name: &'static str, about: &'static str) -> RouteParameter {
    RouteParameter {
        is_header: true,
        ..query(name, about)
    }
}

/// One thing that can be asked of the server.
pub struct ServerRoute {
    pub method: RouteMethod,
    /// With at most one variable part, in braces.
    pub path: &'static str,
    /// Names the route in the OpenAPI document and in metrics.
    pub id: &'static str,
    pub summary: &'static str,
    /// What its caller must be allowed.
    pub permission: RoutePermission,
    pub(crate) parameters: &'static [RouteParameter],
    pub(crate) body: Option<RouteSchema>,
    pub(crate) reply: RouteReply,
    pub(crate) handler: RouteHandler,
}

impl std::fmt::Debug for ServerRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method.name(), self.path)
    }
}

/// Handlers of routes that anybody may call are given no call; all others are given one.
macro_rules! handler {
    ($module:ident :: $name:ident ()) => {
        |state, _| Box::pin($module::$name(state))
    };
    ($module:ident :: $name:ident) => {
        |state, call| {
            Box::pin(async move {
                match call {
                    Some(call) => $module::$name(state, call).await,
                    None => Err(crate::problem::ApiRefusal::unauthenticated("nobody asks")),
                }
            })
        }
    };
}

macro_rules! routes {
    ($($method:ident $path:literal $id:literal $permission:ident $summary:literal
       ($($parameter:expr),*) $({ $body:ty })? => $reply:expr, $module:ident :: $name:ident $(($($open:tt)*))?;)*) => {
        /// Every route there is.
        pub static ROUTES: &[ServerRoute] = &[$(ServerRoute {
            method: RouteMethod::$method,
            path: $path,
            id: $id,
            summary: $summary,
            permission: $permission,
            parameters: &[$($parameter),*],
            body: routes!(@body $($body)?),
            reply: $reply,
            handler: handler!($module :: $name $(($($open)*))?),
        }),*];
    };
    (@body) => { None };
    (@body $body:ty) => { Some(schema::<$body>()) };
}

use RouteReply::{Content, Json};

routes! {
    Get "/v1/health" "health" Open "Whether the server answers"
        () => Json(200, schema::<serve::HealthDocument>()), serve::health();
    Get "/v1/ready" "ready" Open "Whether the server can work: its store answers and it is not ending"
        () => Json(200, schema::<serve::HealthDocument>()), serve::ready();
    Get "/v1/version" "version" Read "The version of the server"
        () => Json(200, schema::<serve::VersionDocument>()), serve::version;
    Get "/v1/openapi.json" "openapi" Read "This document"
        () => Content("application/json"), serve::document;
    Get "/v1/errors/{code}" "explain_error" Read "What an error code means, and what to do about it"
        () => Content("text/markdown"), serve::error_page;
    Get "/v1/me" "me" Read "Who sends this request, and in which roles"
        () => Json(200, schema::<serve::IdentityDocument>()), serve::me;
    Get "/v1/repositories" "list_repositories" Read "The repositories that runs can be begun in"
        () => Json(200, schema::<crate::repositories::RepositoryEntries>()), serve::repositories;
    Get "/metrics" "metrics" Read "Counters in the text format of Prometheus"
        () => Content("application/openmetrics-text"), serve::metrics;
    Post "/v1/runs" "create_run" Operate "Begin a run. It is driven at once, or when a driver is free"
        (header("Idempotency-Key", "Repeats of a request with the same key begin one run, for a day"),
         header("traceparent", "The trace that the run belongs to (W3C Trace Context)"))
        { runs::CreateRun } => Json(201, schema::<runs::RunView>()), runs::create;
    Get "/v1/runs" "list_runs" Read "List runs, the newest first"
        (query("status", "Only with this status of the store: ready, running, suspended or done"),
         query("standing", "Only with this standing, such as verified or waiting"),
         query("repository", "Only of this repository"),
         query("q", "Only with these words in the task or in what came of it"),
         query("cursor", "Go on after an earlier page"),
         number("limit", "At most so many, up to 200"))
        => Json(200, schema::<runs::RunPage>()), runs::list;
    Get "/v1/runs/{run}" "get_run" Read "What a run did, and why"
        () => Json(200, schema::<runs::RunView>()), runs::get;
    Get "/v1/runs/{run}/events" "run_events" Read
        "Follow the log of a run as server-sent events: what is there, then what comes"
        (header("Last-Event-ID", "The last event that was seen; none before it is sent again"))
        => Content("text/event-stream"), events::follow;
    Get "/v1/runs/{run}/log" "run_log" Read
        "The log of a run as it was written, page by page, with the values it names: what a client checks and folds itself"
        (number("from", "The first event; all before it are known"))
        => Json(200, schema::<runs::OpenDocument>()), runs::log;
    Get "/v1/runs/{run}/timeline" "run_timeline" Read "Where the time and the money of a run went"
        () => Json(200, schema::<runs::OpenDocument>()), runs::timeline;
    Get "/v1/runs/{run}/plan" "run_plan" Read "The plan that several agents share, as a graph of steps"
        () => Json(200, schema::<runs::PlanView>()), runs::plan;
    Get "/v1/runs/{run}/changes" "run_changes" Read "The change of a run: files and hunks"
        () => Json(200, schema::<changes::ChangeSetView>()), changes::get;
    Get "/v1/runs/{run}/patch" "run_patch" Read "The change of a run as one unified diff"
        () => Content("text/x-diff"), changes::patch;
    Get "/v1/runs/{run}/bundle" "export_run" Read "A run with its whole record in one file"
        () => Content("application/zstd"), runs::export;
    Post "/v1/runs/{run}/cancel" "cancel_run" Operate "End a run for good"
        () { runs::CancelRun } => Json(200, schema::<runs::RunView>()), runs::cancel;
    Post "/v1/runs/{run}/resume" "resume_run" Operate "Go on with a run, with higher limits where they are given"
        () { runs::ResumeRun } => Json(202, schema::<runs::RunView>()), runs::resume;
    Post "/v1/runs/{run}/answers" "answer_run" Operate "Choose one of what a run offers"
        () { runs::AnswerRun } => Json(202, schema::<runs::RunView>()), runs::answer;
    Post "/v1/runs/{run}/notes" "steer_run" Operate "Send a note to the model that works on a run"
        () { runs::SteerRun } => Json(202, schema::<runs::SteeredView>()), runs::steer;
    Post "/v1/runs/{run}/undo" "undo_run" Operate "Take the delivery of a run back"
        () => Json(200, schema::<runs::UndoneView>()), runs::undo;
    Post "/v1/runs/{run}/fork" "fork_run" Operate "Begin a run with the first events of another; resume has it driven"
        () { runs::ForkRun } => Json(201, schema::<runs::RunView>()), runs::fork;
    Get "/v1/approvals" "list_approvals" Read "What runs ask people"
        () => Json(200, schema::<approvals::ApprovalPage>()), approvals::list;
    Get "/v1/approvals/{approval}" "get_approval" Read "One question, with exactly what would be done"
        () => Json(200, schema::<approvals::PendingApproval>()), approvals::get;
    Post "/v1/approvals/{approval}/approve" "approve" Approve "Agree to exactly what the digest names"
        () { approvals::ApprovalVoteBody } => Json(200, schema::<approvals::VotedView>()), approvals::approve;
    Post "/v1/approvals/{approval}/reject" "reject" Approve "Refuse it for good"
        () { approvals::ApprovalVoteBody } => Json(200, schema::<approvals::VotedView>()), approvals::reject;
    Get "/v1/audit" "audit" Administer "The record of what was done, the newest entries of it"
        (query("run", "Only of this run"), number("limit", "At most so many, up to 1000"))
        => Json(200, schema::<audit::AuditPage>()), audit::list;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_routes_are_the_same_and_each_has_one_variable_at_most() {
        for (index, route) in ROUTES.iter().enumerate() {
            assert!(route.path.matches('{').count() <= 1, "{route:?}");
            for other in &ROUTES[..index] {
                assert!(route.id != other.id, "{route:?}");
                let same = (route.path, route.method) == (other.path, other.method);
                assert!(!same, "{route:?}");
            }
        }
    }

    #[test]
    fn only_looking_needs_no_more_than_a_viewer_may() {
        for route in ROUTES {
            let changes = route.method == RouteMethod::Post;
            let looks = matches!(route.permission, Open | Read);
            assert!(!changes || !looks, "{route:?}");
        }
        let open = ROUTES.iter().filter(|route| route.permission == Open);
        let open: Vec<&str> = open.map(|route| route.path).collect();
        assert_eq!(open, ["/v1/health", "/v1/ready"]);
    }
}
