//! Killing real processes, over every backend.
//!
//! The test starts itself again as a victim: a process that works on a queue of runs until it is
//! killed with SIGKILL at a random moment, or dies at a commit, each in its turn. The world is a directory
//! that survives. In the end every run must have come to the end of an undisturbed one, with every
//! push done exactly once. `LULA_CRASH_KILLS` sets how many deaths there are per backend;
//! `LULA_CRASH_RESTART` is a command that ends the servers now and then; xtask, which started them, starts
//! them again.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lula_graph::{
    CrashEvidence, EffectOrder, EffectOutput, EffectTrouble, EffectWorld, EngineOptions,
    GraphEngine, RunStart, SystemWallClock, WallClock, async_trait,
};
use lula_protocol::event::RunEnding;
use lula_protocol::{BudgetAmounts, BudgetDimension, Digest, RunId};
use lula_store::{RunStatus, RunStore, check_run};
use rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::backends::{fresh_name, open};
use crate::delivery::{Death, Delivery, Job, MortalStore};

/// The world as a directory: one folder per run, changed under a lock, in single steps.
struct Folder(PathBuf);

impl Folder {
    fn of(&self, run: &RunId) -> PathBuf {
        self.0.join(run.as_str())
    }

    /// Locks a run's folder and refuses an owner of the past.
    fn enter(&self, order: &EffectOrder) -> Result<(PathBuf, File), EffectTrouble> {
        let folder = self.of(&order.run);
        fs::create_dir_all(folder.join("trees")).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let seen: u64 = read(&folder.join("epoch")).parse().unwrap_or(0);
        if order.epoch < seen {
            return Err(EffectTrouble::Unreachable(
                "an owner of the past".to_owned(),
            ));
        }
        replace(&folder.join("epoch"), &order.epoch.to_string());
        Ok((folder, lock))
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension(format!("new{}", std::process::id()));
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, path).unwrap();
}

fn add_line(path: &Path, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[async_trait]
impl EffectWorld for Folder {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let (folder, _lock) = self.enter(order)?;
        // Something to be killed in the middle of.
        std::thread::sleep(Duration::from_micros(300));
        let value = match order.name.as_str() {
            "look" => json!(format!(
                "{} lines",
                read(&folder.join("tree")).lines().count()
            )),
            "edit" | "format" => {
                let line = order.request["line"].as_str().unwrap_or_default();
                add_line(&folder.join("tree"), &format!("{} {line}", order.name));
                json!("edited")
            }
            "commit" => {
                add_line(&folder.join("commits"), order.effect.as_str());
                json!(1)
            }
            "push" => {
                add_line(&folder.join("pushes"), order.effect.as_str());
                json!({"pushed": order.request})
            }
            _ => json!("a plan"),
        };
        std::thread::sleep(Duration::from_micros(300));
        Ok(EffectOutput::free(value))
    }

    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        let Ok((folder, _lock)) = self.enter(order) else {
            return CrashEvidence::Unknown("an owner of the past asks".to_owned());
        };
        let (book, value) = match order.name.as_str() {
            "commit" => ("commits", json!(1)),
            _ => ("pushes", json!({"pushed": order.request})),
        };
        let done = read(&folder.join(book))
            .lines()
            .any(|line| line == order.effect.as_str());
        if done {
            CrashEvidence::Done(EffectOutput::free(value))
        } else {
            CrashEvidence::NotDone
        }
    }

    async fn tree(&self, order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        let (folder, _lock) = self.enter(order)?;
        let tree = read(&folder.join("tree"));
        let digest = Digest::of_bytes(tree.as_bytes());
        replace(&folder.join("trees").join(digest.short()), &tree);
        Ok(Some(digest))
    }

    async fn restore(
        &self,
        order: &EffectOrder,
        tree: Option<Digest>,
    ) -> Result<(), EffectTrouble> {
        let (folder, _lock) = self.enter(order)?;
        let tree = tree.map(|tree| read(&folder.join("trees").join(tree.short())));
        replace(&folder.join("tree"), &tree.unwrap_or_default());
        Ok(())
    }
}

