//! One side of `cargo xtask bench graph`: a nine-node graph with 1 KB per node and a scripted
//! model, over one backend. Prints one line of JSON.
//!
//!     graph_bench run sqlite DIRECTORY power-loss 200 64
//!     graph_bench run postgres URL power-loss 200 64
//!     graph_bench suspended DIRECTORY 10000
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails should say where"
)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use lula_graph::{
    EffectOrder, EffectOutput, EffectRequest, EffectTrouble, EffectWorld, EngineOptions, Graph,
    GraphEngine, GraphLabel, NodeContext, NodeExit, NodeVisitFuture, RunEndReport, RunStart,
    TransitionTable, async_trait, labels,
};
use lula_protocol::RunExit;
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{Durability, PostgresStore, RedisStore, RunStore, SqliteStore};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const STEPS: usize = 9;

labels! {
    enum Node {
        Ingest = "ingest", Router = "router", PolicyGate = "policy_gate", Planner = "planner",
        ContextBuilder = "context_builder", Coder = "coder", Executor = "executor",
        Verifier = "verifier", Reporter = "reporter",
    }
}
labels! { enum Way { Ok = "ok" } }

/// The texts are made beforehand, as the rival's are: what is measured is the engine.
static TEXTS: OnceLock<HashMap<(u64, &str), String>> = OnceLock::new();

fn make_texts(runs: u64) {
    let nodes = || Node::ALL.iter().map(|node| node.name());
    let texts =
        (0..runs).flat_map(|run| nodes().map(move |node| ((run, node), kilobyte(run, node))));
    TEXTS.set(texts.collect()).unwrap();
}

fn text(run: u64, node: &str) -> String {
    let texts = TEXTS.get().unwrap();
    let node = Node::from_name(node).unwrap().name();
    texts[&(run, node)].clone()
}

/// A kilobyte of words, different for every run and node.
fn kilobyte(run: u64, node: &str) -> String {
    const WORDS: [&str; 32] = [
        "the", "test", "fails", "because", "value", "returned", "from", "parser", "is", "not",
        "checked", "before", "use", "so", "we", "add", "a", "guard", "and", "cover", "it", "with",
        "another", "case", "that", "would", "have", "found", "this", "error", "earlier", "on",
    ];
    let mut seed = run.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ node.len() as u64;
    let mut text = String::with_capacity(1040);
    while text.len() < 1024 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(node.len() as u64 | 1);
        text.push_str(WORDS[(seed >> 59) as usize]);
        text.push(' ');
    }
    text.truncate(1024);
    text
}

struct Nine;

#[async_trait]
impl Graph for Nine {
    type Node = Node;
    type Outcome = Way;
    type Input = u64;
    type State = (u64, Vec<String>);
    type Event = String;
    const NAME: &'static str = "nine";
    const VERSION: u32 = 1;

    fn outcomes(&self, _: Node) -> &'static [Way] {
        &[Way::Ok]
    }
    fn table(&self) -> TransitionTable<Self> {
        let pairs = Node::ALL.windows(2);
        let table = TransitionTable::starting_at(Node::Ingest).done(Node::Reporter, Way::Ok);
        pairs.fold(table, |table, pair| table.on(pair[0], Way::Ok, pair[1]))
    }
    fn begin(&self, number: u64) -> Self::State {
        (number, Vec::new())
    }
    fn apply(&self, state: &mut Self::State, event: &String) {
        state.1.push(event.clone());
    }
    async fn visit(
        &self,
        node: Node,
        state: &Self::State,
        ctx: &mut NodeContext<'_>,
    ) -> NodeVisitFuture<Self> {
        let text = match node {
            Node::Planner | Node::Coder => {
                ctx.effect(EffectRequest::model("model", &(state.0, node.name())))
                    .await?
            }
            _ => text(state.0, node.name()),
        };
        Ok(NodeExit::by(Way::Ok).with(text))
    }
    fn report(&self, state: &Self::State) -> RunEndReport {
        RunEndReport {
            exit: RunExit::Verified,
            summary: format!("{} steps", state.1.len()),
        }
    }
}

/// A model that answers from a script.
struct Script;

#[async_trait]
impl EffectWorld for Script {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let run = order.request[0].as_u64().unwrap_or_default();
        let node = order.request[1].as_str().unwrap_or_default();
        Ok(EffectOutput::free(text(run, node).into()))
    }
}

labels! { enum Only { Wait = "wait" } }

/// Waits for a person for ever.
struct Waiting;

#[async_trait]
impl Graph for Waiting {
    type Node = Only;
    type Outcome = Way;
    type Input = u64;
    type State = u64;
    type Event = u64;
    const NAME: &'static str = "waiting";
    const VERSION: u32 = 1;

