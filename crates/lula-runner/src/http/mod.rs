//! The runner over HTTP: a Unix socket for its owner, or a port for callers that have the key.
//!
//! Nothing here decides anything about tools. It reads requests within limits of size and time,
//! finds out who sends them, hands them on, and says what came of it.
//!
//! The sender is the peer's user on a socket, or the holder of a bearer key on a port. One table of
//! routes (`routes.rs`) is matched against and is what the OpenAPI document is made from.

mod answer;
mod dispatch;
mod listen;
mod metrics;
mod openapi;
mod routes;
mod streams;
mod strict;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use lula_protocol::Code;
use secrecy::SecretString;
use tokio::sync::{Semaphore, watch};
use tracing::Instrument;

use crate::service::RunnerService;
use answer::HttpBody;
pub use listen::ListenError;
use listen::{ConnectionPeer, RunnerConnection, RunnerListener};
use lula_runner_api::client::{RequestCorrelation, RunnerAddress};
use metrics::RunnerMetrics;
pub use openapi::document as openapi;
use routes::RouteMatch;

/// Most connections at one time.
const CONNECTIONS: usize = 512;
/// How long a client may take for its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// How long calls may go on after the end was asked for.
const DRAIN: Duration = Duration::from_secs(30);
/// Most calls that are worked on at one time.
const CALLS: usize = 128;

/// A runner that listens.
#[derive(Debug)]
pub struct RunnerServer {
    listener: RunnerListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    service: Arc<RunnerService>,
    key: Option<SecretString>,
    metrics: RunnerMetrics,
    calls: Arc<Semaphore>,
    draining: AtomicBool,
}

impl RunnerServer {
    /// Listens there. A port needs a key.
    pub async fn bind(
        address: &RunnerAddress,
        key: Option<SecretString>,
        service: Arc<RunnerService>,
    ) -> Result<Self, ListenError> {
        let listener = RunnerListener::bind(address, key.as_ref()).await?;
        let shared = Shared {
            service,
            key,
            metrics: RunnerMetrics::default(),
            calls: Arc::new(Semaphore::new(CALLS)),
            draining: AtomicBool::new(false),
        };
        Ok(Self {
            listener,
            shared: Arc::new(shared),
        })
    }

    /// The address it listens at, for people and clients.
    pub fn place(&self) -> String {
        self.listener.place()
    }

    /// Answers until `end` comes, then finishes what was begun, for a while.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let (stop, stopped) = watch::channel(false);
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        tokio::pin!(end);
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
                break;
            };
            tokio::select! {
                () = &mut end => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((connection, peer)) => {
                        let shared = Arc::clone(&self.shared);
                        let stopped = stopped.clone();
                        tokio::spawn(async move {
                            converse(connection, peer, shared, stopped).await;
                            drop(permit);
                        });
                    }
                    // Out of descriptors, most likely: those in use come back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
            }
        }
        self.shared.draining.store(true, Ordering::Relaxed);
        drop(self.listener);
        let _ = stop.send(true);
        let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(DRAIN, connections.acquire_many(all)).await;
        let service = Arc::clone(&self.shared.service);
        let _ = tokio::task::spawn_blocking(move || service.shut_down()).await;
    }
}

async fn converse(
    connection: RunnerConnection,
    peer: ConnectionPeer,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(handle(request, peer, shared).await) }
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(connection), service);
    tokio::pin!(conversation);
    tokio::select! {
        // A connection that broke is the client's affair.
        _ = conversation.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => conversation.as_mut().graceful_shutdown(),
    }
    let _ = conversation.await;
}

async fn handle(
    request: Request<Incoming>,
    peer: ConnectionPeer,
    shared: Arc<Shared>,
) -> Response<HttpBody> {
    let span = span_of(&request);
    answered(request, peer, shared).instrument(span).await
}

/// The span of a request: with the run and the effect that its caller sends it for, where it says so.
fn span_of(request: &Request<Incoming>) -> tracing::Span {
    let span = tracing::error_span!(
        "request",
        operation = tracing::field::Empty,
        run = tracing::field::Empty,
        effect = tracing::field::Empty,
    );
    if !span.is_disabled()
        && let Some(correlation) = RequestCorrelation::of(request.headers())
    {
        span.record("run", tracing::field::display(&correlation.run));
        span.record("effect", tracing::field::display(&correlation.effect));
    }
    span
}

async fn answered(
    request: Request<Incoming>,
    peer: ConnectionPeer,
    shared: Arc<Shared>,
) -> Response<HttpBody> {
    let begun = Instant::now();
    let path = request.uri().path().to_owned();
    let (operation, response) = match routes::find(request.method(), &path) {
        RouteMatch::Nowhere => {
            let message = format!("there is nothing at {}", short(&path));
            ("none", answer::problem(404, Code::BadRequest, &message))
        }
        RouteMatch::OtherMethods(methods) => {
            let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            let allowed = methods.join(", ");
            let message = format!("{} takes {allowed}", short(&path));
            let mut response = answer::problem(405, Code::BadRequest, &message);
            if let Ok(allowed) = HeaderValue::from_str(&allowed) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            ("none", response)
        }
        RouteMatch::Route(route, variable) => {
            let who = listen::principal(peer, request.headers(), shared.key.as_ref());
            let open = route.path == "/healthz";
            tracing::Span::current().record("operation", route.id);
            tracing::trace!("request begins");
            let response = match who {
                None if !open => {
                    let message = "send the runner's key as a bearer token";
                    let mut response = answer::problem(401, Code::NotAllowed, message);
                    let scheme = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                    response
                }
                who => dispatch::route(route, variable, who, request, &shared).await,
            };
            (route.id, response)
        }
    };
    let status = response.status().as_u16();
    let took = begun.elapsed();
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    // Asked again and again until a runner is well.
    if path == "/healthz" {
        tracing::trace!(status, ms, "request answered");
    } else {
        tracing::debug!(status, ms, "request answered");
    }
    shared.metrics.request(operation, status, took);
    response
}

fn short(path: &str) -> String {
    path.chars().take(200).collect()
}
