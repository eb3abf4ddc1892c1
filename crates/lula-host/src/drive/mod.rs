//! The driver: works on a run with its agents until it rests, or a person or the clock stops it.

mod agent_pool;
pub mod background;
pub mod consent;
pub(crate) mod fence;
mod keys;
mod mailbox;
pub mod model_endpoints;
mod observer;
pub mod signals;
pub mod step_stop;
pub mod worker;

use std::sync::Arc;
use std::time::Duration;

use lula_agents::runner_port::RunnerPortClient;
use lula_agents::{
    AgentPoolPort, AnswerObserver, CodingGraph, CodingState, RunTask, RunWorld, RunnerPort,
};
use lula_graph::{
    CancellationToken, EffectWorld, EngineOptions, GraphEngine, RestReason, RunStart, RunState,
};
use lula_protocol::{ApprovalDecision, BudgetAmounts, RunId};
use lula_runner_api::client::RunnerChild;
use lula_store::{RunStatus, RunStore};

use crate::diagnosis::TracedWorld;
use crate::error::HostError;
use crate::installation::Installation;
use crate::otlp::OtlpExporter;
use crate::record::{local_principal, now_ms};
use crate::runner_client::FencedDriver;
use crate::store::{self, DriverStore};
use crate::story::follow::RunLogFollower;
use agent_pool::AgentPool;
use mailbox::{AgentPoolMember, PlanChangeMailbox};
use step_stop::{StepStop, StoppableWorld};
use worker::RunBlocker;

pub use keys::DriverKeys;
pub use observer::{NoObserver, Observer};

/// So often a step that cannot be done now is tried again before the run is put down.
const PATIENCE: u32 = 5;
/// After how many visits a chat is stopped.
const CHAT_VISITS: u64 = 1_000_000;
/// How long the step under way may take after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// How a run is asked to stop: first before its next step, then at once.
#[derive(Debug, Clone, Default)]
pub struct StopRequest {
    /// Set by the first request.
    pub once: CancellationToken,
    /// Set by the second.
    pub twice: CancellationToken,
    /// Stops a step of a chat, or the turn it is in.
    pub step: StepStop,
}

/// Everything a run is driven with.
pub struct Driver {
    /// The engine of the run, with the world its steps happen in.
    pub engine: GraphEngine<CodingGraph>,
    /// Where its log is kept.
    pub store: Arc<dyn RunStore>,
    runner: RunnerPortClient,
    agents: Arc<AgentPool>,
    observer: Arc<dyn Observer>,
    stop: StopRequest,
    traces: Option<Arc<OtlpExporter>>,
    /// Ends with this value, where the runner is our own.
    _own: Option<RunnerChild>,
}

/// Why a run was put down before it rested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveStopReason {
    /// It was asked to stop, and did before its next step.
    Asked,
    /// It was stopped in a step.
    AtOnce,
    /// Its time ran out.
    OutOfTime,
}

/// Where a run is when it is driven no more.
pub enum DriveResult {
    /// It was put down.
    Stopped(DriveStopReason),
    /// It is over, or waits for an answer.
    Rested(Box<RunState<CodingState>>),
}

/// A name for a run that is to begin.
pub fn fresh() -> Result<RunId, HostError> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| HostError::Internal(error.to_string()))?;
    Ok(RunId::from_parts(now_ms(), random))
}

/// Writes the first event of a run.
pub async fn begin(
    engine: &GraphEngine<CodingGraph>,
    task: &RunTask,
    limits: BudgetAmounts,
) -> Result<RunId, HostError> {
    begin_as(fresh()?, engine, task, limits).await
}

/// Writes the first event of the run of that name.
pub async fn begin_as(
    run: RunId,
    engine: &GraphEngine<CodingGraph>,
    task: &RunTask,
    limits: BudgetAmounts,
) -> Result<RunId, HostError> {
    let usual = RunStart::default();
    let start = RunStart {
        limits,
        run: Some(run),
        // A chat ends when its person says so.
        max_visits: task.chat.map_or(usual.max_visits, |_| CHAT_VISITS),
        ..usual
    };
    Ok(engine.start(task, &start).await?)
}

