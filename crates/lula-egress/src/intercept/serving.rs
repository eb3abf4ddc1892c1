//! One opened connection: its requests judged, exchanged, passed on and recorded.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::body::{AnswerBody, EndOfRequest, Passing, RequestBody, Seen, redact_headers, text};
use super::broker::{Bound, Exchanged, Misuse};
use super::head;
use super::redact::Forbidden;
use super::tasks::Tasks;
use super::tunnel;
use super::upstream::{NoAnswer, Upstream, with_causes};
use crate::engine::Engine;
use crate::engine::connection::{Admitted, Ended, Refused, explain, is_drop};
use crate::engine::meter::Meter;
use crate::policy::{DomainPattern, RequestDetail};
use crate::record::{ConnectionSide, EgressRefusal, EgressStage, EgressVerdict, Relay};
use crate::{ConnectionRecord, EgressProtocol, EgressRule};
use http_body_util::BodyExt as _;

/// Bounds on the head of a request.
const MOST_HEADERS: usize = 128;
const LARGEST_HEAD: usize = 64 * 1024;
/// Bytes of bodies that wait for a server, for a request and for all of a connection of HTTP/2.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 512 * 1024;
/// Requests at once on a connection of HTTP/2.
const MOST_STREAMS: u32 = 128;

/// Serves one opened connection.
pub(crate) struct Serving {
    engine: Arc<Engine>,
    admitted: Admitted,
    meter: Arc<Meter>,
}

/// What the requests of a connection share.
struct Requests {
    engine: Arc<Engine>,
    admitted: Admitted,
    upstream: Upstream,
    tunnels: Tasks,
    served: AtomicU64,
    credentials: Mutex<BTreeSet<String>>,
}

/// Why a request is answered here.
enum Unserved {
    Refused(StatusCode, Refused),
    Failed(String),
}

impl Serving {
    pub(crate) fn new(engine: &Arc<Engine>, admitted: &Admitted, meter: &Arc<Meter>) -> Self {
        Self {
            engine: Arc::clone(engine),
            admitted: admitted.clone(),
            meter: Arc::clone(meter),
        }
    }

    /// Serves HTTP without TLS.
    pub(crate) async fn plain(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        record: &mut ConnectionRecord,
    ) -> Result<(), Ended> {
        self.serve(stream, false, record).await
    }

    /// Serves HTTP in TLS, with a certificate of the sandbox's authority.
    pub(crate) async fn tls(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        record: &mut ConnectionRecord,
    ) -> Result<(), Ended> {
        let name = &self.admitted.name;
        let config = self
            .engine
            .interception
            .authority
            .server_config(name)
            .map_err(|error| Ended::Failed(error.to_string()))?;
        let accepted = tokio::time::timeout(
            self.engine.header_timeout(),
            TlsAcceptor::from(config).accept(stream),
        );
        let stream = match accepted.await {
            Err(_) => {
                return Err(Ended::Refused(Refused {
                    reason: EgressRefusal::TooSlow,
                    text: "the TLS handshake was not finished in time".to_owned(),
                    grant: None,
                }));
            }
            Ok(Err(error)) => {
                return Err(Ended::Failed(format!(
                    "no TLS with the program in the sandbox, which may not trust the sandbox's authority: {error}"
                )));
            }
            Ok(Ok(stream)) => stream,
        };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        self.serve(stream, is_h2, record).await
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_h2: bool,
        record: &mut ConnectionRecord,
    ) -> Result<(), Ended> {
        let tasks = Tasks::default();
        let tunnels = Tasks::default();
        let _ends = (tasks.end_with(), tunnels.end_with());
        let requests = Arc::new(Requests {
            upstream: Upstream::new(
                Arc::clone(&self.engine),
                self.admitted.clone(),
                tasks.clone(),
                is_h2,
            ),
            engine: Arc::clone(&self.engine),
            admitted: self.admitted,
            tunnels: tunnels.clone(),
            served: AtomicU64::new(0),
            credentials: Mutex::default(),
        });
        let service = service_fn({
            let requests = Arc::clone(&requests);
            move |request| {
                let requests = Arc::clone(&requests);
                async move { Ok::<_, Infallible>(requests.answer(request).await) }
            }
        });
        let io = TokioIo::new(stream);
        let served = if is_h2 {
            hyper::server::conn::http2::Builder::new(tasks.clone())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_concurrent_streams(MOST_STREAMS)
                .max_header_list_size(64 * 1024)
                .serve_connection(io, service)
                .await
        } else {
            hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.engine.header_timeout())
                .max_headers(MOST_HEADERS)
                .max_buf_size(LARGEST_HEAD)
                .half_close(true)
                .serve_connection(io, service)
                .with_upgrades()
                .await
        };
        tunnels.ended().await;
        record.address = requests.upstream.address();
        record.credentials = requests.used();
        let any = requests.served.load(Ordering::Relaxed) > 0;
        match served {
            Ok(()) => Ok(()),
            // A connection kept open for a next request that did not come.
            Err(error) if error.is_timeout() && any => Ok(()),
            Err(error) if error.is_timeout() => Err(Ended::Refused(Refused {
                reason: EgressRefusal::TooSlow,
                text: "the head of a request did not come in time".to_owned(),
                grant: None,
            })),
            Err(error) if error.is_parse() => Err(Ended::Refused(Refused {
                reason: EgressRefusal::WrongProtocol,
                text: format!(
                    "what was sent is no request of HTTP: {}",
                    with_causes(&error)
                ),
                grant: None,
            })),
            Err(_) if self.meter.limit_reached() => Ok(()),
            Err(error) if dropped(&error) => Err(Ended::Dropped(ConnectionSide::Inside)),
            Err(error) => Err(Ended::Failed(with_causes(&error))),
        }
    }
}

