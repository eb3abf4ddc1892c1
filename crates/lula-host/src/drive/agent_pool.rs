//! The agents of a run: each is a run of its own in the same store, driven by this process beside
//! the one that sent it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lula_agents::agent_pool::{AgentPoolEvent, AgentResult};
use lula_agents::runner_port::Reply;
use lula_agents::team::{PlanChangeRequest, outline_of_change};
use lula_agents::verdict::TestComparison;
use lula_agents::{AgentPoolPort, CodingGraph, CodingState, RunTask, RunnerPortError};
use lula_graph::{
    BudgetPolicy, EffectWorld, EngineOptions, GraphEngine, RestReason, RunStart, RunState,
};
use lula_protocol::{
    BudgetAmounts, BudgetDimension, EffectId, RunExit, RunId, RunInterrupt, RunSignal,
};
use lula_repair::trial::excerpt;
use lula_store::{RunStatus, RunStore, StoreError};
use tokio::task::JoinHandle;

use super::mailbox::PlanChangeMailbox;
use super::worker::{self, RunBlocker};
use crate::record::local_principal;
use crate::runs::reader;

/// How often an agent's run is looked at that cannot be gone on with now.
const LOOK: Duration = Duration::from_millis(250);
/// So often a step that cannot be done now is tried again.
const PATIENCE: u32 = 20;
/// How long an agent may take to end.
const GRACE: Duration = Duration::from_secs(8);
/// Longest change that is told of one agent to others.
const TOLD: usize = 16_000;
/// Most new tests of a change that are run with the code of others.
const NEW_TESTS: usize = 200;

/// Makes the world of an agent, by its run and the name of its task.
pub(crate) type AgentWorldFactory = Box<dyn Fn(&RunId, &str) -> Arc<dyn EffectWorld> + Send + Sync>;

/// How an agent's run rests.
enum AgentRestReason {
    Over,
    Waiting(RunInterrupt),
    Paused,
    Trouble(String),
}

struct AtWork {
    engine: GraphEngine<CodingGraph>,
    task: JoinHandle<()>,
    rest: Arc<Mutex<Option<AgentRestReason>>>,
}

/// Agents that this process drives.
pub(crate) struct AgentPool {
    store: Arc<dyn RunStore>,
    options: EngineOptions,
    worlds: AgentWorldFactory,
    at_work: Mutex<HashMap<RunId, AtWork>>,
    mailbox: Arc<PlanChangeMailbox>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unreachable(error: &dyn std::fmt::Display) -> RunnerPortError {
    RunnerPortError::Unreachable(error.to_string())
}

impl AgentPool {
    pub(crate) fn new(
        store: Arc<dyn RunStore>,
        options: EngineOptions,
        worlds: AgentWorldFactory,
        mailbox: Arc<PlanChangeMailbox>,
    ) -> Self {
        Self {
            store,
            options: EngineOptions {
                // An agent that has spent its share comes back; the run that sent it decides.
                on_budget: BudgetPolicy::Refuse,
                ..options
            },
            worlds,
            at_work: Mutex::new(HashMap::new()),
            mailbox,
        }
    }

    /// Asks every agent to stop before its next step.
    pub(crate) fn pause(&self) {
        self.mailbox.close();
        for (run, at_work) in locked(&self.at_work).iter() {
            at_work.engine.pause(run);
        }
    }

    /// Every agent that was worked on here.
    pub(crate) fn everybody(&self) -> Vec<RunId> {
        locked(&self.at_work).keys().cloned().collect()
    }

    fn engine(
        &self,
        agent: &RunId,
        name: &str,
    ) -> Result<GraphEngine<CodingGraph>, RunnerPortError> {
        let world = (self.worlds)(agent, name);
        GraphEngine::new(
            CodingGraph,
            Arc::clone(&self.store),
            world,
            self.options.clone(),
        )
        .map_err(|error| RunnerPortError::Failed(error.to_string()))
    }

    /// Works on an agent's run, unless a task of this process does already.
    async fn employ(&self, agent: &RunId) -> Result<(), RunnerPortError> {
        let busy = |at_work: &AtWork| {
            let rest = locked(&at_work.rest);
            rest.is_none() || matches!(*rest, Some(AgentRestReason::Over))
        };
        if locked(&self.at_work).get(agent).is_some_and(busy) {
            return Ok(());
        }
        let known = reader(Arc::clone(&self.store))
            .map_err(|failure| RunnerPortError::Failed(failure.to_string()))?
            .show(agent, None)
            .await
            .map_err(|error| unreachable(&error))?;
        let name = name_of(&known);
        let engine = self.engine(agent, &name)?;
        let rest = Arc::new(Mutex::new(None));
        let task = {
            let (engine, store) = (engine.clone(), Arc::clone(&self.store));
            let (rest, news) = (Arc::clone(&rest), Arc::clone(&self.mailbox.news));
            let agent = agent.clone();
            tokio::spawn(async move {
                let came = drive(&engine, &*store, &agent).await;
                *locked(&rest) = Some(came);
                news.notify_waiters();
            })
        };
        let at_work = AtWork { engine, task, rest };
        locked(&self.at_work).insert(agent.clone(), at_work);
        Ok(())
    }

