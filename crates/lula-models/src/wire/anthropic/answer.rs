//! Reading what Anthropic messages answer, whole or as a stream.

use serde_json::{Map, Value};

use super::ANSWER;
use crate::normal::{MessagePart, ModelStopReason, TokenUsage};
use crate::wire::assembly::{AssembledAnswer, Assembly, StreamDelta, settle_stop, whole_call};
use crate::wire::failure::reported;
use crate::wire::{WireError, WireProtocol, malformed, read};

pub(in crate::wire) fn response(body: &Value) -> Result<AssembledAnswer, WireError> {
    if let Some(failure) = reported(body) {
        return Err(WireError::Reported(failure));
    }
    let content = body
        .get("content")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("a message without content"))?;
    let stop = stop(read::text(body, "stop_reason"));
    let mut parts = Vec::new();
    for block in content {
        parts.extend(whole_block(block, parts.len(), &stop)?);
    }
    let parts = unwrap_answer(parts);
    let stop = settle_stop(stop, &parts);
    Ok((parts, stop, body.get("usage").and_then(usage)))
}

fn whole_block(
    block: &Value,
    place: usize,
    stop: &ModelStopReason,
) -> Result<Option<MessagePart>, WireError> {
    match read::text(block, "type") {
        Some("text") => Ok(read::text(block, "text")
            .filter(|text| !text.is_empty())
            .map(MessagePart::text)),
        Some("tool_use") => {
            let name =
                read::text(block, "name").ok_or_else(|| malformed("a call without a name"))?;
            let input = block.get("input").unwrap_or(&Value::Null);
            Ok(whole_call(
                place,
                read::text(block, "id"),
                name,
                input,
                stop,
            ))
        }
        Some("thinking" | "redacted_thinking") => Ok(Some(MessagePart::Reasoning {
            wire: WireProtocol::Messages,
            text: read::text(block, "thinking").unwrap_or_default().to_owned(),
            raw: block.clone(),
        })),
        _ => Ok(None),
    }
}

/// A JSON answer came through a tool: for the caller it is the text of the answer.
fn unwrap_answer(parts: Vec<MessagePart>) -> Vec<MessagePart> {
    parts
        .into_iter()
        .map(|part| match part {
            MessagePart::Call(call) if call.name == ANSWER => {
                MessagePart::text(call.arguments.to_string())
            }
            other => other,
        })
        .collect()
}

fn stop(reason: Option<&str>) -> ModelStopReason {
    match reason {
        Some("end_turn" | "stop_sequence") | None => ModelStopReason::End,
        Some("tool_use") => ModelStopReason::Calls,
        Some("max_tokens" | "model_context_window_exceeded") => ModelStopReason::Length,
        Some("refusal") => ModelStopReason::Refusal,
        Some(other) => ModelStopReason::Other(other.to_owned()),
    }
}

/// This provider counts cached tokens apart; the normal form counts them in.
fn usage(usage: &Value) -> Option<TokenUsage> {
    usage
        .get("input_tokens")
        .or_else(|| usage.get("output_tokens"))?;
    let cache_read = read::number(usage, &["cache_read_input_tokens"]);
    let cache_write = read::number(usage, &["cache_creation_input_tokens"]);
    Some(TokenUsage {
        input: read::number(usage, &["input_tokens"])
            .saturating_add(cache_read)
            .saturating_add(cache_write),
        output: read::number(usage, &["output_tokens"]),
        cache_read,
        cache_write,
        reasoning: 0,
    })
}

#[derive(Debug, Default)]
pub(in crate::wire) struct AnthropicReader {
    assembly: Assembly,
    /// A thinking block under way: its index and the block as it grows.
    thinking: Option<(u64, Value)>,
    usage: Map<String, Value>,
    stop: Option<ModelStopReason>,
    ended: bool,
}