    fn outcomes(&self, _: Only) -> &'static [Way] {
        &[Way::Ok]
    }
    fn table(&self) -> TransitionTable<Self> {
        TransitionTable::starting_at(Only::Wait).done(Only::Wait, Way::Ok)
    }
    fn begin(&self, number: u64) -> u64 {
        number
    }
    fn apply(&self, _: &mut u64, _: &u64) {}
    async fn visit(&self, _: Only, _: &u64, ctx: &mut NodeContext<'_>) -> NodeVisitFuture<Self> {
        ctx.ask("go on?", &["yes"]).await?;
        Ok(NodeExit::by(Way::Ok))
    }
    fn report(&self, _: &u64) -> RunEndReport {
        RunEndReport {
            exit: RunExit::Verified,
            summary: String::new(),
        }
    }
}

/// Processor time of this process in microseconds, to the clock tick.
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks * 10_000.0
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}

fn sqlite(directory: &str, durability: Durability) -> Arc<dyn RunStore> {
    let options = SqliteOptions {
        durability,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(Path::new(directory).join("lula.db"), options).unwrap())
}

async fn open(backend: &str, place: &str, durability: Durability) -> Arc<dyn RunStore> {
    let name = format!("bench_{}", std::process::id());
    match backend {
        "postgres" => {
            let options = PostgresOptions {
                schema: name,
                connections: 32,
                durability,
                ..PostgresOptions::default()
            };
            Arc::new(PostgresStore::connect(place, options).await.unwrap())
        }
        "redis" => {
            let options = RedisOptions {
                prefix: name,
                durability,
                ..RedisOptions::default()
            };
            Arc::new(RedisStore::connect(place, options).await.unwrap())
        }
        _ => sqlite(place, durability),
    }
}

async fn at_once(engine: &GraphEngine<Nine>, runs: u64, concurrency: usize) {
    let gate = Arc::new(Semaphore::new(concurrency));
    let mut tasks = JoinSet::new();
    for number in 0..runs {
        let permit = Arc::clone(&gate).acquire_owned().await.unwrap();
        let engine = engine.clone();
        tasks.spawn(async move {
            engine.run(&number, &RunStart::default()).await.unwrap();
            drop(permit);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

async fn run(arguments: &[String]) -> serde_json::Value {
    let [backend, place, durability, runs, concurrency] = arguments else {
        panic!("run BACKEND PLACE DURABILITY RUNS CONCURRENCY");
    };
    let (runs, concurrency): (u64, usize) = (runs.parse().unwrap(), concurrency.parse().unwrap());
    let level = match durability.as_str() {
        "power-loss" => Durability::PowerLoss,
        _ => Durability::ProcessCrash,
    };
    make_texts(runs);
    let store = open(backend, place, level).await;
    let engine = GraphEngine::new(Nine, store, Arc::new(Script), EngineOptions::default()).unwrap();
    let (started, cpu) = (Instant::now(), cpu_us());
    if concurrency == 1 {
        // One after another, as the rival's are: no tasks to hand between threads.
        for number in 0..runs {
            engine.run(&number, &RunStart::default()).await.unwrap();
        }
    } else {
        at_once(&engine, runs, concurrency).await;
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_us() - cpu);
    drop(engine);
    let steps = runs as f64 * STEPS as f64;
    let bytes = (backend == "sqlite").then(|| {
        let path = Path::new(place).join("lula.db");
        let database = rusqlite::Connection::open(&path).unwrap();
        database
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        std::fs::metadata(path).unwrap().len() as f64 / runs as f64
    });
    json!({
        "engine": "lula", "backend": backend, "durability": durability,
        "concurrency": concurrency, "runs": runs, "seconds": seconds,
        "steps_per_second": steps / seconds, "cpu_us_per_step": cpu / steps,
        "bytes_per_run": bytes,
    })
}

async fn suspended(arguments: &[String]) -> serde_json::Value {
    let [directory, runs] = arguments else {
        panic!("suspended DIRECTORY RUNS")
    };
    let runs: u64 = runs.parse().unwrap();
    {
        let store = sqlite(directory, Durability::ProcessCrash);
        let engine =
            GraphEngine::new(Waiting, store, Arc::new(Script), EngineOptions::default()).unwrap();
        let gate = Arc::new(Semaphore::new(64));
        let mut tasks = JoinSet::new();
        for number in 0..runs {
            let permit = Arc::clone(&gate).acquire_owned().await.unwrap();
            let engine = engine.clone();
            tasks.spawn(async move {
                engine.run(&number, &RunStart::default()).await.unwrap();
                drop(permit);
            });
        }
        while tasks.join_next().await.is_some() {}
    }
    let before = resident_mb();
    let started = Instant::now();
    let store = sqlite(directory, Durability::ProcessCrash);
    let engine =
        GraphEngine::new(Waiting, store, Arc::new(Script), EngineOptions::default()).unwrap();
    let woken = engine.sweep().await.unwrap().len();
    let seconds = started.elapsed().as_secs_f64();
    json!({
        "suspended_runs": runs, "open_and_sweep_seconds": seconds, "woken": woken,
        "resident_mb": resident_mb(), "resident_mb_before": before,
    })
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let report = match arguments.split_first() {
        Some((mode, rest)) if mode == "run" => run(rest).await,
        Some((mode, rest)) if mode == "suspended" => suspended(rest).await,
        _ => panic!("graph_bench run ... | graph_bench suspended ..."),
    };
    println!("{report}");
}
