//! Several effects at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lula_graph::{
    EffectError, EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld, RestReason,
    RunStart, async_trait,
};
use lula_protocol::{BudgetAmounts, BudgetDimension};
use lula_store::check_run;
use serde_json::json;
use tokio::sync::Barrier;

use crate::delivery::{Death, HandClock, LEASE, MortalStore, engine, sqlite};
use crate::single::Single;

/// Answers model calls only when three are under way at the same time.
struct Chorus {
    barrier: Barrier,
    calls: AtomicU32,
}

impl Chorus {
    fn of(voices: usize) -> Arc<Self> {
        Arc::new(Self {
            barrier: Barrier::new(voices),
            calls: AtomicU32::new(0),
        })
    }
}

#[async_trait]
impl EffectWorld for Chorus {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.barrier.wait().await;
        if order.request == 1 {
            return Err(EffectTrouble::Failed {
                message: "hoarse".to_owned(),
                spent: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 2),
            });
        }
        Ok(EffectOutput {
            value: json!(format!("{} {}", order.name, order.request)),
            spent: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 3),
        })
    }
}

fn choir() -> Single {
    Single::new(|ctx| {
        Box::pin(async {
            let cost = BudgetAmounts::none().with(BudgetDimension::MicroUsd, 10);
            let voices = vec![
                EffectRequest::model("sing", &0).reserving(cost.clone()),
                EffectRequest::read("hum", &5),
                EffectRequest::model("sing", &1).reserving(cost.clone()),
                EffectRequest::model("sing", &2).reserving(cost),
            ];
            let heard = ctx.effects::<String>(voices).await?;
            let heard = heard.into_iter().map(|voice| match voice {
                Ok(text) => text,
                Err(EffectError::Failed { message, .. }) => message,
                Err(error) => error.to_string(),
            });
            Ok(heard.collect::<Vec<_>>().join(", "))
        })
    })
}

fn start() -> RunStart {
    RunStart {
        limits: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 500),
        ..RunStart::default()
    }
}

#[tokio::test]
async fn looks_and_model_calls_are_under_way_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let chorus = Chorus::of(4);
    let engine = engine(
        choir(),
        Arc::clone(&store),
        chorus.clone(),
        &HandClock::new(),
    );
    let (run, rested) = engine.run(&(), &start()).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.summary, "sing 0, hum 5, hoarse, sing 2");
    assert_eq!(chorus.calls.load(Ordering::Relaxed), 4);
    let row = store.ledger(&run).await.unwrap()[0];
    assert_eq!((row.reserved, row.settled), (0, 3 + 2 + 3));
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

#[tokio::test]
async fn dying_among_them_changes_nothing() {
    for number in 0..6 {
        for death in [Death::Before(number), Death::After(number)] {
            let directory = tempfile::tempdir().unwrap();
            let store = sqlite(directory.path());
            let clock = HandClock::new();
            let mortal = MortalStore::new(Arc::clone(&store), death);
            let first = engine(choir(), mortal.clone(), Chorus::of(1), &clock);
            let run = first.start(&(), &start()).await.unwrap();
            let _ = first.resume(&run).await;
            clock.forward(LEASE);
            let second = engine(choir(), Arc::clone(&store), Chorus::of(1), &clock);
            let _ = second.resume(&run).await.unwrap();
            let ended = second
                .show(&run, None)
                .await
                .unwrap()
                .progress
                .ended
                .unwrap();
            assert_eq!(ended.summary, "sing 0, hum 5, hoarse, sing 2", "{death:?}");
            check_run(&*store, &run).await.unwrap();
            assert_eq!(
                second.replay(&run).await.unwrap().differences,
                [],
                "{death:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_budget_does_not_allow_together_is_not_started() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let chorus = Chorus::of(1);
    let engine = engine(
        choir(),
        Arc::clone(&store),
        chorus.clone(),
        &HandClock::new(),
    );
    let tight = RunStart {
        limits: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 12),
        ..RunStart::default()
    };
    let (run, rested) = engine.run(&(), &tight).await.unwrap();
    assert!(matches!(rested, RestReason::Waiting(_)), "{rested:?}");
    assert_eq!(
        chorus.calls.load(Ordering::Relaxed),
        2,
        "one model call and one look"
    );
    assert!(
        store
            .ledger(&run)
            .await
            .unwrap()
            .iter()
            .all(lula_store::LedgerRow::holds)
    );
}
