//! A key that appears anywhere it should not is a bug: a server that repeats it everywhere, and
//! everything that is left behind.

use std::sync::Arc;

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedFault};
use lula_models::spend::UnlimitedSpend;
use lula_models::transport::RecordingTransport;
use lula_models::wire::WireProtocol;

use crate::cassettes::Shared;
use crate::world::{KEY, endpoint, http, patience, question, quick_client};

#[tokio::test]
async fn a_key_the_server_repeats_is_in_no_error_record_or_cassette() {
    for wire in WireProtocol::ALL {
        for streamed in [false, true] {
            let repeat = |status| ScriptedFault {
                status: Some(status),
                body: Some(format!(
                    r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#
                )),
                ..ScriptedFault::default()
            };
            let script = ModelScript::default()
                .then_fail(repeat(500))
                .then_fail(repeat(429))
                .then(ScriptTurn {
                    fault: Some(ScriptedFault {
                        garbage: true,
                        ..ScriptedFault::default()
                    }),
                    ..ScriptTurn::default()
                })
                .then_fail(repeat(401));
            let server = MockModelServer::start(script).unwrap();
            let recorder = Arc::new(RecordingTransport::new(http()));
            let client = quick_client(Arc::new(Shared(Arc::clone(&recorder))));
            let endpoint = endpoint(wire, &server.url());
            let exchange = client
                .complete(
                    &endpoint,
                    &question("x"),
                    patience(streamed),
                    &UnlimitedSpend,
                    &mut |_| {},
                )
                .await;
            assert!(
                server
                    .arrived()
                    .iter()
                    .any(|one| format!("{one:?}").contains(KEY)),
                "it was sent"
            );
            assert_eq!(exchange.tries.len(), 4);
            let raw: Vec<u8> = exchange
                .tries
                .iter()
                .flat_map(|one| one.raw.clone())
                .collect();
            let error = exchange.result.as_ref().unwrap_err().to_string();
            assert!(error.contains("[secret]"), "{error}");
            for left in [
                error,
                format!("{exchange:?}"),
                format!("{endpoint:?} {client:?}"),
                String::from_utf8_lossy(&raw).into_owned(),
                recorder.text(),
            ] {
                assert!(!left.contains(KEY), "{wire:?}: {left}");
            }
        }
    }
}

#[tokio::test]
async fn a_panic_with_everything_in_it_shows_no_key() {
    let endpoint = endpoint(WireProtocol::Messages, "http://127.0.0.1:1");
    let request = endpoint.request(
        lula_models::transport::HttpMethod::Post,
        "/v1/messages",
        Vec::new(),
    );
    let panic = std::panic::catch_unwind(|| panic!("{endpoint:?} {request:?}")).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("[secret]") && !said.contains(KEY), "{said}");
}
