//! Stores of every kind, named by text so that another process can open the same: `sqlite PATH`,
//! `postgres SCHEMA`, `redis PREFIX`.

use std::sync::Arc;
use std::time::Duration;

use lula_graph::{
    EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld, EngineError, RestReason,
    RunStart, SystemWallClock, WallClock, async_trait, bundle,
};
use lula_protocol::RunSignal;
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    Durability, PostgresStore, RedisStore, RunStatus, RunStore, SecretGuard, SqliteStore,
    StoreError, check_store, copy_store,
};

use crate::delivery::{Delivery, HandClock, Job, Yard, engine};
use crate::single::Single;

pub(crate) async fn open_guarded(place: &str, guard: SecretGuard) -> Arc<dyn RunStore> {
    let (kind, name) = place.split_once(' ').unwrap();
    let durability = Durability::ProcessCrash;
    let server = |variable: &str| {
        std::env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} is not set: run `cargo xtask test`, which starts a server")
        })
    };
    match kind {
        "sqlite" => {
            let options = SqliteOptions {
                durability,
                busy_timeout: Duration::from_secs(30),
                guard,
                ..SqliteOptions::default()
            };
            Arc::new(SqliteStore::open(name, options).unwrap())
        }
        "postgres" => {
            let options = PostgresOptions {
                schema: name.to_owned(),
                connections: 4,
                durability,
                guard,
                ..PostgresOptions::default()
            };
            let url = server("LULA_TEST_POSTGRES_URL");
            Arc::new(PostgresStore::connect(&url, options).await.unwrap())
        }
        _ => {
            let options = RedisOptions {
                prefix: name.to_owned(),
                durability,
                guard,
                ..RedisOptions::default()
            };
            let url = server("LULA_TEST_REDIS_URL");
            Arc::new(RedisStore::connect(&url, options).await.unwrap())
        }
    }
}

pub(crate) async fn open(place: &str) -> Arc<dyn RunStore> {
    open_guarded(place, SecretGuard::default()).await
}

pub(crate) fn fresh_name() -> String {
    format!("it_{}_{}", std::process::id(), SystemWallClock.now_ms())
}

/// One place of every kind.
fn places(directory: &tempfile::TempDir) -> [String; 3] {
    let path = directory.path().join("runs.db");
    [
        format!("sqlite {}", path.display()),
        format!("postgres {}", fresh_name()),
        format!("redis {}", fresh_name()),
    ]
}

const CANARY: &str = "canary-2f9c1b7e-deploy-key";

/// Shows what it should keep.
struct LeakyWorld;

#[async_trait]
impl EffectWorld for LeakyWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let shown = match order.name.as_str() {
            "greet" => "welcome".to_owned(),
            "leak a little" => format!("welcome, {CANARY}"),
            _ => format!("{} {CANARY}", "welcome ".repeat(1_000)),
        };
        Ok(EffectOutput::free(shown.into()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_any_backend_even_when_the_world_leaks_it() {
    let directory = tempfile::tempdir().unwrap();
    for place in places(&directory) {
        let guard = SecretGuard::default().watch_for("deploy key", CANARY);
        let store = open_guarded(&place, guard).await;
        for name in ["greet", "leak a little", "leak a lot"] {
            // The request names the secret; the world holds it.
            let graph = Single::new(move |ctx| {
                Box::pin(async move {
                    ctx.effect(EffectRequest::external(name, "secret:deploy-key"))
                        .await
                })
            });
            let engine = engine(
                graph,
                Arc::clone(&store),
                Arc::new(LeakyWorld),
                &HandClock::new(),
            );
            let run = engine.start(&(), &RunStart::default()).await.unwrap();
            match engine.resume(&run).await {
                Ok(Some(RestReason::Done(_))) if name == "greet" => {}
                Err(EngineError::Store(StoreError::Secret { .. })) if name != "greet" => {}
                other => panic!("{place}, {name}: {other:?}"),
            }
            let gossip = RunSignal::Cancel {
                by: "alice".parse().unwrap(),
                reason: CANARY.to_owned(),
            };
            assert!(store.send(&run, &gossip).await.is_err());
            let mut file = Vec::new();
            bundle::export(&*store, &run, &mut file).await.unwrap();
            let plain = String::from_utf8(zstd::decode_all(&file[..]).unwrap()).unwrap();
            assert!(plain.contains("secret:deploy-key") || plain.contains("b3:"));
            assert!(!plain.contains("2f9c1b7e"), "{place}, {name}");
            for record in store.read(&run, 0, 100).await.unwrap() {
                assert!(!String::from_utf8(record.body).unwrap().contains("2f9c1b7e"));
            }
        }
    }
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(8).any(|window| window == b"2f9c1b7e"));
    }
}

/// From SQLite to Postgres to Redis and back, with runs that are over, wait, and are under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_moves_from_backend_to_backend_and_its_runs_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let job = Job {
        rounds: 1,
        weight: 5_000,
        price: 0,
    };
    let [first, second, third] = places(&directory);
    let mut store = open(&first).await;
    let engine_on =
        |store: &Arc<dyn RunStore>| engine(Delivery, Arc::clone(store), yard.clone(), &clock);
    let (over, _) = engine_on(&store)
        .run(&job, &RunStart::default())
        .await
        .unwrap();
    let waiting = engine_on(&store)
        .start(&job, &RunStart::default())
        .await
        .unwrap();
    let back = format!("sqlite {}", directory.path().join("back.db").display());
    for place in [second, third, back] {
        let next = open(&place).await;
        let copied = copy_store(&*store, &*next).await.unwrap();
        assert_eq!(copied.runs, 2, "{place}");
        assert!(check_store(&*next).await.unwrap().1.is_empty(), "{place}");
        assert_eq!(
            engine_on(&next).replay(&over).await.unwrap().differences,
            []
        );
        store = next;
    }
    assert_eq!(
        store.run(&over).await.unwrap().unwrap().status,
        RunStatus::Done
    );
    let rested = engine_on(&store).resume(&waiting).await.unwrap().unwrap();
    assert!(matches!(rested, RestReason::Done(_)), "{rested:?}");
    assert_eq!(yard.pushes(&waiting), 1);
}
