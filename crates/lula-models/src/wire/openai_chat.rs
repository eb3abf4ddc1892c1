//! OpenAI chat completions, and every server compatible with them.

use serde_json::{Map, Value, json};

use super::assembly::{AssembledAnswer, Assembly, ListedCall, StreamDelta, settle_stop};
use super::failure::reported;
use super::quirks::{JsonOutput, ServerQuirks};
use super::{WireError, WireProtocol, is_strict, malformed, read, reasons};
use crate::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelStopReason, OutputShape,
    ThinkingEffort, TokenUsage,
};
use crate::output::gbnf;

pub(super) fn request(
    request: &ModelRequest,
    quirks: &ServerQuirks,
    streamed: bool,
) -> Result<Value, WireError> {
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    body.insert("messages".into(), messages(&request.messages));
    let reasons = reasons(&request.model);
    let limit = if quirks.max_completion_tokens || reasons {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    body.insert(limit.into(), request.max_tokens.into());
    if let Some(temperature) = request.temperature.filter(|_| !reasons) {
        body.insert("temperature".into(), temperature.into());
    }
    if let (Some(seed), true) = (request.seed, quirks.seed) {
        body.insert("seed".into(), seed.into());
    }
    if quirks.effort && request.effort != ThinkingEffort::Off {
        body.insert("reasoning_effort".into(), json!(request.effort));
    }
    if quirks.cache_prompt {
        body.insert("cache_prompt".into(), true.into());
    }
    if quirks.ask_usage {
        body.insert("usage".into(), json!({"include": true}));
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
    output(&mut body, &request.output, quirks)?;
    if streamed {
        body.insert("stream".into(), true.into());
        if quirks.stream_usage {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
    Ok(Value::Object(body))
}

fn output(
    body: &mut Map<String, Value>,
    output: &OutputShape,
    quirks: &ServerQuirks,
) -> Result<(), WireError> {
    match output {
        OutputShape::Text => {}
        OutputShape::Json { name, schema } => match quirks.json {
            JsonOutput::ResponseFormat => {
                body.insert(
                    "response_format".into(),
                    json!({"type": "json_schema", "json_schema": {
                        "name": name, "schema": schema, "strict": is_strict(schema),
                    }}),
                );
            }
            JsonOutput::StructuredOutputs => {
                body.insert("structured_outputs".into(), json!({"json": schema}));
            }
            JsonOutput::Grammar => {
                let gbnf = gbnf::of_schema(schema)
                    .map_err(|error| WireError::Unwritable(error.to_string()))?;
                body.insert("grammar".into(), gbnf.into());
            }
        },
        OutputShape::Grammar { gbnf } => {
            body.insert("grammar".into(), gbnf.clone().into());
        }
        OutputShape::Edits { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Chat,
                what: "unshaped edits",
            });
        }
    }
    Ok(())
}

fn messages(messages: &[ModelMessage]) -> Value {
    let mut out = Vec::new();
    for message in messages {
        let role = match message.role {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
        };
        // Results are messages of their own here, and come before what the user adds to them.
        for part in &message.parts {
            if let MessagePart::Result { id, content, .. } = part {
                out.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
            }
        }
        let content = content(&message.parts);
        let calls: Vec<_> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Call(call) => {
                    Some(json!({"id": call.id, "type": "function", "function": {
                        "name": call.name, "arguments": call.arguments.to_string(),
                    }}))
                }
                _ => None,
            })
            .collect();
        if calls.is_empty() {
            if let Some(content) = content {
                out.push(json!({"role": role, "content": content}));
            }
        } else {
            let mut said = json!({"role": role, "content": content, "tool_calls": calls});
            if let Value::Object(said) = &mut said {
                said.extend(kept_notes(&message.parts));
            }
            out.push(said);
        }
    }
    Value::Array(out)
}

/// The notes that led to calls, in the fields they came in: a server that gives some wants them back with
/// the calls, and some refuse them without.
fn kept_notes(parts: &[MessagePart]) -> Map<String, Value> {
    let notes = parts.iter().filter_map(|part| match part {
        MessagePart::Reasoning {
            wire: WireProtocol::Chat,
            raw: Value::Object(raw),
            ..
        } => Some(raw.clone()),
        _ => None,
    });
    let known = |field: &str| NOTE_TEXTS.contains(&field) || field == NOTE_BLOCKS;
    let fields = notes.flatten();
    fields.filter(|(field, _)| known(field)).collect()
}

