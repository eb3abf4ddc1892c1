//! Recording exchanges byte by byte, and answering from the record.
//!
//! A cassette is a text file, one exchange a line. It holds no key: the key's header is never
//! recorded, and the key's bytes are taken out of whatever the server repeated.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lula_protocol::Digest;
use serde::{Deserialize, Serialize};

use super::{
    BoxedFuture, BufferedResponseBody, ModelTransport, ResponseBody, TransportError, WireRequest,
    WireResponse,
};
use crate::secret::SecretKey;

/// Bytes as text where they are text, and in hexadecimal digits where they are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Bytes {
    Text(String),
    Hex(String),
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex(
                bytes
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<Vec<_>>()
                    .concat(),
            ),
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Hex(hex) => (0..hex.len())
                .step_by(2)
                .map(|at| {
                    hex.get(at..at + 2)
                        .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                })
                .collect(),
        }
    }
}

/// A request and the answer to it, as they went over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedExchange {
    method: String,
    path: String,
    request: Bytes,
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Bytes>,
    /// Whether the connection broke off after the last piece.
    #[serde(default)]
    broke_off: bool,
}

impl RecordedExchange {
    /// What tells requests apart. The address is not part of it: a record serves anywhere.
    fn key(method: &str, path: &str, body: &[u8]) -> Digest {
        Digest::of_bytes(&[method.as_bytes(), b" ", path.as_bytes(), b"\n", body].concat())
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("the cassette {path} cannot be used: {error}")]
    File {
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A line is no exchange.
    #[error("line {line} of the cassette is not an exchange: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        reason: String,
    },
}

/// Answers from a record, and never from the network.
#[derive(Debug, Default)]
pub struct CassetteTransport {
    left: Mutex<VecDeque<(Digest, RecordedExchange)>>,
}

impl CassetteTransport {
    /// Reads the text of a cassette.
    pub fn parse(text: &str) -> Result<Self, CassetteError> {
        let mut left = VecDeque::new();
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let bad = |reason: String| CassetteError::Line {
                line: index + 1,
                reason,
            };
            let recording: RecordedExchange =
                serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
            let body = recording
                .request
                .bytes()
                .ok_or_else(|| bad("bad hex".to_owned()))?;
            if recording.pieces.iter().any(|piece| piece.bytes().is_none()) {
                return Err(bad("bad hex".to_owned()));
            }
            let key = RecordedExchange::key(&recording.method, &recording.path, &body);
            left.push_back((key, recording));
        }
        Ok(Self {
            left: Mutex::new(left),
        })
    }

    /// Reads a cassette from a file.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let text = std::fs::read_to_string(path).map_err(|error| CassetteError::File {
            path: path.display().to_string(),
            error,
        })?;
        Self::parse(&text)
    }

    /// Exchanges that no request asked for.
    pub fn left(&self) -> usize {
        self.left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl ModelTransport for CassetteTransport {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        let wanted = RecordedExchange::key(request.method.name(), &request.path, &request.body);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let found = left
            .iter()
            .position(|(key, _)| *key == wanted)
            .and_then(|index| left.remove(index));
        let answer = match found {
            Some((_, recording)) => {
                let pieces = recording.pieces.iter().filter_map(Bytes::bytes);
                let mut body = BufferedResponseBody::new(pieces);
                if recording.broke_off {
                    body = body.breaking_off();
                }
                Ok(WireResponse {
                    status: recording.status,
                    headers: recording.headers,
                    body: Box::new(body),
                })
            }
            None => Err(TransportError::NoAnswer(format!(
                "the cassette has no answer to {} {} ({}): record it anew",
                request.method.name(),
                request.path,
                wanted.short()
            ))),
        };
        Box::pin(async move { answer })
    }
}

/// Passes requests on and records what comes back.
pub struct RecordingTransport<T> {
    inner: T,
    done: Arc<Mutex<Vec<RecordedExchange>>>,
}

impl<T: ModelTransport> RecordingTransport<T> {
    /// Records what this transport does.
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            done: Arc::default(),
        }
    }

    /// The cassette so far: exchanges whose body was read to its end or its break.
    pub fn text(&self) -> String {
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(|recording| serde_json::to_string(recording).ok())
            .flat_map(|line| [line, "\n".to_owned()])
            .collect()
    }

    /// Writes the cassette to a file.
    pub fn save(&self, path: &Path) -> Result<(), CassetteError> {
        std::fs::write(path, self.text()).map_err(|error| CassetteError::File {
            path: path.display().to_string(),
            error,
        })
    }
}

impl<T: ModelTransport> ModelTransport for RecordingTransport<T> {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        Box::pin(async move {
            let response = self.inner.send(request).await?;
            let key = request.key.as_ref().map(|(_, _, key)| key.clone());
            let scrub = |bytes: &[u8]| {
                key.as_ref()
                    .map_or(bytes.to_vec(), |key| key.scrub_bytes(bytes))
            };
            // Only what reading an answer needs: other headers can hold cookies and accounts.
            let headers = response
                .headers
                .iter()
                .filter(|(name, _)| name == "content-type" || name.starts_with("retry-after"))
                .cloned()
                .collect();
            let recording = RecordedExchange {
                method: request.method.name().to_owned(),
                path: request.path.clone(),
                request: Bytes::of(&scrub(&request.body)),
                status: response.status,
                headers,
                pieces: Vec::new(),
                broke_off: false,
            };
            Ok(WireResponse {
                status: response.status,
                headers: response.headers,
                body: Box::new(RecordingBody {
                    inner: response.body,
                    recording: Some(recording),
                    pieces: Vec::new(),
                    key,
                    done: Arc::clone(&self.done),
                }),
            })
        })
    }
}

struct RecordingBody {
    inner: Box<dyn ResponseBody>,
    recording: Option<RecordedExchange>,
    pieces: Vec<Vec<u8>>,
    key: Option<SecretKey>,
    done: Arc<Mutex<Vec<RecordedExchange>>>,
}

impl RecordingBody {
    fn end(&mut self, broke_off: bool) {
        let Some(mut recording) = self.recording.take() else {
            return;
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        if let Some(key) = &self.key {
            // A key that was cut in two by the network is only seen in the whole.
            let whole = pieces.concat();
            let clean = key.scrub_bytes(&whole);
            if clean != whole {
                pieces = vec![clean];
            }
        }
        recording.pieces = pieces.iter().map(|piece| Bytes::of(piece)).collect();
        recording.broke_off = broke_off;
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(recording);
    }
}

impl ResponseBody for RecordingBody {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            let next = self.inner.next().await;
            match &next {
                Ok(Some(piece)) => self.pieces.push(piece.clone()),
                Ok(None) => self.end(false),
                Err(_) => self.end(true),
            }
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_the_text(bytes: Vec<u8>) {
            prop_assert_eq!(Bytes::of(&bytes).bytes().unwrap(), bytes);
        }
    }

    #[test]
    fn a_line_that_is_no_exchange_is_named() {
        let error = CassetteTransport::parse("\n{\"method\":1}")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("line 2 of the cassette"), "{error}");
    }
}
