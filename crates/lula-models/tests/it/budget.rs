//! Spend against its cap: random prices, usage, failures, crashes and callers at once.

use std::sync::Arc;

use lula_models::ModelError;
use lula_models::normal::TokenUsage;
use lula_models::script::{ModelScript, ScriptPlayer, ScriptTurn, ScriptedFault, ScriptedUsage};
use lula_models::spend::{ModelPrice, SharedSpendLedger, SpendLedger, actual, worst_case};
use lula_models::wire::WireProtocol;
use lula_protocol::{BudgetAmounts, BudgetDimension};
use proptest::prelude::*;

use crate::world::{client_on, endpoint, patience, question};

fn usd(amount: u64) -> BudgetAmounts {
    BudgetAmounts::none().with(BudgetDimension::MicroUsd, amount)
}

/// What can happen to a ledger.
#[derive(Debug, Clone)]
enum Step {
    /// A call begins in this account, with these bounds.
    Begin {
        account: usize,
        input: u64,
        output: u64,
    },
    /// The oldest open call ends, having used this part of its bounds.
    End { used: f64, counted: bool },
    /// The oldest open call never reached the server.
    Refused,
    /// The process dies; the provider may still charge what was open.
    Crash { charged: f64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..4, 0_u64..200_000, 0_u64..50_000)
            .prop_map(|(account, input, output)| Step::Begin { account, input, output }),
        3 => (0.0..=1.0, any::<bool>()).prop_map(|(used, counted)| Step::End { used, counted }),
        1 => Just(Step::Refused),
        1 => (0.0..=1.0).prop_map(|charged| Step::Crash { charged }),
    ]
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn part(whole: u64, of: f64) -> u64 {
    (whole as f64 * of) as u64
}

const ACCOUNTS: [(&str, Option<&str>); 4] = [
    ("run", None),
    ("left", Some("run")),
    ("right", Some("run")),
    ("leaf", Some("left")),
];

