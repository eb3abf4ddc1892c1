//! Dying at every commit, and coming to the same end.

use std::sync::Arc;

use lula_graph::{BudgetPolicy, EffectRequest, EngineOptions, GraphEngine, RestReason, RunStart};
use lula_protocol::event::RunEnding;
use lula_protocol::{BudgetAmounts, BudgetDimension, Digest, RunId};
use lula_store::{RunStatus, RunStore, check_run};
use proptest::prelude::*;

use crate::delivery::{
    Death, Delivery, HandClock, Job, LEASE, MortalStore, Site, Yard, engine, engine_with, options,
    sqlite,
};
use crate::single::{ObligingWorld, Single};

pub(crate) fn start() -> RunStart {
    RunStart {
        limits: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100_000),
        seed: Some([5; 32]),
        ..RunStart::default()
    }
}

fn job() -> Job {
    Job {
        rounds: 2,
        weight: 5_000,
        price: 100,
    }
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct End {
    state: Digest,
    tree: Vec<String>,
    commit: u64,
    pushes: u32,
    summary: String,
}

async fn end_of(engine: &GraphEngine<Delivery>, yard: &Yard, run: &RunId) -> End {
    let state = engine.show(run, None).await.unwrap();
    let Site { tree, commit, .. } = yard.site(run);
    let ended = state.progress.ended.clone().expect("the run has not ended");
    assert_eq!(ended.ending, RunEnding::Completed);
    End {
        state: state.digest().unwrap(),
        tree,
        commit,
        pushes: yard.pushes(run),
        summary: ended.summary,
    }
}

/// Runs the job with lives that end as told, until one of them finishes it.
async fn live_through(
    store: &Arc<dyn RunStore>,
    deaths: &[Death],
    settings: &EngineOptions,
) -> (End, u32) {
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let first = engine(Delivery, Arc::clone(store), yard.clone(), &clock);
    let run = first.start(&job(), &start()).await.unwrap();
    let mut appends = 0;
    for death in deaths.iter().copied().chain([Death::Never]) {
        clock.forward(LEASE);
        let mortal = MortalStore::new(Arc::clone(store), death);
        let life = engine_with(
            Delivery,
            mortal.clone(),
            yard.clone(),
            &clock,
            settings.clone(),
        );
        let rested = life.resume(&run).await;
        appends = mortal.appends();
        match rested {
            Ok(Some(RestReason::Done(_)) | None) => break,
            Ok(Some(other)) => panic!("{other:?}"),
            Err(error) => assert!(mortal.is_dead(), "{error}"),
        }
    }
    check_run(&**store, &run).await.unwrap();
    let replayed = first.replay(&run).await.unwrap();
    assert_eq!(replayed.differences, []);
    let ledger = store.ledger(&run).await.unwrap();
    assert!(
        ledger.iter().all(|row| row.holds() && row.reserved == 0),
        "{ledger:?}"
    );
    (end_of(&first, &yard, &run).await, appends)
}

#[tokio::test]
async fn dying_before_and_after_every_commit_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let (undisturbed, appends) = live_through(&store, &[], &options()).await;
    assert_eq!((undisturbed.pushes, undisturbed.commit), (1, 1));
    assert!(
        appends > 10,
        "the job is too small to be a test: {appends} commits"
    );
    for number in 0..appends {
        for death in [Death::Before(number), Death::After(number)] {
            let (end, _) = live_through(&store, &[death], &options()).await;
            assert_eq!(end, undisturbed, "{death:?}");
        }
    }
}

/// Before what cannot be taken back, with everything that was answered until then, after what
/// changed something outside, and at the end: no less, or something could be lost, and no more,
/// because each commit waits for the disk.
#[tokio::test]
async fn a_run_commits_before_each_effect_and_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mortal = MortalStore::new(sqlite(directory.path()), Death::Never);
    let graph = Single::new(|ctx| {
        Box::pin(async {
            ctx.now().await?;
            let _: String = ctx.effect(EffectRequest::model("think", "")).await?;
            let _: String = ctx.effect(EffectRequest::model("think again", "")).await?;
            ctx.effect(EffectRequest::external("push", "")).await
        })
    });
    let settings = EngineOptions {
        linger: std::time::Duration::from_hours(1),
        ..options()
    };
    let clock = HandClock::new();
    let engine = engine_with(
        graph,
        mortal.clone(),
        Arc::new(ObligingWorld),
        &clock,
        settings,
    );
    let (_, rested) = engine.run(&(), &start()).await.unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    assert_eq!(
        mortal.appends(),
        5,
        "the run itself is created with the first, and the push has its answer kept"
    );
}

/// A run is there before anything is asked of the world, however little that is.
#[tokio::test]
async fn nothing_is_asked_of_the_world_before_the_run_is_there() {
    struct RunExistsWorld(Arc<dyn RunStore>);
    #[lula_graph::async_trait]
    impl lula_graph::EffectWorld for RunExistsWorld {
        async fn perform(
            &self,
            order: &lula_graph::EffectOrder,
        ) -> Result<lula_graph::EffectOutput, lula_graph::EffectTrouble> {
            let there = self.0.run(&order.run).await.unwrap();
            let seen = if there.is_some() { "there" } else { "nowhere" };
            Ok(lula_graph::EffectOutput::free(seen.into()))
        }
    }
    for effect in [
        EffectRequest::read as fn(&str, &str) -> EffectRequest,
        EffectRequest::model,
        EffectRequest::external,
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = sqlite(directory.path());
        let graph = Single::new(move |ctx| {
            Box::pin(async move { ctx.effect(effect("look around", "")).await })
        });
        let world = Arc::new(RunExistsWorld(Arc::clone(&store)));
        let engine = engine(graph, store, world, &HandClock::new());
        let (_, rested) = engine.run(&(), &start()).await.unwrap();
        let RestReason::Done(ended) = rested else {
            panic!("{rested:?}")
        };
        assert_eq!(ended.summary, "there");
    }
}

