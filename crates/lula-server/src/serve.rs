//! The server from its start to its end, and what it says of itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use lula_config::keys;
use lula_host::{HostError, Installation, pages, runs, store};
use lula_protocol::{Code, FailureReport, RunExit};
use lula_store::{RunFilter, SecretGuard};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::drivers::{DriverGround, Drivers};
use crate::http::call::RouteCall;
use crate::http::tls::{self, TlsSetupError};
use crate::http::{OriginRules, connections, router};
use crate::identity::{IdentityCheck, IdentitySetupError};
use crate::limits::RequestLimits;
use crate::metrics::ServerMetrics;
use crate::problem::{ApiRefusal, ApiResult};
use crate::records::ServerRecords;
use crate::repositories::Repositories;
use crate::state::ServerState;
use crate::text::{json, json_with, with};

/// The database of the server, in the state directory.
const RECORDS: &str = "server.db";
/// How long the store may take to say that it is there.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// What a server is started with, beside its configuration.
#[derive(Debug)]
pub struct ServerOptions {
    /// The configuration in force.
    pub installation: Arc<Installation>,
    /// Flags of the command line that stand for configuration keys, as they were given: they hold for the
    /// drivers too.
    pub settings: Vec<String>,
}

/// Where a server listens and what it works on, once it does.
#[derive(Debug, Serialize)]
pub struct ListeningServer {
    /// The address to reach it at.
    pub listening: String,
    /// How callers are identified.
    pub auth: String,
    /// The repositories by name.
    pub repositories: Vec<String>,
}

/// Why the server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What it is built on refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It cannot find out who its callers are.
    #[error(transparent)]
    Identity(#[from] IdentitySetupError),
    /// Its certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The address is none, or is taken.
    #[error("server.listen: cannot listen on {address}: {why}")]
    Listen { address: String, why: String },
    /// Without identities it would serve all who can reach it.
    #[error("server.auth is off, and {0} can be reached from other machines")]
    Unprotected(SocketAddr),
    /// It speaks plain HTTP, and was not told that this is meant.
    #[error("{0} can be reached from other machines, and this server speaks plain HTTP")]
    Exposed(SocketAddr),
    /// Its own database cannot be used.
    #[error("the records of the server cannot be used: {0}")]
    Records(String),
}

impl ServeError {
    /// The code by which it is known.
    fn code(&self) -> Code {
        match self {
            Self::Host(error) | Self::Identity(IdentitySetupError::Host(error)) => error.code(),
            Self::Identity(_) | Self::Tls(_) | Self::Unprotected(_) | Self::Exposed(_) => {
                Code::BadValue
            }
            Self::Listen { .. } => Code::FileAccess,
            Self::Records(_) => Code::StoreUnusable,
        }
    }

    /// What to do about it.
    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Host(error) | Self::Identity(IdentitySetupError::Host(error)) => {
                return error.remedy();
            }
            Self::Identity(_) => "docs/server.md explains the keys below server.jwt",
            Self::Tls(_) => {
                "name a certificate chain and its key in PEM; no other user may read the key"
            }
            Self::Unprotected(_) => "set server.auth to bearer or jwt, or listen on 127.0.0.1",
            Self::Exposed(_) => {
                "set server.tls_cert and server.tls_key; or listen on 127.0.0.1 behind a proxy that ends TLS, or set server.expose to yes"
            }
            Self::Listen { .. } => "name a free HOST:PORT; port 0 takes a free one",
            Self::Records(_) => "check the space and the rights of the state directory",
        };
        Some(text.to_owned())
    }
}

impl From<ServeError> for FailureReport {
    fn from(error: ServeError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            place: None,
            remedy: error.remedy(),
            exit: match error {
                ServeError::Host(_) | ServeError::Records(_) => RunExit::Environment,
                _ => RunExit::Usage,
            },
        }
    }
}

/// Whether the server works.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthDocument {
    /// `ok`, or `draining` while it ends.
    status: String,
}

/// The version of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionDocument {
    version: String,
}

