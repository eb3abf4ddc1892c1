//! Carrying bytes to a server and back. Everything above this trait is the same for a live
//! server, a recorded one and a scripted one.

mod cassette;
mod http;

use std::future::Future;
use std::pin::Pin;

pub use cassette::{CassetteError, CassetteTransport, RecordedExchange, RecordingTransport};
pub use http::HttpTransport;

use crate::secret::SecretKey;

/// A future behind a pointer, so that transports can be chosen at run time.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
}

impl HttpMethod {
    /// The word on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct WireRequest {
    pub method: HttpMethod,
    /// The server's base address, without a path that the protocol adds.
    pub base: String,
    /// The path below it.
    pub path: String,
    /// Headers without the key.
    pub headers: Vec<(String, String)>,
    /// The key, with the header it goes into and what stands before it.
    pub key: Option<(&'static str, &'static str, SecretKey)>,
    /// The bytes to send, already in the provider's format.
    pub body: Vec<u8>,
}

/// The beginning of an answer, with its body still to come.
pub struct WireResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// What is still to come, read piece by piece.
    pub body: Box<dyn ResponseBody>,
}

impl std::fmt::Debug for WireResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The bytes of an answer, as they arrive.
pub trait ResponseBody: Send {
    /// The next bytes; `None` at the honest end.
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<Vec<u8>>, TransportError>>;
}

/// Why bytes did not arrive. Never holds a key or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection: the server has seen nothing.
    #[error("cannot reach {place}: {reason}")]
    Unreachable { place: String, reason: String },
    /// It was not sent, because it could be read or taken on the way.
    #[error("not sent to {place}: {reason}")]
    Unsafe { place: String, reason: String },
    /// The connection broke; the server may have done the work.
    #[error("the connection broke off: {0}")]
    Broken(String),
    /// The cassette or the script has no answer to this request.
    #[error("{0}")]
    NoAnswer(String),
}

pub trait ModelTransport: Send + Sync {
    /// Sends a request and waits for the answer's beginning.
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>>;
}

/// A body that is already here, in pieces, and perhaps breaks off after them.
#[derive(Debug)]
pub struct BufferedResponseBody {
    pieces: std::collections::VecDeque<Vec<u8>>,
    breaks_off: bool,
}

impl BufferedResponseBody {
    /// A body that ends honestly after these pieces.
    pub fn new(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self {
            pieces: pieces.into_iter().collect(),
            breaks_off: false,
        }
    }

    /// The same, but the connection breaks after the last piece.
    #[must_use]
    pub fn breaking_off(mut self) -> Self {
        self.breaks_off = true;
        self
    }
}

impl ResponseBody for BufferedResponseBody {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        let next = match self.pieces.pop_front() {
            Some(piece) => Ok(Some(piece)),
            None if self.breaks_off => Err(TransportError::Broken("as recorded".to_owned())),
            None => Ok(None),
        };
        Box::pin(async move { next })
    }
}
