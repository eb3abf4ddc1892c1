//! Answers that wait for company: committed with what comes next, never seen before that, and never
//! kept for long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lula_graph::{
    CrashEvidence, EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld,
    EngineOptions, RestReason, RunStart, VisitStop, async_trait,
};
use lula_protocol::{Digest, EffectClass, EffectId, EventBody, RunId};
use lula_store::{RunStore, StoreError, check_run};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::crash::start;
use crate::delivery::{
    AppendDelay, Death, HandClock, LEASE, MortalStore, engine, engine_with, options, sqlite,
};
use crate::single::{ObligingWorld, Single};

/// Longer than any test: only what comes next takes an answer along.
const NEVER: Duration = Duration::from_hours(1);

fn lingering(linger: Duration) -> EngineOptions {
    EngineOptions {
        linger,
        ..options()
    }
}

/// How many answers stand in the log of a run.
async fn answers(store: &dyn RunStore, run: &RunId) -> usize {
    let log = store.read(run, 0, 10_000).await.unwrap();
    let bodies = log.iter().map(|record| record.read_body().unwrap());
    bodies
        .filter(|body| matches!(body, EventBody::EffectSettled { .. }))
        .count()
}

/// Waits until so many answers stand in the log. Nothing of this takes long where it works.
async fn until_answers(store: &dyn RunStore, run: &RunId, wanted: usize) {
    for _ in 0..30_000 {
        if answers(store, run).await >= wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the answer was never committed");
}

#[tokio::test]
async fn a_body_that_takes_its_time_does_not_keep_its_answer_to_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let seen = Arc::clone(&store);
    let graph = Single::new(move |ctx| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let text: String = ctx.effect(EffectRequest::model("think", "")).await?;
            until_answers(&*seen, ctx.run(), 1).await;
            Ok(text)
        })
    });
    let engine = engine(
        graph,
        Arc::clone(&store),
        Arc::new(ObligingWorld),
        &HandClock::new(),
    );
    let (run, rested) = engine.run(&(), &start()).await.unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    check_run(&*store, &run).await.unwrap();
    assert_eq!(answers(&*store, &run).await, 1, "once");
}

/// Answers the first voice at once, and the second when the first one's answer is in the log.
struct Canon(Arc<dyn RunStore>);

#[async_trait]
impl EffectWorld for Canon {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        if order.request == 1 {
            until_answers(&*self.0, &order.run, 1).await;
        }
        Ok(EffectOutput::free(order.request.clone()))
    }
}

#[tokio::test]
async fn of_several_calls_none_keeps_the_answers_of_the_others_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let graph = Single::new(|ctx| {
        Box::pin(async {
            let voices = vec![
                EffectRequest::model("sing", &0),
                EffectRequest::model("sing", &1),
            ];
            let heard = ctx.effects::<u32>(voices).await?;
            Ok(format!("{heard:?}"))
        })
    });
    let world = Arc::new(Canon(Arc::clone(&store)));
    let engine = engine(graph, Arc::clone(&store), world, &HandClock::new());
    let (_, rested) = engine.run(&(), &start()).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.summary, "[Ok(0), Ok(1)]");
}

/// A commit may take longer than an answer may wait; until it is done nothing is to be done.
#[tokio::test]
async fn an_answer_that_is_being_committed_is_waited_for_in_peace() {
    let directory = tempfile::tempdir().unwrap();
    let looks = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&looks);
    let slowly: AppendDelay = Box::new(move || {
        let looks = Arc::clone(&counted);
        let mut wait = Box::pin(tokio::time::sleep(Duration::from_millis(50)));
        Box::pin(std::future::poll_fn(move |cx| {
            looks.fetch_add(1, Ordering::Relaxed);
            wait.as_mut().poll(cx)
        }))
    });
    let mortal = MortalStore::new(sqlite(directory.path()), Death::Never);
    mortal.take_time(slowly);
    let graph = Single::new(|ctx| {
        Box::pin(async {
            let _: String = ctx.effect(EffectRequest::model("think", "")).await?;
            let _: String = ctx.effect(EffectRequest::model("think again", "")).await?;
            Ok("thought".to_owned())
        })
    });
    let engine = engine(
        graph,
        mortal.clone(),
        Arc::new(ObligingWorld),
        &HandClock::new(),
    );
    let (_, rested) = engine.run(&(), &start()).await.unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    assert_eq!(mortal.appends(), 3);
    let looks = looks.load(Ordering::Relaxed);
    assert!(looks <= 30, "three appends were looked at {looks} times");
}