/// The machine's clock, so far ahead that every lease of an earlier life is over.
struct ClockAhead(u64);

impl WallClock for ClockAhead {
    fn now_ms(&self) -> u64 {
        SystemWallClock.now_ms() + self.0 * 60_000
    }
}

fn engine(store: Arc<dyn RunStore>, world: &Path, life: u64) -> GraphEngine<Delivery> {
    let options = EngineOptions {
        worker: format!("life {life}"),
        poll: Duration::from_millis(20),
        concurrency: 8,
        snapshot_every: 5,
        backoff: Duration::from_millis(1),
        ..EngineOptions::default()
    };
    let world = Arc::new(Folder(world.to_owned()));
    GraphEngine::with_clock(Delivery, store, world, options, Arc::new(ClockAhead(life))).unwrap()
}

/// What a victim is told through its environment.
#[test]
#[ignore = "not a test: the process the tests below start and kill"]
fn victim() {
    let told = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("{name}: only the kill tests start this"))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = open(&told("LULA_VICTIM_STORE")).await;
        let death = match told("LULA_VICTIM_DEATH").split_once(' ') {
            Some(("before", number)) => Death::Before(number.parse().unwrap()),
            Some(("after", number)) => Death::After(number.parse().unwrap()),
            _ => Death::Never,
        };
        let life = told("LULA_VICTIM_LIFE").parse().unwrap();
        let world = told("LULA_VICTIM_WORLD");
        let engine = engine(MortalStore::really(store, death), Path::new(&world), life);
        engine
            .work(lula_graph::CancellationToken::new())
            .await
            .unwrap();
    });
}

fn start_victim(place: &str, world: &Path, life: u64, death: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kill::victim", "--exact", "--ignored", "--nocapture"])
        .env("LULA_VICTIM_STORE", place)
        .env("LULA_VICTIM_WORLD", world)
        .env("LULA_VICTIM_LIFE", life.to_string())
        .env("LULA_VICTIM_DEATH", death)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kills() -> u32 {
    std::env::var("LULA_CRASH_KILLS").map_or(40, |text| text.parse().unwrap())
}

fn job() -> (Job, RunStart) {
    let job = Job {
        rounds: 2,
        weight: 5_000,
        price: 1,
    };
    let start = RunStart {
        limits: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100_000),
        seed: Some([8; 32]),
        ..RunStart::default()
    };
    (job, start)
}

/// A victim that dies at a commit dies at one of its first so many.
const COMMITS: u32 = 40;
const SIGKILL: i32 = 9;

