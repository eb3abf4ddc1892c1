//! What holds in every state of every run, and where each is held to it.
//!
//! - I1 (a prefix and its tail are the whole), I7 (no limit is passed), I20 (snapshots are only a
//!   cache): here.
//! - I2 (no gap, one chain): `lula_protocol::event`, and `check_run` at the end of every story.
//! - I3 (one owner writes), I12 (an approval is used once, for what was asked): the stores'
//!   conformance kit, by a model; with engines `crash` and `people`.
//! - I4, I5, I13, I14 (the same end wherever it dies, every decision derived again): `crash`, and
//!   with real processes `kill`.
//! - I6 (nothing that the world or a person was told is lost): `linger`.
//! - I7 for any order of moves, children included: `lula_graph::ledger`.
//! - I15 (no secret anywhere): `backends`, and `canary` of the stores.
//! - I16 (it ends): `guards`. I21 (nothing is stuck): here. I22 (nothing runs on): `people`.

use std::sync::Arc;

use lula_graph::{
    EffectRequest, EngineOptions, Graph, GraphEngine, RestReason, RunStart, RunState,
};
use lula_protocol::interrupt::unknown_effect;
use lula_protocol::{BudgetDimension, EventBody, EventPayload, RunId, RunInterrupt, RunSignal};
use lula_store::{RunStatus, RunStore, check_run};
use proptest::prelude::*;
use serde_json::Value;

use crate::crash::{any_death, start};
use crate::delivery::{
    Death, Delivery, HandClock, Job, LEASE, MortalStore, Work, Yard, engine, engine_with, options,
    sqlite,
};
use crate::single::{ObligingWorld, Single};

fn block_on<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// Takes one more event into account, as every reader can who has the log and the graph.
async fn fold(store: &dyn RunStore, run: &mut RunState<Work>, body: &EventBody) {
    run.progress.apply(body).unwrap();
    let (EventBody::NodeLeft { events, .. } | EventBody::Overridden { events }) = body else {
        return;
    };
    for payload in events {
        let change = match payload {
            EventPayload::Inline(_) => payload.read().unwrap(),
            EventPayload::Blob(blob) => {
                serde_json::from_slice(&store.blob(&blob.digest).await.unwrap()).unwrap()
            }
        };
        Delivery.apply(Arc::make_mut(&mut run.state), &change);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_prefix_and_its_tail_are_the_whole_run(
        deaths in prop::collection::vec(any_death(), 0..4),
        snapshot_every in prop_oneof![Just(0_u64), 1_u64..8],
        rounds in 0_u32..3,
        weight in prop_oneof![Just(0_usize), Just(5_000)],
    ) {
        block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let store = sqlite(directory.path());
            let (clock, yard) = (HandClock::new(), Arc::new(Yard::default()));
            let settings = EngineOptions { snapshot_every, ..options() };
            let last = engine_with(
                Delivery, Arc::clone(&store), yard.clone(), &clock, settings.clone(),
            );
            let run = last.start(&Job { rounds, weight, price: 100 }, &start()).await.unwrap();
            for death in deaths.into_iter().chain([Death::Never]) {
                clock.forward(LEASE);
                let mortal = MortalStore::new(Arc::clone(&store), death);
                let life = engine_with(Delivery, mortal, yard.clone(), &clock, settings.clone());
                let _ = life.resume(&run).await;
            }
            check_run(&*store, &run).await.unwrap();
            let log = store.read(&run, 0, 10_000).await.unwrap();
            let whole = last.show(&run, None).await.unwrap();
            assert!(whole.progress.ended.is_some());
            for at in 1..=log.len() {
                let mut part = last.show(&run, Some(at as u64)).await.unwrap();
                let rows = part.progress.ledger.rows([BudgetDimension::MicroUsd].into_iter());
                assert!(rows.iter().all(lula_store::LedgerRow::holds), "{at}: {rows:?}");
                for record in &log[at..] {
                    fold(&*store, &mut part, &record.read_body().unwrap()).await;
                }
                assert_eq!(part.progress, whole.progress, "{at}");
                assert_eq!(part.state, whole.state, "{at}");
            }
        });
    }

    /// Whatever runs wait for, and whenever their workers die: once everything is answered and
    /// every time has come, all of them are over.
    #[test]
    fn no_run_is_ever_stuck(
        plans in prop::collection::vec(prop::collection::vec(0_u8..4, 0..4), 1..6),
        deaths in prop::collection::vec(any_death(), 0..6),
    ) {
        block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let store = sqlite(directory.path());
            let clock = HandClock::new();
            let lives = deaths.len();
            let mut rounds = 0;
            let mut runs: Vec<(RunId, Vec<u8>)> = Vec::new();
            let mut deaths = deaths.into_iter();
            for plan in plans {
                let first = engine(waiting(&plan), Arc::clone(&store), Arc::new(ObligingWorld), &clock);
                runs.push((first.start(&(), &RunStart::default()).await.unwrap(), plan));
            }
            while let Some((run, plan)) = unfinished(&*store, &runs).await {
                rounds += 1;
                assert!(rounds < 60 + 2 * lives, "{run} is stuck");
                clock.forward(LEASE);
                let death = deaths.next().unwrap_or(Death::Never);
                let mortal = MortalStore::new(Arc::clone(&store), death);
                let life = engine(waiting(&plan), mortal, Arc::new(ObligingWorld), &clock);
                if let Ok(Some(RestReason::Waiting(_)) | None) = life.resume(&run).await {
                    let calm = engine(waiting(&plan), Arc::clone(&store), Arc::new(ObligingWorld), &clock);
                    answer(&calm, &run).await;
                }
            }
        });
    }
}

/// Asks people, sleeps, pushes where the world keeps no book, and looks, as a plan says.
fn waiting(plan: &[u8]) -> Single {
    let plan = plan.to_vec();
    Single::new(move |ctx| {
        let plan = plan.clone();
        Box::pin(async move {
            for step in plan {
                match step {
                    0 => drop(ctx.ask("go on?", &["yes"]).await?),
                    1 => {
                        let now = ctx.now().await?;
                        ctx.sleep_until(now + 90_000).await?;
                    }
                    2 => drop(
                        ctx.effect::<Value>(EffectRequest::external("push", ""))
                            .await?,
                    ),
                    _ => drop(ctx.effect::<Value>(EffectRequest::read("look", "")).await?),
                }
            }
            Ok("over".to_owned())
        })
    })
}

async fn unfinished(store: &dyn RunStore, runs: &[(RunId, Vec<u8>)]) -> Option<(RunId, Vec<u8>)> {
    for (run, plan) in runs {
        if store.run(run).await.unwrap().unwrap().status != RunStatus::Done {
            return Some((run.clone(), plan.clone()));
        }
    }
    None
}

async fn answer(engine: &GraphEngine<Single>, run: &RunId) {
    let state = engine.show(run, None).await.unwrap();
    let Some(pending) = state.progress.pending else {
        return;
    };
    let choice = match pending.interrupt {
        RunInterrupt::Operator { .. } => "yes",
        RunInterrupt::UnknownEffect { .. } => unknown_effect::MARK_DONE,
        _ => return,
    };
    let answer = RunSignal::Answer {
        interrupt: pending.seq,
        choice: choice.to_owned(),
        by: "bob".parse().unwrap(),
        note: String::new(),
    };
    engine.send(run, &answer).await.unwrap();
}