/// What changes something outside is known to be done before anything else happens.
#[tokio::test]
async fn the_answer_of_what_changes_something_outside_never_waits() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let seen = Arc::clone(&store);
    let graph = Single::new(move |ctx| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let _: String = ctx.effect(EffectRequest::model("think", "")).await?;
            let before = answers(&*seen, ctx.run()).await;
            let _: String = ctx.effect(EffectRequest::external("push", "")).await?;
            Ok(format!(
                "{before} then {}",
                answers(&*seen, ctx.run()).await
            ))
        })
    });
    let engine = engine_with(
        graph,
        store,
        Arc::new(ObligingWorld),
        &HandClock::new(),
        lingering(NEVER),
    );
    let (_, rested) = engine.run(&(), &start()).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.summary, "0 then 2");
}

/// However a body ends, what the world told it is kept.
#[tokio::test]
async fn a_body_that_fails_loses_no_answer() {
    for fault in ["halt", "store", "panic"] {
        let directory = tempfile::tempdir().unwrap();
        let store = sqlite(directory.path());
        let graph = Single::new(move |ctx| {
            Box::pin(async move {
                let _: String = ctx.effect(EffectRequest::model("think", "")).await?;
                match fault {
                    "halt" => Err(VisitStop::Halt("no idea".to_owned())),
                    "store" => Err(VisitStop::Store(StoreError::Busy("elsewhere".to_owned()))),
                    _ => panic!("a fault of the body"),
                }
            })
        });
        let engine = engine_with(
            graph,
            Arc::clone(&store),
            Arc::new(ObligingWorld),
            &HandClock::new(),
            lingering(NEVER),
        );
        let run = engine.start(&(), &start()).await.unwrap();
        let driven = {
            let run = run.clone();
            tokio::spawn(async move { engine.resume(&run).await.map(drop) }).await
        };
        match fault {
            "halt" => driven.unwrap().unwrap(),
            "store" => drop(driven.unwrap().unwrap_err()),
            _ => assert!(driven.unwrap_err().is_panic()),
        }
        assert_eq!(answers(&*store, &run).await, 1, "{fault}");
        check_run(&*store, &run).await.unwrap();
    }
}

/// A world that never says the same twice, keeps a book of what it did outside, and looks into the
/// log whenever it is asked for anything: whatever it answered before must stand there.
struct Witness {
    store: Arc<dyn RunStore>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    words: u64,
    /// What was done for good, by identity: the request, the answer and how often.
    done: BTreeMap<EffectId, (Value, Value, u32)>,
    /// Answers handed out in this life.
    told: Vec<EffectId>,
}

impl Witness {
    fn new(store: &Arc<dyn RunStore>) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            book: Mutex::default(),
        })
    }

    /// Everything that was told in this life stands in the log.
    async fn look_into(&self, order: &EffectOrder) {
        let told = self.book.lock().unwrap().told.clone();
        let log = self.store.read(&order.run, 0, 10_000).await.unwrap();
        let bodies: Vec<_> = log.iter().map(|one| one.read_body().unwrap()).collect();
        for effect in told {
            let stands = bodies.iter().any(
                |body| matches!(body, EventBody::EffectSettled { effect: of, .. } if *of == effect),
            );
            assert!(stands, "{} was asked before {effect} was kept", order.name);
        }
    }
}

#[async_trait]
impl EffectWorld for Witness {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        self.look_into(order).await;
        let mut book = self.book.lock().unwrap();
        book.words += 1;
        let answer = json!(format!("word {}", book.words));
        if matches!(order.class, EffectClass::Cas | EffectClass::External) {
            let request = order.request.clone();
            let fresh = (request, answer.clone(), 0);
            let entry = book.done.entry(order.effect.clone()).or_insert(fresh);
            entry.2 += 1;
        }
        if order.class != EffectClass::Read {
            book.told.push(order.effect.clone());
        }
        Ok(EffectOutput::free(answer))
    }

    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        self.look_into(order).await;
        let book = self.book.lock().unwrap();
        match book.done.get(&order.effect) {
            Some((_, answer, _)) => CrashEvidence::Done(EffectOutput::free(answer.clone())),
            None => CrashEvidence::NotDone,
        }
    }

    async fn tree(&self, order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        self.look_into(order).await;
        Ok(None)
    }

    async fn restore(&self, order: &EffectOrder, _: Option<Digest>) -> Result<(), EffectTrouble> {
        self.look_into(order).await;
        Ok(())
    }
}

