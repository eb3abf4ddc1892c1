//! Recording and replaying, byte for byte.

use std::sync::Arc;

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptedFault};
use lula_models::spend::UnlimitedSpend;
use lula_models::transport::{
    BoxedFuture, CassetteTransport, HttpTransport, ModelTransport, RecordingTransport,
    TransportError, WireRequest, WireResponse,
};
use lula_models::wire::WireProtocol;
use lula_models::{ModelError, ModelExchange};
use serde_json::json;

use crate::world::{endpoint, http, patience, question, quick_client};

/// A recorder that can be looked at while a client has it.
pub(crate) struct Shared(pub(crate) Arc<RecordingTransport<HttpTransport>>);

impl ModelTransport for Shared {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        self.0.send(request)
    }
}

async fn ask(
    transport: Arc<dyn ModelTransport>,
    wire: WireProtocol,
    base: &str,
    streamed: bool,
) -> ModelExchange {
    let client = quick_client(transport);
    client
        .complete(
            &endpoint(wire, base),
            &question("Grüße 🙂"),
            patience(streamed),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await
}

#[tokio::test]
async fn what_was_recorded_is_replayed_byte_for_byte_without_a_server() {
    for wire in WireProtocol::ALL {
        for streamed in [false, true] {
            let recorder = Arc::new(RecordingTransport::new(http()));
            let live = {
                let script = ModelScript::default()
                    .then_fail(ScriptedFault::status(503))
                    .then_fail(ScriptedFault::cut_after(33))
                    .then_call("run", json!({"argv": ["ü"]}));
                let server = MockModelServer::start(script).unwrap();
                ask(
                    Arc::new(Shared(Arc::clone(&recorder))),
                    wire,
                    &server.url(),
                    streamed,
                )
                .await
            };
            let cassette = CassetteTransport::parse(&recorder.text()).unwrap();
            assert_eq!(cassette.left(), 3);
            let replayed = ask(Arc::new(cassette), wire, "http://elsewhere", streamed).await;
            assert_eq!(replayed.result, live.result, "{wire:?} {streamed}");
            let raw = |exchange: &ModelExchange| {
                exchange
                    .tries
                    .iter()
                    .map(|one| one.raw.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(raw(&replayed), raw(&live));
        }
    }
}

#[tokio::test]
async fn a_question_that_was_not_recorded_never_reaches_the_network() {
    let exchange = ask(
        Arc::new(CassetteTransport::default()),
        WireProtocol::Chat,
        "http://127.0.0.1:1",
        true,
    )
    .await;
    let error = exchange.result.unwrap_err();
    assert!(matches!(
        error,
        ModelError::Transport {
            error: TransportError::NoAnswer(_),
            ..
        }
    ));
    assert!(
        error.to_string().contains("the cassette has no answer"),
        "{error}"
    );
    assert_eq!(exchange.tries.len(), 1);
}
