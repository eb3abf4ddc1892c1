//! Trying again, on a clock that only moves when it is waited for.

use std::sync::Arc;
use std::time::Duration;

use lula_models::resilience::ModelHealth;
use lula_models::script::{ModelScript, ScriptPlayer, ScriptTurn, ScriptedFault};
use lula_models::spend::{SpendAccount, SpendHoldId, SpendLedgerError, UnlimitedSpend};
use lula_models::transport::BoxedFuture;
use lula_models::wire::WireProtocol;
use lula_models::{CallPatience, ModelError};
use lula_protocol::{BudgetAmounts, BudgetDimension};

use crate::world::{client_on, endpoint, patience, question};

fn failing(status: u16, times: u32) -> ScriptTurn {
    ScriptTurn {
        fault: Some(ScriptedFault::status(status)),
        times: Some(times),
        ..ScriptTurn::default()
    }
}

#[tokio::test]
async fn a_passing_failure_is_waited_out() {
    for status in [408, 409, 425, 429, 500, 502, 503, 529] {
        let script = ModelScript::default()
            .then(failing(status, 3))
            .then_say("there");
        let (client, clock) = client_on(Arc::new(ScriptPlayer::new(script)));
        let exchange = client
            .complete(
                &endpoint(WireProtocol::Chat, "http://x"),
                &question("x"),
                patience(true),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await;
        assert_eq!(exchange.result.unwrap().words(), "there", "{status}");
        assert_eq!(exchange.tries.len(), 4);
        let waits = clock.waits();
        assert_eq!(waits.len(), 3);
        for (wait, most) in waits.iter().zip([500, 1000, 2000]) {
            assert!(*wait <= Duration::from_millis(most), "{waits:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_pause_gets_it_from_every_call() {
    let fault = ScriptedFault {
        status: Some(429),
        retry_after: Some(9),
        ..ScriptedFault::default()
    };
    let script = ModelScript::default()
        .then_fail(fault)
        .then_say("a")
        .then_say("b");
    let (client, clock) = client_on(Arc::new(ScriptPlayer::new(script)));
    let endpoint = endpoint(WireProtocol::Messages, "http://x");
    let exchange = client
        .complete(
            &endpoint,
            &question("x"),
            patience(true),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    exchange.result.unwrap();
    assert!(
        clock.waits()[0] >= Duration::from_secs(9),
        "{:?}",
        clock.waits()
    );
}

#[tokio::test]
async fn a_pause_longer_than_the_time_left_is_not_begun() {
    let fault = ScriptedFault {
        status: Some(429),
        retry_after: Some(3600),
        ..ScriptedFault::default()
    };
    let (client, clock) = client_on(Arc::new(ScriptPlayer::new(
        ModelScript::default().then_fail(fault).then_say("a"),
    )));
    let exchange = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            patience(true),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    assert!(matches!(exchange.result, Err(ModelError::Refused { .. })));
    assert!(clock.waits().is_empty());
}

#[tokio::test]
async fn tries_end() {
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(
        ModelScript::default().then(failing(500, 0)),
    )));
    let exchange = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            patience(true),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    assert!(exchange.result.is_err());
    assert_eq!(exchange.tries.len(), 5);
    assert!(
        exchange
            .tries
            .iter()
            .all(|one| one.error.is_some() && one.status == Some(500))
    );
}

#[tokio::test]
async fn a_model_that_keeps_failing_is_left_alone_and_then_tried_once() {
    let script = ModelScript::default()
        .then(failing(500, 5))
        .then_say("well again");
    let (client, clock) = client_on(Arc::new(ScriptPlayer::new(script)));
    let endpoint = endpoint(WireProtocol::Chat, "http://x");
    let ask = || async {
        client
            .complete(
                &endpoint,
                &question("x"),
                patience(true),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await
            .result
    };
    assert!(ask().await.is_err());
    assert_eq!(client.health()[&endpoint.name], ModelHealth::Resting);
    assert!(matches!(ask().await, Err(ModelError::Resting { .. })));
    lula_models::MonotonicClock::sleep(&*clock, Duration::from_secs(30)).await;
    assert_eq!(client.health()[&endpoint.name], ModelHealth::Trying);
    assert_eq!(ask().await.unwrap().words(), "well again");
    assert_eq!(client.health()[&endpoint.name], ModelHealth::Well);
}

#[tokio::test]
async fn a_trial_call_that_is_given_up_half_way_does_not_block_the_next() {
    let script = ModelScript::default()
        .then(failing(401, 1))
        .then_say("well again");
    let (client, clock) = client_on(Arc::new(ScriptPlayer::new(script)));
    let endpoint = endpoint(WireProtocol::Chat, "http://x");
    let request = question("x");
    let mut silent = |_| {};
    let first = client.complete(
        &endpoint,
        &request,
        patience(true),
        &UnlimitedSpend,
        &mut silent,
    );
    first.await.result.unwrap_err();
    lula_models::MonotonicClock::sleep(&*clock, Duration::from_secs(30)).await;
    let never = UnansweringAccount;
    let mut watch = |_| {};
    {
        let trial = client.complete(&endpoint, &request, patience(true), &never, &mut watch);
        let mut trial = Box::pin(trial);
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::future::Future::poll(trial.as_mut(), context).is_pending())
        });
        assert!(polled.await, "it waits for its purse");
        assert_eq!(client.health()[&endpoint.name], ModelHealth::Resting);
    }
    assert_eq!(client.health()[&endpoint.name], ModelHealth::Trying);
    let mut silent = |_| {};
    let next = client.complete(
        &endpoint,
        &request,
        patience(true),
        &UnlimitedSpend,
        &mut silent,
    );
    assert_eq!(next.await.result.unwrap().words(), "well again");
}

/// A purse that never answers.
struct UnansweringAccount;

impl SpendAccount for UnansweringAccount {
    fn reserve<'a>(
        &'a self,
        _: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<SpendHoldId, SpendLedgerError>> {
        Box::pin(std::future::pending())
    }

    fn settle<'a>(
        &'a self,
        _: SpendHoldId,
        _: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<(), SpendLedgerError>> {
        Box::pin(std::future::pending())
    }

    fn left(&self, _: BudgetDimension) -> Option<u64> {
        None
    }
}

#[tokio::test]
async fn a_wrong_key_opens_the_breaker_at_once_and_a_wrong_request_does_not() {
    for (status, health) in [
        (401, ModelHealth::Resting),
        (404, ModelHealth::Resting),
        (400, ModelHealth::Well),
    ] {
        let (client, _) = client_on(Arc::new(ScriptPlayer::new(
            ModelScript::default().then(failing(status, 1)),
        )));
        let endpoint = endpoint(WireProtocol::Chat, "http://x");
        client
            .complete(
                &endpoint,
                &question("x"),
                patience(true),
                &UnlimitedSpend,
                &mut |_| {},
            )
            .await
            .result
            .unwrap_err();
        assert_eq!(client.health()[&endpoint.name], health, "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_stands_still_ends_at_its_limits() {
    let stall = || {
        ModelScript::default().then(ScriptTurn {
            say: Some("never whole".into()),
            fault: Some(ScriptedFault::stall_after(40)),
            times: Some(0),
            ..ScriptTurn::default()
        })
    };
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(stall())));
    let idle = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            patience(true),
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    assert!(
        matches!(idle.result, Err(ModelError::Idle { .. })),
        "{:?}",
        idle.result
    );
    assert_eq!(idle.tries.len(), 2);
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(stall())));
    let short = CallPatience {
        streamed: true,
        idle: Duration::from_mins(1),
        total: Duration::from_secs(20),
    };
    let over = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            short,
            &UnlimitedSpend,
            &mut |_| {},
        )
        .await;
    assert!(
        matches!(over.result, Err(ModelError::Deadline { .. })),
        "{:?}",
        over.result
    );
    assert_eq!(over.tries.len(), 1);
}