/// Who sends a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IdentityDocument {
    principal: String,
    roles: Vec<String>,
    /// The repositories they may see; all where nothing is said.
    repositories: Option<Vec<String>>,
}

async fn listen(
    installation: &Installation,
    is_secure: bool,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let address = installation.config.get(&keys::SERVER_LISTEN);
    let failed = |why: &dyn std::fmt::Display| ServeError::Listen {
        address: address.clone(),
        why: why.to_string(),
    };
    let found = tokio::net::lookup_host(&address).await;
    let places: Vec<SocketAddr> = found.map_err(|error| failed(&error))?.collect();
    let place = *places.first().ok_or_else(|| failed(&"it leads nowhere"))?;
    // Asked of the address, before the socket is there.
    if !place.ip().is_loopback() {
        if installation.config.get(&keys::SERVER_AUTH) == "off" {
            return Err(ServeError::Unprotected(place));
        }
        if !is_secure && installation.config.get(&keys::SERVER_EXPOSE) != "yes" {
            return Err(ServeError::Exposed(place));
        }
    }
    let listener = TcpListener::bind(place)
        .await
        .map_err(|error| failed(&error))?;
    let place = listener.local_addr().map_err(|error| failed(&error))?;
    Ok((listener, place))
}

fn number(installation: &Installation, key: &'static lula_config::ConfigKey<u64>) -> usize {
    usize::try_from(installation.config.get(key)).unwrap_or(usize::MAX)
}

async fn state(options: ServerOptions) -> Result<(Arc<ServerState>, DriverGround), ServeError> {
    let ServerOptions {
        installation,
        settings,
    } = options;
    let directory = installation.state_directory()?;
    std::fs::create_dir_all(&directory).map_err(|error| ServeError::Records(error.to_string()))?;
    let repositories = Arc::new(Repositories::of(&installation)?);
    let identity = IdentityCheck::of(&installation).await?;
    let runs_kept = store::open(&installation, SecretGuard::default()).await?;
    let records = ServerRecords::open(&directory.join(RECORDS));
    let records = Arc::new(records.map_err(|error| ServeError::Records(error.to_string()))?);
    let metrics = Arc::new(ServerMetrics::default());
    let drivers = Arc::new(Drivers::new(
        number(&installation, &keys::SERVER_RUNS),
        number(&installation, &keys::SERVER_QUEUE),
        settings,
        Arc::clone(&metrics),
    ));
    let rate = u32::try_from(installation.config.get(&keys::SERVER_RATE)).unwrap_or(u32::MAX);
    let ground = DriverGround {
        store: Arc::clone(&runs_kept),
        records: Arc::clone(&records),
        repositories: Arc::clone(&repositories),
    };
    let state = ServerState {
        reader: runs::reader(Arc::clone(&runs_kept))?,
        store: runs_kept,
        four_eyes: installation.config.get(&keys::SERVER_FOUR_EYES) == "on",
        limits: RequestLimits::new(rate, number(&installation, &keys::SERVER_STREAMS)),
        repositories,
        records,
        drivers,
        feeds: crate::events::Feeds::default(),
        summaries: crate::runs::summaries::Summaries::default(),
        identity,
        metrics,
        draining: AtomicBool::new(false),
        installation,
    };
    Ok((Arc::new(state), ground))
}

/// Serves until SIGINT or SIGTERM, then has runs put down; a second signal leaves them to their drivers.
pub fn serve(
    options: ServerOptions,
    ready: impl FnOnce(&ListeningServer),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(HostError::NoRuntime)?;
    let served = runtime.block_on(serve_until(options, ready));
    // A driver that still puts its run down is waited for by no thread of this process.
    runtime.shutdown_background();
    served
}

