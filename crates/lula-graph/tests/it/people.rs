//! Waiting for people and for time: approvals, choices, timers, budgets, cancelling.

use std::sync::Arc;
use std::time::Duration;

use lula_graph::{
    ApprovalAnswer, ApprovalAsk, BudgetPolicy, EffectError, EffectRequest, EngineOptions,
    GraphEngine, RestReason, RunStart, VisitStop,
};
use lula_protocol::approval::ApprovalDecision;
use lula_protocol::event::RunEnding;
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{BudgetAmounts, BudgetDimension, Digest, RunId, RunInterrupt, RunSignal};
use lula_store::{ApprovalState, RunStatus, RunStore};

use crate::delivery::{
    Delivery, HandClock, Job, LEASE, Yard, engine, engine_with, options, sqlite,
};
use crate::single::{ObligingWorld, Single};

const HOUR: Duration = Duration::from_hours(1);

fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// Asks for two maintainers, then pushes what `pushed` says; asked was for "the diff".
fn gated(pushed: &'static str) -> Single {
    Single::new(move |ctx| {
        Box::pin(async move {
            let now = ctx.now().await?;
            let ask = ApprovalAsk {
                digest: digest("the diff"),
                rule: ApprovalRule {
                    quorum: 2,
                    roles: vec!["maintainer".to_owned()],
                    requester: Some("alice".parse().unwrap()),
                    four_eyes: true,
                    expires_ms: now + 3_600_000,
                },
                reason: "pushes to main".to_owned(),
            };
            let approval = match ctx.approval(ask).await? {
                ApprovalAnswer::Approved(approval) => approval,
                ApprovalAnswer::Rejected(reason) => return Ok(format!("rejected: {reason}")),
            };
            let push = |approval| {
                EffectRequest::external("push", "main").approved(approval, digest(pushed))
            };
            match ctx.effect::<String>(push(approval.clone())).await {
                Ok(_) => {}
                Err(VisitStop::Effect(error @ EffectError::ApprovalVoid { .. })) => {
                    return Ok(error.to_string());
                }
                Err(stop) => return Err(stop),
            }
            // The same approval does not serve twice.
            match ctx.effect::<String>(push(approval)).await {
                Err(VisitStop::Effect(EffectError::ApprovalVoid { .. })) => {
                    Ok("pushed once".to_owned())
                }
                Ok(_) => Ok("pushed twice".to_owned()),
                Err(stop) => Err(stop),
            }
        })
    })
}

struct AskingRun {
    _directory: tempfile::TempDir,
    store: Arc<dyn RunStore>,
    clock: Arc<HandClock>,
    engine: GraphEngine<Single>,
    run: RunId,
    interrupt: RunInterrupt,
}

async fn ask(graph: Single) -> AskingRun {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let engine = engine(graph, Arc::clone(&store), Arc::new(ObligingWorld), &clock);
    let (run, rested) = engine.run(&(), &RunStart::default()).await.unwrap();
    let RestReason::Waiting(pending) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(
        store.run(&run).await.unwrap().unwrap().status,
        RunStatus::Suspended
    );
    AskingRun {
        _directory: directory,
        store,
        clock,
        engine,
        run,
        interrupt: pending.interrupt,
    }
}

impl AskingRun {
    async fn vote(&self, by: &str, role: &str, seen: &str, decision: ApprovalDecision) {
        let RunInterrupt::Approval { approval, .. } = &self.interrupt else {
            panic!("{:?}", self.interrupt)
        };
        let vote = RunSignal::Vote {
            approval: approval.clone(),
            digest: digest(seen),
            by: by.parse().unwrap(),
            role: role.to_owned(),
            decision,
        };
        self.engine.send(&self.run, &vote).await.unwrap();
    }

    async fn approve(&self, by: &str) {
        self.vote(by, "maintainer", "the diff", ApprovalDecision::Approve)
            .await;
    }

