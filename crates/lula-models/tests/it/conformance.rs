//! Every protocol against a server on a socket: answers, calls, JSON, refusals, broken and stuck
//! connections.

use std::sync::Arc;
use std::time::Duration;

use lula_models::mock::MockModelServer;
use lula_models::normal::{ModelStopReason, OutputShape};
use lula_models::script::{ModelScript, ScriptTurn, ScriptedFault};
use lula_models::spend::UnlimitedSpend;
use lula_models::wire::{ServerFailureKind, StreamDelta, WireError, WireProtocol};
use lula_models::{CallPatience, ModelClient, ModelError, ModelExchange};
use serde_json::{Value, json};

use crate::world::{KEY, endpoint, http, patience, question, quick_client, read_file};

fn live() -> ModelClient {
    quick_client(Arc::new(http()))
}

async fn ask(
    server: &MockModelServer,
    wire: WireProtocol,
    streamed: bool,
) -> (ModelExchange, Vec<StreamDelta>) {
    let mut deltas = Vec::new();
    let client = live();
    let request = question("Fix it").with_tools(vec![read_file()]);
    let exchange = client
        .complete(
            &endpoint(wire, &server.url()),
            &request,
            patience(streamed),
            &UnlimitedSpend,
            &mut |delta| {
                deltas.push(delta);
            },
        )
        .await;
    (exchange, deltas)
}

fn each() -> impl Iterator<Item = (WireProtocol, bool)> {
    WireProtocol::ALL
        .into_iter()
        .flat_map(|wire| [(wire, false), (wire, true)])
}