/// Each step asks with everything it heard so far.
fn chain(plan: &[EffectClass], pause_after: Option<usize>, paused: &Arc<Notify>) -> Single {
    let (plan, paused) = (plan.to_vec(), Arc::clone(paused));
    Single::new(move |ctx| {
        let (plan, paused) = (plan.clone(), Arc::clone(&paused));
        Box::pin(async move {
            let mut heard = Vec::new();
            for (number, class) in plan.into_iter().enumerate() {
                let word: String = ctx.effect(EffectRequest::new(class, "say", &heard)).await?;
                heard.push(word);
                if pause_after == Some(number) {
                    paused.notify_one();
                    std::future::pending::<()>().await;
                }
            }
            Ok(heard.join(", "))
        })
    })
}

fn any_class() -> impl Strategy<Value = EffectClass> {
    prop_oneof![
        2 => Just(EffectClass::Model),
        1 => Just(EffectClass::Read),
        1 => Just(EffectClass::Tree),
        1 => Just(EffectClass::Cas),
        2 => Just(EffectClass::External),
    ]
}

/// How a life ends: at a commit, or while an answer waits.
#[derive(Debug, Clone, Copy)]
enum LifeEnd {
    At(Death),
    Waiting(usize),
}

fn any_cut() -> impl Strategy<Value = LifeEnd> {
    prop_oneof![
        (0_u32..6).prop_map(|number| LifeEnd::At(Death::Before(number))),
        (0_u32..6).prop_map(|number| LifeEnd::At(Death::After(number))),
        (0_usize..6).prop_map(LifeEnd::Waiting),
    ]
}

/// Drives a run in one life that is cut off as told.
async fn live(
    store: &Arc<dyn RunStore>,
    witness: &Arc<Witness>,
    clock: &Arc<HandClock>,
    plan: &[EffectClass],
    (run, cut): (&RunId, LifeEnd),
) {
    witness.book.lock().unwrap().told.clear();
    let (death, pause) = match cut {
        LifeEnd::At(death) => (death, None),
        LifeEnd::Waiting(number) => (Death::Never, Some(number)),
    };
    let mortal = MortalStore::new(Arc::clone(store), death);
    let world: Arc<dyn EffectWorld> = witness.clone();
    let paused = Arc::new(Notify::new());
    let graph = chain(plan, pause, &paused);
    let life = engine_with(graph, mortal, world, clock, lingering(NEVER));
    // Who pauses is dropped there: what waits is lost, as with a process that is killed.
    tokio::select! {
        _ = life.resume(run) => {}
        () = paused.notified() => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is cut off where: the world is asked nothing before what it said is kept, what is
    /// done for good is done once, and it is what the log says, although no answer ever comes twice.
    #[test]
    fn nothing_follows_from_an_answer_that_could_still_be_lost(
        plan in prop::collection::vec(any_class(), 1..6),
        cuts in prop::collection::vec(any_cut(), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let store = sqlite(directory.path());
            let clock = HandClock::new();
            let witness = Witness::new(&store);
            let graph = chain(&plan, None, &Arc::new(Notify::new()));
            let last = engine(graph, Arc::clone(&store), witness.clone(), &clock);
            let run = last.start(&(), &RunStart::default()).await.unwrap();
            for cut in cuts {
                clock.forward(LEASE);
                live(&store, &witness, &clock, &plan, (&run, cut)).await;
            }
            clock.forward(LEASE);
            witness.book.lock().unwrap().told.clear();
            last.resume(&run).await.unwrap();
            check_run(&*store, &run).await.unwrap();
            assert_eq!(last.replay(&run).await.unwrap().differences, []);
            let ended = last.show(&run, None).await.unwrap().progress.ended.unwrap();
            let book = witness.book.lock().unwrap();
            assert!(book.done.values().all(|(_, _, times)| *times == 1), "{:?}", book.done);
            if ended.summary.contains("lost twice") {
                // Two lives were cut off in the same call of a model.
                return;
            }
            let heard: Vec<_> = ended.summary.split(", ").collect();
            assert_eq!(heard.len(), plan.len(), "{}", ended.summary);
            let mut done: Vec<_> = book.done.values().map(|(asked, said, _)| (asked, said)).collect();
            done.sort_by_key(|(asked, _)| asked.as_array().map(Vec::len));
            let wanted: Vec<_> = plan
                .iter()
                .enumerate()
                .filter(|(_, class)| matches!(class, EffectClass::Cas | EffectClass::External))
                .map(|(number, _)| (json!(heard[..number]), json!(heard[number])))
                .collect();
            let wanted: Vec<_> = wanted.iter().map(|(asked, said)| (asked, said)).collect();
            assert_eq!(done, wanted, "what was done is what the log says");
        });
    }
}
