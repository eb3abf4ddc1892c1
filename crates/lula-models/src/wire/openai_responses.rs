//! OpenAI responses. State stays with us: `store` is off and no earlier response is referred to,
//! so that a conversation can be replayed from its own bytes.

use serde_json::{Map, Value, json};

use super::assembly::{AssembledAnswer, StreamDelta, settle_stop, whole_call};
use super::failure::reported;
use super::{WireError, WireProtocol, is_strict, malformed, read, reasons};
use crate::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelStopReason, OutputShape,
    ThinkingEffort, TokenUsage,
};

pub(super) fn request(request: &ModelRequest, streamed: bool) -> Result<Value, WireError> {
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    let leading = request
        .messages
        .iter()
        .take_while(|message| message.role == MessageRole::System)
        .count();
    let (system, rest) = request.messages.split_at(leading);
    if !system.is_empty() {
        let instructions: Vec<_> = system.iter().map(ModelMessage::words).collect();
        body.insert("instructions".into(), instructions.join("\n\n").into());
    }
    body.insert("input".into(), rest.iter().flat_map(items).collect());
    body.insert("max_output_tokens".into(), request.max_tokens.into());
    body.insert("store".into(), false.into());
    if let Some(temperature) = request.temperature.filter(|_| !reasons(&request.model)) {
        body.insert("temperature".into(), temperature.into());
    }
    if request.effort != ThinkingEffort::Off {
        body.insert("reasoning".into(), json!({"effort": request.effort}));
    }
    // Nothing is stored, so notes must come with what is needed to send them back.
    if request.effort != ThinkingEffort::Off || reasons(&request.model) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if !request.tools.is_empty() {
        let tools: Vec<_> = request
            .sorted_tools()
            .into_iter()
            .map(|tool| {
                json!({"type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.parameters, "strict": false})
            })
            .collect();
        body.insert("tools".into(), tools.into());
    }
    match &request.output {
        OutputShape::Text => {}
        OutputShape::Json { name, schema } => {
            body.insert(
                "text".into(),
                json!({"format": {
                    "type": "json_schema", "name": name, "schema": schema, "strict": is_strict(schema),
                }}),
            );
        }
        OutputShape::Grammar { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Responses,
                what: "a grammar",
            });
        }
        OutputShape::Edits { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Responses,
                what: "unshaped edits",
            });
        }
    }
    if streamed {
        body.insert("stream".into(), true.into());
    }
    Ok(Value::Object(body))
}

fn items(message: &ModelMessage) -> Vec<Value> {
    let role = match message.role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    let mut items = Vec::new();
    let mut content: Vec<Value> = Vec::new();
    let flush = |content: &mut Vec<Value>, items: &mut Vec<Value>| {
        if !content.is_empty() {
            let blocks = std::mem::take(content);
            items.push(json!({"type": "message", "role": role, "content": blocks}));
        }
    };
    for part in &message.parts {
        match part {
            // The model's own words are a plain string: as a list they would need the ids the
            // server once gave them.
            MessagePart::Text { text } if message.role == MessageRole::Assistant => {
                items.push(json!({"type": "message", "role": role, "content": text}));
            }
            MessagePart::Text { text } => content.push(json!({"type": "input_text", "text": text})),
            MessagePart::Image { media_type, base64 } => content.push(json!({
                "type": "input_image", "image_url": format!("data:{media_type};base64,{base64}"),
            })),
            MessagePart::Call(call) => {
                flush(&mut content, &mut items);
                items.push(
                    json!({"type": "function_call", "call_id": call.id, "name": call.name,
                    "arguments": call.arguments.to_string()}),
                );
            }
            MessagePart::Result {
                id,
                content: output,
                ..
            } => {
                flush(&mut content, &mut items);
                items
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            MessagePart::Reasoning {
                wire: WireProtocol::Responses,
                raw,
                ..
            } if is_whole(raw) => {
                flush(&mut content, &mut items);
                items.push(raw.clone());
            }
            MessagePart::Reasoning { .. } | MessagePart::Broken { .. } => {}
        }
    }
    flush(&mut content, &mut items);
    items
}

/// Whether a note can be sent back: the server has forgotten it, and an id alone means nothing to it.
fn is_whole(note: &Value) -> bool {
    let held = |key: &str| note.get(key).is_some_and(|value| !value.is_null());
    held("encrypted_content") || !held("id")
}

pub(super) fn response(body: &Value) -> Result<AssembledAnswer, WireError> {
    if let Some(failure) = reported(body) {
        return Err(WireError::Reported(failure));
    }
    let status = read::text(body, "status").unwrap_or("completed");
    let stop = match status {
        "completed" => ModelStopReason::End,
        "incomplete" => match body
            .get("incomplete_details")
            .and_then(|details| read::text(details, "reason"))
        {
            Some("max_output_tokens") | None => ModelStopReason::Length,
            Some("content_filter") => ModelStopReason::Filter,
            Some(other) => ModelStopReason::Other(other.to_owned()),
        },
        other => return Err(malformed(format!("a response that is {other:?}"))),
    };
    let output = body
        .get("output")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("a response without output"))?;
    let mut parts = Vec::new();
    let mut refused = false;
    for item in output {
        read_item(item, &stop, &mut parts, &mut refused)?;
    }
    let stop = if refused {
        ModelStopReason::Refusal
    } else {
        settle_stop(stop, &parts)
    };
    Ok((parts, stop, body.get("usage").and_then(usage)))
}