    /// What the run says in the end; `None` while it waits.
    async fn outcome(&self) -> Option<String> {
        match self.engine.resume(&self.run).await.unwrap() {
            Some(RestReason::Done(ended)) => {
                assert_eq!(self.engine.replay(&self.run).await.unwrap().differences, []);
                Some(ended.summary)
            }
            Some(RestReason::Waiting(_)) | None => None,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn two_maintainers_approve_and_it_is_done_once() {
    let asked = ask(gated("the diff")).await;
    assert_eq!(
        asked
            .store
            .approvals_in(ApprovalState::Open)
            .await
            .unwrap()
            .len(),
        1
    );
    asked.approve("bob").await;
    assert_eq!(asked.outcome().await, None, "one is not two");
    asked.approve("bob").await;
    assert_eq!(asked.outcome().await, None, "bob twice is still one");
    asked.approve("carol").await;
    assert_eq!(asked.outcome().await.unwrap(), "pushed once");
    assert_eq!(
        asked
            .store
            .approvals_in(ApprovalState::Used)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn votes_that_do_not_count_are_ignored_and_said_so() {
    let asked = ask(gated("the diff")).await;
    asked.approve("alice").await;
    asked
        .vote("bob", "guest", "the diff", ApprovalDecision::Approve)
        .await;
    asked
        .vote(
            "carol",
            "maintainer",
            "another diff",
            ApprovalDecision::Approve,
        )
        .await;
    asked
        .vote("mallory", "guest", "the diff", ApprovalDecision::Reject)
        .await;
    assert_eq!(asked.outcome().await, None);
    let log = asked.store.read(&asked.run, 0, 100).await.unwrap();
    let ignored = log
        .iter()
        .filter(|r| r.read_body().unwrap().kind() == "signal_ignored");
    assert_eq!(ignored.count(), 4);
    asked.approve("bob").await;
    asked.approve("dave").await;
    assert_eq!(asked.outcome().await.unwrap(), "pushed once");
}

#[tokio::test]
async fn one_rejection_is_enough() {
    let asked = ask(gated("the diff")).await;
    asked.approve("bob").await;
    asked
        .vote("carol", "maintainer", "the diff", ApprovalDecision::Reject)
        .await;
    assert_eq!(
        asked.outcome().await.unwrap(),
        "rejected: carol rejected it"
    );
}

#[tokio::test]
async fn silence_becomes_a_no_by_itself_when_the_time_is_over() {
    let asked = ask(gated("the diff")).await;
    asked.approve("bob").await;
    assert_eq!(asked.outcome().await, None);
    asked.clock.forward(HOUR);
    asked.approve("carol").await;
    assert_eq!(
        asked.outcome().await.unwrap(),
        "rejected: nobody answered in time"
    );
}

#[tokio::test]
async fn an_approval_is_void_for_anything_but_what_was_seen() {
    let asked = ask(gated("another diff")).await;
    asked.approve("bob").await;
    asked.approve("carol").await;
    assert!(
        asked
            .outcome()
            .await
            .unwrap()
            .contains("not what was approved")
    );
    assert_eq!(
        asked
            .store
            .approvals_in(ApprovalState::Used)
            .await
            .unwrap()
            .len(),
        0
    );
    assert!(asked.store.effects(&asked.run).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_person_chooses() {
    let asked = ask(Single::new(|ctx| {
        Box::pin(async move {
            let choice = ctx.ask("ship it?", &["yes", "no"]).await?;
            Ok(format!(
                "{} said {} ({})",
                choice.by, choice.choice, choice.note
            ))
        })
    }))
    .await;
    let seq = asked
        .engine
        .show(&asked.run, None)
        .await
        .unwrap()
        .progress
        .pending
        .unwrap()
        .seq;
    let answer = |interrupt, choice: &str| RunSignal::Answer {
        interrupt,
        choice: choice.to_owned(),
        by: "bob".parse().unwrap(),
        note: "go".to_owned(),
    };
    asked
        .engine
        .send(&asked.run, &answer(seq, "maybe"))
        .await
        .unwrap();
    asked
        .engine
        .send(&asked.run, &answer(seq + 1, "yes"))
        .await
        .unwrap();
    assert_eq!(
        asked.outcome().await,
        None,
        "neither answer fits the question"
    );
    asked
        .engine
        .send(&asked.run, &answer(seq, "yes"))
        .await
        .unwrap();
    assert_eq!(asked.outcome().await.unwrap(), "bob said yes (go)");
}

#[tokio::test]
async fn a_sleeping_run_wakes_by_itself_even_when_the_clock_was_set_back() {
    let asked = ask(Single::new(|ctx| {
        Box::pin(async move {
            let now = ctx.now().await?;
            ctx.sleep_until(now + 3_600_000).await?;
            let later = ctx.now().await?;
            Ok(format!("slept {}", later >= now + 3_600_000))
        })
    }))
    .await;
    assert!(asked.engine.sweep().await.unwrap().is_empty());
    asked.clock.back(HOUR);
    assert!(asked.engine.sweep().await.unwrap().is_empty());
    asked.clock.forward(2 * HOUR);
    let swept = asked.engine.sweep().await.unwrap();
    let (_, Ok(RestReason::Done(ended))) = &swept[0] else {
        panic!("{swept:?}")
    };
    assert_eq!(ended.summary, "slept true");
}

fn poor() -> (Job, RunStart) {
    let job = Job {
        rounds: 1,
        weight: 0,
        price: 100,
    };
    let start = RunStart {
        limits: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 60),
        ..RunStart::default()
    };
    (job, start)
}

#[tokio::test]
async fn a_run_without_budget_waits_and_goes_on_when_the_limit_is_raised() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let clock = HandClock::new();
    let yard = Arc::new(Yard::default());
    let engine = engine(Delivery, Arc::clone(&store), yard.clone(), &clock);
    let (job, start) = poor();
    let (run, rested) = engine.run(&job, &start).await.unwrap();
    let RestReason::Waiting(pending) = rested else {
        panic!("{rested:?}")
    };
    let expected = RunInterrupt::Budget {
        dimension: BudgetDimension::MicroUsd,
        asked: 100,
        free: 60,
    };
    assert_eq!(pending.interrupt, expected);
    assert_eq!(yard.site(&run).model_calls, 0, "nothing was spent");
    let raise = |to| RunSignal::RaiseLimit {
        dimension: BudgetDimension::MicroUsd,
        to,
        by: "alice".parse().unwrap(),
    };
    engine.send(&run, &raise(80)).await.unwrap();
    let rested = engine.resume(&run).await.unwrap();
    assert!(
        matches!(rested, Some(RestReason::Waiting(_))),
        "80 is not enough: {rested:?}"
    );
    engine.send(&run, &raise(100)).await.unwrap();
    let rested = engine.resume(&run).await.unwrap();
    assert!(matches!(rested, Some(RestReason::Done(_))), "{rested:?}");
    let row = store.ledger(&run).await.unwrap()[0];
    assert_eq!((row.limit, row.reserved, row.settled), (Some(100), 0, 7));
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

#[tokio::test]
async fn a_refused_budget_is_told_to_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let clock = HandClock::new();
    let (job, start) = poor();
    let refuse = EngineOptions {
        on_budget: BudgetPolicy::Refuse,
        ..options()
    };
    let yard = Arc::new(Yard::default());
    let engine = engine_with(Delivery, sqlite(directory.path()), yard, &clock, refuse);
    let (run, rested) = engine.run(&job, &start).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.exit, lula_protocol::RunExit::Budget);
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

/// Looks, and begins something only where 100 can be afforded.
fn careful() -> Single {
    Single::new(|ctx| {
        Box::pin(async move {
            let seen: String = ctx.effect(EffectRequest::read("look", &1)).await?;
            let price = BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100);
            ctx.afford("the rest", &price).await?;
            let next: String = ctx.effect(EffectRequest::read("look", &2)).await?;
            Ok(format!("{seen}, {next}"))
        })
    })
}

#[tokio::test]
async fn what_cannot_be_afforded_is_not_begun_and_waits() {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = (sqlite(directory.path()), HandClock::new());
    let engine = engine(careful(), store, Arc::new(ObligingWorld), &clock);
    let (_, start) = poor();
    let (run, rested) = engine.run(&(), &start).await.unwrap();
    let RestReason::Waiting(pending) = rested else {
        panic!("{rested:?}")
    };
    let expected = RunInterrupt::Budget {
        dimension: BudgetDimension::MicroUsd,
        asked: 100,
        free: 60,
    };
    assert_eq!(pending.interrupt, expected);
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
    let raise = RunSignal::RaiseLimit {
        dimension: BudgetDimension::MicroUsd,
        to: 100,
        by: "alice".parse().unwrap(),
    };
    engine.send(&run, &raise).await.unwrap();
    let rested = engine.resume(&run).await.unwrap();
    let Some(RestReason::Done(ended)) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.summary, "did look 1, did look 2");
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

#[tokio::test]
async fn what_cannot_be_afforded_ends_a_run_that_may_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = (sqlite(directory.path()), HandClock::new());
    let refuse = EngineOptions {
        on_budget: BudgetPolicy::Refuse,
        ..options()
    };
    let engine = engine_with(careful(), store, Arc::new(ObligingWorld), &clock, refuse);
    let (_, start) = poor();
    let (run, rested) = engine.run(&(), &start).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.exit, lula_protocol::RunExit::Budget);
    assert!(
        ended.summary.contains("the rest may need 100"),
        "{}",
        ended.summary
    );
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}

#[tokio::test]
async fn a_waiting_run_is_cancelled() {
    let asked = ask(gated("the diff")).await;
    let cancel = RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: "no longer needed".to_owned(),
    };
    asked.engine.send(&asked.run, &cancel).await.unwrap();
    let rested = asked.engine.resume(&asked.run).await.unwrap().unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.ending, RunEnding::Cancelled);
    assert_eq!(ended.summary, "cancelled by alice: no longer needed");
    asked.clock.forward(LEASE);
    assert!(
        asked.engine.sweep().await.unwrap().is_empty(),
        "what is cancelled stays so"
    );
    assert_eq!(
        asked.engine.replay(&asked.run).await.unwrap().differences,
        []
    );
}

