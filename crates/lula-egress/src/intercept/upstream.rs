//! Connections to the server behind an opened connection, verified by its name, made when the first allowed
//! request needs one.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::body::Passing;
use super::head;
use super::tasks::Tasks;
use crate::EgressProtocol;
use crate::engine::Engine;
use crate::engine::connection::Admitted;
use crate::engine::dial::{DialFailure, Dialled};
use crate::outside::ProxyAddress;

/// Most idle connections kept for one connection of the sandbox.
const MOST_IDLE: usize = 8;
/// Bounds on the head of an answer.
const MOST_HEADERS: usize = 128;
const LARGEST_HEAD: usize = 128 * 1024;

/// Bytes of answers that wait for the sandbox, for a request and for all of a connection of HTTP/2: a sandbox
/// that does not read must not fill our memory.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 2 << 20;

type One = hyper::client::conn::http1::SendRequest<Passing>;
type Many = hyper::client::conn::http2::SendRequest<Passing>;

/// The server of one connection of the sandbox.
pub(super) struct Upstream {
    engine: Arc<Engine>,
    admitted: Admitted,
    tasks: Tasks,
    /// Whether the sandbox speaks HTTP/2, so that the server may.
    offers_h2: bool,
    idle: Arc<Mutex<Vec<One>>>,
    many: tokio::sync::Mutex<Option<Many>>,
    address: Mutex<Option<IpAddr>>,
    proxy: Mutex<Option<ProxyAddress>>,
}

/// Why a request has no answer.
pub(super) enum NoAnswer {
    Dial(DialFailure),
    Broken(String),
}

enum Sender {
    One(One),
    Many(Many),
}

impl Upstream {
    pub(super) fn new(
        engine: Arc<Engine>,
        admitted: Admitted,
        tasks: Tasks,
        offers_h2: bool,
    ) -> Self {
        Self {
            engine,
            admitted,
            tasks,
            offers_h2,
            idle: Arc::default(),
            many: tokio::sync::Mutex::default(),
            address: Mutex::default(),
            proxy: Mutex::default(),
        }
    }

