//! The bytes of requests, as each protocol has them.

use lula_models::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, OutputShape, ThinkingEffort,
};
use lula_models::wire::{ServerQuirks, WireProtocol, request_body};
use serde_json::{Value, json};

use crate::world::conversation;

fn body(wire: WireProtocol, quirks: &str, request: &ModelRequest, streamed: bool) -> Value {
    let bytes = request_body(wire, &ServerQuirks::of(quirks), request, streamed).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_conversation_in_every_protocol() {
    for wire in WireProtocol::ALL {
        let body = body(wire, "openai", &conversation(wire), true);
        insta::assert_snapshot!(format!("conversation_{wire:?}"), pretty(&body));
    }
}

#[test]
fn equal_questions_have_equal_bytes() {
    for wire in WireProtocol::ALL {
        let one = conversation(wire);
        let mut other = one.clone();
        other.tools.reverse();
        let bytes =
            |request| request_body(wire, &ServerQuirks::of("openai"), request, false).unwrap();
        assert_eq!(bytes(&one), bytes(&other));
    }
}

#[test]
fn every_server_is_asked_in_its_own_way() {
    let mut request = ModelRequest::new("m", vec![ModelMessage::user("hi")], 10).with_output(OutputShape::Json {
        name: "place".into(),
        schema: json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}),
    });
    request.seed = Some(1);
    request.effort = ThinkingEffort::Low;
    let all: Vec<String> = ServerQuirks::KNOWN
        .iter()
        .map(|name| format!("{name}: {}", body(WireProtocol::Chat, name, &request, true)))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn json_is_asked_for_in_every_protocol() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request =
        ModelRequest::new("m", vec![ModelMessage::user("hi")], 10).with_output(OutputShape::Json {
            name: "place".into(),
            schema: schema.clone(),
        });
    let of = |wire| body(wire, "openai", &request, false);
    assert_eq!(
        of(WireProtocol::Chat)["response_format"]["json_schema"]["schema"],
        schema
    );
    assert_eq!(
        of(WireProtocol::Responses)["text"]["format"]["schema"],
        schema
    );
    assert_eq!(of(WireProtocol::Ollama)["format"], schema);
    let messages = of(WireProtocol::Messages);
    assert_eq!(messages["tools"][0]["input_schema"], schema);
    assert_eq!(
        messages["tool_choice"],
        json!({"type": "tool", "name": "answer"})
    );
}

#[test]
fn strictness_and_temperature_are_asked_only_where_they_are_taken() {
    let closed = json!({"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer"}}});
    let open = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    for (schema, strict) in [(closed, true), (open, false)] {
        let mut request = ModelRequest::new("gpt-5-mini", vec![ModelMessage::user("hi")], 10)
            .with_output(OutputShape::Json {
                name: "n".into(),
                schema,
            });
        request.temperature = Some(0.5);
        let chat = body(WireProtocol::Chat, "openai", &request, false);
        assert_eq!(chat["response_format"]["json_schema"]["strict"], strict);
        let responses = body(WireProtocol::Responses, "openai", &request, false);
        assert_eq!(responses["text"]["format"]["strict"], strict);
        assert!(chat.get("temperature").is_none() && responses.get("temperature").is_none());
        request.model = "gpt-4.1".into();
        assert_eq!(
            body(WireProtocol::Chat, "openai", &request, false)["temperature"],
            0.5
        );
    }
}

#[test]
fn anthropic_gets_the_first_two_and_the_last_two_seams_and_alternating_turns() {
    let mut messages: Vec<ModelMessage> = (0..6)
        .map(|n| ModelMessage::user(format!("{n}")).cached())
        .collect();
    messages.insert(0, ModelMessage::system("rules").cached());
    let body = body(
        WireProtocol::Messages,
        "anthropic",
        &ModelRequest::new("m", messages, 10),
        false,
    );
    assert_eq!(pretty(&body).matches("cache_control").count(), 4);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert!(body["system"][0].get("cache_control").is_some());
    let blocks = body["messages"][0]["content"].as_array().unwrap();
    let seams = blocks
        .iter()
        .map(|block| block.get("cache_control").is_some());
    assert_eq!(
        seams.collect::<Vec<_>>(),
        [true, false, false, false, true, true]
    );
}

