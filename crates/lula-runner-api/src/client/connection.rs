//! Connections to a runner, kept open between calls.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};

use super::correlation;
use super::error::RunnerClientError;
use super::events::{RunnerEventStream, SessionEvents};
use crate::RunnerProblem;

/// Largest answer that is taken.
const ANSWER: usize = 64 << 20;
/// Connections kept for later.
const IDLE: usize = 8;

/// Where a runner listens: `unix:PATH` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerAddress {
    /// A socket of the file system, for its owner only.
    Unix(PathBuf),
    /// A port; a key is needed.
    Tcp(String),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address: write unix:PATH or HOST:PORT")]
pub struct InvalidRunnerAddress(String);

impl FromStr for RunnerAddress {
    type Err = InvalidRunnerAddress;
    fn from_str(text: &str) -> Result<Self, InvalidRunnerAddress> {
        let invalid = || InvalidRunnerAddress(text.chars().take(200).collect());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(invalid())
            } else {
                Ok(Self::Unix(PathBuf::from(path)))
            };
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(text.to_owned()))
            }
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for RunnerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(place) => f.write_str(place),
        }
    }
}

type Sender = SendRequest<Full<Bytes>>;

#[derive(Debug, Clone)]
pub(super) struct Connections(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: RunnerAddress,
    key: Option<SecretString>,
    idle: Mutex<Vec<Sender>>,
}

impl Connections {
    pub(super) fn new(address: RunnerAddress, key: Option<SecretString>) -> Self {
        Self(Arc::new(Inner {
            address,
            key,
            idle: Mutex::default(),
        }))
    }

    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<RunnerHttpAnswer, RunnerClientError> {
        let (sender, response) = self.send(method, path, body, "application/json").await?;
        let (head, body) = response.into_parts();
        let bytes = whole(body).await?;
        self.keep(sender);
        Ok(RunnerHttpAnswer {
            status: head.status,
            bytes,
        })
    }

    /// A stream of events, or the whole answer that is none.
    pub(super) async fn events<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<Result<RunnerEventStream<T>, RunnerHttpAnswer>, RunnerClientError> {
        let (sender, response) = self
            .send(method, path, body, "application/x-ndjson")
            .await?;
        let status = response.status();
        if status.is_success() {
            return Ok(Ok(RunnerEventStream::new(sender, response.into_body())));
        }
        let bytes = whole(response.into_body()).await?;
        Ok(Err(RunnerHttpAnswer { status, bytes }))
    }

    pub(super) async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<SessionEvents, RunnerClientError> {
        let RunnerHttpAnswer { status, bytes } = match self.events(method, path, body).await? {
            Ok(events) => return Ok(events),
            Err(answer) => answer,
        };
        // A denial and a question are the whole of their stream.
        if matches!(
            status,
            StatusCode::FORBIDDEN | StatusCode::PRECONDITION_REQUIRED
        ) && let Ok(result) = serde_json::from_slice(&bytes)
        {
            return Ok(SessionEvents::ended(result));
        }
        Err(refused(status, &bytes))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
        accept: &str,
    ) -> Result<(Sender, Response<Incoming>), RunnerClientError> {
        let bytes = match body {
            Some(body) => Bytes::from(
                serde_json::to_vec(body)
                    .map_err(|error| RunnerClientError::Nonsense(error.to_string()))?,
            ),
            None => Bytes::new(),
        };
        let request = || {
            let mut request = Request::builder()
                .method(&method)
                .uri(path)
                .header(HOST, "runner")
                .header(ACCEPT, accept);
            request = correlation::headers(request);
            if body.is_some() {
                request = request.header(CONTENT_TYPE, "application/json");
            }
            if let Some(key) = &self.0.key {
                request = request.header(AUTHORIZATION, format!("Bearer {}", key.expose_secret()));
            }
            request
                .body(Full::new(bytes.clone()))
                .map_err(|error| RunnerClientError::Nonsense(error.to_string()))
        };
        // A kept connection may have been closed by the other side meanwhile; a fresh one not.
        while let Some(mut sender) = self.take() {
            if sender.ready().await.is_ok()
                && let Ok(response) = sender.send_request(request()?).await
            {
                return Ok((sender, response));
            }
        }
        let mut sender = self.connect().await?;
        let response = sender
            .send_request(request()?)
            .await
            .map_err(|error| RunnerClientError::Broken(error.to_string()))?;
        Ok((sender, response))
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|sender| !sender.is_closed());
        idle.pop()
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !sender.is_closed() {
            idle.push(sender);
        }
    }

    async fn connect(&self) -> Result<Sender, RunnerClientError> {
        let unreachable = |source| RunnerClientError::Unreachable {
            address: self.0.address.to_string(),
            source,
        };
        match &self.0.address {
            RunnerAddress::Unix(path) => {
                handshake(UnixStream::connect(path).await.map_err(unreachable)?).await
            }
            RunnerAddress::Tcp(place) => {
                let stream = TcpStream::connect(place).await.map_err(unreachable)?;
                stream.set_nodelay(true).map_err(unreachable)?;
                handshake(stream).await
            }
        }
    }
}

async fn handshake<S>(stream: S) -> Result<Sender, RunnerClientError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| RunnerClientError::Broken(error.to_string()))?;
    // Ends when the sender is dropped or the other side closes; a caller that waits learns of it.
    tokio::spawn(connection);
    Ok(sender)
}

async fn whole(body: Incoming) -> Result<Bytes, RunnerClientError> {
    let collected = Limited::new(body, ANSWER).collect().await;
    let collected = collected.map_err(|error| RunnerClientError::Broken(error.to_string()))?;
    Ok(collected.to_bytes())
}

/// An answer whose body was read to its end.
#[derive(Debug)]
pub(super) struct RunnerHttpAnswer {
    status: StatusCode,
    bytes: Bytes,
}

impl RunnerHttpAnswer {
    /// The value, where the status says that there is one.
    pub(super) fn expect<T: DeserializeOwned>(
        &self,
        good: impl Fn(StatusCode) -> bool,
    ) -> Result<T, RunnerClientError> {
        if good(self.status)
            && let Ok(value) = serde_json::from_slice(&self.bytes)
        {
            return Ok(value);
        }
        Err(refused(self.status, &self.bytes))
    }

    /// Why there is no value.
    pub(super) fn refusal(&self) -> RunnerClientError {
        refused(self.status, &self.bytes)
    }

    pub(super) fn nothing(&self) -> Result<(), RunnerClientError> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(refused(self.status, &self.bytes))
    }
}

fn refused(status: StatusCode, bytes: &[u8]) -> RunnerClientError {
    match serde_json::from_slice::<RunnerProblem>(bytes) {
        Ok(problem) => RunnerClientError::Refused { status, problem },
        Err(error) => RunnerClientError::Nonsense(format!(
            "{status} with {} bytes that are no answer: {error}",
            bytes.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_written() {
        for good in [
            "unix:/run/x.sock",
            "127.0.0.1:80",
            "[::1]:8080",
            "localhost:1",
        ] {
            assert_eq!(good.parse::<RunnerAddress>().unwrap().to_string(), good);
        }
        for bad in ["", "unix:", "8080", ":80", "host:port", "host:99999"] {
            assert!(bad.parse::<RunnerAddress>().is_err(), "{bad:?}");
        }
    }
}
