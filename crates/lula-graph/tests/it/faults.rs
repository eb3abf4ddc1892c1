//! Injected faults: lost answers, programs that changed their mind, leases lost, clocks, disks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lula_graph::{
    CrashEvidence, EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld,
    EngineError, EngineOptions, RestReason, RunStart, async_trait,
};
use lula_protocol::event::RunEnding;
use lula_protocol::{RunInterrupt, RunSignal};
use lula_store::sqlite::SqliteOptions;
use lula_store::{Durability, EffectState, RunStatus, SqliteStore, StoreError, check_run};

use crate::delivery::{
    Death, Delivery, HandClock, Job, LEASE, MortalStore, Yard, engine, engine_with, options, sqlite,
};
use crate::single::{ObligingWorld, Single};

fn job() -> Job {
    Job {
        rounds: 1,
        weight: 10,
        price: 0,
    }
}

#[tokio::test]
async fn lost_answers_are_reconciled_by_class_without_a_crash() {
    for name in ["plan", "edit", "commit", "push"] {
        let directory = tempfile::tempdir().unwrap();
        let clock = HandClock::new();
        let yard = Arc::new(Yard::default());
        yard.lose.lock().unwrap().insert(name);
        let engine = engine(Delivery, sqlite(directory.path()), yard.clone(), &clock);
        let (run, rested) = engine.run(&job(), &RunStart::default()).await.unwrap();
        assert!(matches!(rested, RestReason::Done(_)), "{name}: {rested:?}");
        let site = yard.site(&run);
        assert_eq!(
            (yard.pushes(&run), site.commit, site.tree.len()),
            (1, 1, 2),
            "{name}"
        );
        assert_eq!(engine.replay(&run).await.unwrap().differences, []);
    }
}

/// A push was ordered, the answer was lost, and the world kept no book.
async fn unknown_push(choice: &str) -> (RestReason, u32) {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let engine = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    yard.lose.lock().unwrap().insert("push");
    yard.forgetful.store(true, Ordering::Relaxed);
    let (run, rested) = engine.run(&job(), &RunStart::default()).await.unwrap();
    let RestReason::Waiting(pending) = rested else {
        panic!("{rested:?}")
    };
    assert!(matches!(
        pending.interrupt,
        RunInterrupt::UnknownEffect { .. }
    ));
    assert_eq!(
        store.effects_in(EffectState::Unknown).await.unwrap().len(),
        1
    );
    clock.forward(LEASE);
    assert!(
        engine.sweep().await.unwrap().is_empty(),
        "nobody tries again by himself"
    );
    let answer = RunSignal::Answer {
        interrupt: pending.seq,
        choice: choice.to_owned(),
        by: "alice".parse().unwrap(),
        note: String::new(),
    };
    engine.send(&run, &answer).await.unwrap();
    let rested = engine.resume(&run).await.unwrap().unwrap();
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
    assert_eq!(
        store.effects_in(EffectState::Unknown).await.unwrap().len(),
        usize::from(choice == "abort")
    );
    (rested, yard.pushes(&run))
}

#[tokio::test]
async fn an_effect_nobody_knows_about_waits_for_a_persons_word() {
    let (rested, pushes) = unknown_push("mark-done").await;
    assert!(matches!(rested, RestReason::Done(ended) if ended.ending == RunEnding::Completed));
    assert_eq!(pushes, 1, "it was done, and the person said so");
    let (rested, pushes) = unknown_push("retry").await;
    assert!(matches!(rested, RestReason::Done(ended) if ended.ending == RunEnding::Completed));
    assert_eq!(pushes, 2, "the person took it upon himself");
    let (rested, pushes) = unknown_push("abort").await;
    assert!(matches!(rested, RestReason::Done(ended) if ended.ending == RunEnding::Halted));
    assert_eq!(pushes, 1);
}

