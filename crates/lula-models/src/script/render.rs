//! Writing an answer in each protocol, as its server would.

use serde_json::{Value, json};

use super::{ScriptTurn, ScriptedCall, ScriptedUsage};
use crate::wire::WireProtocol;

/// Characters in one piece of a stream.
const PIECE: usize = 16;

/// The pieces of the body.
pub(super) fn render(
    wire: WireProtocol,
    turn: &ScriptTurn,
    streamed: bool,
    usage: ScriptedUsage,
) -> Vec<Vec<u8>> {
    let usage = (!turn.uncounted).then_some(usage);
    match (wire, streamed) {
        (WireProtocol::Chat, false) => whole(&chat(turn, usage)),
        (WireProtocol::Responses, false) => whole(&responses(turn, usage)),
        (WireProtocol::Messages, false) => whole(&messages(turn, usage)),
        (WireProtocol::Ollama, false) => whole(&ollama(turn, usage)),
        (WireProtocol::Chat, true) => chat_stream(turn, usage),
        (WireProtocol::Responses, true) => responses_stream(turn, usage),
        (WireProtocol::Messages, true) => messages_stream(turn, usage),
        (WireProtocol::Ollama, true) => ollama_stream(turn, usage),
    }
}

fn whole(body: &Value) -> Vec<Vec<u8>> {
    vec![body.to_string().into_bytes()]
}

fn data(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

fn named(name: &str, mut event: Value) -> Vec<u8> {
    if let Value::Object(fields) = &mut event {
        fields.insert("type".into(), name.into());
    }
    format!("event: {name}\ndata: {event}\n\n").into_bytes()
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn id(index: usize) -> String {
    format!("call_{}", index + 1)
}

fn text_of(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

fn stop<'a>(turn: &ScriptTurn, words: [&'a str; 4]) -> &'a str {
    let [end, calls, length, filter] = words;
    match turn.stop.as_deref() {
        Some("length") => length,
        Some("filter") => filter,
        _ if turn.call.is_empty() => end,
        _ => calls,
    }
}

const CHAT_STOPS: [&str; 4] = ["stop", "tool_calls", "length", "content_filter"];

fn chat_call(index: usize, call: &ScriptedCall) -> Value {
    json!({"id": id(index), "type": "function", "function": {
        "name": call.name, "arguments": text_of(&call.arguments)}})
}

fn chat_usage(usage: ScriptedUsage) -> Value {
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read}})
}

fn chat(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Value {
    let mut message = json!({"role": "assistant", "content": turn.say});
    if let Some(notes) = &turn.think {
        message["reasoning_content"] = notes.clone().into();
    }
    if !turn.call.is_empty() {
        message["tool_calls"] = turn
            .call
            .iter()
            .enumerate()
            .map(|(index, call)| chat_call(index, call))
            .collect();
    }
    let mut body = json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "script",
        "choices": [{"index": 0, "message": message, "finish_reason": stop(turn, CHAT_STOPS)}]});
    if let Some(usage) = usage {
        body["usage"] = chat_usage(usage);
    }
    body
}

fn chat_stream(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Vec<Vec<u8>> {
    let event = |delta: Value, reason: Option<&str>| {
        data(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "script",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}),
        )
    };
    let mut out = vec![event(json!({"role": "assistant"}), None)];
    for piece in pieces(turn.think.as_deref().unwrap_or_default()) {
        out.push(event(json!({"reasoning_content": piece}), None));
    }
    for piece in pieces(turn.say.as_deref().unwrap_or_default()) {
        out.push(event(json!({"content": piece}), None));
    }
    for (index, call) in turn.call.iter().enumerate() {
        let mut first = chat_call(index, call);
        first["index"] = index.into();
        first["function"]["arguments"] = "".into();
        out.push(event(json!({"tool_calls": [first]}), None));
        for piece in pieces(&text_of(&call.arguments)) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            out.push(event(json!({"tool_calls": [more]}), None));
        }
    }
    out.push(event(json!({}), Some(stop(turn, CHAT_STOPS))));
    if let Some(usage) = usage {
        out.push(data(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
            "choices": [], "usage": chat_usage(usage)}),
        ));
    }
    out.push(b"data: [DONE]\n\n".to_vec());
    out
}