fn is_below(account: &str, above: &str) -> bool {
    let mut at = Some(account);
    while let Some(name) = at {
        if name == above {
            return true;
        }
        at = ACCOUNTS.iter().find(|(own, _)| *own == name).unwrap().1;
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_the_provider_charges_never_exceeds_any_limit(
        limits in proptest::array::uniform4(0_u64..3_000_000),
        prices in proptest::array::uniform4(0_u64..80_000_000),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let [input, output, cache_read, cache_write] = prices;
        let price = ModelPrice { input, output, cache_read, cache_write, as_of: None, known: true };
        let mut ledger = SpendLedger::default();
        for ((name, above), limit) in ACCOUNTS.into_iter().zip(limits) {
            ledger.open(name, above, usd(limit)).unwrap();
        }
        // What the provider really charged, by account: the truth the ledger must stay ahead of.
        let mut charged: Vec<(&str, u64)> = Vec::new();
        let mut open = std::collections::VecDeque::new();
        for step in steps {
            match step {
                Step::Begin { account, input, output } => {
                    let name = ACCOUNTS[account].0;
                    let worst = worst_case(&price, input, output);
                    if let Ok(hold) = ledger.reserve(name, &worst) {
                        open.push_back((hold, name, input, output, worst));
                    }
                }
                Step::End { used, counted } => {
                    if let Some((hold, name, input, output, worst)) = open.pop_front() {
                        let usage = TokenUsage {
                            input: part(input, used), output: part(output, used),
                            cache_read: part(input, used / 2.0), ..TokenUsage::default()
                        };
                        charged.push((name, price.of(&usage)));
                        let told = counted.then_some(&usage);
                        let spent = actual(&price, told, &worst);
                        prop_assert!(ledger.settle(hold, &spent).unwrap().0.is_empty());
                    }
                }
                Step::Refused => {
                    if let Some((hold, ..)) = open.pop_front() {
                        ledger.release(hold).unwrap();
                    }
                }
                Step::Crash { charged: used } => {
                    for (_, name, input, output, _) in open.drain(..) {
                        let usage = TokenUsage { input: part(input, used), output: part(output, used), ..TokenUsage::default() };
                        charged.push((name, price.of(&usage)));
                    }
                    let bytes = serde_json::to_vec(&ledger).unwrap();
                    ledger = serde_json::from_slice(&bytes).unwrap();
                    ledger.recover();
                }
            }
            prop_assert!(ledger.is_within_limits());
            for ((name, _), limit) in ACCOUNTS.into_iter().zip(limits) {
                let truth: u64 = charged.iter().filter(|(own, _)| is_below(own, name)).map(|(_, sum)| sum).sum();
                prop_assert!(truth <= limit, "{name}: {truth} of {limit}");
                let booked = ledger.settled(name).unwrap().get(BudgetDimension::MicroUsd).unwrap_or(0);
                prop_assert!(truth <= booked, "{name}: {truth} charged, {booked} booked");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_stay_within_one_cap() {
    let turn = ScriptTurn {
        say: Some("x".repeat(400)),
        times: Some(0),
        usage: Some(ScriptedUsage {
            input: 900,
            output: 150,
            cache_read: 0,
        }),
        ..ScriptTurn::default()
    };
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(
        ModelScript::default().then(turn),
    )));
    let mut ledger = SpendLedger::default();
    ledger.open("run", None, usd(100_000)).unwrap();
    for agent in 0..8 {
        ledger
            .open(&format!("agent{agent}"), Some("run"), usd(30_000))
            .unwrap();
    }
    let ledger = SharedSpendLedger::new(ledger);
    let mut callers = Vec::new();
    for agent in 0..8 {
        let (client, purse) = (client.clone(), ledger.account(format!("agent{agent}")));
        let shared = ledger.clone();
        callers.push(tokio::spawn(async move {
            let endpoint = endpoint(WireProtocol::Messages, "http://x");
            let mut answered = 0_u64;
            for _ in 0..20 {
                let exchange = client
                    .complete(
                        &endpoint,
                        &question("x"),
                        patience(true),
                        &purse,
                        &mut |_| {},
                    )
                    .await;
                assert!(shared.with(|ledger| ledger.is_within_limits()));
                match exchange.result {
                    Ok(_) => answered += 1,
                    Err(ModelError::Budget(_)) => break,
                    Err(other) => panic!("{other}"),
                }
            }
            answered
        }));
    }
    let mut answered = 0;
    for caller in callers {
        answered += caller.await.unwrap();
    }
    // 1,050 tokens at ten dollars a million are 10,500 millionths.
    let charged = answered * 10_500;
    let booked = ledger.with(|ledger| {
        ledger
            .settled("run")
            .unwrap()
            .get(BudgetDimension::MicroUsd)
    });
    assert_eq!(booked, Some(charged));
    assert!(charged <= 100_000 && answered > 0, "{charged}");
}

#[tokio::test]
async fn every_try_is_paid_and_one_that_broke_off_is_paid_in_full() {
    let script = ModelScript::default()
        .then_fail(ScriptedFault::status(500))
        .then_fail(ScriptedFault::cut_after(40))
        .then(ScriptTurn {
            say: Some("done".into()),
            usage: Some(ScriptedUsage {
                input: 10,
                output: 5,
                cache_read: 0,
            }),
            ..ScriptTurn::default()
        });
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(script)));
    let mut ledger = SpendLedger::default();
    ledger.open("run", None, usd(10_000_000)).unwrap();
    let ledger = SharedSpendLedger::new(ledger);
    let exchange = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            patience(true),
            &ledger.account("run"),
            &mut |_| {},
        )
        .await;
    exchange.result.unwrap();
    let spent: Vec<u64> = exchange
        .tries
        .iter()
        .map(|one| one.spent.get(BudgetDimension::MicroUsd).unwrap_or(0))
        .collect();
    assert_eq!(spent[0], 0, "a refusal costs nothing");
    assert!(
        spent[1] > 10_000,
        "what broke off may have cost everything: {spent:?}"
    );
    assert_eq!(spent[2], 150);
    let booked = ledger.with(|ledger| ledger.settled("run").unwrap().clone());
    assert_eq!(
        booked.get(BudgetDimension::MicroUsd),
        Some(spent.iter().sum())
    );
    assert_eq!(booked.get(BudgetDimension::ModelCalls), Some(2));
}

#[tokio::test]
async fn a_call_the_budget_does_not_cover_is_not_made() {
    let player = Arc::new(ScriptPlayer::new(ModelScript::say("never")));
    let (client, _) = client_on(player.clone());
    let mut ledger = SpendLedger::default();
    ledger.open("run", None, usd(5)).unwrap();
    let ledger = SharedSpendLedger::new(ledger);
    let exchange = client
        .complete(
            &endpoint(WireProtocol::Chat, "http://x"),
            &question("x"),
            patience(true),
            &ledger.account("run"),
            &mut |_| {},
        )
        .await;
    let error = exchange.result.unwrap_err();
    assert!(
        error.to_string().contains("raise the limit to go on"),
        "{error}"
    );
    assert_eq!((exchange.tries.len(), player.unused()), (0, 1));
}
