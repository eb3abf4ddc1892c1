//! The bytes of requests, as each protocol has them.

use lula_models::normal::{Effort, Message, ModelRequest, Output, Part, Role};
use lula_models::wire::{Quirks, Wire, request_body};
use serde_json::{Value, json};

use crate::world::conversation;

fn body(wire: Wire, quirks: &str, request: &ModelRequest, streamed: bool) -> Value {
    let bytes = request_body(wire, &Quirks::of(quirks), request, streamed).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_conversation_in_every_protocol() {
    for wire in Wire::ALL {
        let body = body(wire, "openai", &conversation(wire), true);
        insta::assert_snapshot!(format!("conversation_{wire:?}"), pretty(&body));
    }
}

#[test]
fn equal_questions_have_equal_bytes() {
    for wire in Wire::ALL {
        let one = conversation(wire);
        let mut other = one.clone();
        other.tools.reverse();
        let bytes = |request| request_body(wire, &Quirks::of("openai"), request, false).unwrap();
        assert_eq!(bytes(&one), bytes(&other));
    }
}

#[test]
fn every_server_is_asked_in_its_own_way() {
    let mut request = ModelRequest::new("m", vec![Message::user("hi")], 10).with_output(Output::Json {
        name: "place".into(),
        schema: json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}),
    });
    request.seed = Some(1);
    request.effort = Effort::Low;
    let all: Vec<String> = Quirks::KNOWN
        .iter()
        .map(|name| format!("{name}: {}", body(Wire::Chat, name, &request, true)))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn json_is_asked_for_in_every_protocol() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request = ModelRequest::new("m", vec![Message::user("hi")], 10).with_output(Output::Json {
        name: "place".into(),
        schema: schema.clone(),
    });
    let of = |wire| body(wire, "openai", &request, false);
    assert_eq!(
        of(Wire::Chat)["response_format"]["json_schema"]["schema"],
        schema
    );
    assert_eq!(of(Wire::Responses)["text"]["format"]["schema"], schema);
    assert_eq!(of(Wire::Ollama)["format"], schema);
    let messages = of(Wire::Messages);
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
        let mut request = ModelRequest::new("gpt-5-mini", vec![Message::user("hi")], 10)
            .with_output(Output::Json {
                name: "n".into(),
                schema,
            });
        request.temperature = Some(0.5);
        let chat = body(Wire::Chat, "openai", &request, false);
        assert_eq!(chat["response_format"]["json_schema"]["strict"], strict);
        let responses = body(Wire::Responses, "openai", &request, false);
        assert_eq!(responses["text"]["format"]["strict"], strict);
        assert!(chat.get("temperature").is_none() && responses.get("temperature").is_none());
        request.model = "gpt-4.1".into();
        assert_eq!(
            body(Wire::Chat, "openai", &request, false)["temperature"],
            0.5
        );
    }
}

#[test]
fn anthropic_gets_the_last_four_seams_and_alternating_turns() {
    let mut messages: Vec<Message> = (0..6)
        .map(|n| Message::user(format!("{n}")).cached())
        .collect();
    messages.insert(0, Message::system("rules").cached());
    let body = body(
        Wire::Messages,
        "anthropic",
        &ModelRequest::new("m", messages, 10),
        false,
    );
    assert_eq!(pretty(&body).matches("cache_control").count(), 4);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert!(body["system"][0].get("cache_control").is_none());
}

#[test]
fn thinking_is_asked_for_only_where_it_is_allowed() {
    let mut request = ModelRequest::new("m", vec![Message::user("hi")], 8000);
    request.effort = Effort::Medium;
    request.temperature = Some(0.5);
    let with = body(Wire::Messages, "anthropic", &request, false);
    assert_eq!(
        with["thinking"],
        json!({"type": "enabled", "budget_tokens": 4000})
    );
    assert!(with.get("temperature").is_none());
    request.max_tokens = 100;
    let without = body(Wire::Messages, "anthropic", &request, false);
    assert!(without.get("thinking").is_none());
    assert_eq!(without["temperature"], 0.5);
}

#[test]
fn notes_of_one_protocol_are_not_sent_in_another() {
    for wire in Wire::ALL {
        let foreign = if wire == Wire::Messages {
            Wire::Responses
        } else {
            Wire::Messages
        };
        let request = conversation(foreign);
        let bytes = request_body(wire, &Quirks::of("openai"), &request, false).unwrap();
        assert!(
            !String::from_utf8(bytes).unwrap().contains("Look first."),
            "{wire:?}"
        );
    }
}

#[test]
fn pictures_are_sent_in_every_protocol() {
    let picture = Part::Image {
        media_type: "image/png".into(),
        base64: "iVBORw0".into(),
    };
    let message = Message {
        role: Role::User,
        parts: vec![Part::text("see"), picture],
        cache_here: false,
    };
    let request = ModelRequest::new("m", vec![message], 10);
    let of = |wire| body(wire, "openai", &request, false);
    let url = "data:image/png;base64,iVBORw0";
    assert_eq!(
        of(Wire::Chat)["messages"][0]["content"][1]["image_url"]["url"],
        url
    );
    assert_eq!(
        of(Wire::Responses)["input"][0]["content"][1]["image_url"],
        url
    );
    assert_eq!(
        of(Wire::Messages)["messages"][0]["content"][1]["source"]["data"],
        "iVBORw0"
    );
    assert_eq!(of(Wire::Ollama)["messages"][0]["images"][0], "iVBORw0");
}

#[test]
fn what_a_protocol_cannot_carry_is_an_error() {
    let request =
        ModelRequest::new("m", vec![Message::user("hi")], 10).with_output(Output::Grammar {
            gbnf: "root ::= \"a\"".into(),
        });
    for wire in [Wire::Responses, Wire::Messages, Wire::Ollama] {
        assert!(request_body(wire, &Quirks::of("x"), &request, false).is_err());
    }
    assert_eq!(
        body(Wire::Chat, "llamacpp", &request, false)["grammar"],
        "root ::= \"a\""
    );
}