    /// Forgets agents that rest, so that they are worked on again.
    fn wake(&self, agents: &[RunId]) {
        locked(&self.at_work).retain(|run, at_work| {
            let resting = matches!(
                *locked(&at_work.rest),
                Some(
                    AgentRestReason::Waiting(_)
                        | AgentRestReason::Paused
                        | AgentRestReason::Trouble(_)
                )
            );
            !(resting && agents.contains(run))
        });
    }

    /// What the agents that rest say, where one is done or none works any more.
    fn settled(&self, agents: &[RunId]) -> Option<Result<RunId, RunnerPortError>> {
        let at_work = locked(&self.at_work);
        let mut resting = 0;
        let mut why: Option<RunnerPortError> = None;
        for agent in agents {
            let Some(at_work) = at_work.get(agent) else {
                continue;
            };
            match &*locked(&at_work.rest) {
                None => continue,
                Some(AgentRestReason::Over) => return Some(Ok(agent.clone())),
                Some(AgentRestReason::Waiting(interrupt)) => {
                    if let Some(held) = held(interrupt) {
                        why = Some(held);
                    } else {
                        why.get_or_insert_with(|| {
                            let what = crate::report::waiting_for(interrupt);
                            RunnerPortError::Unreachable(format!("{agent} {what}"))
                        });
                    }
                }
                Some(AgentRestReason::Paused) => {
                    why.get_or_insert_with(|| unreachable(&"the agents were put down"));
                }
                Some(AgentRestReason::Trouble(message)) => {
                    why.get_or_insert_with(|| unreachable(message));
                }
            }
            resting += 1;
        }
        (resting == agents.len())
            .then(|| Err(why.unwrap_or_else(|| unreachable(&"no agent works"))))
    }

    async fn returned(&self, agent: &RunId) -> Result<AgentResult, RunnerPortError> {
        let reader = reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| RunnerPortError::Failed(failure.to_string()))?;
        let known = reader
            .show(agent, None)
            .await
            .map_err(|error| unreachable(&error))?;
        returned(&known).ok_or_else(|| RunnerPortError::Failed(format!("{agent} is not over")))
    }
}

/// What an agent waits for, where people can answer it.
fn held(interrupt: &RunInterrupt) -> Option<RunnerPortError> {
    let (approval, reason) = match interrupt {
        RunInterrupt::Held {
            approval, reason, ..
        }
        | RunInterrupt::Approval {
            approval, reason, ..
        } => (approval.clone(), reason.clone()),
        _ => return None,
    };
    Some(RunnerPortError::Held { approval, reason })
}

fn name_of(known: &RunState<CodingState>) -> String {
    let handoff = known.state.task.handoff.as_ref();
    handoff.map_or_else(String::new, |handoff| handoff.step.to_string())
}

fn returned(known: &RunState<CodingState>) -> Option<AgentResult> {
    let ended = known.progress.ended.as_ref()?;
    Some(agent_result(known, ended.exit, &ended.summary))
}

/// What is told of an agent to the run that sent it.
fn agent_result(known: &RunState<CodingState>, exit: RunExit, summary: &str) -> AgentResult {
    let work = &known.state;
    let (by, said) = work.made.clone().unwrap_or_default();
    let by = work.answer.as_ref().map_or(by, |answer| answer.by.clone());
    let proposal = work.proposal.as_ref();
    let spent = BudgetDimension::ALL.into_iter();
    AgentResult {
        run: known.progress.run.clone(),
        exit,
        summary: summary.to_owned(),
        by,
        said,
        files: proposal.map(|made| made.files.clone()).unwrap_or_default(),
        diff: proposal
            .map(|made| excerpt(&made.diff, TOLD))
            .unwrap_or_default(),
        lines: proposal.map_or(0, |made| changed_lines(&made.diff)),
        outline: proposal.map_or_else(String::new, |made| outline_of_change(&made.diff)),
        new_tests: new_tests(work),
        tree: proposal.map(|made| made.tree),
        answer: work.answer.clone(),
        confidence: work.confidence.clone(),
        spent: spent
            .map(|dimension| (dimension, known.progress.ledger.spent(dimension)))
            .filter(|(_, amount)| *amount > 0)
            .collect(),
    }
}

/// Tests that a change brings along and that pass with it.
fn new_tests(work: &CodingState) -> Vec<String> {
    let compared = work.evidence.as_ref().map(TestComparison::of);
    let mut tests = compared.map_or_else(Vec::new, |compared| compared.new_passing);
    tests.truncate(NEW_TESTS);
    tests
}

/// How many lines a change adds and removes.
fn changed_lines(diff: &str) -> u64 {
    let (plus, minus) = crate::story::facts::counted(diff);
    u64::try_from(plus + minus).unwrap_or(u64::MAX)
}