#[tokio::test]
async fn a_program_that_asks_otherwise_after_a_crash_is_stopped_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let mad = Arc::new(AtomicBool::new(false));
    let graph = |mad: &Arc<AtomicBool>| {
        let mad = Arc::clone(mad);
        Single::new(move |ctx| {
            let target = if mad.load(Ordering::Relaxed) {
                "prod"
            } else {
                "test"
            };
            Box::pin(async move { ctx.effect(EffectRequest::external("deploy", target)).await })
        })
    };
    let mortal = MortalStore::new(Arc::clone(&store), Death::Before(1));
    let first = engine(graph(&mad), mortal, Arc::new(ObligingWorld), &clock);
    let run = first.start(&(), &RunStart::default()).await.unwrap();
    first.resume(&run).await.unwrap_err();
    clock.forward(LEASE);

    mad.store(true, Ordering::Relaxed);
    let second = engine(
        graph(&mad),
        Arc::clone(&store),
        Arc::new(RememberingWorld),
        &clock,
    );
    let rested = second.resume(&run).await.unwrap().unwrap();
    let RestReason::Waiting(pending) = rested else {
        panic!("{rested:?}")
    };
    assert!(matches!(
        pending.interrupt,
        RunInterrupt::NonDeterminism { ordinal: 0, .. }
    ));

    mad.store(false, Ordering::Relaxed);
    let retry = RunSignal::Answer {
        interrupt: pending.seq,
        choice: "retry".to_owned(),
        by: "alice".parse().unwrap(),
        note: "fixed".to_owned(),
    };
    second.send(&run, &retry).await.unwrap();
    let rested = second.resume(&run).await.unwrap().unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    assert_eq!(second.replay(&run).await.unwrap().differences, []);
    mad.store(true, Ordering::Relaxed);
    assert!(
        !second.replay(&run).await.unwrap().differences.is_empty(),
        "a replay sees it too"
    );
}

/// Knows that everything was done.
struct RememberingWorld;

#[async_trait]
impl EffectWorld for RememberingWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        panic!("{} was done again", order.name);
    }
    async fn probe(&self, _: &EffectOrder) -> CrashEvidence {
        CrashEvidence::Done(EffectOutput::free("deployed".into()))
    }
}

/// Takes a long time.
struct SlowWorld(tokio::sync::Notify);

