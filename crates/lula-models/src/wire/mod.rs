//! Wire protocols as pure functions: a request in normal form becomes bytes, and bytes become
//! deltas and in the end one response. Nothing here opens a socket or reads a clock.

mod anthropic;
mod assembly;
mod embeddings;
mod failure;
mod frames;
mod generations;
mod ollama;
mod openai_chat;
mod openai_responses;
mod quirks;

use lula_protocol::Digest;
use lula_protocol::canonical::{self, CanonicalError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::normal::{ModelRequest, ModelResponse};
pub use assembly::StreamDelta;
pub use embeddings::{embedding_body, embedding_path, embedding_usage, read_embeddings};
pub use failure::{ServerFailure, ServerFailureKind, read_failure};
pub use frames::{StreamFrameError, StreamFrames, StreamFraming};
pub(crate) use generations::reasons;
pub use quirks::{JsonOutput, ServerQuirks};

/// Longest answer that is read, in bytes.
pub const MAX_ANSWER: usize = 64 << 20;

/// A protocol that model servers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireProtocol {
    /// OpenAI `/v1/chat/completions`, and every server compatible with it.
    Chat,
    /// The path `/v1/responses` of OpenAI.
    Responses,
    /// The path `/v1/messages` of Anthropic.
    Messages,
    /// The path `/api/chat` of Ollama.
    Ollama,
}

impl WireProtocol {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Ollama];

    /// The path below the server's base address.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Ollama => "/api/chat",
        }
    }

    /// How a streamed answer is framed.
    pub const fn framing(self) -> StreamFraming {
        match self {
            Self::Ollama => StreamFraming::Lines,
            _ => StreamFraming::Sse,
        }
    }

    /// Headers the protocol asks for beside the key.
    pub const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Messages => &[("anthropic-version", "2023-06-01")],
            _ => &[],
        }
    }

    /// The header a key goes into, and what stands before it.
    pub const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Messages => ("x-api-key", ""),
            _ => ("authorization", "Bearer "),
        }
    }
}

/// Why a request cannot be written, or an answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The request asks for what the protocol cannot carry.
    #[error("{wire:?} cannot carry {what}: choose another model or another kind of answer")]
    Unsupported {
        wire: WireProtocol,
        /// What it cannot carry.
        what: &'static str,
    },
    /// The request has no canonical bytes.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// The answer breaks its protocol.
    #[error("the answer is malformed: {0}")]
    Malformed(String),
    /// The stream ended before the answer did. What came so far is discarded.
    #[error("the answer broke off before its end")]
    Cut,
    /// The server reported a failure inside a stream.
    #[error("the server failed while answering: {0}")]
    Reported(ServerFailure),
}

impl From<CanonicalError> for WireError {
    fn from(error: CanonicalError) -> Self {
        Self::Unwritable(error.to_string())
    }
}

/// The body of a request. Equal requests have equal bytes: keys are sorted, tools too.
pub fn request_body(
    wire: WireProtocol,
    quirks: &ServerQuirks,
    request: &ModelRequest,
    streamed: bool,
) -> Result<Vec<u8>, WireError> {
    let body = match wire {
        WireProtocol::Chat => openai_chat::request(request, quirks, streamed)?,
        WireProtocol::Responses => openai_responses::request(request, streamed)?,
        WireProtocol::Messages => anthropic::request(request, streamed)?,
        WireProtocol::Ollama => ollama::request(request, streamed)?,
    };
    Ok(canonical::to_vec(&body)?)
}

/// Whether a schema is of the strict kind: every object closed, every field required. Servers
/// refuse to be strict about any other.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let closed = match fields.get("properties") {
                Some(Value::Object(properties)) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    fields.get("additionalProperties") == Some(&Value::Bool(false))
                        && required.is_some_and(|list| list.len() == properties.len())
                }
                _ => fields.get("type").and_then(Value::as_str) != Some("object"),
            };
            closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

/// Reads one answer as its bytes arrive, cut wherever the network cuts them.
#[derive(Debug)]
pub struct ResponseDecoder {
    raw: Vec<u8>,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Whole(WireProtocol),
    Streamed {
        frames: StreamFrames,
        reader: Box<Reader>,
    },
}

#[derive(Debug)]
enum Reader {
    Chat(openai_chat::OpenAiChatReader),
    Responses(openai_responses::OpenAiResponsesReader),
    Messages(anthropic::AnthropicReader),
    Ollama(ollama::OllamaReader),
}