impl Driver {
    /// A driver in a process that is locked out of what its runner works on: from here on it starts
    /// nothing that needs a file of the repository.
    pub fn open(
        fenced: FencedDriver,
        store: DriverStore,
        observer: Arc<dyn Observer>,
        stop: StopRequest,
        installation: &Installation,
    ) -> Result<Self, HostError> {
        let FencedDriver {
            runner,
            keys:
                DriverKeys {
                    models,
                    guard,
                    seal,
                    traces,
                },
            fence,
            shortfall,
            own,
        } = fenced;
        if let Some(text) = shortfall {
            observer.detail(text);
        }
        store.guard.learn(&guard);
        let store = store.runs;
        let index = installation
            .state_directory()?
            .join(store::RUNS)
            .join("index");
        let port = Arc::new(runner.clone());
        let options = EngineOptions {
            worker: worker::name(),
            seal: Some(seal),
            // The driver waits before it tries again.
            backoff: Duration::ZERO,
            ..EngineOptions::default()
        };
        let mailbox = PlanChangeMailbox::new();
        let worlds = {
            let (port, models) = (Arc::clone(&port), Arc::clone(&models));
            let (fence, index) = (Arc::clone(&fence), index.clone());
            let observer = Arc::clone(&observer);
            let mailbox = Arc::clone(&mailbox);
            move |_: &RunId, name: &str| -> Arc<dyn EffectWorld> {
                let (name, observer) = (name.to_owned(), Arc::clone(&observer));
                let say = move |text: &str| observer.agent_doing(&name, text.trim());
                let port: Arc<dyn RunnerPort> = Arc::clone(&port) as Arc<dyn RunnerPort>;
                let workshop = RunWorld::new(port, Arc::clone(&models), Arc::new(say));
                let member = Arc::new(AgentPoolMember(Arc::clone(&mailbox)));
                Arc::new(TracedWorld(Arc::new(
                    workshop
                        .with_agents(member)
                        .fenced(Arc::clone(&fence))
                        .indexed_in(index.clone()),
                )))
            }
        };
        let agents = AgentPool::new(
            Arc::clone(&store),
            options.clone(),
            Box::new(worlds),
            mailbox,
        );
        let agents = Arc::new(agents);
        let say = {
            let observer = Arc::clone(&observer);
            move |text: &str| observer.doing(text.trim())
        };
        let visit = {
            let observer = Arc::clone(&observer);
            move |_: &RunId, node: &str, _: u32| observer.visiting(node)
        };
        let answers: AnswerObserver = {
            let observer = Arc::clone(&observer);
            Arc::new(move |delta| observer.answering(delta))
        };
        let workshop = RunWorld::new(port, models, Arc::new(say))
            .with_agents(Arc::clone(&agents) as Arc<dyn AgentPoolPort>)
            .heard_by(answers)
            .fenced(fence)
            .indexed_in(index);
        let workshop = StoppableWorld::new(Arc::new(workshop), stop.step.clone());
        let world = Arc::new(TracedWorld(Arc::new(workshop)));
        let options = EngineOptions {
            on_visit: Some(Arc::new(visit)),
            ..options
        };
        Ok(Self {
            engine: GraphEngine::new(CodingGraph, Arc::clone(&store), world, options)?,
            store,
            runner,
            agents,
            observer,
            stop,
            traces,
            _own: own,
        })
    }

    /// The runner that the runs work through.
    pub const fn runner(&self) -> &RunnerPortClient {
        &self.runner
    }

    /// Waits until the run is first asked to stop.
    pub async fn interrupted(&self) {
        self.stop.once.cancelled().await;
    }

    /// Drives a run until it rests, or an operator or the clock stops it.
    pub async fn reach(
        &self,
        run: &RunId,
        max_time: Option<Duration>,
    ) -> Result<DriveResult, HostError> {
        let deadline = max_time.map(|time| tokio::time::Instant::now() + time);
        loop {
            if let Some(stopped) = self.work(run, deadline).await? {
                return Ok(DriveResult::Stopped(stopped));
            }
            let known = self.engine.show(run, None).await?;
            if let Some(question) = consent::question(&known, &local_principal()?)
                && let Some(decision) = self.decide(&known, &question)?
            {
                consent::answer(&self.engine, &known, &question, decision).await?;
                continue;
            }
            self.clear(&known).await;
            self.export(&known).await;
            return Ok(DriveResult::Rested(Box::new(known)));
        }
    }

    /// What a person says to a question. One vote is all a person has.
    fn decide(
        &self,
        known: &RunState<CodingState>,
        question: &consent::RunApprovalQuestion,
    ) -> Result<Option<ApprovalDecision>, HostError> {
        if question.answered {
            return Ok(None);
        }
        let said = self.observer.decide(known, question);
        said.map_err(HostError::Answer)
    }