#[async_trait]
impl EffectWorld for SlowWorld {
    async fn perform(&self, _: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[tokio::test]
async fn an_owner_whose_lease_was_taken_stops_in_the_middle_of_an_effect() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let graph =
        || Single::new(|ctx| Box::pin(async { ctx.effect(EffectRequest::read("wait", "")).await }));
    let quick = EngineOptions {
        renew: Duration::from_millis(20),
        ..options()
    };
    let slow = Arc::new(SlowWorld(tokio::sync::Notify::new()));
    let first = engine_with(graph(), Arc::clone(&store), slow.clone(), &clock, quick);
    let run = first.start(&(), &RunStart::default()).await.unwrap();
    let driving = {
        let (first, run) = (first.clone(), run.clone());
        tokio::spawn(async move { first.resume(&run).await })
    };
    slow.0.notified().await;
    let second = engine(
        graph(),
        sqlite(directory.path()),
        Arc::new(ObligingWorld),
        &clock,
    );
    // The clock of the second jumps an hour; the first one's renewals are beaten to it.
    let taken = loop {
        clock.forward(Duration::from_hours(1));
        if let Some(rested) = second.resume(&run).await.unwrap() {
            break rested;
        }
    };
    assert!(matches!(taken, RestReason::Done(_)), "{taken:?}");
    let lost = driving.await.unwrap().unwrap_err();
    assert!(
        matches!(lost, EngineError::Store(StoreError::Fenced { .. })),
        "{lost}"
    );
    check_run(&*store, &run).await.unwrap();
}

#[tokio::test]
async fn a_world_that_cannot_be_reached_is_tried_again_later() {
    struct UnreachableWorld(AtomicBool);
    #[async_trait]
    impl EffectWorld for UnreachableWorld {
        async fn perform(&self, _: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
            if self.0.swap(false, Ordering::Relaxed) {
                return Err(EffectTrouble::Unreachable("nobody answers".to_owned()));
            }
            Ok(EffectOutput::free("open again".into()))
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let graph =
        Single::new(|ctx| Box::pin(async { ctx.effect(EffectRequest::read("call", "")).await }));
    let world = Arc::new(UnreachableWorld(AtomicBool::new(true)));
    let engine = engine(graph, Arc::clone(&store), world, &clock);
    let (run, rested) = engine.run(&(), &RunStart::default()).await.unwrap();
    assert_eq!(rested, RestReason::Trouble("nobody answers".to_owned()));
    assert!(engine.sweep().await.unwrap().is_empty(), "not at once");
    clock.forward(LEASE);
    assert_eq!(engine.sweep().await.unwrap().len(), 1);
    assert_eq!(
        store.run(&run).await.unwrap().unwrap().status,
        RunStatus::Done
    );
}

#[tokio::test]
async fn what_the_world_asks_people_about_waits_and_is_ordered_again_under_its_name() {
    use lula_protocol::{ApprovalId, EffectClass, EffectId};
    use std::sync::Mutex;
    #[derive(Default)]
    struct AskingWorld(Mutex<Vec<EffectId>>);
    #[async_trait]
    impl EffectWorld for AskingWorld {
        async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
            let mut orders = self.0.lock().unwrap();
            orders.push(order.effect.clone());
            if orders.len() < 3 {
                return Err(EffectTrouble::Held {
                    approval: ApprovalId::from_parts(1, [1; 10]),
                    reason: "it is guarded".to_owned(),
                });
            }
            Ok(EffectOutput::free("done".into()))
        }
        async fn probe(&self, _: &EffectOrder) -> CrashEvidence {
            CrashEvidence::NotDone
        }
        async fn restore(
            &self,
            _: &EffectOrder,
            _: Option<lula_protocol::Digest>,
        ) -> Result<(), EffectTrouble> {
            Ok(())
        }
    }
    for class in [EffectClass::Read, EffectClass::Tree, EffectClass::Cas] {
        let directory = tempfile::tempdir().unwrap();
        let store = sqlite(directory.path());
        let clock = HandClock::new();
        let graph = Single::new(move |ctx| {
            Box::pin(async move { ctx.effect(EffectRequest::new(class, "write", "x")).await })
        });
        let world = Arc::new(AskingWorld::default());
        let engine = engine(graph, Arc::clone(&store), world.clone(), &clock);
        let (run, mut rested) = engine.run(&(), &RunStart::default()).await.unwrap();
        for _ in 0..2 {
            let RestReason::Waiting(pending) = &rested else {
                panic!("{class}: {rested:?}")
            };
            assert!(matches!(pending.interrupt, RunInterrupt::Held { .. }));
            assert_eq!(
                store.run(&run).await.unwrap().unwrap().status,
                RunStatus::Suspended
            );
            let answer = RunSignal::Answer {
                interrupt: pending.seq,
                choice: "retry".to_owned(),
                by: "alice".parse().unwrap(),
                note: String::new(),
            };
            engine.send(&run, &answer).await.unwrap();
            rested = engine.resume(&run).await.unwrap().unwrap();
        }
        assert!(matches!(rested, RestReason::Done(_)), "{class}: {rested:?}");
        let orders = world.0.lock().unwrap().clone();
        assert_eq!(orders.len(), 3);
        assert!(orders.iter().all(|effect| *effect == orders[0]), "one name");
        assert_eq!(engine.replay(&run).await.unwrap().differences, []);
    }
}

#[tokio::test]
async fn clocks_that_jump_cost_time_never_correctness() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let first = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    let run = first.start(&job(), &RunStart::default()).await.unwrap();
    let hour = Duration::from_hours(1);
    for number in 0..6 {
        if number % 2 == 0 {
            clock.forward(2 * hour);
        } else {
            clock.back(hour);
        }
        let mortal = MortalStore::new(Arc::clone(&store), Death::After(2));
        // A clock that went back does not get the run; a dead owner's lease seems fresh to it.
        let _ = engine(Delivery, mortal, yard.clone(), &clock)
            .resume(&run)
            .await;
    }
    clock.forward(10 * hour);
    let rested = first.resume(&run).await.unwrap();
    assert!(
        matches!(rested, Some(RestReason::Done(_)) | None),
        "{rested:?}"
    );
    assert_eq!(yard.pushes(&run), 1);
    let log = store.read(&run, 0, 1000).await.unwrap();
    assert!(
        log.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms),
        "time runs one way"
    );
}

#[tokio::test]
async fn a_full_disk_stops_a_run_which_goes_on_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let open = |max_bytes| {
        let options = SqliteOptions {
            durability: Durability::ProcessCrash,
            max_bytes,
            ..SqliteOptions::default()
        };
        Arc::new(SqliteStore::open(&path, options).unwrap())
    };
    let clock = HandClock::new();
    let heavy = || {
        Single::new(|ctx| {
            Box::pin(async move {
                use rand_core::Rng;
                let mut noise = vec![0_u8; 40_000];
                ctx.rng().fill_bytes(&mut noise);
                for _ in 0..3 {
                    let text = format!("{noise:x?}");
                    noise.rotate_left(1);
                    let _: String = ctx.effect(EffectRequest::model("echo", &text)).await?;
                }
                Ok("all written".to_owned())
            })
        })
    };
    let small = engine(
        heavy(),
        open(Some(180_000)),
        Arc::new(ObligingWorld),
        &clock,
    );
    let run = small.start(&(), &RunStart::default()).await.unwrap();
    let full = small.resume(&run).await.unwrap_err();
    assert!(
        matches!(full, EngineError::Store(StoreError::Full(_))),
        "{full}"
    );
    clock.forward(LEASE);
    let roomy = engine(heavy(), open(None), Arc::new(ObligingWorld), &clock);
    let rested = roomy.resume(&run).await.unwrap().unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.summary, "all written");
}