fn content(parts: &[MessagePart]) -> Option<Value> {
    let has_image = parts
        .iter()
        .any(|part| matches!(part, MessagePart::Image { .. }));
    if has_image {
        let blocks = parts.iter().filter_map(|part| match part {
            MessagePart::Text { text } => Some(json!({"type": "text", "text": text})),
            MessagePart::Image { media_type, base64 } => {
                Some(json!({"type": "image_url", "image_url": {
                    "url": format!("data:{media_type};base64,{base64}"),
                }}))
            }
            _ => None,
        });
        return Some(Value::Array(blocks.collect()));
    }
    let text: String = parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    (!text.is_empty()).then(|| text.into())
}

pub(super) fn response(body: &Value) -> Result<AssembledAnswer, WireError> {
    if let Some(failure) = reported(body) {
        return Err(WireError::Reported(failure));
    }
    let choice = body
        .get("choices")
        .and_then(|choices| choices.get(0))
        .ok_or_else(|| malformed("no choices"))?;
    let message = choice
        .get("message")
        .ok_or_else(|| malformed("a choice without a message"))?;
    let stop = stop(read::text(choice, "finish_reason"));
    let mut parts = Vec::new();
    let mut raw = RawNotes::default();
    raw.take(message);
    parts.extend(raw.part());
    if let Some(text) = read::text(message, "content").filter(|text| !text.is_empty()) {
        parts.push(MessagePart::text(text));
    }
    let refused = read::text(message, "refusal").filter(|text| !text.is_empty());
    if let Some(text) = refused {
        parts.push(MessagePart::text(text));
    }
    for call in ListedCall::of(message) {
        parts.extend(call?.part(parts.len(), &stop));
    }
    let stop = if refused.is_some() {
        ModelStopReason::Refusal
    } else {
        settle_stop(stop, &parts)
    };
    Ok((parts, stop, body.get("usage").and_then(usage)))
}

/// Fields in which servers give the notes of a model as text.
const NOTE_TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];
/// And as blocks (`OpenRouter`), which come back as they were.
const NOTE_BLOCKS: &str = "reasoning_details";

/// The notes of a model as they come, piece by piece or whole.
#[derive(Debug, Default)]
struct RawNotes {
    field: &'static str,
    text: String,
    blocks: Vec<Value>,
}

impl RawNotes {
    /// Takes what a message or a piece of one holds, and tells its text.
    fn take<'a>(&mut self, message: &'a Value) -> Option<&'a str> {
        let blocks = message.get(NOTE_BLOCKS).and_then(Value::as_array);
        for block in blocks.into_iter().flatten() {
            self.block(block);
        }
        let (field, text) = NOTE_TEXTS
            .iter()
            .find_map(|field| Some((*field, read::text(message, field)?)))
            .filter(|(_, text)| !text.is_empty())?;
        self.field = field;
        self.text.push_str(text);
        Some(text)
    }

    /// Pieces of one block follow each other and have its index.
    fn block(&mut self, piece: &Value) {
        let same = |last: &Value| {
            let of = |key: &str| last.get(key) == piece.get(key);
            piece.get("index").is_some() && of("index") && of("type")
        };
        let Some(Value::Object(last)) = self.blocks.last_mut().filter(|last| same(last)) else {
            self.blocks.push(piece.clone());
            return;
        };
        for (key, value) in piece.as_object().into_iter().flatten() {
            let grows = matches!(key.as_str(), "text" | "summary" | "data" | "signature");
            match (last.get_mut(key), value) {
                (Some(Value::String(so_far)), Value::String(more)) if grows => {
                    so_far.push_str(more);
                }
                (_, Value::Null) => {}
                _ => {
                    last.insert(key.clone(), value.clone());
                }
            }
        }
    }

    fn part(self) -> Option<MessagePart> {
        if self.text.is_empty() && self.blocks.is_empty() {
            return None;
        }
        let mut raw = Map::new();
        if self.blocks.is_empty() {
            raw.insert(self.field.to_owned(), self.text.clone().into());
        } else {
            raw.insert(NOTE_BLOCKS.to_owned(), self.blocks.into());
        }
        Some(MessagePart::Reasoning {
            wire: WireProtocol::Chat,
            text: self.text,
            raw: Value::Object(raw),
        })
    }
}

