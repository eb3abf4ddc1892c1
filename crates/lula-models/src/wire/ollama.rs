//! Ollama's own protocol: its OpenAI face hides `num_ctx`, and with it silently cuts prompts.

use serde_json::{Map, Value, json};

use super::assembly::{AssembledAnswer, Assembly, ListedCall, StreamDelta, settle_stop};
use super::failure::reported;
use super::{WireError, WireProtocol, read};
use crate::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelStopReason, OutputShape,
    ThinkingEffort, TokenUsage,
};

/// How long the server keeps the model in memory between two calls.
const KEEP_ALIVE: &str = "10m";

pub(super) fn request(request: &ModelRequest, streamed: bool) -> Result<Value, WireError> {
    let mut options = Map::new();
    options.insert("num_predict".into(), request.max_tokens.into());
    if let Some(context) = request.context {
        options.insert("num_ctx".into(), context.into());
    }
    if let Some(temperature) = request.temperature {
        options.insert("temperature".into(), temperature.into());
    }
    if let Some(seed) = request.seed {
        options.insert("seed".into(), seed.into());
    }
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    body.insert(
        "messages".into(),
        request.messages.iter().flat_map(messages).collect(),
    );
    body.insert("options".into(), options.into());
    body.insert("keep_alive".into(), KEEP_ALIVE.into());
    // Left out it would mean true.
    body.insert("stream".into(), streamed.into());
    if request.effort != ThinkingEffort::Off {
        body.insert("think".into(), true.into());
    }
    if !request.tools.is_empty() {
        let tools: Vec<_> = request
            .sorted_tools()
            .into_iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters,
                }})
            })
            .collect();
        body.insert("tools".into(), tools.into());
    }
    match &request.output {
        OutputShape::Text => {}
        OutputShape::Json { schema, .. } => {
            body.insert("format".into(), schema.clone());
        }
        OutputShape::Grammar { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Ollama,
                what: "a grammar",
            });
        }
        OutputShape::Edits { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Ollama,
                what: "unshaped edits",
            });
        }
    }
    Ok(Value::Object(body))
}

fn messages(message: &ModelMessage) -> Vec<Value> {
    let role = match message.role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    let mut out = Vec::new();
    let mut own = Map::new();
    let mut images = Vec::new();
    let mut calls = Vec::new();
    for part in &message.parts {
        match part {
            MessagePart::Result { name, content, .. } => {
                out.push(json!({"role": "tool", "tool_name": name, "content": content}));
            }
            MessagePart::Image { base64, .. } => images.push(base64.clone()),
            MessagePart::Call(call) => calls.push(json!({"function": {
                "name": call.name, "arguments": call.arguments,
            }})),
            MessagePart::Text { .. }
            | MessagePart::Reasoning { .. }
            | MessagePart::Broken { .. } => {}
        }
    }
    let words = message.words();
    if words.is_empty() && images.is_empty() && calls.is_empty() {
        return out;
    }
    own.insert("role".into(), role.into());
    own.insert("content".into(), words.into());
    if !images.is_empty() {
        own.insert("images".into(), images.into());
    }
    if !calls.is_empty() {
        own.insert("tool_calls".into(), calls.into());
    }
    out.push(Value::Object(own));
    out
}

pub(super) fn response(body: &Value) -> Result<AssembledAnswer, WireError> {
    let mut reader = OllamaReader::default();
    reader.take(body, &mut Vec::new())?;
    reader.finish()
}

fn stop(reason: Option<&str>) -> ModelStopReason {
    match reason {
        Some("stop") | None => ModelStopReason::End,
        Some("length") => ModelStopReason::Length,
        Some(other) => ModelStopReason::Other(other.to_owned()),
    }
}

fn usage(event: &Value) -> Option<TokenUsage> {
    // A prompt that is wholly cached has no count of its own.
    event
        .get("prompt_eval_count")
        .or_else(|| event.get("eval_count"))?;
    Some(TokenUsage {
        input: read::number(event, &["prompt_eval_count"]),
        output: read::number(event, &["eval_count"]),
        ..TokenUsage::default()
    })
}

const NOTES: u64 = 0;
const WORDS: u64 = 1;
const CALLS: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct OllamaReader {
    assembly: Assembly,
    notes: String,
    calls: u64,
    stop: Option<ModelStopReason>,
    usage: Option<TokenUsage>,
}

impl OllamaReader {
    pub(super) fn take(
        &mut self,
        event: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        if let Some(failure) = reported(event) {
            return Err(WireError::Reported(failure));
        }
        let message = event.get("message").unwrap_or(&Value::Null);
        if let Some(text) = read::text(message, "thinking").filter(|text| !text.is_empty()) {
            deltas.push(StreamDelta::Reasoning(text.to_owned()));
            self.notes.push_str(text);
        }
        let words = read::text(message, "content").unwrap_or_default();
        self.assembly.text(WORDS, words, deltas);
        for call in ListedCall::of(message) {
            let call = call?;
            let place = usize::try_from(self.calls).unwrap_or(usize::MAX);
            if let Some(part) = call.part(place, &ModelStopReason::Calls) {
                deltas.push(StreamDelta::CallStarted(call.name.to_owned()));
                self.assembly.done(CALLS + self.calls, part);
                self.calls += 1;
            }
        }
        if event.get("done").and_then(Value::as_bool) == Some(true) {
            self.stop = Some(stop(read::text(event, "done_reason")));
            self.usage = usage(event);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<AssembledAnswer, WireError> {
        let stop = self.stop.take().ok_or(WireError::Cut)?;
        if !self.notes.is_empty() {
            let text = std::mem::take(&mut self.notes);
            let part = MessagePart::Reasoning {
                wire: WireProtocol::Ollama,
                text,
                raw: Value::Null,
            };
            self.assembly.done(NOTES, part);
        }
        let parts = self.assembly.finish(&stop);
        let stop = settle_stop(stop, &parts);
        Ok((parts, stop, self.usage))
    }
}