/// Drives an agent's run until it rests.
async fn drive(
    engine: &GraphEngine<CodingGraph>,
    store: &dyn RunStore,
    agent: &RunId,
) -> AgentRestReason {
    let mut troubles = 0;
    loop {
        let again = match step(engine, store, agent).await {
            Ok(Some(rest)) => return rest,
            Ok(None) => "another process works on it".to_owned(),
            Err(why) => why,
        };
        troubles += 1;
        if troubles > PATIENCE {
            return AgentRestReason::Trouble(format!("{agent}: {again}"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn step(
    engine: &GraphEngine<CodingGraph>,
    store: &dyn RunStore,
    agent: &RunId,
) -> Result<Option<AgentRestReason>, String> {
    let row = store.run(agent).await.map_err(|error| error.to_string())?;
    let row = row.ok_or_else(|| "the run is not there".to_owned())?;
    if row.status == RunStatus::Done {
        return Ok(Some(AgentRestReason::Over));
    }
    let held = worker::release_dead(store, &row).await;
    if let RunBlocker::By(owner) = held.map_err(|failure| failure.to_string())? {
        return Err(format!("{owner} works on it"));
    }
    let known = engine.show(agent, None).await;
    let known = known.map_err(|error| error.to_string())?;
    if let Ok(by) = local_principal()
        && let Some(signal) = worker::go_on(&known, &by)
    {
        let sent = engine.send(agent, &signal).await;
        sent.map_err(|error| error.to_string())?;
    }
    match engine.resume(agent).await {
        Ok(Some(RestReason::Done(_))) => Ok(Some(AgentRestReason::Over)),
        Ok(Some(RestReason::Waiting(pending))) => {
            Ok(Some(AgentRestReason::Waiting(pending.interrupt)))
        }
        Ok(Some(RestReason::Paused)) => Ok(Some(AgentRestReason::Paused)),
        Ok(Some(RestReason::Trouble(message))) => Err(message),
        Ok(None) => match known.progress.pending {
            Some(pending) => Ok(Some(AgentRestReason::Waiting(pending.interrupt))),
            None => Ok(None),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[async_trait]
impl AgentPoolPort for AgentPool {
    async fn begin(
        &self,
        agent: &RunId,
        task: &RunTask,
        limits: &BudgetAmounts,
    ) -> Result<(), RunnerPortError> {
        let start = RunStart {
            limits: limits.clone(),
            run: Some(agent.clone()),
            ..RunStart::default()
        };
        let reader = reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| RunnerPortError::Failed(failure.to_string()))?;
        match reader.start(task, &start).await {
            Ok(_) | Err(lula_graph::EngineError::Store(StoreError::RunExists(_))) => {}
            Err(error) => return Err(unreachable(&error)),
        }
        self.employ(agent).await
    }

    async fn wait(&self, agents: &[RunId]) -> Result<AgentPoolEvent, RunnerPortError> {
        self.wake(agents);
        for agent in agents {
            self.employ(agent).await?;
        }
        loop {
            let news = self.mailbox.news.notified();
            tokio::pin!(news);
            // Heard from here on, also what comes while it is looked.
            news.as_mut().enable();
            if let Some(wish) = self.mailbox.first(agents) {
                return Ok(AgentPoolEvent::Wish { wish });
            }
            match self.settled(agents) {
                Some(Ok(agent)) => {
                    let returned = self.returned(&agent).await?;
                    return Ok(AgentPoolEvent::Back(Box::new(returned)));
                }
                Some(Err(error)) => return Err(error),
                None => news.await,
            }
        }
    }

    async fn stop(&self, agents: &[RunId]) {
        let Ok(by) = local_principal() else { return };
        for agent in agents {
            let reason = "the run it worked for was ended".to_owned();
            let signal = RunSignal::Cancel {
                by: by.clone(),
                reason,
            };
            let _ = self.store.send(agent, &signal).await;
        }
        // An agent that rests, or was left by a process that is gone, has to hear it too.
        self.wake(agents);
        for agent in agents {
            let _ = self.employ(agent).await;
        }
        let working: Vec<AtWork> = {
            let mut at_work = locked(&self.at_work);
            agents
                .iter()
                .filter_map(|run| at_work.remove(run))
                .collect()
        };
        let end = tokio::time::Instant::now() + GRACE;
        for mut at_work in working {
            if tokio::time::timeout_at(end, &mut at_work.task)
                .await
                .is_err()
            {
                at_work.task.abort();
            }
        }
    }

    async fn propose(&self, _: &PlanChangeRequest) -> Result<Reply, RunnerPortError> {
        Err(RunnerPortError::Failed(
            "the run that leads a plan decides about it".to_owned(),
        ))
    }

    async fn answer(&self, wish: &EffectId, said: &Reply) -> Result<(), RunnerPortError> {
        self.mailbox.answer(wish, said);
        Ok(())
    }

    async fn dismiss(&self, agents: &[RunId]) -> Result<Vec<AgentResult>, RunnerPortError> {
        self.stop(agents).await;
        let reader = reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| RunnerPortError::Failed(failure.to_string()))?;
        let mut ended = Vec::new();
        for agent in agents {
            let known = reader.show(agent, None).await;
            let known = known.map_err(|error| unreachable(&error))?;
            let late = || agent_result(&known, RunExit::Failed, "it did not stop in time");
            ended.push(returned(&known).unwrap_or_else(late));
        }
        Ok(ended)
    }
}