    /// Works on a run until it rests; tells why where it was stopped before.
    async fn work(
        &self,
        run: &RunId,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<Option<DriveStopReason>, HostError> {
        let row = self.store.run(run).await?;
        self.observer.begins(row.map_or(0, |row| row.head.next));
        let following = RunLogFollower::new(Arc::clone(&self.store), run.clone());
        let hear = |moment: &_, teller: &_| self.observer.happened(moment, teller);
        let stopped = tokio::select! {
            biased;
            rested = self.go(run) => rested,
            () = self.stop.twice.cancelled() => Ok(Some(DriveStopReason::AtOnce)),
            () = self.put_down_gently(run) => Ok(Some(DriveStopReason::AtOnce)),
            () = at(deadline) => Ok(Some(DriveStopReason::OutOfTime)),
            () = following.follow(|_, moment, teller| hear(moment, teller)) => Ok(None),
        };
        if let Ok(None) = stopped {
            // What was committed last may not have been told yet.
            let mut rest = RunLogFollower::new(Arc::clone(&self.store), run.clone());
            let _ = rest
                .catch_up(|_, moment, teller| hear(moment, teller))
                .await;
        }
        self.observer.rests();
        let stopped = stopped?;
        if stopped.is_some() {
            worker::release_own(&*self.store, run).await?;
        }
        Ok(stopped)
    }

    /// After the first request: asks the run to stop before its next step, and waits for that.
    async fn put_down_gently(&self, run: &RunId) {
        self.stop.once.cancelled().await;
        let text = "stopping after the step under way; Ctrl-C again stops at once";
        self.observer.trouble(text);
        let end = tokio::time::Instant::now() + GRACE;
        while tokio::time::Instant::now() < end {
            // A run that is just being claimed hears it the next time.
            self.engine.pause(run);
            self.agents.pause();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Claims the run and drives it. A run that is over is left alone.
    async fn go(&self, run: &RunId) -> Result<Option<DriveStopReason>, HostError> {
        let mut troubles = 0;
        loop {
            let Some(row) = self.store.run(run).await? else {
                return Err(lula_store::StoreError::NoRun(run.clone()).into());
            };
            if row.status == RunStatus::Done {
                return Ok(None);
            }
            if let RunBlocker::By(owner) = worker::release_dead(&*self.store, &row).await? {
                return Err(HostError::RunBusy {
                    run: run.clone(),
                    owner,
                });
            }
            match self.engine.resume(run).await? {
                Some(RestReason::Paused) => return Ok(Some(DriveStopReason::Asked)),
                // Agents that were put down are no trouble.
                Some(RestReason::Trouble(_)) if self.stop.once.is_cancelled() => {
                    return Ok(Some(DriveStopReason::Asked));
                }
                Some(RestReason::Trouble(why)) if troubles == PATIENCE => {
                    return Err(HostError::RunStuck {
                        run: run.clone(),
                        why,
                    });
                }
                Some(RestReason::Trouble(message)) => {
                    troubles += 1;
                    let text = format!("{message}; trying again soon");
                    self.observer.trouble(&text);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                _ => return Ok(None),
            }
        }
    }

    /// Sends the trace of a run that is over to the collector. A run is not held up by one that is gone.
    async fn export(&self, known: &RunState<CodingState>) {
        let (Some(traces), Some(_)) = (&self.traces, &known.progress.ended) else {
            return;
        };
        if let Err(error) = traces.export(&self.store, &known.progress.run).await {
            self.observer.warning(&error.to_string());
            tracing::warn!(run = %known.progress.run, %error, "export");
        }
    }

    /// Gives the space of a run back that is over.
    async fn clear(&self, known: &RunState<CodingState>) {
        if known.progress.ended.is_none() {
            return;
        }
        let mut cleared = self.runner.clear(&known.progress.run).await;
        // Agents that still worked when the run ended end with it.
        let mut running = known.state.agents_at_work();
        running.extend(self.agents.everybody());
        if !running.is_empty() {
            self.agents.stop(&running).await;
        }
        cleared = cleared.and(self.runner.clear_team(known).await);
        if let Err(error) = cleared {
            let text = format!("the workspace of the run could not be removed: {error}");
            self.observer.warning(&text);
        }
    }
}

async fn at(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