/// The signals that ask a process to end.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl EndSignals {
    fn heard() -> Result<Self, ServeError> {
        let heard = |kind| signal(kind).map_err(HostError::NoRuntime);
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn serve_until(
    options: ServerOptions,
    ready: impl FnOnce(&ListeningServer),
) -> Result<(), ServeError> {
    let mut interrupts = EndSignals::heard()?;
    let tls = tls::acceptor(&options.installation.config)?;
    let (listener, place) = listen(&options.installation, tls.is_some()).await?;
    let origins = OriginRules::of(&options.installation.config, place.ip().is_loopback());
    let longest_body = number(&options.installation, &keys::SERVER_BODY);
    let (state, ground) = state(options).await?;
    let config = &state.installation.config;
    let listening = ListeningServer {
        listening: format!("{}://{place}", if tls.is_some() { "https" } else { "http" }),
        auth: config.get(&keys::SERVER_AUTH),
        repositories: state.repositories.names().map(str::to_owned).collect(),
    };
    let (end, ended) = watch::channel(false);
    let app = router(Arc::clone(&state), origins, longest_body);
    let streams = number(&state.installation, &keys::SERVER_STREAMS);
    let answering = tokio::spawn(connections::answer(listener, app, tls, streams, ended));
    let driving = Arc::clone(&state.drivers).work(Arc::new(ground));
    let driving = tokio::spawn(driving);
    ready(&listening);
    interrupts.next().await;
    state.draining.store(true, Ordering::Relaxed);
    // Runs are put down while what was asked is still answered.
    tokio::select! {
        () = state.drivers.end() => {}
        () = interrupts.next() => {}
    }
    let _ = end.send(true);
    let _ = answering.await;
    let _ = driving.await;
    Ok(())
}

/// The handler of `GET /v1/health`.
pub(crate) async fn health(state: Arc<ServerState>) -> ApiResult<Response<Body>> {
    let draining = state.draining.load(Ordering::Relaxed);
    let status = if draining { "draining" } else { "ok" };
    json(&HealthDocument {
        status: status.to_owned(),
    })
}

/// The handler of `GET /v1/ready`.
pub(crate) async fn ready(state: Arc<ServerState>) -> ApiResult<Response<Body>> {
    let filter = RunFilter {
        limit: Some(1),
        ..RunFilter::default()
    };
    let asked = tokio::time::timeout(READY_WITHIN, state.store.runs(&filter)).await;
    let (status, word) = if state.draining.load(Ordering::Relaxed) {
        (503, "draining")
    } else if matches!(asked, Ok(Ok(_))) {
        (200, "ok")
    } else {
        (503, "the store does not answer")
    };
    json_with(
        status,
        &HealthDocument {
            status: word.to_owned(),
        },
    )
}

/// The handler of `GET /v1/version`.
pub(crate) async fn version(_: Arc<ServerState>, _: RouteCall) -> ApiResult<Response<Body>> {
    json(&VersionDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The handler of `GET /v1/openapi.json`.
pub(crate) async fn document(_: Arc<ServerState>, _: RouteCall) -> ApiResult<Response<Body>> {
    json(&crate::openapi())
}

/// The handler of `GET /v1/errors/{code}`.
pub(crate) async fn error_page(_: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let code = call.name.parse::<Code>();
    let code = code.map_err(|error| ApiRefusal::new(404, Code::UnknownCode, error.to_string()))?;
    let page = Body::from(pages::page(code));
    Ok(with(200, "text/markdown; charset=utf-8", page))
}

/// The handler of `GET /v1/me`.
pub(crate) async fn me(_: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let who = &call.identity;
    let repositories = who.repositories.as_ref();
    json(&IdentityDocument {
        principal: who.principal.to_string(),
        roles: who
            .roles
            .iter()
            .map(|role| role.name().to_owned())
            .collect(),
        repositories: repositories.map(|names| names.iter().cloned().collect()),
    })
}

/// The handler of `GET /v1/repositories`.
pub(crate) async fn repositories(
    state: Arc<ServerState>,
    call: RouteCall,
) -> ApiResult<Response<Body>> {
    json(&state.repositories.entries(&call.identity))
}

/// The handler of `GET /metrics`.
pub(crate) async fn metrics(state: Arc<ServerState>, _: RouteCall) -> ApiResult<Response<Body>> {
    let text = state
        .metrics
        .text(state.drivers.counts(), state.limits.streams());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(with(200, kind, Body::from(text)))
}