fn read_item(
    item: &Value,
    stop: &ModelStopReason,
    parts: &mut Vec<MessagePart>,
    refused: &mut bool,
) -> Result<(), WireError> {
    match read::text(item, "type") {
        Some("message") => {
            for block in item
                .get("content")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let text = read::text(block, "text").or_else(|| read::text(block, "refusal"));
                *refused |= read::text(block, "type") == Some("refusal");
                parts.extend(text.filter(|text| !text.is_empty()).map(MessagePart::text));
            }
        }
        Some("function_call") => {
            let name =
                read::text(item, "name").ok_or_else(|| malformed("a call without a name"))?;
            let id = read::text(item, "call_id").or_else(|| read::text(item, "id"));
            let arguments = item.get("arguments").unwrap_or(&Value::Null);
            parts.extend(whole_call(parts.len(), id, name, arguments, stop));
        }
        Some("reasoning") => {
            let text = ["summary", "content"]
                .into_iter()
                .filter_map(|key| item.get(key).and_then(Value::as_array))
                .flatten()
                .filter_map(|block| read::text(block, "text"))
                .collect();
            parts.push(MessagePart::Reasoning {
                wire: WireProtocol::Responses,
                text,
                raw: item.clone(),
            });
        }
        // Other items are the provider's own tools, which are never asked for.
        _ => {}
    }
    Ok(())
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    usage.get("input_tokens")?;
    Some(TokenUsage {
        input: read::number(usage, &["input_tokens"]),
        output: read::number(usage, &["output_tokens"]),
        cache_read: read::number(usage, &["input_tokens_details", "cached_tokens"]),
        cache_write: 0,
        reasoning: read::number(usage, &["output_tokens_details", "reasoning_tokens"]),
    })
}

#[derive(Debug, Default)]
pub(super) struct OpenAiResponsesReader {
    items: Vec<Value>,
    end: Option<Value>,
}

impl OpenAiResponsesReader {
    pub(super) fn take(
        &mut self,
        event: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        let delta = || read::text(event, "delta").unwrap_or_default().to_owned();
        match read::text(event, "type").unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => {
                deltas.push(StreamDelta::Text(delta()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.push(StreamDelta::Reasoning(delta()));
            }
            "response.function_call_arguments.delta" => {
                deltas.push(StreamDelta::CallArguments(delta()));
            }
            "response.output_item.added" => {
                let item = event.get("item").unwrap_or(&Value::Null);
                if read::text(item, "type") == Some("function_call") {
                    let name = read::text(item, "name").unwrap_or_default();
                    deltas.push(StreamDelta::CallStarted(name.to_owned()));
                }
            }
            "response.output_item.done" => self.items.extend(event.get("item").cloned()),
            "response.completed" | "response.incomplete" => {
                self.end = event.get("response").cloned();
            }
            "response.failed" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                let failure = reported(response).ok_or_else(|| malformed("failed, unsaid why"))?;
                return Err(WireError::Reported(failure));
            }
            "error" => {
                let failure =
                    reported(&json!({"error": event})).ok_or_else(|| malformed("error"))?;
                return Err(WireError::Reported(failure));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<AssembledAnswer, WireError> {
        let mut end = self.end.ok_or(WireError::Cut)?;
        // Some servers leave the output out of their last event, having sent each item before.
        let missing = end
            .get("output")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty);
        if let (true, Value::Object(fields)) = (missing, &mut end) {
            fields.insert("output".into(), self.items.into());
        }
        response(&end)
    }
}