/// Another process keeps the database to itself from the moment the world was asked: the answer
/// cannot be kept, and what became of it is found out when the database is free again.
#[tokio::test]
async fn a_database_that_stays_busy_stops_a_run_which_goes_on_later() {
    struct Locks(std::sync::Mutex<Option<rusqlite::Connection>>);
    #[async_trait]
    impl EffectWorld for Locks {
        async fn perform(&self, _: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
            let other = self.0.lock().unwrap();
            let other = other.as_ref().expect("it was pushed before");
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            Ok(EffectOutput::free("pushed".into()))
        }
        async fn probe(&self, _: &EffectOrder) -> CrashEvidence {
            CrashEvidence::Done(EffectOutput::free("pushed".into()))
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let impatient = SqliteOptions {
        durability: Durability::ProcessCrash,
        busy_timeout: Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let store = Arc::new(SqliteStore::open(&path, impatient).unwrap());
    let clock = HandClock::new();
    let graph = Single::new(|ctx| {
        Box::pin(async { ctx.effect(EffectRequest::external("push", "")).await })
    });
    let other = rusqlite::Connection::open(&path).unwrap();
    let world = Arc::new(Locks(std::sync::Mutex::new(Some(other))));
    let engine = engine(graph, store.clone(), world.clone(), &clock);
    let run = engine.start(&(), &RunStart::default()).await.unwrap();
    let busy = engine.resume(&run).await.unwrap_err();
    assert!(
        matches!(busy, EngineError::Store(StoreError::Busy(_))),
        "{busy}"
    );

    // It ends, and its transaction with it.
    drop(world.0.lock().unwrap().take());
    clock.forward(LEASE);
    let rested = engine.resume(&run).await.unwrap().unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    check_run(&*store, &run).await.unwrap();
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

#[tokio::test]
async fn a_rotten_blob_stops_a_run_instead_of_feeding_it_garbage() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let heavy = Job {
        weight: 9_000,
        ..job()
    };
    let mortal = MortalStore::new(Arc::clone(&store), Death::After(5));
    let first = engine(Delivery, mortal, yard.clone(), &clock);
    let run = first.start(&heavy, &RunStart::default()).await.unwrap();
    first.resume(&run).await.unwrap_err();
    let file = rusqlite::Connection::open(directory.path().join("runs.db")).unwrap();
    let rotten = file
        .execute("UPDATE blobs SET bytes = x'00aabb'", [])
        .unwrap();
    assert!(rotten > 0);
    clock.forward(LEASE);
    let second = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    let stopped = second.resume(&run).await.unwrap_err();
    assert!(
        matches!(stopped, EngineError::Store(StoreError::CorruptBlob(_))),
        "{stopped}"
    );
    assert_eq!(yard.pushes(&run), 0);
}

/// While a run is worked on nothing but its log says how long it is; what was announced is listed
/// beside it.
#[tokio::test]
async fn a_log_that_lost_its_end_is_not_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let mortal = MortalStore::new(Arc::clone(&store), Death::After(6));
    let first = engine(Delivery, mortal, yard.clone(), &clock);
    let run = first.start(&job(), &RunStart::default()).await.unwrap();
    first.resume(&run).await.unwrap_err();
    check_run(&*store, &run).await.unwrap();
    let effects = store.effects(&run).await.unwrap();
    let intent = effects.iter().map(|row| row.intent_seq).max().unwrap();
    let end = store.run(&run).await.unwrap().unwrap().head.next;
    assert!(intent < end && intent > 1);

    let file = rusqlite::Connection::open(directory.path().join("runs.db")).unwrap();
    let torn = format!("DELETE FROM events WHERE pos & 0xffffff >= {intent}");
    assert_eq!(file.execute(&torn, []).unwrap() as u64, end - intent);
    let found = check_run(&*store, &run).await.unwrap_err();
    assert!(found.to_string().contains("the log ends here"), "{found}");
    clock.forward(LEASE);
    let second = engine(Delivery, Arc::clone(&store), yard, &clock);
    let refused = second.resume(&run).await.unwrap_err();
    assert!(
        matches!(
            refused,
            EngineError::Store(StoreError::CorruptEvent { seq, .. }) if seq == intent
        ),
        "{refused}"
    );
}
