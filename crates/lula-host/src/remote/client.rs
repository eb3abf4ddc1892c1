//! Requests to a server, and what it refuses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lula_config::keys;
use lula_http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use lula_http::{HeaderMap, HttpAnswer, HttpClient, HttpError, HttpRequest, Method, ServiceUrl};
use lula_models::secret::ModelKeyReference;
use lula_protocol::{Code, FailureReport, RunExit};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::diagnosis::conceal;
use crate::error::HostError;
use crate::installation::Installation;
use crate::otlp::TraceContext;

/// How long a server may take to answer. Cancelling waits for the driver of a run.
const WITHIN: Duration = Duration::from_mins(1);
/// Longest answer that is read.
const MOST: usize = 256 << 20;
/// So often a request that may be repeated is sent, where the server cannot be reached.
const TRIES: u32 = 3;

/// A server, and who asks it.
#[derive(Debug)]
pub struct ServerClient {
    http: HttpClient,
    url: ServiceUrl,
    headers: HeaderMap,
}

/// What of a problem document is told.
#[derive(Deserialize)]
struct Problem {
    code: Code,
    detail: String,
    #[serde(default)]
    remedy: Option<String>,
}

fn failure(code: Code, exit: RunExit, message: String, remedy: Option<String>) -> HostError {
    HostError::Server(Box::new(FailureReport {
        code,
        message,
        place: None,
        remedy,
        exit,
    }))
}

fn unreachable(error: &HttpError) -> HostError {
    let remedy = "is `lula serve` there? `lula config explain server.url` shows where it is asked";
    failure(
        Code::ServerUnusable,
        RunExit::Environment,
        error.to_string(),
        Some(remedy.to_owned()),
    )
}

/// How a command ends that a server refuses with a status.
const fn exit(status: u16) -> RunExit {
    match status {
        500.. => RunExit::Environment,
        409 => RunExit::Failed,
        _ => RunExit::Usage,
    }
}

impl ServerClient {
    /// The server that the configuration names; nothing where it names none.
    pub fn configured(installation: &Installation) -> Result<Option<Arc<Self>>, HostError> {
        let config = &installation.config;
        let text = config.get(&keys::SERVER_URL);
        if text.is_empty() {
            return Ok(None);
        }
        let bad = |message: String, remedy: &str| {
            let remedy = Some(remedy.to_owned());
            failure(Code::BadValue, RunExit::Usage, message, remedy)
        };
        let url = ServiceUrl::private(&text).map_err(|error| {
            let remedy = "set server.url to https://HOST, or to http://127.0.0.1:PORT";
            bad(format!("server.url: {error}"), remedy)
        })?;
        let mut headers = HeaderMap::new();
        let reference = config.get(&keys::SERVER_KEY);
        if !reference.is_empty() {
            let remedy =
                "set server.key to env:NAME or file:PATH of a key of `lula server keys add`";
            let key = reference
                .parse::<ModelKeyReference>()
                .and_then(|reference| reference.resolve())
                .map_err(|error| bad(format!("server.key: {error}"), remedy))?;
            key.lend(conceal);
            let value = key.lend(|key| HeaderValue::from_str(&format!("Bearer {key}")));
            let mut value =
                value.map_err(|_| bad("server.key: it is no key".to_owned(), remedy))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // What this command was begun within, the run is begun within.
        let context = std::env::var("TRACEPARENT").ok();
        let context = context.filter(|text| text.parse::<TraceContext>().is_ok());
        if let Some(Ok(value)) = context.map(HeaderValue::try_from) {
            headers.insert("traceparent", value);
        }
        let http = HttpClient::new().map_err(|error| unreachable(&error))?;
        Ok(Some(Arc::new(Self { http, url, headers })))
    }

    /// Where the server is.
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        body: &Bytes,
        key: Option<&str>,
    ) -> Result<HttpAnswer, HttpError> {
        let mut headers = self.headers.clone();
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(Ok(key)) = key.map(HeaderValue::from_str) {
            headers.insert("idempotency-key", key);
        }
        let request = HttpRequest {
            method,
            url: &self.url,
            path,
            headers,
            body: body.clone(),
            within: WITHIN,
            most: MOST,
        };
        self.http.send(request).await
    }

    /// Sends a request; again where the server did not answer and a repeat does nothing twice.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        key: Option<&str>,
    ) -> Result<HttpAnswer, HostError> {
        let repeats = method == Method::GET || key.is_some();
        let mut tries = 1;
        let answer = loop {
            match self.once(method.clone(), path, &body, key).await {
                Ok(answer) if answer.status == 429 && tries < TRIES => {}
                Ok(answer) => break answer,
                Err(HttpError::Unreachable { .. } | HttpError::TooSlow(_))
                    if repeats && tries < TRIES => {}
                Err(error) => return Err(unreachable(&error)),
            }
            tokio::time::sleep(Duration::from_millis(500) * tries).await;
            tries += 1;
        };
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(self.refusal(&answer))
    }

    fn refusal(&self, answer: &HttpAnswer) -> HostError {
        let status = answer.status.as_u16();
        match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(problem) => failure(problem.code, exit(status), problem.detail, problem.remedy),
            Err(_) => failure(
                Code::ServerUnusable,
                RunExit::Environment,
                format!(
                    "{} answers with {status}, and is no server of Lula",
                    self.url
                ),
                Some("correct server.url".to_owned()),
            ),
        }
    }

    fn read<T: DeserializeOwned>(&self, answer: &HttpAnswer) -> Result<T, HostError> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            failure(
                Code::ServerUnusable,
                RunExit::Environment,
                format!(
                    "{} says what this version does not understand: {error}",
                    self.url
                ),
                Some("use the version of the server".to_owned()),
            )
        })
    }

    /// What a route answers.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, HostError> {
        let answer = self.send(Method::GET, path, Bytes::new(), None).await?;
        self.read(&answer)
    }

    /// What a route answers to a document.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, HostError> {
        self.post_once(path, body, None).await
    }

    /// The same, where repeats with a key do nothing twice.
    pub async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> Result<T, HostError> {
        let body = Bytes::from(body.to_string());
        let answer = self.send(Method::POST, path, body, key).await?;
        self.read(&answer)
    }
}
