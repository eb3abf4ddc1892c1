//! Answers as bytes: cut anywhere they read the same, and cut short they never become an action.

use lula_models::normal::{MessagePart, ModelResponse, ModelStopReason, TokenUsage};
use lula_models::script::{ModelScript, ScriptPlayer, ScriptTurn, ScriptedCall, ScriptedUsage};
use lula_models::wire::{ResponseDecoder, WireError, WireProtocol};
use serde_json::json;

/// Notes, words beyond ASCII, two calls.
fn rich() -> ScriptTurn {
    ScriptTurn {
        think: Some("Erst lesen, dann ändern.".into()),
        say: Some("Ich lese die Datei – 你好 🙂 \"quoted\"\nund noch eine Zeile.".into()),
        call: vec![
            ScriptedCall {
                name: "read_file".into(),
                arguments: json!({"path": "a/ü.py"}),
            },
            ScriptedCall {
                name: "run".into(),
                arguments: json!({"argv": ["make", "test"]}),
            },
        ],
        usage: Some(ScriptedUsage {
            input: 120,
            output: 40,
            cache_read: 100,
        }),
        ..ScriptTurn::default()
    }
}

fn bytes(wire: WireProtocol, turn: ScriptTurn, streamed: bool) -> Vec<u8> {
    let body =
        json!({"stream": streamed, "messages": [{"content": "x"}], "input": "x"}).to_string();
    let played =
        ScriptPlayer::new(ModelScript::default().then(turn)).play(wire.path(), body.as_bytes());
    assert_eq!(played.status, 200);
    played.pieces.concat()
}

fn decode(
    wire: WireProtocol,
    streamed: bool,
    pieces: &[&[u8]],
) -> Result<ModelResponse, WireError> {
    let mut decoder = ResponseDecoder::new(wire, streamed);
    for piece in pieces {
        decoder.push(piece)?;
    }
    decoder.finish()
}

#[test]
fn an_answer_reads_the_same_streamed_and_whole_in_every_protocol() {
    for wire in WireProtocol::ALL {
        let mut seen = Vec::new();
        for streamed in [false, true] {
            let body = bytes(wire, rich(), streamed);
            let response = decode(wire, streamed, &[&body]).unwrap();
            assert_eq!(response.stop, ModelStopReason::Calls, "{wire:?}");
            assert_eq!(Some(response.words()), rich().say);
            let calls: Vec<_> = response
                .calls()
                .map(|call| (call.name.clone(), call.arguments.clone()))
                .collect();
            assert_eq!(calls[0], ("read_file".into(), json!({"path": "a/ü.py"})));
            assert_eq!(calls[1], ("run".into(), json!({"argv": ["make", "test"]})));
            let cache_read = if wire == WireProtocol::Ollama { 0 } else { 100 };
            assert_eq!(
                response.usage,
                Some(TokenUsage {
                    input: 120,
                    output: 40,
                    cache_read,
                    ..TokenUsage::default()
                })
            );
            let notes = response.parts.iter().any(|part| {
                matches!(part, MessagePart::Reasoning { text, .. } if *text == *rich().think.unwrap())
            });
            assert!(notes, "{wire:?}");
            seen.push(response.parts);
        }
        assert_eq!(seen[0], seen[1], "{wire:?}");
    }
}

#[test]
fn an_answer_cut_in_two_at_any_byte_reads_the_same() {
    for wire in WireProtocol::ALL {
        for streamed in [false, true] {
            let body = bytes(wire, rich(), streamed);
            let whole = decode(wire, streamed, &[&body]).unwrap();
            for cut in 0..=body.len() {
                let parts = decode(wire, streamed, &[&body[..cut], &body[cut..]]);
                assert_eq!(parts.as_ref(), Ok(&whole), "{wire:?} {streamed} {cut}");
            }
            let single: Vec<&[u8]> = body.chunks(1).collect();
            assert_eq!(decode(wire, streamed, &single).as_ref(), Ok(&whole));
        }
    }
}