/// Whether the program inside went away in the middle.
fn dropped(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        if one.downcast_ref::<std::io::Error>().is_some_and(is_drop) {
            return true;
        }
        cause = one.source();
    }
    error.is_incomplete_message() || error.is_closed()
}

impl Requests {
    fn used(&self) -> Vec<String> {
        self.credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Passing> {
        self.served.fetch_add(1, Ordering::Relaxed);
        let admitted = &self.admitted;
        let mut record = ConnectionRecord::begun(
            EgressStage::Request,
            admitted.number,
            admitted.attribution.clone(),
        );
        record.client = Some(admitted.client);
        record.name = Some(admitted.name.to_string());
        record.port = admitted.port;
        record.relay = Some(Relay::Intercepted);
        // The path alone: queries carry what is not for a log.
        let path: String = request.uri().path().chars().take(1024).collect();
        record.request = Some(format!("{} {path}", request.method()));
        let seen = Arc::new(Seen::default());
        let mut end = EndOfRequest::new(
            Arc::clone(&self.engine),
            record,
            Arc::clone(&seen),
            Instant::now(),
        );
        match self.pass_on(request, &mut end, &seen).await {
            Ok((response, forbidden)) => {
                response.map(|body| AnswerBody::new(body, forbidden, end).boxed_unsync())
            }
            Err(unserved) => refusal(unserved, &mut end),
        }
    }

    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        end: &mut EndOfRequest,
        seen: &Arc<Seen>,
    ) -> Result<(Response<Incoming>, Forbidden), Unserved> {
        let Admitted { name, port, .. } = &self.admitted;
        let sandbox_side = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        let judged = self.judge(&parts, end)?;
        let Exchanged { names, forbidden } = self.exchange(&judged, &mut parts.headers)?;
        self.credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(names.iter().cloned());
        if let Some(record) = end.record() {
            record.credentials = names;
        }
        head::strip(&mut parts.headers);
        head::join_cookies(&mut parts.headers);
        if self.engine.broker.binds(name, *port) {
            head::ask_for_plain(&mut parts.headers);
        }
        if judged.is_websocket {
            ask_for_websocket(&mut parts.headers);
        }
        parts.extensions.clear();
        let body =
            RequestBody::new(body, Arc::clone(&self.engine), Arc::clone(seen)).boxed_unsync();
        let passed = Request::from_parts(parts, body);
        let sent = self
            .upstream
            .send(passed, &judged.target, judged.is_websocket)
            .await;
        if let Some(misuse) = seen.misuse() {
            return Err(misused(&misuse));
        }
        let response = sent.map_err(|no_answer| self.unanswered(no_answer, end))?;
        let response = self.cleaned(response, &judged, sandbox_side, &forbidden, end)?;
        Ok((response, forbidden))
    }

    /// An answer as the sandbox may see it: without what belongs to the server's connection, and without
    /// secrets in its head.
    fn cleaned(
        &self,
        mut response: Response<Incoming>,
        judged: &head::Request,
        sandbox_side: OnUpgrade,
        forbidden: &Forbidden,
        end: &mut EndOfRequest,
    ) -> Result<Response<Incoming>, Unserved> {
        let name = &self.admitted.name;
        let becomes_tunnel = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if becomes_tunnel && !judged.is_websocket {
            let why = format!("{name} changed the protocol without being asked");
            return Err(Unserved::Failed(why));
        }
        if !forbidden.is_empty() && !head::is_plain(response.headers()) {
            return Err(Unserved::Failed(format!(
                "{name} sent a compressed answer although it was asked not to: a secret in it could \
                 not be found"
            )));
        }
        if becomes_tunnel {
            let server_side = hyper::upgrade::on(&mut response);
            let tunnel = tunnel::relay(sandbox_side, server_side, forbidden.clone());
            self.tunnels.spawn(tunnel);
        }
        let headers = response.headers_mut();
        head::strip(headers);
        // It would send programs to other ports and protocols.
        headers.remove(header::ALT_SVC);
        if becomes_tunnel {
            ask_for_websocket(headers);
        }
        let reflected = redact_headers(forbidden, headers);
        if let Some(record) = end.record() {
            record.address = self.upstream.address();
            record.status = Some(response.status().as_u16());
            record.verdict = EgressVerdict::Allowed;
            record.redacted |= reflected;
        }
        *response.version_mut() = hyper::Version::default();
        Ok(response)
    }