impl ResponseDecoder {
    /// A decoder for the answer to one request.
    pub fn new(wire: WireProtocol, streamed: bool) -> Self {
        let mode = if streamed {
            Mode::Streamed {
                frames: StreamFrames::new(wire.framing()),
                reader: Box::new(match wire {
                    WireProtocol::Chat => Reader::Chat(openai_chat::OpenAiChatReader::default()),
                    WireProtocol::Responses => {
                        Reader::Responses(openai_responses::OpenAiResponsesReader::default())
                    }
                    WireProtocol::Messages => {
                        Reader::Messages(anthropic::AnthropicReader::default())
                    }
                    WireProtocol::Ollama => Reader::Ollama(ollama::OllamaReader::default()),
                }),
            }
        } else {
            Mode::Whole(wire)
        };
        Self {
            raw: Vec::new(),
            mode,
        }
    }

    /// Takes the next bytes and returns what they add.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<StreamDelta>, WireError> {
        if self.raw.len() + bytes.len() > MAX_ANSWER {
            return Err(WireError::Malformed(format!(
                "longer than {} MiB",
                MAX_ANSWER >> 20
            )));
        }
        self.raw.extend_from_slice(bytes);
        let mut deltas = Vec::new();
        if let Mode::Streamed { frames, reader } = &mut self.mode {
            for frame in frames.push(bytes).map_err(malformed)? {
                reader.take(&frame, &mut deltas)?;
            }
        }
        Ok(deltas)
    }

    /// The whole answer, or why there is none.
    pub fn finish(mut self) -> Result<ModelResponse, WireError> {
        let raw = Digest::of_bytes(&self.raw);
        let (parts, stop, usage) = match &mut self.mode {
            Mode::Whole(wire) => {
                let body: Value = serde_json::from_slice(&self.raw).map_err(|error| {
                    if error.is_eof() {
                        WireError::Cut
                    } else {
                        malformed(error)
                    }
                })?;
                match wire {
                    WireProtocol::Chat => openai_chat::response(&body)?,
                    WireProtocol::Responses => openai_responses::response(&body)?,
                    WireProtocol::Messages => anthropic::response(&body)?,
                    WireProtocol::Ollama => ollama::response(&body)?,
                }
            }
            Mode::Streamed { frames, reader } => {
                let mut deltas = Vec::new();
                for frame in frames.finish().map_err(malformed)? {
                    reader.take(&frame, &mut deltas)?;
                }
                match &mut **reader {
                    Reader::Chat(reader) => std::mem::take(reader).finish()?,
                    Reader::Responses(reader) => std::mem::take(reader).finish()?,
                    Reader::Messages(reader) => std::mem::take(reader).finish()?,
                    Reader::Ollama(reader) => std::mem::take(reader).finish()?,
                }
            }
        };
        Ok(ModelResponse {
            parts,
            stop,
            usage,
            raw,
        })
    }

    /// The bytes read so far, for the record.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl Reader {
    fn take(&mut self, frame: &str, deltas: &mut Vec<StreamDelta>) -> Result<(), WireError> {
        // The chat protocol's last word. The reason to stop came before it.
        if frame == "[DONE]" {
            return Ok(());
        }
        let event: Value = serde_json::from_str(frame).map_err(malformed)?;
        match self {
            Self::Chat(reader) => reader.take(&event, deltas),
            Self::Responses(reader) => reader.take(&event, deltas),
            Self::Messages(reader) => reader.take(&event, deltas),
            Self::Ollama(reader) => reader.take(&event, deltas),
        }
    }
}

pub(crate) fn malformed(error: impl std::fmt::Display) -> WireError {
    WireError::Malformed(error.to_string())
}

/// Small readings of JSON that every protocol needs.
pub(crate) mod read {
    use super::Value;

    pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
        value.get(key).and_then(Value::as_str)
    }

    pub(crate) fn number(value: &Value, path: &[&str]) -> u64 {
        let mut at = value;
        for key in path {
            match at.get(key) {
                Some(next) => at = next,
                None => return 0,
            }
        }
        at.as_u64().unwrap_or(0)
    }

    /// Arguments as the model wrote them: whole, and an object.
    pub(crate) fn arguments(text: &str) -> Result<Value, String> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        if value.is_object() {
            Ok(value)
        } else {
            Err("not an object".to_owned())
        }
    }
}