#[test]
fn an_answer_that_ends_early_never_becomes_a_different_answer() {
    for wire in WireProtocol::ALL {
        for streamed in [false, true] {
            let body = bytes(wire, rich(), streamed);
            let whole = decode(wire, streamed, &[&body]).unwrap();
            let mut short = 0;
            for end in 0..body.len() {
                match decode(wire, streamed, &[&body[..end]]) {
                    // Only the tail after the last word of the answer may be missing.
                    Ok(response) => {
                        assert_eq!(response.parts, whole.parts, "{wire:?} {streamed} {end}");
                        assert_eq!(response.stop, whole.stop);
                    }
                    Err(_) => short += 1,
                }
            }
            assert!(
                short * 10 > body.len() * 8,
                "{wire:?} {streamed}: {short} of {}",
                body.len()
            );
        }
    }
}

#[test]
fn a_call_cut_by_the_length_limit_is_not_built() {
    for wire in [WireProtocol::Chat, WireProtocol::Responses] {
        let turn = ScriptTurn {
            call: vec![ScriptedCall {
                name: "run".into(),
                arguments: json!("{\"argv\": [\"rm\", \"-r"),
            }],
            stop: Some("length".into()),
            ..ScriptTurn::default()
        };
        for streamed in [false, true] {
            let response = decode(wire, streamed, &[&bytes(wire, turn.clone(), streamed)]).unwrap();
            assert_eq!(response.stop, ModelStopReason::Length);
            assert!(response.parts.is_empty(), "{wire:?} {:?}", response.parts);
        }
    }
}

#[test]
fn a_call_with_broken_arguments_is_reported_as_broken() {
    for wire in [WireProtocol::Chat, WireProtocol::Responses] {
        let turn = ScriptTurn {
            call: vec![ScriptedCall {
                name: "run".into(),
                arguments: json!("{\"argv\": "),
            }],
            ..ScriptTurn::default()
        };
        for streamed in [false, true] {
            let response = decode(wire, streamed, &[&bytes(wire, turn.clone(), streamed)]).unwrap();
            assert!(
                matches!(&response.parts[..], [MessagePart::Broken { name, .. }] if name == "run")
            );
        }
    }
}

#[test]
fn servers_without_an_index_or_with_whole_arguments_are_understood() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"run\",\"arguments\":\"\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"n\\\":\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"run\",\"arguments\":{\"n\":2}}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let response = decode(WireProtocol::Chat, true, &[stream.as_bytes()]).unwrap();
    let calls: Vec<_> = response
        .calls()
        .map(|call| call.arguments.clone())
        .collect();
    assert_eq!(calls, [json!({"n": 1}), json!({"n": 2})]);
    assert_eq!(
        (response.stop, response.usage),
        (ModelStopReason::Calls, None)
    );
}

#[test]
fn a_failure_inside_a_stream_is_a_failure() {
    for (wire, event) in [
        (
            WireProtocol::Chat,
            "data: {\"error\":{\"message\":\"busy\",\"code\":500}}\n\n",
        ),
        (
            WireProtocol::Responses,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"busy\"}}}\n\n",
        ),
        (
            WireProtocol::Responses,
            "data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"busy\"}\n\n",
        ),
        (
            WireProtocol::Messages,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        ),
        (WireProtocol::Ollama, "{\"error\":\"busy\"}\n"),
    ] {
        let error = decode(wire, true, &[event.as_bytes()]).unwrap_err();
        assert!(
            matches!(&error, WireError::Reported(failure) if failure.said == "busy"),
            "{wire:?} {error:?}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn hostile_bytes_never_panic(
        bytes: Vec<u8>,
        text in "(data: |\\{|\\}|\\[|\\]|\"|:|,|choices|delta|type|content|tool_calls|1|null|\n){0,40}",
    ) {
        for wire in WireProtocol::ALL {
            for streamed in [false, true] {
                let _ = decode(wire, streamed, &[&bytes]);
                let _ = decode(wire, streamed, &[text.as_bytes()]);
            }
        }
    }
}
