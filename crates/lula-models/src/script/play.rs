//! Playing a script: which turn a request gets, and what it looks like on the wire.

use std::sync::{Mutex, PoisonError};

use lula_protocol::Digest;
use serde_json::{Value, json};

use super::render::render;
use super::{ModelScript, ScriptTurn, ScriptedFault, ScriptedUsage};
use crate::transport::{
    BoxedFuture, BufferedResponseBody, ModelTransport, ResponseBody, TransportError, WireRequest,
    WireResponse,
};
use crate::wire::WireProtocol;

/// Numbers in a scripted embedding.
const WIDTH: usize = 8;

/// An answer, ready for the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptReply {
    /// The HTTP status to answer with.
    pub status: u16,
    /// The headers to send before the body.
    pub headers: Vec<(String, String)>,
    /// The body in pieces.
    pub pieces: Vec<Vec<u8>>,
    /// The connection breaks after the pieces.
    pub breaks_off: bool,
    /// The connection stays open after the pieces, and nothing more comes.
    pub stalls: bool,
    /// How long a server takes before that, in milliseconds.
    pub wait_ms: u64,
    /// A request has to hold this before, where something is named.
    pub after: Option<String>,
}

/// A script and how often each turn was given.
#[derive(Debug)]
pub struct ScriptPlayer {
    script: ModelScript,
    given: Mutex<Vec<u32>>,
}

impl ScriptPlayer {
    /// A player at the script's beginning.
    pub fn new(script: ModelScript) -> Self {
        let given = Mutex::new(vec![0; script.turn.len()]);
        Self { script, given }
    }

    /// The answer to a request.
    pub fn play(&self, path: &str, body: &[u8]) -> ScriptReply {
        let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        match path {
            "/v1/models" => return plain(200, &json!({"data": [{"id": "script"}]})),
            "/api/tags" => return plain(200, &json!({"models": [{"name": "script"}]})),
            "/v1/embeddings" | "/api/embed" => return embeddings(path, &request),
            "/tokenize" => {
                let text = request["content"].as_str().unwrap_or_default();
                let tokens: Vec<usize> = (0..text.split_whitespace().count()).collect();
                return plain(200, &json!({"tokens": tokens}));
            }
            _ => {}
        }
        let Some(wire) = WireProtocol::ALL
            .into_iter()
            .find(|wire| wire.path() == path)
        else {
            return plain(
                404,
                &json!({"error": {"message": format!("no such path: {path}")}}),
            );
        };
        let streamed = match request.get("stream") {
            Some(given) => *given == true,
            None => wire == WireProtocol::Ollama,
        };
        let words = last_words(&request);
        let Some(turn) = self.next(&words) else {
            let said = format!("the script has no turn for this request: {words}");
            return plain(400, &json!({"error": {"message": said}}));
        };
        let usage = turn.usage.unwrap_or_else(|| count(body, &turn));
        let pieces = render(wire, &turn, streamed, usage);
        let fault = turn.fault.unwrap_or_default();
        ScriptReply {
            wait_ms: turn.wait_ms,
            after: turn.after,
            ..bend(fault, pieces, wire, streamed)
        }
    }

    fn next(&self, words: &str) -> Option<ScriptTurn> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self
            .script
            .turn
            .iter()
            .enumerate()
            .position(|(index, turn)| {
                let fits = turn.when.as_ref().is_none_or(|when| words.contains(when));
                let times = turn.times.unwrap_or(1);
                fits && (times == 0 || given[index] < times)
            })?;
        given[index] = given[index].saturating_add(1);
        self.script.turn.get(index).cloned()
    }

    /// Turns that were never given.
    pub fn unused(&self) -> usize {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().filter(|times| **times == 0).count()
    }
}

fn plain(status: u16, body: &Value) -> ScriptReply {
    ScriptReply {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        pieces: vec![body.to_string().into_bytes()],
        breaks_off: false,
        stalls: false,
        wait_ms: 0,
        after: None,
    }
}