    /// Whether the request is one that rules allow.
    fn judge(
        &self,
        parts: &hyper::http::request::Parts,
        end: &mut EndOfRequest,
    ) -> Result<head::Request, Unserved> {
        let Admitted {
            name, port, ruling, ..
        } = &self.admitted;
        let read = head::read(parts, name, *port, ruling.protocol).map_err(|(reason, text)| {
            let status = match reason {
                EgressRefusal::HostMismatch => StatusCode::MISDIRECTED_REQUEST,
                EgressRefusal::WrongProtocol => StatusCode::BAD_REQUEST,
                _ => StatusCode::FORBIDDEN,
            };
            Unserved::Refused(
                status,
                Refused {
                    reason,
                    text,
                    grant: None,
                },
            )
        })?;
        let detail = RequestDetail {
            method: &read.method,
            path: &read.path,
        };
        let Some(rule) = self.engine.rules().request(name, *port, detail) else {
            let refused = Refused {
                reason: EgressRefusal::RequestNotAllowed,
                text: format!("no rule allows {} {} of {name}", read.method, read.path),
                grant: self.smallest_rule(detail).map(|rule| rule.to_string()),
            };
            return Err(Unserved::Refused(StatusCode::FORBIDDEN, refused));
        };
        if let Some(record) = end.record() {
            record.rule = Some(rule);
        }
        Ok(read)
    }

    /// The smallest rule that would allow a request.
    fn smallest_rule(&self, detail: RequestDetail<'_>) -> Option<EgressRule> {
        let Admitted {
            name, port, ruling, ..
        } = &self.admitted;
        let rule = EgressRule::new(DomainPattern::Exact(name.clone()), *port).ok()?;
        let rule = rule.speaking(ruling.protocol);
        let rule = if ruling.private {
            rule.with_private_addresses()
        } else {
            rule
        };
        Some(match (detail.method.parse(), detail.path.parse()) {
            (Ok(method), Ok(path)) => rule.only(method, path),
            _ => rule,
        })
    }

    fn exchange(
        &self,
        judged: &head::Request,
        headers: &mut HeaderMap,
    ) -> Result<Exchanged, Unserved> {
        let Admitted {
            name, port, ruling, ..
        } = &self.admitted;
        let bound = Bound {
            name,
            port: *port,
            encrypted: ruling.protocol == EgressProtocol::Tls,
            detail: RequestDetail {
                method: &judged.method,
                path: &judged.path,
            },
        };
        self.engine
            .broker
            .exchange(bound, &judged.target, headers)
            .map_err(|misuse| misused(&misuse))
    }

    fn unanswered(&self, no_answer: NoAnswer, end: &mut EndOfRequest) -> Unserved {
        let failure = match no_answer {
            NoAnswer::Broken(why) => return Unserved::Failed(why),
            NoAnswer::Dial(failure) => failure,
        };
        let Some(record) = end.record() else {
            return Unserved::Failed(String::new());
        };
        match explain(record, &self.admitted, failure) {
            Ended::Refused(refused) => Unserved::Refused(StatusCode::FORBIDDEN, refused),
            Ended::Failed(why) => Unserved::Failed(why),
            // A server that was not reached cannot have been dropped.
            Ended::Dropped(_) => Unserved::Failed(String::new()),
        }
    }
}

/// What both sides of a `WebSocket` say to each other's connection.
fn ask_for_websocket(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

fn misused(misuse: &Misuse) -> Unserved {
    Unserved::Refused(
        StatusCode::FORBIDDEN,
        Refused {
            reason: EgressRefusal::PlaceholderMisused,
            text: misuse.to_string(),
            grant: None,
        },
    )
}

/// Our own answer, and the record of it.
fn refusal(unserved: Unserved, end: &mut EndOfRequest) -> Response<Passing> {
    let (status, words) = match unserved {
        Unserved::Refused(status, refused) => {
            let mut words = format!("lula: {}\n", refused.text);
            if let Some(grant) = &refused.grant {
                let _ = writeln!(words, "lula: a rule that would allow it: {grant}");
            }
            if let Some(record) = end.record() {
                record.deny(refused.reason, refused.text, refused.grant);
                record.status = Some(status.as_u16());
            }
            (status, words)
        }
        Unserved::Failed(why) => {
            let words = format!("lula: {why}\n");
            if let Some(record) = end.record() {
                record.fail(why);
                record.status = Some(StatusCode::BAD_GATEWAY.as_u16());
            }
            (StatusCode::BAD_GATEWAY, words)
        }
    };
    let mut response = Response::new(text(words));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
