//! One request and its answer.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;

use crate::connect::{connect, trusted};
use crate::url::ServiceUrl;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// This machine cannot open TLS.
    #[error("this machine cannot open TLS: {0}")]
    Tls(String),
    /// Nothing answers there, or it breaks off.
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    /// It took longer than it may.
    #[error("{0} does not answer in time")]
    TooSlow(String),
    /// The answer is longer than it may be.
    #[error("{0} answers with more than it may")]
    TooLong(String),
    /// The request cannot be written down.
    #[error("the request to {0} cannot be made")]
    BadRequest(String),
}

/// What is asked of a service.
pub struct HttpRequest<'a> {
    pub method: Method,
    /// Where the service is.
    pub url: &'a ServiceUrl,
    /// What of it, with a slash at its beginning; empty for the URL itself.
    pub path: &'a str,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// How long it may take as a whole.
    pub within: Duration,
    /// Longest body of an answer, in bytes.
    pub most: usize,
}

impl fmt::Debug for HttpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.url, self.path)
    }
}

/// What a service answers.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Makes requests, and keeps a connection to each service for the next one.
pub struct HttpClient {
    tls: TlsConnector,
    idle: Mutex<HashMap<String, SendRequest<Full<Bytes>>>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl HttpClient {
    /// A client that trusts what this machine trusts.
    pub fn new() -> Result<Self, HttpError> {
        Ok(Self {
            tls: trusted()?,
            idle: Mutex::default(),
        })
    }

    /// Sends a request and reads its answer. Where a kept connection turns out to be closed before the
    /// request left, it is sent on a new one; it is never sent twice.
    pub async fn send(&self, request: HttpRequest<'_>) -> Result<HttpAnswer, HttpError> {
        let (url, within) = (request.url.to_string(), request.within);
        match tokio::time::timeout(within, self.exchange(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(HttpError::TooSlow(url)),
        }
    }

    async fn exchange(&self, asked: HttpRequest<'_>) -> Result<HttpAnswer, HttpError> {
        let place = asked.url.to_string();
        let failed = |error: &dyn fmt::Display| HttpError::Unreachable {
            url: place.clone(),
            why: error.to_string(),
        };
        let bad = || HttpError::BadRequest(place.clone());
        let mut request = Request::new(Full::new(asked.body));
        *request.method_mut() = asked.method;
        let path = asked.url.path(asked.path);
        *request.uri_mut() = path.parse().map_err(|_| bad())?;
        *request.headers_mut() = asked.headers;
        let host = HeaderValue::from_str(asked.url.authority()).map_err(|_| bad())?;
        request.headers_mut().insert(HOST, host);
        let (mut sender, response) = match self.kept(&place) {
            Some(mut sender) => match sender.try_send_request(request).await {
                Ok(response) => (sender, response),
                Err(mut error) => match error.take_message() {
                    // It did not leave.
                    Some(request) => self.afresh(asked.url, request).await?,
                    None => return Err(failed(error.error())),
                },
            },
            None => self.afresh(asked.url, request).await?,
        };
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, asked.most).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                HttpError::TooLong(place.clone())
            } else {
                failed(&error)
            }
        })?;
        if sender.ready().await.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.insert(place, sender);
        }
        Ok(HttpAnswer {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }

    fn kept(&self, place: &str) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.remove(place).filter(|sender| !sender.is_closed())
    }

    /// Sends a request on a connection of its own.
    async fn afresh(
        &self,
        url: &ServiceUrl,
        request: Request<Full<Bytes>>,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), HttpError> {
        let failed = |error: &dyn fmt::Display| HttpError::Unreachable {
            url: url.to_string(),
            why: error.to_string(),
        };
        let io = TokioIo::new(connect(url, &self.tls).await?);
        let (mut sender, connection) = handshake(io).await.map_err(|error| failed(&error))?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await;
        Ok((sender, response.map_err(|error| failed(&error))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A service that answers every connection so often with the same bytes.
    async fn service(answer: &'static [u8], times: usize) -> ServiceUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    for _ in 0..times {
                        let mut read = [0; 4096];
                        if stream.read(&mut read).await.unwrap_or(0) == 0 {
                            return;
                        }
                        let _ = stream.write_all(answer).await;
                    }
                });
            }
        });
        ServiceUrl::any(&format!("http://{place}")).unwrap()
    }

    async fn ask(client: &HttpClient, url: &ServiceUrl) -> Result<HttpAnswer, HttpError> {
        let request = HttpRequest {
            method: Method::GET,
            url,
            path: "/x",
            headers: HeaderMap::new(),
            body: Bytes::new(),
            within: Duration::from_secs(5),
            most: 16,
        };
        client.send(request).await
    }

    #[tokio::test]
    async fn an_answer_is_read_and_the_connection_is_used_again() {
        let client = HttpClient::new().unwrap();
        let url = service(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 3).await;
        for _ in 0..9 {
            let answer = ask(&client, &url).await.unwrap();
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(&answer.body[..], b"ok");
        }
    }

    #[tokio::test]
    async fn redirects_are_answers_and_long_answers_are_none() {
        let client = HttpClient::new().unwrap();
        let away =
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        let url = service(away, 1).await;
        assert_eq!(ask(&client, &url).await.unwrap().status, 302);
        let long = b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n01234567890123456";
        let url = service(long, 1).await;
        let refused = ask(&client, &url).await.unwrap_err();
        assert!(matches!(refused, HttpError::TooLong(_)), "{refused}");
    }

    #[tokio::test]
    async fn a_place_where_nothing_answers_is_named() {
        let client = HttpClient::new().unwrap();
        let url = ServiceUrl::any("http://127.0.0.1:1").unwrap();
        let refused = ask(&client, &url).await.unwrap_err().to_string();
        assert!(
            refused.contains("http://127.0.0.1:1 cannot be reached"),
            "{refused}"
        );
    }
}
