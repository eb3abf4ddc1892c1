//! Looking back: any moment of a run, the same decisions again, and another way from there.

use std::sync::Arc;

use lula_graph::{EngineError, GraphEngine, RestReason, RunStart};
use lula_protocol::RunId;
use lula_store::{RunStore, check_run};

use crate::delivery::{Delivery, HandClock, Job, LEASE, Yard, engine, sqlite};

struct FinishedRun {
    directory: tempfile::TempDir,
    store: Arc<dyn RunStore>,
    engine: GraphEngine<Delivery>,
    yard: Arc<Yard>,
    clock: Arc<HandClock>,
    run: RunId,
}

async fn finished() -> FinishedRun {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let engine = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    let job = Job {
        rounds: 2,
        weight: 5_000,
        price: 0,
    };
    let (run, rested) = engine.run(&job, &RunStart::default()).await.unwrap();
    assert!(matches!(rested, RestReason::Done(_)));
    FinishedRun {
        directory,
        store,
        engine,
        yard,
        clock,
        run,
    }
}

#[tokio::test]
async fn any_moment_of_a_run_can_be_shown() {
    let FinishedRun {
        directory: _kept,
        engine,
        store,
        run,
        ..
    } = finished().await;
    let events = store.run(&run).await.unwrap().unwrap().head.next;
    let mut done = Vec::new();
    for at in 1..=events {
        done.push(engine.show(&run, Some(at)).await.unwrap().state.done);
    }
    assert!(done.is_sorted());
    assert_eq!((done[0], done[done.len() - 1]), (0, 2));
    let past = engine.show(&run, Some(events + 100)).await.unwrap();
    assert_eq!(
        past.progress,
        engine.show(&run, None).await.unwrap().progress
    );
}

#[tokio::test]
async fn a_replay_does_nothing_and_finds_nothing() {
    let FinishedRun {
        directory: _kept,
        engine,
        yard,
        run,
        ..
    } = finished().await;
    let before = yard.site(&run);
    let replayed = engine.replay(&run).await.unwrap();
    assert_eq!(replayed.differences, []);
    assert_eq!(replayed.visits, 8);
    assert_eq!(
        replayed.state,
        engine.show(&run, None).await.unwrap().digest().unwrap()
    );
    let after = yard.site(&run);
    assert_eq!(
        (before.tree, before.model_calls),
        (after.tree, after.model_calls)
    );
}

#[tokio::test]
async fn a_replay_in_a_clean_world_tells_what_has_drifted() {
    let FinishedRun {
        directory: _kept,
        engine,
        run,
        ..
    } = finished().await;
    let clean = Arc::new(Yard::default());
    let replayed = engine.replay_tools(&run, clean.clone()).await.unwrap();
    assert_eq!((replayed.differences, replayed.drift), (vec![], vec![]));
    assert_eq!(
        clean.site(&run).tree.len(),
        4,
        "the edits were done again there"
    );
    assert_eq!(clean.pushes(&run), 0, "and nothing else was");
    // In the same place once more, every look sees what the last replay left.
    let drifted = engine.replay_tools(&run, clean).await.unwrap();
    let looks = drifted.drift.iter().filter(|drift| drift.name == "look");
    assert_eq!(looks.count(), 2);
    assert_eq!(drifted.differences, []);
}

#[tokio::test]
async fn a_log_that_was_edited_does_not_replay() {
    let FinishedRun {
        directory,
        engine,
        run,
        ..
    } = finished().await;
    let file = rusqlite::Connection::open(directory.path().join("runs.db")).unwrap();
    let forged =
        lula_store::body::pack(br#"{"kind":"node_left","node":"plan","outcome":"poor","visit":0}"#);
    file.execute(
        "UPDATE events SET body=? WHERE pos % 16777216 = 4",
        [forged],
    )
    .unwrap();
    let error = engine.replay(&run).await.unwrap_err();
    assert!(matches!(error, EngineError::Store(_)), "{error}");
}

#[tokio::test]
async fn a_fork_goes_another_way_and_leaves_its_parent_alone() {
    let FinishedRun {
        directory: _kept,
        engine,
        store,
        yard,
        clock,
        run,
        ..
    } = finished().await;
    let before = store.run(&run).await.unwrap().unwrap();
    let set = [("style".to_owned(), "terse".to_owned())];
    let fork = engine.fork(&run, 1, &set).await.unwrap();
    let parent = store.run(&fork).await.unwrap().unwrap().parent.unwrap();
    assert_eq!((parent.run, parent.seq), (run.clone(), 0));
    clock.forward(LEASE);
    let rested = engine.resume(&fork).await.unwrap().unwrap();
    assert!(matches!(rested, RestReason::Done(_)));
    assert_eq!(engine.show(&fork, None).await.unwrap().state.style, "terse");
    assert_eq!(
        (yard.pushes(&fork), yard.pushes(&run)),
        (1, 1),
        "each pushed once for itself"
    );
    assert_eq!(engine.replay(&fork).await.unwrap().differences, []);
    check_run(&*store, &fork).await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap(), before);
}

#[tokio::test]
async fn a_fork_can_begin_wherever_no_visit_is_under_way() {
    let FinishedRun {
        directory: _kept,
        engine,
        store,
        run,
        ..
    } = finished().await;
    let events = store.run(&run).await.unwrap().unwrap().head.next;
    let (mut forked, mut refused) = (0, 0);
    for at in 1..events {
        match engine.fork(&run, at, &[]).await {
            Ok(fork) => {
                let rested = engine.resume(&fork).await.unwrap().unwrap();
                assert!(matches!(rested, RestReason::Done(_)), "{at}: {rested:?}");
                assert_eq!(engine.replay(&fork).await.unwrap().differences, [], "{at}");
                let state = engine.show(&fork, None).await.unwrap().state;
                assert_eq!(state.done, 2);
                forked += 1;
            }
            Err(EngineError::Fork { why, .. }) => {
                assert!(why.contains("nearest place is"), "{why}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        forked >= 7 && refused >= 7,
        "{forked} forked, {refused} refused"
    );
    let end = engine.fork(&run, events, &[]).await.unwrap_err();
    assert!(end.to_string().contains("had ended"), "{end}");
    let wrong = engine
        .fork(&run, 1, &[("colour".to_owned(), "red".to_owned())])
        .await;
    assert!(wrong.unwrap_err().to_string().contains("there is style"));
}