fn responses_items(turn: &ScriptTurn) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(notes) = &turn.think {
        items.push(
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "c2NyaXB0",
            "summary": [{"type": "summary_text", "text": notes}]}),
        );
    }
    if let Some(text) = &turn.say {
        items.push(
            json!({"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        );
    }
    for (index, call) in turn.call.iter().enumerate() {
        items.push(json!({"type": "function_call", "id": format!("fc_{index}"),
            "call_id": id(index), "name": call.name, "arguments": text_of(&call.arguments)}));
    }
    items
}

fn responses(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Value {
    let (status, details) = match turn.stop.as_deref() {
        Some("length") => ("incomplete", json!({"reason": "max_output_tokens"})),
        Some("filter") => ("incomplete", json!({"reason": "content_filter"})),
        _ => ("completed", Value::Null),
    };
    let mut body = json!({"id": "resp_1", "object": "response", "model": "script", "status": status,
        "incomplete_details": details, "error": null, "output": responses_items(turn)});
    if let Some(usage) = usage {
        body["usage"] = json!({"input_tokens": usage.input, "output_tokens": usage.output,
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output});
    }
    body
}

fn responses_stream(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Vec<Vec<u8>> {
    let mut out = vec![named(
        "response.created",
        json!({"response": {"id": "resp_1"}}),
    )];
    for (index, item) in responses_items(turn).into_iter().enumerate() {
        let at = json!({"output_index": index});
        let with = |key: &str, value: Value| {
            let mut event = at.clone();
            event[key] = value;
            event
        };
        out.push(named(
            "response.output_item.added",
            with("item", item.clone()),
        ));
        let (name, text) = match item["type"].as_str() {
            Some("message") => (
                "response.output_text.delta",
                item["content"][0]["text"].as_str(),
            ),
            Some("reasoning") => (
                "response.reasoning_summary_text.delta",
                item["summary"][0]["text"].as_str(),
            ),
            _ => (
                "response.function_call_arguments.delta",
                item["arguments"].as_str(),
            ),
        };
        for piece in pieces(text.unwrap_or_default()) {
            out.push(named(name, with("delta", piece.into())));
        }
        out.push(named("response.output_item.done", with("item", item)));
    }
    let end = responses(turn, usage);
    let name = if end["status"] == "completed" {
        "response.completed"
    } else {
        "response.incomplete"
    };
    out.push(named(name, json!({"response": end})));
    out
}

const MESSAGE_STOPS: [&str; 4] = ["end_turn", "tool_use", "max_tokens", "refusal"];

fn message_blocks(turn: &ScriptTurn) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(notes) = &turn.think {
        blocks.push(json!({"type": "thinking", "thinking": notes, "signature": "c2NyaXB0"}));
    }
    if let Some(text) = &turn.say {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for (index, call) in turn.call.iter().enumerate() {
        let input = if call.arguments.is_null() {
            json!({})
        } else {
            call.arguments.clone()
        };
        blocks
            .push(json!({"type": "tool_use", "id": id(index), "name": call.name, "input": input}));
    }
    blocks
}

fn message_usage(usage: Option<ScriptedUsage>) -> Value {
    usage.map_or_else(
        || json!({}),
        |usage| {
            json!({"input_tokens": usage.input - usage.cache_read.min(usage.input),
                "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": 0,
                "output_tokens": usage.output})
        },
    )
}

fn messages(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "script",
        "content": message_blocks(turn), "stop_reason": stop(turn, MESSAGE_STOPS),
        "stop_sequence": null, "usage": message_usage(usage)})
}

fn messages_stream(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Vec<Vec<u8>> {
    let mut first = message_usage(usage);
    if usage.is_some() {
        first["output_tokens"] = 1.into();
    }
    let mut out = vec![
        named(
            "message_start",
            json!({"message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "script", "content": [], "usage": first}}),
        ),
        named("ping", json!({})),
    ];
    for (index, block) in message_blocks(turn).into_iter().enumerate() {
        let (field, kind, key, text) = match block["type"].as_str() {
            Some("text") => (
                "text",
                "text_delta",
                "text",
                block["text"].as_str().unwrap_or_default().to_owned(),
            ),
            Some("thinking") => (
                "thinking",
                "thinking_delta",
                "thinking",
                block["thinking"].as_str().unwrap_or_default().to_owned(),
            ),
            _ => (
                "input",
                "input_json_delta",
                "partial_json",
                text_of(&block["input"]),
            ),
        };
        let mut start = block.clone();
        start[field] = if field == "input" {
            json!({})
        } else {
            "".into()
        };
        if field == "thinking" {
            start["signature"] = "".into();
        }
        out.push(named(
            "content_block_start",
            json!({"index": index, "content_block": start}),
        ));
        for piece in pieces(&text) {
            let mut delta = json!({"type": kind});
            delta[key] = piece.into();
            out.push(named(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            ));
        }
        if field == "thinking" {
            let delta = json!({"type": "signature_delta", "signature": block["signature"]});
            out.push(named(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            ));
        }
        out.push(named("content_block_stop", json!({"index": index})));
    }
    let mut last =
        json!({"delta": {"stop_reason": stop(turn, MESSAGE_STOPS), "stop_sequence": null}});
    if let Some(usage) = usage {
        last["usage"] = json!({"output_tokens": usage.output});
    }
    out.push(named("message_delta", last));
    out.push(named("message_stop", json!({})));
    out
}

fn ollama_calls(turn: &ScriptTurn) -> Value {
    turn.call
        .iter()
        .map(|call| json!({"function": {"name": call.name, "arguments": call.arguments}}))
        .collect()
}

fn ollama_end(turn: &ScriptTurn, usage: Option<ScriptedUsage>, mut body: Value) -> Value {
    body["model"] = "script".into();
    body["done"] = true.into();
    body["done_reason"] = stop(turn, ["stop", "stop", "length", "stop"]).into();
    if let Some(usage) = usage {
        body["prompt_eval_count"] = usage.input.into();
        body["eval_count"] = usage.output.into();
    }
    body
}

fn ollama(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Value {
    let mut message =
        json!({"role": "assistant", "content": turn.say.as_deref().unwrap_or_default()});
    if let Some(notes) = &turn.think {
        message["thinking"] = notes.clone().into();
    }
    if !turn.call.is_empty() {
        message["tool_calls"] = ollama_calls(turn);
    }
    ollama_end(turn, usage, json!({"message": message}))
}

fn ollama_stream(turn: &ScriptTurn, usage: Option<ScriptedUsage>) -> Vec<Vec<u8>> {
    let line = |value: &Value| format!("{value}\n").into_bytes();
    let message =
        |message: Value| line(&json!({"model": "script", "done": false, "message": message}));
    let mut out = Vec::new();
    for piece in pieces(turn.think.as_deref().unwrap_or_default()) {
        out.push(message(
            json!({"role": "assistant", "content": "", "thinking": piece}),
        ));
    }
    for piece in pieces(turn.say.as_deref().unwrap_or_default()) {
        out.push(message(json!({"role": "assistant", "content": piece})));
    }
    if !turn.call.is_empty() {
        let calls = ollama_calls(turn);
        out.push(message(
            json!({"role": "assistant", "content": "", "tool_calls": calls}),
        ));
    }
    let end = json!({"message": {"role": "assistant", "content": ""}});
    out.push(line(&ollama_end(turn, usage, end)));
    out
}
