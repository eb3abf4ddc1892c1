//! What people say to a run while it works, putting it down, and naming its record.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lula_graph::{
    EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld, GraphEngine, RestReason,
    RunStart, async_trait,
};
use lula_protocol::{RunId, RunSignal};
use lula_store::{RunStatus, RunStore};
use serde_json::json;

use crate::delivery::{Death, HandClock, LEASE, MortalStore, engine, sqlite};
use crate::single::{ObligingWorld, Single};

fn note(text: &str) -> RunSignal {
    RunSignal::Steer {
        by: "alice".parse().unwrap(),
        text: text.to_owned(),
    }
}

/// Three turns, each of which tells what it heard.
fn turns() -> Single {
    Single::new(|ctx| {
        Box::pin(async move {
            let mut told = Vec::new();
            for turn in 0..3 {
                let heard: Vec<String> = ctx.hear().await?.into_iter().map(|it| it.text).collect();
                told.push(heard.join("+"));
                let request = json!([turn, heard]);
                let _: String = ctx.effect(EffectRequest::model("turn", &request)).await?;
            }
            let all: Vec<String> = ctx.heard().into_iter().map(|it| it.text).collect();
            assert_eq!(all.join("+"), told.concat());
            Ok(told.join(","))
        })
    })
}

/// A person speaks while the first turn is under way.
struct SteeringWorld {
    store: Arc<dyn RunStore>,
    turns: AtomicU32,
}

#[async_trait]
impl EffectWorld for SteeringWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        if self.turns.fetch_add(1, Ordering::SeqCst) == 0 {
            self.store
                .send(&order.run, &note("mind the gap"))
                .await
                .unwrap();
            // As long as a hint may take.
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        }
        Ok(EffectOutput::free(json!("said")))
    }
}

async fn summary(engine: &GraphEngine<Single>, run: &RunId) -> String {
    let known = engine.show(run, None).await.unwrap();
    assert_eq!(engine.replay(run).await.unwrap().differences, []);
    known.progress.ended.unwrap().summary
}

#[tokio::test]
async fn a_note_reaches_the_next_turn_of_a_run_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = (sqlite(directory.path()), HandClock::new());
    let world = Arc::new(SteeringWorld {
        store: sqlite(directory.path()),
        turns: AtomicU32::new(0),
    });
    let engine = engine(turns(), store, world, &clock);
    let run = engine.start(&(), &RunStart::default()).await.unwrap();
    engine.resume(&run).await.unwrap();
    assert_eq!(summary(&engine, &run).await, ",mind the gap,");
}

#[tokio::test]
async fn a_note_is_heard_at_the_same_turn_wherever_the_run_dies() {
    for append in 1..8 {
        for death in [Death::Before(append), Death::After(append)] {
            let directory = tempfile::tempdir().unwrap();
            let (store, clock) = (sqlite(directory.path()), HandClock::new());
            let mortal = MortalStore::new(Arc::clone(&store), death);
            let first = engine(turns(), mortal, Arc::new(ObligingWorld), &clock);
            let run = first.start(&(), &RunStart::default()).await.unwrap();
            first.send(&run, &note("one")).await.unwrap();
            first.send(&run, &note("two")).await.unwrap();
            let _ = first.resume(&run).await;
            clock.forward(LEASE);
            let second = engine(turns(), store, Arc::new(ObligingWorld), &clock);
            second.resume(&run).await.unwrap();
            // Both were there before the first turn, and each is heard once.
            assert_eq!(summary(&second, &run).await, "one+two,,", "{death:?}");
        }
    }
}

/// Counts what it does, and is asked to stop in the middle of the first.
struct CancellingWorld {
    engine: std::sync::OnceLock<GraphEngine<Single>>,
    done: AtomicU32,
}

#[async_trait]
impl EffectWorld for CancellingWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        if self.done.fetch_add(1, Ordering::SeqCst) == 0
            && let Some(engine) = self.engine.get()
        {
            engine.pause(&order.run);
        }
        Ok(EffectOutput::free(json!("said")))
    }
}

#[tokio::test]
async fn a_run_that_is_put_down_finishes_its_step_and_goes_on_later() {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = (sqlite(directory.path()), HandClock::new());
    let world = Arc::new(CancellingWorld {
        engine: std::sync::OnceLock::new(),
        done: AtomicU32::new(0),
    });
    let engine = engine(turns(), Arc::clone(&store), world.clone(), &clock);
    world.engine.set(engine.clone()).ok().unwrap();
    let run = engine.start(&(), &RunStart::default()).await.unwrap();
    assert_eq!(engine.resume(&run).await.unwrap(), Some(RestReason::Paused));
    assert_eq!(world.done.load(Ordering::SeqCst), 1);
    // No worker has it, and the next need not wait for a lease.
    assert_eq!(
        store.run(&run).await.unwrap().unwrap().status,
        RunStatus::Ready
    );
    engine.resume(&run).await.unwrap();
    assert_eq!(
        world.done.load(Ordering::SeqCst),
        3,
        "nothing was done twice"
    );
    assert_eq!(summary(&engine, &run).await, ",,");
}

#[tokio::test]
async fn a_run_can_name_what_was_recorded_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = (sqlite(directory.path()), HandClock::new());
    let graph = Single::new(|ctx| {
        Box::pin(async move {
            let _: String = ctx.effect(EffectRequest::model("turn", "x")).await?;
            Ok(ctx.head().await?.to_string())
        })
    });
    let engine = engine(graph, Arc::clone(&store), Arc::new(ObligingWorld), &clock);
    let run = engine.start(&(), &RunStart::default()).await.unwrap();
    engine.resume(&run).await.unwrap();
    let named = summary(&engine, &run).await;
    let records = store.read(&run, 0, 100).await.unwrap();
    let at = records
        .iter()
        .position(|record| record.hash.to_string() == named);
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record.read_body().unwrap().kind())
        .collect();
    assert_eq!(at.map(|at| kinds[at]), Some("effect_settled"), "{kinds:?}");
}