#[tokio::test]
async fn words_and_calls_arrive_in_every_protocol() {
    for (wire, streamed) in each() {
        let server = MockModelServer::start(
            ModelScript::say("Ich schaue – 你好.").then_call("read_file", json!({"path": "a"})),
        )
        .unwrap();
        let (exchange, deltas) = ask(&server, wire, streamed).await;
        let response = exchange.result.unwrap();
        assert_eq!(response.words(), "Ich schaue – 你好.", "{wire:?}");
        assert_eq!(response.stop, ModelStopReason::End);
        assert!(response.usage.unwrap().input > 0);
        if streamed {
            let seen: String = deltas
                .iter()
                .filter_map(|delta| match delta {
                    StreamDelta::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(seen, "Ich schaue – 你好.");
        }
        let (exchange, _) = ask(&server, wire, streamed).await;
        let response = exchange.result.unwrap();
        assert_eq!(response.stop, ModelStopReason::Calls);
        assert_eq!(
            response.calls().next().unwrap().arguments,
            json!({"path": "a"})
        );
        assert_eq!(server.unused(), 0);
    }
}

#[tokio::test]
async fn each_protocol_authenticates_in_its_own_header() {
    for wire in WireProtocol::ALL {
        let server = MockModelServer::start(ModelScript::say("hi")).unwrap();
        ask(&server, wire, false).await.0.result.unwrap();
        let arrived = server.arrived();
        let (header, before) = wire.key_header();
        assert_eq!(
            arrived[0].header(header),
            Some(format!("{before}{KEY}").as_str())
        );
        assert_eq!(arrived[0].path, wire.path());
        assert_eq!(
            arrived[0].header("anthropic-version").is_some(),
            wire == WireProtocol::Messages
        );
    }
}

#[tokio::test]
async fn json_of_a_schema_arrives_as_text_in_every_protocol() {
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for (wire, streamed) in each() {
        // Anthropic's way to JSON is a tool that must be called.
        let script = if wire == WireProtocol::Messages {
            ModelScript::default().then_call("answer", json!({"n": 3}))
        } else {
            ModelScript::say("{\"n\":3}")
        };
        let server = MockModelServer::start(script).unwrap();
        let request = question("Where?").with_output(OutputShape::Json {
            name: "n".into(),
            schema: schema.clone(),
        });
        let mut endpoint = endpoint(wire, &server.url());
        endpoint.capability = lula_models::output::OutputCapability::JsonSchema;
        let asked = ModelClient::live()
            .unwrap()
            .ask_well(
                &endpoint,
                &request,
                patience(streamed),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await;
        assert_eq!(
            asked.result.unwrap().json,
            Some(json!({"n": 3})),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn every_refusal_is_understood_in_every_protocol() {
    for (wire, streamed) in each() {
        for (status, body, kind) in [
            (401, None, ServerFailureKind::Unauthorized),
            (403, None, ServerFailureKind::Unauthorized),
            (404, None, ServerFailureKind::NotFound),
            (402, None, ServerFailureKind::Unpaid),
            (400, None, ServerFailureKind::BadRequest),
            (422, None, ServerFailureKind::BadRequest),
            (
                400,
                Some(r#"{"error":{"message":"blocked","code":"content_filter"}}"#),
                ServerFailureKind::Filtered,
            ),
        ] {
            let fault = ScriptedFault {
                status: Some(status),
                body: body.map(str::to_owned),
                ..ScriptedFault::default()
            };
            let server = MockModelServer::start(ModelScript::default().then_fail(fault)).unwrap();
            let (exchange, _) = ask(&server, wire, streamed).await;
            let Err(ModelError::Refused { failure, .. }) = exchange.result else {
                panic!("{wire:?} {status}: {:?}", exchange.result)
            };
            assert_eq!(failure.kind, kind, "{wire:?} {status}");
            assert_eq!(exchange.tries.len(), 1, "no retry can help");
        }
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_asks_for_compaction() {
    for wire in WireProtocol::ALL {
        let body = r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
        let fault = ScriptedFault {
            status: Some(400),
            body: Some(body.into()),
            ..ScriptedFault::default()
        };
        let server = MockModelServer::start(ModelScript::default().then_fail(fault)).unwrap();
        let error = ask(&server, wire, true).await.0.result.unwrap_err();
        assert!(
            error.wants_compaction() && !error.wants_another_model(),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_connection_cut_at_any_byte_is_tried_once_more_and_its_pieces_are_void() {
    for wire in WireProtocol::ALL {
        let length: usize = {
            let server = MockModelServer::start(ModelScript::say("All is well.")).unwrap();
            ask(&server, wire, true).await.0.tries[0].raw.len()
        };
        for cut in (0..length - 2).step_by(37) {
            let script = ModelScript::default()
                .then(ScriptTurn {
                    say: Some("All is well.".into()),
                    fault: Some(ScriptedFault::cut_after(cut)),
                    ..ScriptTurn::default()
                })
                .then_say("All is well now.");
            let server = MockModelServer::start(script).unwrap();
            let mut deltas = Vec::new();
            let client = live();
            let exchange = client
                .complete(
                    &endpoint(wire, &server.url()),
                    &question("x"),
                    patience(true),
                    &UnlimitedSpend,
                    &mut |delta| deltas.push(delta),
                )
                .await;
            assert_eq!(
                exchange.result.unwrap().words(),
                "All is well now.",
                "{wire:?} {cut}"
            );
            assert_eq!(exchange.tries.len(), 2);
            // A person who watches ends up with the answer and nothing of what broke off.
            let shown = deltas
                .iter()
                .fold(String::new(), |shown, delta| match delta {
                    StreamDelta::Text(more) => shown + more,
                    StreamDelta::Discarded => String::new(),
                    _ => shown,
                });
            assert_eq!(shown, "All is well now.", "{wire:?} {cut}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_twice_is_given_up() {
    for (wire, streamed) in each() {
        let cut = ScriptedFault::cut_after(20);
        let server = MockModelServer::start(
            ModelScript::default()
                .then_fail(cut.clone())
                .then_fail(cut)
                .then_say("too late"),
        )
        .unwrap();
        let exchange = live()
            .complete(
                &endpoint(wire, &server.url()),
                &question("x"),
                patience(streamed),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await;
        assert!(exchange.result.is_err(), "{wire:?}");
        assert_eq!((exchange.tries.len(), server.unused()), (2, 1));
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_given_up() {
    for wire in WireProtocol::ALL {
        let stall = ScriptedFault::stall_after(30);
        let server = MockModelServer::start(
            ModelScript::default()
                .then_fail(stall.clone())
                .then_fail(stall),
        )
        .unwrap();
        let patience = CallPatience {
            streamed: true,
            idle: Duration::from_millis(80),
            total: Duration::from_secs(20),
        };
        let exchange = live()
            .complete(
                &endpoint(wire, &server.url()),
                &question("x"),
                patience,
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await;
        assert!(
            matches!(exchange.result, Err(ModelError::Idle { .. })),
            "{wire:?} {:?}",
            exchange.result
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_not_of_the_protocol_is_malformed() {
    for (wire, streamed) in each() {
        let garbage = ScriptedFault {
            garbage: true,
            ..ScriptedFault::default()
        };
        let server = MockModelServer::start(
            ModelScript::default()
                .then_fail(garbage.clone())
                .then_fail(garbage),
        )
        .unwrap();
        let exchange = live()
            .complete(
                &endpoint(wire, &server.url()),
                &question("x"),
                patience(streamed),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await;
        assert!(
            matches!(
                exchange.result,
                Err(ModelError::Wire {
                    error: WireError::Malformed(_),
                    ..
                })
            ),
            "{wire:?} {:?}",
            exchange.result
        );
    }
}

#[tokio::test]
async fn nothing_listening_says_where() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let exchange = live()
        .complete(
            &endpoint(WireProtocol::Chat, &format!("http://{free}")),
            &question("x"),
            patience(true),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    let error = exchange.result.unwrap_err().to_string();
    assert!(
        error.contains(&format!("cannot reach http://{free}")),
        "{error}"
    );
    assert_eq!(exchange.tries.len(), 5);
}

#[tokio::test]
async fn texts_are_embedded_and_tokens_counted() {
    let server = MockModelServer::start(ModelScript::default()).unwrap();
    let client = live();
    for wire in [WireProtocol::Chat, WireProtocol::Ollama] {
        let endpoint = endpoint(wire, &server.url());
        let vectors = client
            .embed(
                &endpoint,
                "m",
                &["a", "b", "a"],
                patience(false),
                &UnlimitedSpend,
            )
            .await
            .unwrap();
        assert_eq!(vectors.len(), 3);
        assert_eq!(vectors[0], vectors[2]);
        assert_ne!(vectors[0], vectors[1]);
    }
    let mut endpoint = endpoint(WireProtocol::Chat, &server.url());
    endpoint.quirks = lula_models::wire::ServerQuirks::of("llamacpp");
    assert_eq!(
        client
            .tokenize(&endpoint, "m", "one two three", patience(false))
            .await
            .unwrap(),
        3
    );
    let sent: Value = serde_json::from_slice(&server.arrived().last().unwrap().body).unwrap();
    assert_eq!(sent["content"], "one two three");
}

#[tokio::test]
async fn a_model_is_tried_out_and_its_capability_told() {
    let strong = ModelScript::default()
        .then_say("ready")
        .then_call("pick_day", json!({"number": 3}))
        .then_say("{\"color\":\"red\"}");
    let weak = ModelScript::say("ready")
        .then_say("```json\n{\"name\": \"pick_day\", \"arguments\": {\"number\": 3}}\n```")
        .then_say("blue");
    for (script, capability) in [
        (strong, lula_models::output::OutputCapability::ToolCalls),
        (weak, lula_models::output::OutputCapability::Text),
    ] {
        let server = MockModelServer::start(script).unwrap();
        let endpoint = endpoint(WireProtocol::Chat, &server.url());
        let seen =
            lula_models::probe::probe(&live(), &endpoint, "m", patience(true), &UnlimitedSpend)
                .await;
        assert_eq!((seen.words, seen.capability), (Ok(()), capability));
    }
}