impl AnthropicReader {
    pub(in crate::wire) fn take(
        &mut self,
        event: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match read::text(event, "type").unwrap_or_default() {
            "message_start" => {
                let message = event.get("message").unwrap_or(&Value::Null);
                self.count(message.get("usage"));
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                self.start(index, block, deltas)?;
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                self.delta(index, delta, deltas)?;
            }
            "content_block_stop" => self.end_thinking(),
            "message_delta" => {
                if let Some(reason) = event
                    .get("delta")
                    .and_then(|d| read::text(d, "stop_reason"))
                {
                    self.stop = Some(stop(Some(reason)));
                }
                self.count(event.get("usage"));
            }
            "message_stop" => self.ended = true,
            "error" => {
                let failure = reported(event).ok_or_else(|| malformed("error"))?;
                return Err(WireError::Reported(failure));
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts are cumulative: the last one of each kind holds.
    fn count(&mut self, usage: Option<&Value>) {
        for (name, count) in usage.and_then(Value::as_object).into_iter().flatten() {
            if count.is_u64() {
                self.usage.insert(name.clone(), count.clone());
            }
        }
    }

    fn start(
        &mut self,
        index: u64,
        block: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        match read::text(block, "type") {
            Some("text") => {
                let text = read::text(block, "text").unwrap_or_default();
                self.assembly.text(index, text, deltas);
            }
            Some("tool_use") => {
                let name =
                    read::text(block, "name").ok_or_else(|| malformed("a call without a name"))?;
                let id = read::text(block, "id").unwrap_or_default();
                self.assembly.start_call(index, id, name, deltas);
                if let Some(Value::Object(input)) = block.get("input")
                    && !input.is_empty()
                {
                    let input = Value::Object(input.clone()).to_string();
                    self.assembly.arguments(index, &input, deltas)?;
                }
            }
            Some("thinking" | "redacted_thinking") => self.thinking = Some((index, block.clone())),
            _ => {}
        }
        Ok(())
    }

    fn delta(
        &mut self,
        index: u64,
        delta: &Value,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        match read::text(delta, "type") {
            Some("text_delta") => {
                let text = read::text(delta, "text").unwrap_or_default();
                self.assembly.text(index, text, deltas);
            }
            Some("input_json_delta") => {
                let more = read::text(delta, "partial_json").unwrap_or_default();
                self.assembly.arguments(index, more, deltas)?;
            }
            Some("thinking_delta") => {
                let more = read::text(delta, "thinking").unwrap_or_default();
                deltas.push(StreamDelta::Reasoning(more.to_owned()));
                self.extend_thinking("thinking", more);
            }
            Some("signature_delta") => {
                let more = read::text(delta, "signature").unwrap_or_default();
                self.extend_thinking("signature", more);
            }
            _ => {}
        }
        Ok(())
    }

    fn extend_thinking(&mut self, field: &str, more: &str) {
        if let Some((_, Value::Object(block))) = &mut self.thinking {
            let so_far = block.get(field).and_then(Value::as_str).unwrap_or_default();
            let grown = format!("{so_far}{more}");
            block.insert(field.to_owned(), grown.into());
        }
    }

    fn end_thinking(&mut self) {
        if let Some((index, raw)) = self.thinking.take() {
            let text = read::text(&raw, "thinking").unwrap_or_default().to_owned();
            self.assembly.done(
                index,
                MessagePart::Reasoning {
                    wire: WireProtocol::Messages,
                    text,
                    raw,
                },
            );
        }
    }

    pub(in crate::wire) fn finish(mut self) -> Result<AssembledAnswer, WireError> {
        let Some(stop) = self.stop.take().filter(|_| self.ended) else {
            return Err(WireError::Cut);
        };
        self.end_thinking();
        let parts = unwrap_answer(self.assembly.finish(&stop));
        let stop = settle_stop(stop, &parts);
        Ok((parts, stop, usage(&Value::Object(self.usage))))
    }
}