pub(crate) fn any_death() -> impl Strategy<Value = Death> {
    prop_oneof![
        (0_u32..8).prop_map(Death::Before),
        (0_u32..8).prop_map(Death::After)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any number of deaths, with snapshots or without, sealed or not: the same end, and a log
    /// whose every decision can be derived again.
    #[test]
    fn dying_again_and_again_changes_nothing(
        deaths in prop::collection::vec(any_death(), 0..10),
        snapshot_every in prop_oneof![Just(0_u64), 1_u64..8],
        sealed: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let store = sqlite(directory.path());
            let settings = EngineOptions {
                snapshot_every,
                seal: sealed.then(|| lula_graph::SigningKey::from_bytes(&[3; 32])),
                seal_every: 7,
                ..options()
            };
            let (undisturbed, _) = live_through(&store, &[], &settings).await;
            let (end, _) = live_through(&store, &deaths, &settings).await;
            assert_eq!(end, undisturbed);
        });
    }
}

#[tokio::test]
async fn a_model_call_lost_twice_fails_and_stays_charged() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let graph = || {
        Single::new(|ctx| {
            let cost = BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100);
            Box::pin(async {
                ctx.effect(EffectRequest::model("plan", "").reserving(cost))
                    .await
            })
        })
    };
    let first = engine(graph(), Arc::clone(&store), Arc::new(ObligingWorld), &clock);
    let run = first.start(&(), &start()).await.unwrap();
    // The commit after the intent is the result: it is lost, twice.
    for _ in 0..2 {
        clock.forward(LEASE);
        let mortal = MortalStore::new(Arc::clone(&store), Death::Before(1));
        engine(graph(), mortal, Arc::new(ObligingWorld), &clock)
            .resume(&run)
            .await
            .unwrap_err();
    }
    clock.forward(LEASE);
    let rested = first.resume(&run).await.unwrap().unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.ending, RunEnding::Halted);
    assert!(ended.summary.contains("lost twice"), "{}", ended.summary);
    let row = store.ledger(&run).await.unwrap()[0];
    assert_eq!(
        (row.reserved, row.settled),
        (0, 200),
        "both calls may have been paid"
    );
    assert_eq!(first.replay(&run).await.unwrap().differences, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_on_one_store_never_both_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let one = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    let two = engine(Delivery, sqlite(directory.path()), yard.clone(), &clock);
    let mut taken = 0;
    // Where the machine is busy, one of them may come to the end before the other gets a turn.
    for _ in 0..20 {
        let mut runs = Vec::new();
        for _ in 0..12 {
            runs.push(one.start(&job(), &start()).await.unwrap());
        }
        // The clock runs so fast that each takes the other's runs away all the time.
        let hurry = {
            let clock = Arc::clone(&clock);
            tokio::spawn(async move {
                loop {
                    clock.forward(LEASE);
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
            })
        };
        let work = |engine: GraphEngine<Delivery>| async move {
            for _ in 0..200 {
                engine.sweep().await.unwrap();
            }
        };
        tokio::join!(work(one.clone()), work(two.clone()));
        hurry.abort();
        clock.forward(LEASE);
        one.sweep().await.unwrap();
        for run in &runs {
            let row = store.run(run).await.unwrap().unwrap();
            assert_eq!(row.status, RunStatus::Done);
            taken += row.epoch - 1;
            check_run(&*store, run).await.unwrap();
            let ended = one.show(run, None).await.unwrap().progress.ended.unwrap();
            assert_eq!(ended.ending, RunEnding::Completed, "{}", ended.summary);
            assert_eq!(yard.pushes(run), 1, "{run}");
            assert_eq!(one.replay(run).await.unwrap().differences, []);
        }
        if taken > 0 {
            return;
        }
    }
    panic!("no run was ever taken away: nothing was tested");
}

/// A snapshot may be deleted or rot at any time.
#[tokio::test]
async fn a_run_goes_on_without_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let settings = EngineOptions {
        snapshot_every: 2,
        on_budget: BudgetPolicy::Refuse,
        ..options()
    };
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let engine = engine_with(
        Delivery,
        Arc::clone(&store),
        yard.clone(),
        &clock,
        settings.clone(),
    );
    let run = engine.start(&job(), &start()).await.unwrap();
    let mortal = MortalStore::new(Arc::clone(&store), Death::Before(12));
    let life = engine_with(Delivery, mortal, yard.clone(), &clock, settings);
    life.resume(&run).await.unwrap_err();
    assert!(store.snapshot(&run).await.unwrap().is_some());
    let with = engine.show(&run, None).await.unwrap();
    let rows = store.run(&run).await.unwrap().unwrap().head.next;
    let whole = engine.show(&run, Some(rows)).await.unwrap();
    assert_eq!(
        with.progress, whole.progress,
        "snapshot and tail are the whole log"
    );
    assert_eq!(with.state, whole.state);

    let file = rusqlite::Connection::open(directory.path().join("runs.db")).unwrap();
    file.execute("UPDATE snapshots SET body = x'00ff'", [])
        .unwrap();
    assert_eq!(
        engine.show(&run, None).await.unwrap().progress,
        whole.progress
    );
    store.drop_snapshots(&run).await.unwrap();
    assert_eq!(
        engine.show(&run, None).await.unwrap().progress,
        whole.progress
    );
    clock.forward(LEASE);
    let rested = engine.resume(&run).await.unwrap().unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
}