/// Waits for a victim that is to die at a commit to come to it. It may never, where the work is
/// done before.
async fn give_time(victim: &mut Child) {
    for _ in 0..150 {
        if victim.try_wait().unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Asks again while a server is down.
async fn patiently<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    mut ask: impl FnMut() -> F,
) -> T {
    let mut tries = 0;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                tries += 1;
                assert!(tries < 200, "{error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Ends the servers in the middle of everything, where a command for that was given. Whether it was.
fn end_servers() -> bool {
    let Ok(command) = std::env::var("LULA_CRASH_RESTART") else {
        return false;
    };
    let ended = Command::new("sh")
        .args(["-c", &command])
        .stdout(Stdio::null())
        .status();
    assert!(ended.unwrap().success(), "{command}");
    true
}

async fn unfinished(store: &dyn RunStore, runs: &[RunId]) -> usize {
    let mut open = 0;
    for run in runs {
        let row = patiently(|| store.run(run)).await.unwrap();
        open += usize::from(row.status != RunStatus::Done);
    }
    open
}

/// Kills `herd` processes at a time until enough died, then looks at every run.
async fn slaughter(place: &str, herd: usize) {
    let directory = tempfile::tempdir().unwrap();
    let world = directory.path().join("world");
    let store = open(place).await;
    let (job, start) = job();
    let parent = engine(Arc::clone(&store), &world, 0);
    let (reference, _) = parent.run(&job, &start).await.unwrap();

    let mut dice = rand_chacha::ChaCha20Rng::from_seed([1; 32]);
    let mut between = |low: u32, high: u32| low + dice.next_u32() % (high - low);
    let mut runs = Vec::new();
    let (mut deaths, mut life, mut restarts) = (0, 0, 0);
    let (mut turn, mut at_commits) = (0, 0);
    while deaths < kills() {
        while unfinished(&*store, &runs).await < 6 {
            runs.push(patiently(|| parent.start(&job, &start)).await);
        }
        life += 1;
        let mut victims: Vec<(Child, bool)> = (0..herd)
            .map(|_| {
                // Each commit in turn, before it and after it; a third at any moment.
                turn += 1;
                let death = match turn % 3 {
                    0 => format!("before {}", turn / 3 % COMMITS),
                    1 => format!("after {}", turn / 3 % COMMITS),
                    _ => String::new(),
                };
                let by_itself = !death.is_empty();
                (start_victim(place, &world, life, &death), by_itself)
            })
            .collect();
        let patience = Duration::from_millis(u64::from(between(30, 150)));
        tokio::time::sleep(patience).await;
        if !place.starts_with("sqlite") && life % 10 == 0 {
            restarts += u32::from(end_servers());
        }
        for (victim, by_itself) in &mut victims {
            if *by_itself {
                give_time(victim).await;
            }
            // SIGKILL; fails where it is dead already.
            let _ = victim.kill();
            let ended = victim.wait().unwrap();
            // One that ended well before its time died of nothing, and counts for nothing.
            deaths += u32::from(!ended.success());
            at_commits += u32::from(!ended.success() && ended.signal() != Some(SIGKILL));
        }
    }

    let last = engine(Arc::clone(&store), &world, life + 1);
    while unfinished(&*store, &runs).await > 0 {
        patiently(|| last.sweep()).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let end = |run: &RunId| {
        let folder = world.join(run.as_str());
        let lines = |name: &str| read(&folder.join(name)).lines().count();
        (
            read(&folder.join("tree")),
            lines("commits"),
            lines("pushes"),
        )
    };
    let wanted = parent
        .show(&reference, None)
        .await
        .unwrap()
        .digest()
        .unwrap();
    let mut taken = 0;
    for run in &runs {
        let shown = last.show(run, None).await.unwrap();
        let ended = shown.progress.ended.clone().unwrap();
        assert_eq!(
            ended.ending,
            RunEnding::Completed,
            "{run}: {}",
            ended.summary
        );
        assert_eq!(shown.digest().unwrap(), wanted, "{run}");
        assert_eq!(end(run), end(&reference), "{run}");
        check_run(&*store, run).await.unwrap();
        assert_eq!(last.replay(run).await.unwrap().differences, [], "{run}");
        taken += store.run(run).await.unwrap().unwrap().epoch - 1;
    }
    assert!(
        deaths > at_commits,
        "none of {deaths} workers was killed from outside"
    );
    assert!(taken > 0, "no run was ever interrupted: nothing was tested");
    // Read by `cargo xtask bench graph --crash`. Everything that could be lost was looked for.
    let (backend, _) = place.split_once(' ').unwrap();
    let found = json!({
        "engine": "lula", "backend": backend, "kills": deaths, "at_commits": at_commits,
        "restarts": restarts, "runs": runs.len(),
        "taken_over": taken, "stuck": 0, "lost_external": 0, "doubled_external": 0,
        "ended_otherwise": 0,
    });
    println!("crash {found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_and_double_nothing_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    slaughter(&format!("sqlite {}", path.display()), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_killed_engines_on_one_postgres_lose_and_double_nothing() {
    slaughter(&format!("postgres {}", fresh_name()), 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_engines_lose_and_double_nothing_on_redis() {
    slaughter(&format!("redis {}", fresh_name()), 2).await;
}