#[test]
fn effort_in_every_protocol_and_generation() {
    let request = |model: &str| {
        let mut request = ModelRequest::new(model, vec![ModelMessage::user("hi")], 16_000);
        request.effort = ThinkingEffort::Medium;
        request.temperature = Some(0.0);
        request
    };
    let rows = [
        (WireProtocol::Chat, "openai", "gpt-5.5"),
        (WireProtocol::Chat, "openai-compatible", "m"),
        (WireProtocol::Responses, "openai", "gpt-5.5"),
        (WireProtocol::Messages, "anthropic", "claude-sonnet-4-5"),
        (WireProtocol::Messages, "anthropic", "claude-opus-4-6"),
        (WireProtocol::Messages, "anthropic", "claude-opus-5-5"),
        (WireProtocol::Ollama, "ollama", "qwen3"),
    ];
    let all: Vec<String> = rows
        .into_iter()
        .map(|(wire, quirks, model)| {
            format!("{model}: {}", body(wire, quirks, &request(model), false))
        })
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_schema_is_given_to_models_that_refuse_to_be_forced_to_a_tool() {
    let closed = json!({"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer"}}});
    let open = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let of = |model: &str, schema: &Value| {
        let output = OutputShape::Json {
            name: "n".into(),
            schema: schema.clone(),
        };
        let request =
            ModelRequest::new(model, vec![ModelMessage::user("hi")], 10).with_output(output);
        body(WireProtocol::Messages, "anthropic", &request, false)
    };
    let held = of("claude-opus-5-5", &closed);
    assert_eq!(
        held["output_config"]["format"],
        json!({"type": "json_schema", "schema": closed})
    );
    assert_eq!((held.get("tools"), held.get("tool_choice")), (None, None));
    let offered = of("claude-opus-5-5", &open);
    assert_eq!(offered["tools"][0]["input_schema"], open);
    assert_eq!(offered.get("tool_choice"), None);
    let forced = of("claude-sonnet-4-5", &closed);
    assert_eq!(forced["tool_choice"]["name"], "answer");
}

#[test]
fn notes_go_back_with_the_calls_they_led_to() {
    let call = MessagePart::Call(lula_models::normal::ModelToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: json!({"path": "a"}),
    });
    let notes = |wire, raw| MessagePart::Reasoning {
        wire,
        text: "hm".into(),
        raw,
    };
    let body_with = |wire, model: &str, raw, effort| {
        let said = ModelMessage {
            role: MessageRole::Assistant,
            parts: vec![notes(wire, raw), call.clone()],
            cache_here: false,
        };
        let mut request = ModelRequest::new(model, vec![ModelMessage::user("hi"), said], 16_000);
        request.effort = effort;
        body(wire, "openai-compatible", &request, false)
    };
    let off = ThinkingEffort::Off;
    let chat = body_with(
        WireProtocol::Chat,
        "m",
        json!({"reasoning_content": "hm"}),
        off,
    );
    assert_eq!(chat["messages"][1]["reasoning_content"], "hm");
    let whole = json!({"type": "reasoning", "id": "r", "encrypted_content": "x"});
    let sent = body_with(WireProtocol::Responses, "gpt-5.5", whole.clone(), off);
    assert_eq!(sent["input"][1], whole);
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    // The server stores nothing: an id alone means nothing to it.
    let forgotten = json!({"type": "reasoning", "id": "r"});
    let sent = body_with(WireProtocol::Responses, "gpt-5.5", forgotten, off);
    assert_eq!(sent["input"][1]["type"], "function_call");
    // Without the notes that led to a call a budget for thinking is refused.
    let high = ThinkingEffort::High;
    let block = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let sent = body_with(
        WireProtocol::Messages,
        "claude-sonnet-4-5",
        block.clone(),
        high,
    );
    assert_eq!(sent["messages"][1]["content"][0], block);
    assert_eq!(sent["thinking"]["budget_tokens"], 8_000);
    let bare = ModelMessage {
        role: MessageRole::Assistant,
        parts: vec![call.clone()],
        cache_here: false,
    };
    let mut request = ModelRequest::new(
        "claude-sonnet-4-5",
        vec![ModelMessage::user("hi"), bare],
        16_000,
    );
    request.effort = high;
    let sent = body(WireProtocol::Messages, "anthropic", &request, false);
    assert_eq!(sent.get("thinking"), None);
}