mod children {
    use lula_graph::{EffectOrder, EffectOutput, EffectTrouble, EffectWorld, async_trait};
    use std::collections::HashMap;
    use tokio::process::{Child, Command};
    use tokio::sync::Mutex;

    #[derive(Default)]
    pub(super) struct Host {
        children: Mutex<HashMap<String, Child>>,
        pub(super) pids: std::sync::Mutex<Vec<u32>>,
    }

    #[async_trait]
    impl EffectWorld for Host {
        async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            self.pids.lock().unwrap().push(child.id().unwrap());
            self.children
                .lock()
                .await
                .insert(order.effect.to_string(), child);
            std::future::pending().await
        }

        async fn abort(&self, order: &EffectOrder) {
            if let Some(mut child) = self.children.lock().await.remove(order.effect.as_str()) {
                child.kill().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn cancelling_leaves_no_process_behind() {
    let directory = tempfile::tempdir().unwrap();
    let clock = HandClock::new();
    let host = Arc::new(children::Host::default());
    let graph = Single::new(|ctx| {
        Box::pin(async move { ctx.effect(EffectRequest::tree("exec", "sleep")).await })
    });
    let engine = engine(graph, sqlite(directory.path()), host.clone(), &clock);
    let run = engine.start(&(), &RunStart::default()).await.unwrap();
    let driving = {
        let (engine, run) = (engine.clone(), run.clone());
        tokio::spawn(async move { engine.resume(&run).await })
    };
    while host.pids.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cancel = RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: "enough".to_owned(),
    };
    engine.send(&run, &cancel).await.unwrap();
    let rested = driving.await.unwrap().unwrap().unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.ending, RunEnding::Cancelled);
    assert!(
        ended
            .summary
            .contains("may or may not have been done: exec"),
        "{}",
        ended.summary
    );
    let pid = host.pids.lock().unwrap()[0];
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "a process is left"
    );
}
