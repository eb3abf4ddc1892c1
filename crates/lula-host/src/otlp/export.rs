//! Sending traces to a collector, over HTTP with protobuf.

use std::sync::Arc;
use std::time::Duration;

use lula_config::{Config, keys};
use lula_http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use lula_http::{HeaderMap, HttpClient, HttpRequest, Method, ServiceUrl};
use lula_models::secret::ModelKeyReference;
use lula_protocol::{Code, FailureReport, RunExit, RunId};
use lula_store::RunStore;

use super::dialect::OtlpDialect;
use super::encode::request;
use super::read::RunTrace;
use crate::diagnosis::conceal;
use crate::error::HostError;
use crate::installation::Installation;

/// Spans of one request.
const AT_ONCE: usize = 512;
/// How long a collector may take to answer.
const WITHIN: Duration = Duration::from_secs(5);
/// So often it is asked; a collector that is gone must not hold a run up.
const TRIES: u32 = 3;
/// Longest wait between two of them.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest answer that is read.
const MOST: usize = 64 << 10;

/// Which collector traces are sent to.
#[derive(Debug, Clone)]
pub enum OtlpTarget {
    /// Where the configuration says.
    Configured,
    /// To this URL, with what else the configuration says.
    Url(String),
}

/// Sends traces to one collector. It is made before a driver locks itself out of files: keys and
/// certificates are read then.
pub struct OtlpExporter {
    http: HttpClient,
    url: ServiceUrl,
    headers: HeaderMap,
    dialect: OtlpDialect,
    content: bool,
}

fn refused(code: Code, exit: RunExit, message: String, remedy: &str) -> HostError {
    HostError::Server(Box::new(FailureReport {
        code,
        message,
        place: None,
        remedy: Some(remedy.to_owned()),
        exit,
    }))
}

fn bad(message: String, remedy: &str) -> HostError {
    refused(Code::BadValue, RunExit::Usage, message, remedy)
}

/// The headers of every request: NAME=REFERENCE, whose values are kept elsewhere.
fn headers(config: &Config) -> Result<HeaderMap, HostError> {
    let remedy = "write otel.headers as NAME=env:VARIABLE or NAME=file:PATH";
    let mut headers = HeaderMap::new();
    for entry in config.get(&keys::OTEL_HEADERS) {
        let wrong = |why: &dyn std::fmt::Display| bad(format!("otel.headers: {why}"), remedy);
        let (name, place) = entry
            .split_once('=')
            .ok_or_else(|| wrong(&"an entry names no header"))?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(&error))?;
        let key = place
            .parse::<ModelKeyReference>()
            .and_then(|reference| reference.resolve())
            .map_err(|error| wrong(&error))?;
        key.lend(conceal);
        let value = key.lend(HeaderValue::from_str);
        let mut value = value.map_err(|_| wrong(&"a value is none of a header"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-protobuf"),
    );
    Ok(headers)
}

impl OtlpExporter {
    /// As the configuration says; nothing where it names no collector.
    pub fn open(
        target: &OtlpTarget,
        installation: &Installation,
    ) -> Result<Option<Arc<Self>>, HostError> {
        let config = &installation.config;
        let url = match target {
            OtlpTarget::Configured => config.get(&keys::OTEL_ENDPOINT),
            OtlpTarget::Url(url) => url.clone(),
        };
        if url.is_empty() {
            return Ok(None);
        }
        let with_key = !config.get(&keys::OTEL_HEADERS).is_empty();
        let read = if with_key {
            ServiceUrl::private(&url)
        } else {
            ServiceUrl::any(&url)
        };
        let url = read.map_err(|error| {
            let remedy =
                "name a collector: http://HOST:4318, or https:// where otel.headers is set";
            bad(format!("otel.endpoint: {error}"), remedy)
        })?;
        let http = HttpClient::new().map_err(|error| HostError::Internal(error.to_string()))?;
        Ok(Some(Arc::new(Self {
            http,
            url,
            headers: headers(config)?,
            dialect: OtlpDialect::named(&config.get(&keys::OTEL_DIALECT)),
            content: config.get(&keys::OTEL_CONTENT) == "yes",
        })))
    }

    /// Where it sends to.
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// Sends the trace of a run as its log has it, and tells how many spans it has. To send it again changes
    /// nothing: each span has its id from the log.
    pub async fn export(
        &self,
        store: &Arc<dyn RunStore>,
        run: &RunId,
    ) -> Result<RunTrace, HostError> {
        let trace = RunTrace::read(store, run).await?;
        let trace = if self.content {
            trace
        } else {
            trace.without_content()
        };
        for spans in trace.spans.chunks(AT_ONCE) {
            self.send(request(&trace, spans, self.dialect)).await?;
        }
        Ok(trace)
    }

    async fn send(&self, body: bytes::Bytes) -> Result<(), HostError> {
        let mut tries = 1;
        loop {
            let sent = HttpRequest {
                method: Method::POST,
                url: &self.url,
                path: "/v1/traces",
                headers: self.headers.clone(),
                body: body.clone(),
                within: WITHIN,
                most: MOST,
            };
            let (why, again, pause) = match self.http.send(sent).await {
                Ok(answer) if answer.status.is_success() => return Ok(()),
                Ok(answer) => {
                    let status = answer.status.as_u16();
                    let pause = answer.headers.get(RETRY_AFTER);
                    let pause = pause.and_then(|value| value.to_str().ok()?.parse().ok());
                    let again = matches!(status, 429 | 502..=504);
                    let why = format!("{} answers with {status}", self.url);
                    (why, again, pause.map(Duration::from_secs))
                }
                Err(error) => (error.to_string(), true, None),
            };
            if !again || tries == TRIES {
                let remedy = "is a collector there? `lula trace RUN --otlp URL` sends it again";
                let message = format!("the trace was not exported: {why}");
                return Err(refused(
                    Code::ServerUnusable,
                    RunExit::Environment,
                    message,
                    remedy,
                ));
            }
            let usual = Duration::from_millis(300) * tries;
            tokio::time::sleep(pause.unwrap_or(usual).min(PAUSE)).await;
            tries += 1;
        }
    }
}
