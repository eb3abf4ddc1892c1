//! Whole runs of several agents, drawn by lot: the real graph, scheduler and planner, a real store,
//! real repositories and the real merge queue, under random rewiring with edits that meet.

mod bench;
mod drawn;
mod luck;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lula_agents::plan::{PlanGraph, StepFailureReason, StepStatus, StepTransition};
use lula_agents::task::{ModelChoice, ModelRates, ModelSettings};
use lula_agents::team::{SharedPlan, TeamPolicy};
use lula_agents::work::RunStateEvent;
use lula_agents::{CodingGraph, CodingState, DeliverMode, RunTask, RunWorld};
use lula_graph::{EngineOptions, GraphEngine, RestReason, RunStart};
use lula_models::output::OutputCapability;
use lula_protocol::{EventBody, EventPayload, RunExit, RunId, RunInterrupt, RunSignal};
use lula_store::sqlite::SqliteOptions;
use lula_store::{Durability, RunStore, SqliteStore};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use drawn::{Drawn, drawn};
use luck::Luck;

/// Runs in the suite; `LULA_PLANS` makes it more.
const RUNS: u32 = 8;
/// A run that rests more often than this never ends.
const RESTS: usize = 50;

/// What was seen, over all runs: a test that never meets a conflict shows nothing.
#[derive(Debug, Default)]
struct Seen {
    runs: usize,
    whole: usize,
    steps: usize,
    patched: usize,
    refused: usize,
    produced: usize,
    merged: usize,
    conflicts: usize,
    resolvers: usize,
    asked: usize,
    strays: usize,
}

fn model() -> ModelChoice {
    ModelChoice {
        name: "luck/luck".to_owned(),
        model: "luck".to_owned(),
        capability: OutputCapability::JsonSchema,
        rates: ModelRates {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        },
        context: None,
        max_tokens: 1000,
        settings: ModelSettings::default(),
    }
}