#[test]
fn thinking_is_asked_for_only_where_it_is_allowed() {
    let mut request = ModelRequest::new("m", vec![ModelMessage::user("hi")], 8000);
    request.effort = ThinkingEffort::Medium;
    request.temperature = Some(0.5);
    let with = body(WireProtocol::Messages, "anthropic", &request, false);
    assert_eq!(
        with["thinking"],
        json!({"type": "enabled", "budget_tokens": 4000})
    );
    assert!(with.get("temperature").is_none());
    request.max_tokens = 100;
    let without = body(WireProtocol::Messages, "anthropic", &request, false);
    assert!(without.get("thinking").is_none());
    assert_eq!(without["temperature"], 0.5);
}

#[test]
fn notes_of_one_protocol_are_not_sent_in_another() {
    for wire in WireProtocol::ALL {
        let foreign = if wire == WireProtocol::Messages {
            WireProtocol::Responses
        } else {
            WireProtocol::Messages
        };
        let request = conversation(foreign);
        let bytes = request_body(wire, &ServerQuirks::of("openai"), &request, false).unwrap();
        assert!(
            !String::from_utf8(bytes).unwrap().contains("Look first."),
            "{wire:?}"
        );
    }
}

#[test]
fn pictures_are_sent_in_every_protocol() {
    let picture = MessagePart::Image {
        media_type: "image/png".into(),
        base64: "iVBORw0".into(),
    };
    let message = ModelMessage {
        role: MessageRole::User,
        parts: vec![MessagePart::text("see"), picture],
        cache_here: false,
    };
    let request = ModelRequest::new("m", vec![message], 10);
    let of = |wire| body(wire, "openai", &request, false);
    let url = "data:image/png;base64,iVBORw0";
    assert_eq!(
        of(WireProtocol::Chat)["messages"][0]["content"][1]["image_url"]["url"],
        url
    );
    assert_eq!(
        of(WireProtocol::Responses)["input"][0]["content"][1]["image_url"],
        url
    );
    assert_eq!(
        of(WireProtocol::Messages)["messages"][0]["content"][1]["source"]["data"],
        "iVBORw0"
    );
    assert_eq!(
        of(WireProtocol::Ollama)["messages"][0]["images"][0],
        "iVBORw0"
    );
}

#[test]
fn a_picture_that_a_tool_read_stands_behind_the_results() {
    let result = |id: &str| MessagePart::Result {
        id: id.into(),
        name: "read_file".into(),
        content: "it is shown below".into(),
        failed: false,
    };
    let picture = MessagePart::Image {
        media_type: "image/jpeg".into(),
        base64: "/9j/".into(),
    };
    let message = ModelMessage {
        role: MessageRole::User,
        parts: vec![
            result("a"),
            MessagePart::text("the picture"),
            picture,
            result("b"),
        ],
        cache_here: false,
    };
    let request = ModelRequest::new("m", vec![message], 10);
    let of = |wire| body(wire, "openai", &request, false);
    let chat = &of(WireProtocol::Chat)["messages"];
    assert_eq!(
        (&chat[0]["role"], &chat[1]["role"]),
        (&"tool".into(), &"tool".into())
    );
    assert_eq!(chat[2]["content"][1]["type"], "image_url");
    let input = &of(WireProtocol::Responses)["input"];
    assert_eq!(input[0]["type"], "function_call_output");
    assert_eq!(input[1]["content"][1]["type"], "input_image");
    let blocks = &of(WireProtocol::Messages)["messages"][0]["content"];
    let kinds: Vec<_> = (0..4)
        .map(|at| blocks[at]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text", "image"]);
    let ollama = &of(WireProtocol::Ollama)["messages"];
    assert_eq!(
        (&ollama[0]["role"], &ollama[1]["role"]),
        (&"tool".into(), &"tool".into())
    );
    assert_eq!(ollama[2]["images"][0], "/9j/");
}

#[test]
fn what_a_protocol_cannot_carry_is_an_error() {
    let request = ModelRequest::new("m", vec![ModelMessage::user("hi")], 10).with_output(
        OutputShape::Grammar {
            gbnf: "root ::= \"a\"".into(),
        },
    );
    for wire in [
        WireProtocol::Responses,
        WireProtocol::Messages,
        WireProtocol::Ollama,
    ] {
        assert!(request_body(wire, &ServerQuirks::of("x"), &request, false).is_err());
    }
    assert_eq!(
        body(WireProtocol::Chat, "llamacpp", &request, false)["grammar"],
        "root ::= \"a\""
    );
}
