//! Our bytes against what the providers publish: the types of a public OpenAI client, and the
//! forms of the documented fields for the others, unknown fields refused.

use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::CreateResponse;
use lula_models::normal::{OutputShape, ThinkingEffort};
use lula_models::output::schema;
use lula_models::wire::{ServerQuirks, WireProtocol, request_body};
use serde_json::{Value, json};

use crate::world::conversation;

/// Conversations of every shape a request can have.
fn bodies(wire: WireProtocol, quirks: &str) -> Vec<Value> {
    let plain = conversation(wire);
    let mut json_output = plain.clone().with_output(OutputShape::Json {
        name: "place".into(),
        schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    });
    json_output.tools.clear();
    let mut thinking = plain.clone();
    thinking.effort = ThinkingEffort::High;
    thinking.max_tokens = 40_000;
    let mut all = Vec::new();
    for request in [plain, json_output, thinking] {
        for streamed in [false, true] {
            let bytes = request_body(wire, &ServerQuirks::of(quirks), &request, streamed).unwrap();
            all.push(serde_json::from_slice(&bytes).unwrap());
        }
    }
    all
}

/// Everything we wrote must come back from the public type: a field it does not know is lost on
/// the way, and then the two differ.
fn lost(ours: &Value, theirs: &Value, at: &str, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    Some(other) => lost(value, other, &format!("{at}/{key}"), out),
                    None if value.is_null() => {}
                    None => out.push(format!("{at}/{key}")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                lost(a, b, &format!("{at}/{index}"), out);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            // The public types keep some numbers in single precision.
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            if (a - b).abs() > 1e-6 {
                out.push(at.to_owned());
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{at}: {a} became {b}")),
    }
}

#[test]
fn chat_requests_are_what_openai_publishes() {
    for body in bodies(WireProtocol::Chat, "openai") {
        let theirs: CreateChatCompletionRequest = serde_json::from_value(body.clone()).unwrap();
        let mut out = Vec::new();
        lost(&body, &serde_json::to_value(&theirs).unwrap(), "", &mut out);
        assert!(out.is_empty(), "{out:?}");
    }
}

#[test]
fn responses_requests_are_what_openai_publishes() {
    for body in bodies(WireProtocol::Responses, "openai") {
        let theirs: CreateResponse = serde_json::from_value(body.clone()).unwrap();
        let mut out = Vec::new();
        lost(&body, &serde_json::to_value(&theirs).unwrap(), "", &mut out);
        assert!(out.is_empty(), "{out:?}");
    }
}

#[allow(clippy::needless_pass_by_value)] // Reads better with `json!` in its place.
fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "additionalProperties": false,
        "properties": properties})
}

#[test]
fn messages_requests_are_what_anthropic_documents() {
    let text = json!({"type": "string"});
    let cache = object(&["type"], json!({"type": {"const": "ephemeral"}}));
    let block = json!({"anyOf": [
        object(&["type", "text"], json!({"type": {"const": "text"}, "text": text, "cache_control": cache})),
        object(&["type", "thinking", "signature"],
            json!({"type": {"const": "thinking"}, "thinking": text, "signature": text})),
        object(&["type", "id", "name", "input"], json!({"type": {"const": "tool_use"}, "id": text,
            "name": text, "input": {"type": "object"}, "cache_control": cache})),
        object(&["type", "tool_use_id"], json!({"type": {"const": "tool_result"}, "tool_use_id": text,
            "content": text, "is_error": {"type": "boolean"}, "cache_control": cache})),
    ]});
    let turn = object(
        &["role", "content"],
        json!({"role": {"enum": ["user", "assistant"]},
        "content": {"type": "array", "minItems": 1, "items": block}}),
    );
    let tool = object(
        &["name", "input_schema"],
        json!({"name": text, "description": text,
        "input_schema": {"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}}}),
    );
    let form = object(
        &["model", "max_tokens", "messages"],
        json!({
            "model": text, "max_tokens": {"type": "integer", "minimum": 1},
            "messages": {"type": "array", "minItems": 1, "items": turn},
            "system": {"type": "array", "items": block},
            "temperature": {"type": "number", "minimum": 0, "maximum": 1},
            "stream": {"type": "boolean"},
            "thinking": object(&["type", "budget_tokens"], json!({"type": {"const": "enabled"},
                "budget_tokens": {"type": "integer", "minimum": 1024}})),
            "tools": {"type": "array", "items": tool},
            "tool_choice": object(&["type", "name"], json!({"type": {"const": "tool"}, "name": text})),
        }),
    );
    for body in bodies(WireProtocol::Messages, "anthropic") {
        assert_eq!(schema::check(&form, &body).unwrap(), [], "{body}");
        let turns = body["messages"].as_array().unwrap();
        assert!(
            turns
                .windows(2)
                .all(|pair| pair[0]["role"] != pair[1]["role"]),
            "{body}"
        );
        if let Some(budget) = body.pointer("/thinking/budget_tokens") {
            assert!(budget.as_u64() < body["max_tokens"].as_u64());
        }
    }
}

#[test]
fn ollama_requests_are_what_ollama_documents() {
    let text = json!({"type": "string"});
    let call = object(
        &["function"],
        json!({"function":
        object(&["name", "arguments"], json!({"name": text, "arguments": {"type": "object"}}))}),
    );
    let message = object(
        &["role", "content"],
        json!({
        "role": {"enum": ["system", "user", "assistant", "tool"]}, "content": text,
        "images": {"type": "array", "items": text}, "tool_name": text,
        "tool_calls": {"type": "array", "items": call}}),
    );
    let tool = object(
        &["type", "function"],
        json!({"type": {"const": "function"}, "function":
        object(&["name", "description", "parameters"],
            json!({"name": text, "description": text, "parameters": {"type": "object"}}))}),
    );
    let form = object(
        &["model", "messages"],
        json!({
            "model": text, "messages": {"type": "array", "items": message},
            "tools": {"type": "array", "items": tool}, "format": {"type": "object"},
            "options": object(&[], json!({"num_ctx": {"type": "integer"}, "num_predict": {"type": "integer"},
                "temperature": {"type": "number"}, "seed": {"type": "integer"}})),
            "stream": {"type": "boolean"}, "think": {"type": "boolean"}, "keep_alive": text,
        }),
    );
    for body in bodies(WireProtocol::Ollama, "ollama") {
        assert_eq!(schema::check(&form, &body).unwrap(), [], "{body}");
    }
}