fn stop(reason: Option<&str>) -> ModelStopReason {
    match reason {
        Some("stop") | None => ModelStopReason::End,
        Some("tool_calls" | "function_call") => ModelStopReason::Calls,
        Some("length") => ModelStopReason::Length,
        Some("content_filter") => ModelStopReason::Filter,
        Some(other) => ModelStopReason::Other(other.to_owned()),
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    usage.get("prompt_tokens")?;
    Some(TokenUsage {
        input: read::number(usage, &["prompt_tokens"]),
        output: read::number(usage, &["completion_tokens"]),
        cache_read: read::number(usage, &["prompt_tokens_details", "cached_tokens"]),
        cache_write: 0,
        reasoning: read::number(usage, &["completion_tokens_details", "reasoning_tokens"]),
    })
}

/// Where words and notes stand among the blocks; calls follow at their index.
const NOTES: u64 = 0;
const WORDS: u64 = 1;
const CALLS: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct OpenAiChatReader {
    assembly: Assembly,
    notes: RawNotes,
    stop: Option<ModelStopReason>,
    refused: bool,
    usage: Option<TokenUsage>,
    /// Servers that give no index mean the call they last named.
    last_call: Option<u64>,
}

impl OpenAiChatReader {
    pub(super) fn take(
        &mut self,
        event: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        if let Some(failure) = reported(event) {
            return Err(WireError::Reported(failure));
        }
        if let Some(usage) = event.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = event.get("choices").and_then(|choices| choices.get(0)) else {
            return Ok(());
        };
        if let Some(delta) = choice.get("delta") {
            self.delta(delta, deltas)?;
        }
        if let Some(reason) = read::text(choice, "finish_reason") {
            self.stop = Some(stop(Some(reason)));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<StreamDelta>) -> Result<(), WireError> {
        if let Some(text) = self.notes.take(delta) {
            deltas.push(StreamDelta::Reasoning(text.to_owned()));
        }
        if let Some(text) = read::text(delta, "content") {
            self.assembly.text(WORDS, text, deltas);
        }
        if let Some(text) = read::text(delta, "refusal").filter(|text| !text.is_empty()) {
            self.refused = true;
            self.assembly.text(WORDS, text, deltas);
        }
        for call in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.call(call, deltas)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, deltas: &mut Vec<StreamDelta>) -> Result<(), WireError> {
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = read::text(function, "name").filter(|name| !name.is_empty());
        let id = read::text(call, "id").filter(|id| !id.is_empty());
        let index = match call.get("index").and_then(Value::as_u64) {
            Some(index) => CALLS.saturating_add(index),
            None if name.is_some() => self.assembly.next_index().max(CALLS),
            None => self
                .last_call
                .ok_or_else(|| malformed("arguments without a call"))?,
        };
        self.last_call = Some(index);
        if let Some(name) = name.filter(|_| !self.assembly.has_call(index)) {
            self.assembly
                .start_call(index, id.unwrap_or_default(), name, deltas);
        }
        match function.get("arguments") {
            Some(Value::String(more)) => self.assembly.arguments(index, more, deltas),
            Some(whole @ Value::Object(_)) => {
                self.assembly.arguments(index, &whole.to_string(), deltas)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<AssembledAnswer, WireError> {
        // Some servers end without [DONE]; none ends honestly without a reason to stop.
        let Some(stop) = self.stop else {
            return Err(WireError::Cut);
        };
        if let Some(notes) = self.notes.part() {
            self.assembly.done(NOTES, notes);
        }
        let parts = self.assembly.finish(&stop);
        let stop = if self.refused {
            ModelStopReason::Refusal
        } else {
            settle_stop(stop, &parts)
        };
        Ok((parts, stop, self.usage))
    }
}