/// Runs it to its end, with a person who answers as drawn.
async fn run_to_the_end(
    engine: &GraphEngine<CodingGraph>,
    run: &RunId,
    drawn: &Drawn,
    seen: &mut Seen,
) {
    let mut answers = drawn.answers.iter();
    for _ in 0..RESTS {
        let rested = tokio::time::timeout(Duration::from_mins(2), engine.resume(run)).await;
        let Ok(rested) = rested else {
            panic!("nothing happens any more: a deadlock");
        };
        match rested.unwrap() {
            Some(RestReason::Done(_)) => return,
            Some(RestReason::Waiting(pending)) => {
                let RunInterrupt::Operator { options, .. } = &pending.interrupt else {
                    panic!("{:?}", pending.interrupt);
                };
                seen.asked += 1;
                let again = answers.next().copied().unwrap_or(false);
                let answer = RunSignal::Answer {
                    interrupt: pending.seq,
                    choice: options[usize::from(again)].clone(),
                    by: "local:tester".parse().unwrap(),
                    note: String::new(),
                };
                engine.send(run, &answer).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it rested {RESTS} times and did not end");
}

/// What the log of a run says, event by event.
async fn events(store: &dyn RunStore, run: &RunId) -> Vec<RunStateEvent> {
    let mut found = Vec::new();
    let records = store.read(run, 0, 100_000).await.unwrap();
    for record in records {
        let body = record.read_body().unwrap();
        if !matches!(body, EventBody::NodeLeft { .. }) {
            continue;
        }
        for payload in body.payloads() {
            let value = match payload {
                EventPayload::Inline(value) => value.clone(),
                EventPayload::Blob(blob) => {
                    let bytes = store.blob(&blob.digest).await.unwrap();
                    serde_json::from_slice(&bytes).unwrap()
                }
            };
            found.push(serde_json::from_value(value).unwrap());
        }
    }
    found
}

/// What must hold of a plan whenever something happens to it.
fn allowed(dag: &PlanGraph, event: &RunStateEvent) {
    match event {
        RunStateEvent::StepChanged {
            change: StepTransition::Leased { id, .. },
        } => {
            let entry = &dag.steps[id];
            for dep in &entry.step.deps {
                let status = &dag.steps[dep].status;
                let there = matches!(status, StepStatus::Merged { .. } | StepStatus::Superseded);
                assert!(there, "{id} began before {dep}, which is {}", status.name());
            }
            for other in dag.steps.values().filter(|other| other.status.is_busy()) {
                let common = other.step.scope.files_in_common(&entry.step.scope);
                let most = usize::try_from(dag.shared_files).unwrap();
                let apart = common.is_some_and(|files| files.len() <= most);
                assert!(apart, "{id} writes where {} does", other.step.id);
            }
        }
        RunStateEvent::Patched { dag: next, .. } => {
            assert_eq!(next.version, dag.version + 1);
            assert!(next.measure() < dag.measure(), "a plan comes to its end");
        }
        _ => {}
    }
}

/// Every product of a step is told of: it is in the whole, or why it is not.
#[derive(Debug, Default)]
struct Told {
    merged: usize,
    conflicts: usize,
    failed: usize,
}

fn walk(
    task: &RunTask,
    events: &[RunStateEvent],
    seen: &mut Seen,
) -> (CodingState, BTreeMap<String, Told>) {
    let mut work = CodingState::begin(task.clone());
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    for event in events {
        if let Some(joint) = &work.joint {
            allowed(&joint.dag, event);
        }
        match event {
            RunStateEvent::StepChanged { change } => match change {
                StepTransition::Merged { id, .. } => {
                    told.entry(id.to_string()).or_default().merged += 1;
                }
                StepTransition::Conflict { id, .. } => {
                    told.entry(id.to_string()).or_default().conflicts += 1;
                }
                StepTransition::Failed { id, reason } => {
                    told.entry(id.to_string()).or_default().failed += 1;
                    seen.strays +=
                        usize::from(matches!(reason, StepFailureReason::ScopeViolation { .. }));
                }
                _ => {}
            },
            RunStateEvent::Patched { by, .. } => {
                seen.patched += 1;
                seen.resolvers += usize::from(by == "scheduler");
            }
            RunStateEvent::PatchRefused { .. } => seen.refused += 1,
            RunStateEvent::Wished { answer, .. } => seen.refused += usize::from(answer.failed),
            _ => {}
        }
        work.apply(event);
        if let Some(joint) = &work.joint {
            assert_eq!(joint.dag.cycle(), None);
        }
    }
    (work, told)
}

/// Everything that was committed is in the integration branch, once, or in a conflict or a failure that is told.
fn accounted(
    luck: &Luck,
    run: &RunId,
    joint: &SharedPlan,
    told: &BTreeMap<String, Told>,
    seen: &mut Seen,
) {
    let state = luck.state();
    let branch = state.bench.branch(run);
    let kept = branch.agent_commits().unwrap();
    assert_eq!(kept.len(), state.bench.products.len(), "all of it is kept");
    let mut total = 0;
    for (id, told) in told {
        let of_it = || state.bench.products.iter().filter(|one| one.step == *id);
        let count = |merged| of_it().filter(|one| one.merged == merged).count();
        assert_eq!(count(Some(true)), told.merged, "{id}");
        assert_eq!(count(Some(false)), told.conflicts, "{id}");
        assert!(count(None) <= told.failed, "{id} was left out unsaid");
        total += told.merged;
    }
    for product in &state.bench.products {
        let there = branch.contains(&product.commit).unwrap();
        let resolved = || {
            joint.dag.steps.values().any(|entry| {
                // What did not fit is a parent of what took its place.
                matches!(entry.status, StepStatus::Merged { .. })
                    && entry.step.id.as_str().starts_with(product.step.as_str())
            })
        };
        let merged = product.merged == Some(true);
        assert!(there || !merged, "{product:?} is lost");
        assert!(!there || merged || resolved(), "{product:?} came in unsaid");
        assert!(
            told.contains_key(&product.step),
            "{product:?} is not told of"
        );
    }
    let counted = state.bench.git(
        &branch,
        &[
            "rev-list",
            "--first-parent",
            "--count",
            &format!("{}..{}", branch.base(), branch.commit().unwrap()),
        ],
    );
    assert_eq!(counted.trim(), total.to_string(), "each was merged once");
    for entry in joint.dag.steps.values() {
        if let StepStatus::Merged {
            commit: Some(commit),
        } = &entry.status
        {
            assert!(branch.contains(commit).unwrap(), "{}", entry.step.id);
        }
    }
    let unanswered = state.wishes.values().filter(|said| said.is_none()).count();
    assert_eq!(unanswered, 0, "every agent that asked was answered");
    let counted = |merged| {
        let of_it = state.bench.products.iter();
        of_it.filter(|one| one.merged == merged).count()
    };
    seen.runs += 1;
    seen.steps += joint.dag.steps.len();
    seen.produced += state.bench.products.len();
    seen.merged += counted(Some(true));
    seen.conflicts += counted(Some(false));
}

async fn live(drawn: &Drawn, seen: &mut Seen) {
    let luck = Arc::new(Luck::new(drawn));
    let (database, repository) = {
        let state = luck.state();
        let repository = state.bench.repository.path().to_owned();
        (state.bench.state().join("runs.db"), repository)
    };
    let before = bench::files(&repository);
    let options = SqliteOptions {
        durability: Durability::ProcessCrash,
        ..SqliteOptions::default()
    };
    let store: Arc<dyn RunStore> = Arc::new(SqliteStore::open(database, options).unwrap());
    let world =
        RunWorld::new(luck.clone(), luck.clone(), Arc::new(|_| ())).with_agents(luck.clone());
    let options = EngineOptions {
        backoff: Duration::ZERO,
        // What is done here blocks, so no lease is renewed.
        lease: Duration::from_hours(1),
        ..EngineOptions::default()
    };
    let engine = GraphEngine::new(CodingGraph, store.clone(), Arc::new(world), options).unwrap();
    let task = RunTask {
        deliver: DeliverMode::Patch,
        models: vec![model()],
        team: Some(TeamPolicy {
            at_once: drawn.at_once,
            plan_only: false,
            fail_fast: drawn.fail_fast,
            commit_per_task: false,
            reviewed: false,
        }),
        max_loops: 1,
        ..RunTask::new("do it all", repository.display().to_string())
    };
    let run = RunId::from_parts(1, [9; 10]);
    let start = RunStart {
        run: Some(run.clone()),
        ..RunStart::default()
    };
    engine.start(&task, &start).await.unwrap();
    run_to_the_end(&engine, &run, drawn, seen).await;

    // The plan came to its end, step by step as it may.
    let known = engine.show(&run, None).await.unwrap();
    let (work, told) = walk(&task, &events(&*store, &run).await, seen);
    assert_eq!(work, *known.state, "the log is all there is");
    let joint = work.joint.as_ref().unwrap();
    for (id, entry) in &joint.dag.steps {
        let over = entry.status.is_over();
        assert!(over, "{id} is {}", entry.status.name());
    }
    assert_eq!(joint.dag.in_order().len(), joint.dag.steps.len());
    let ended = known.progress.ended.unwrap();
    if ended.exit == RunExit::Verified {
        assert!(joint.dag.is_whole());
        seen.whole += 1;
    }

    accounted(&luck, &run, joint, &told, seen);
    // What is the person's is byte by byte what it was, the git directory included.
    assert_eq!(bench::files(&repository), before);
    let again = engine.replay(&run).await.unwrap();
    assert!(again.differences.is_empty(), "{:?}", again.differences);
}

/// Whatever is planned, rewired, edited, given up and asked: no cycle, no deadlock, nothing begins
/// before what it needs or writes where another does, nothing that was produced is lost or comes in
/// unsaid, and the person's repository stays as it is.
#[test]
fn nothing_is_lost_whatever_agents_do_and_want() {
    let runs = std::env::var("LULA_PLANS").ok();
    let runs = runs.map_or(RUNS, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases: runs,
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let seen = std::cell::RefCell::new(Seen::default());
    // The suite draws the same every time; more is drawn anew.
    let mut runner = if runs == RUNS {
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
    } else {
        TestRunner::new(config)
    };
    runner
        .run(&drawn(), |drawn| {
            runtime.block_on(live(&drawn, &mut seen.borrow_mut()));
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let seen = seen.into_inner();
    println!("{seen:#?}");
    assert!(
        seen.merged > 0 && seen.conflicts > 0 && seen.patched > 0 && seen.refused > 0,
        "{seen:#?}"
    );
}