fn bend(
    fault: ScriptedFault,
    pieces: Vec<Vec<u8>>,
    wire: WireProtocol,
    streamed: bool,
) -> ScriptReply {
    if let Some(status) = fault.status {
        let said = format!("scripted status {status}");
        let mut played = plain(
            status,
            &json!({"error": {"message": said, "type": "scripted"}}),
        );
        if let Some(body) = fault.body {
            played.pieces = vec![body.into_bytes()];
        }
        if let Some(seconds) = fault.retry_after {
            played
                .headers
                .push(("retry-after".into(), seconds.to_string()));
        }
        return played;
    }
    let kind = match (streamed, wire) {
        (true, WireProtocol::Ollama) => "application/x-ndjson",
        (true, _) => "text/event-stream",
        (false, _) => "application/json",
    };
    let mut played = ScriptReply {
        status: 200,
        headers: vec![("content-type".into(), kind.into())],
        pieces,
        breaks_off: fault.cut_after.is_some(),
        stalls: fault.stall_after.is_some(),
        wait_ms: 0,
        after: None,
    };
    if fault.garbage {
        played.pieces = vec![b"data: <html>busy</html>\n\n".to_vec()];
    }
    if let Some(limit) = fault.cut_after.or(fault.stall_after) {
        let mut left = limit;
        played.pieces = played
            .pieces
            .into_iter()
            .map_while(|mut piece| {
                piece.truncate(left);
                left -= piece.len();
                (!piece.is_empty()).then_some(piece)
            })
            .collect();
    }
    played
}

/// All words of the last message, in any protocol.
fn last_words(request: &Value) -> String {
    let list = request.get("messages").or_else(|| request.get("input"));
    match list {
        Some(Value::Array(items)) => items.last().map(words).unwrap_or_default(),
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => ["content", "text", "output"]
            .into_iter()
            .filter_map(|key| fields.get(key))
            .map(words)
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// About four characters a token, as real ones.
fn count(body: &[u8], turn: &ScriptTurn) -> ScriptedUsage {
    let calls: usize = turn
        .call
        .iter()
        .map(|call| call.arguments.to_string().len())
        .sum();
    let said = turn.say.as_ref().map_or(0, String::len);
    ScriptedUsage {
        input: body.len() as u64 / 4 + 1,
        output: (said + calls) as u64 / 4 + 1,
        cache_read: 0,
    }
}

fn embeddings(path: &str, request: &Value) -> ScriptReply {
    let texts: Vec<&str> = match &request["input"] {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    };
    let vectors: Vec<Vec<f64>> = texts
        .iter()
        .map(|text| {
            let digest = Digest::of_bytes(text.as_bytes());
            digest.as_bytes()[..WIDTH]
                .iter()
                .map(|byte| f64::from(*byte) / 255.0)
                .collect()
        })
        .collect();
    if path == "/api/embed" {
        return plain(200, &json!({"embeddings": vectors}));
    }
    let rows: Vec<Value> = vectors
        .into_iter()
        .enumerate()
        .map(|(index, vector)| json!({"index": index, "embedding": vector}))
        .collect();
    plain(200, &json!({"data": rows}))
}

/// The scripted model as a transport: a cassette that was written, not recorded.
impl ModelTransport for ScriptPlayer {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        let played = self.play(&request.path, &request.body);
        Box::pin(async move {
            let mut pieces = BufferedResponseBody::new(played.pieces);
            if played.breaks_off {
                pieces = pieces.breaking_off();
            }
            let body: Box<dyn ResponseBody> = if played.stalls {
                Box::new(StallingBody(pieces))
            } else {
                Box::new(pieces)
            };
            Ok(WireResponse {
                status: played.status,
                headers: played.headers,
                body,
            })
        })
    }
}

struct StallingBody(BufferedResponseBody);

impl ResponseBody for StallingBody {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            match self.0.next().await {
                Ok(None) => std::future::pending().await,
                other => other,
            }
        })
    }
}