    /// The address that was reached last.
    pub(super) fn address(&self) -> Option<IpAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request with the given target. A connection that the server had closed meanwhile is replaced
    /// if nothing of the request was sent.
    pub(super) async fn send(
        &self,
        mut request: Request<Passing>,
        target: &str,
        is_websocket: bool,
    ) -> Result<Response<Incoming>, NoAnswer> {
        for is_last in [false, true] {
            let sender = if is_last || is_websocket {
                self.connect(is_websocket).await?
            } else {
                self.sender().await?
            };
            self.address_request(&mut request, target, &sender)?;
            let sent = match sender {
                Sender::One(mut one) => {
                    let sent = one.try_send_request(request).await;
                    if sent.is_ok() && !is_websocket {
                        self.keep(one);
                    }
                    sent
                }
                Sender::Many(mut many) => many.try_send_request(request).await,
            };
            match sent {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_last => request = unsent,
                    _ => return Err(NoAnswer::Broken(with_causes(error.error()))),
                },
            }
        }
        Err(NoAnswer::Broken("the server took no request".to_owned()))
    }

    /// A connection that is free, or a new one.
    async fn sender(&self) -> Result<Sender, NoAnswer> {
        let mut many = self.many.lock().await;
        if let Some(live) = many.as_ref().filter(|many| !many.is_closed()) {
            return Ok(Sender::Many(live.clone()));
        }
        let free = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|one| !one.is_closed());
            idle.pop()
        };
        if let Some(one) = free {
            return Ok(Sender::One(one));
        }
        let sender = self.connect(false).await?;
        if let Sender::Many(live) = &sender {
            *many = Some(live.clone());
        }
        Ok(sender)
    }

    /// Keeps a connection for the next request, once the answer on it was read.
    fn keep(&self, mut one: One) {
        let idle = Arc::clone(&self.idle);
        self.tasks.spawn(async move {
            if one.ready().await.is_ok() {
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MOST_IDLE {
                    idle.push(one);
                }
            }
        });
    }

    async fn connect(&self, only_one: bool) -> Result<Sender, NoAnswer> {
        let Admitted {
            name, port, ruling, ..
        } = &self.admitted;
        if ruling.protocol == EgressProtocol::Http {
            let proxied = self
                .engine
                .dial_http_proxy(name, ruling.private)
                .await
                .map_err(NoAnswer::Dial)?;
            let dialled = match proxied {
                Some((dialled, proxy)) => {
                    *self.proxy.lock().unwrap_or_else(PoisonError::into_inner) = Some(proxy);
                    dialled
                }
                None => self
                    .engine
                    .dial_directly(name, *port, ruling.private)
                    .await
                    .map_err(NoAnswer::Dial)?,
            };
            return self.one(self.noted(dialled)).await;
        }
        let dialled = self
            .engine
            .dial(name, *port, ruling.private)
            .await
            .map_err(NoAnswer::Dial)?;
        let stream = self.noted(dialled);
        let offers_h2 = self.offers_h2 && !only_one;
        let config = self.engine.interception.client_config(offers_h2);
        let server = ServerName::try_from(name.to_string())
            .map_err(|_| NoAnswer::Broken(format!("{name} is no name for TLS")))?;
        let handshake = TlsConnector::from(config).connect(server, stream);
        let stream = tokio::time::timeout(self.engine.header_timeout(), handshake)
            .await
            .map_err(|_| {
                NoAnswer::Broken(format!(
                    "{name}:{port} did not finish the TLS handshake in time"
                ))
            })?
            .map_err(|error| NoAnswer::Broken(format!("no TLS with {name}:{port}: {error}")))?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            return self.many(stream).await;
        }
        self.one(stream).await
    }

    fn noted(&self, dialled: Dialled) -> tokio::net::TcpStream {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = dialled.address;
        dialled.stream
    }

    async fn one(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Sender, NoAnswer> {
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_buf_size(LARGEST_HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| NoAnswer::Broken(with_causes(&error)))?;
        self.tasks.spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        Ok(Sender::One(sender))
    }

    async fn many(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Sender, NoAnswer> {
        let (sender, connection) = hyper::client::conn::http2::Builder::new(self.tasks.clone())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(128 * 1024)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| NoAnswer::Broken(with_causes(&error)))?;
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(Sender::Many(sender))
    }

    /// Names the host and the target as the protocol wants them.
    fn address_request(
        &self,
        request: &mut Request<Passing>,
        target: &str,
        sender: &Sender,
    ) -> Result<(), NoAnswer> {
        let Admitted {
            name, port, ruling, ..
        } = &self.admitted;
        let malformed = |_| NoAnswer::Broken("the request's target cannot be passed on".to_owned());
        let host = head::host_header(name, *port, ruling.protocol);
        let proxy = self
            .proxy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let scheme = if ruling.protocol == EgressProtocol::Http {
            "http"
        } else {
            "https"
        };
        let uri = match sender {
            Sender::One(_) if proxy.is_none() => target.to_owned(),
            _ => format!("{scheme}://{host}{target}"),
        };
        *request.uri_mut() = uri
            .parse::<Uri>()
            .map_err(|error| malformed(error.to_string()))?;
        request.headers_mut().remove(HOST);
        match sender {
            Sender::One(_) => {
                *request.version_mut() = hyper::Version::HTTP_11;
                let value =
                    HeaderValue::try_from(host).map_err(|error| malformed(error.to_string()))?;
                request.headers_mut().insert(HOST, value);
            }
            Sender::Many(_) => *request.version_mut() = hyper::Version::HTTP_2,
        }
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization()) {
            let mut value = HeaderValue::try_from(authorization)
                .map_err(|error| malformed(error.to_string()))?;
            value.set_sensitive(true);
            request
                .headers_mut()
                .insert(hyper::header::PROXY_AUTHORIZATION, value);
        }
        Ok(())
    }
}

/// An error with what it came from: hyper's own words are short.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said.push_str(": ");
        said.push_str(&error.to_string());
        cause = error.source();
    }
    said
}
