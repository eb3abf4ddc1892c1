//! The agents of a run: each is a run of its own in the same store, driven by this process beside
//! the one that sent it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lula_agents::crew::{News, Returned};
use lula_agents::hands::Said;
use lula_agents::team::Wish;
use lula_agents::{Coding, Crew, HandsError, Task, Work};
use lula_graph::{Engine, OnBudget, Options, Rested, RunState, Start, World};
use lula_protocol::{Amounts, Dimension, EffectId, Exit, Interrupt, RunId, Signal};
use lula_store::{Status, Store, StoreError};
use tokio::task::JoinHandle;

use super::mailbox::Mailbox;
use super::worker::{self, Held};
use crate::record::local_principal;

/// How often an agent's run is looked at that cannot be gone on with now.
const LOOK: Duration = Duration::from_millis(250);
/// So often a step that cannot be done now is tried again.
const PATIENCE: u32 = 20;
/// How long an agent may take to end.
const GRACE: Duration = Duration::from_secs(8);
/// Longest change that is told of one agent to others.
const TOLD: usize = 16_000;

/// Makes the world of an agent, by its run and the name of its task.
pub(crate) type Worlds = Box<dyn Fn(&RunId, &str) -> Arc<dyn World> + Send + Sync>;

/// How an agent's run rests.
enum Rest {
    Over,
    Waiting(Interrupt),
    Paused,
    Trouble(String),
}

struct AtWork {
    engine: Engine<Coding>,
    task: JoinHandle<()>,
    rest: Arc<Mutex<Option<Rest>>>,
}

/// Agents that this process drives.
pub(crate) struct Company {
    store: Arc<dyn Store>,
    options: Options,
    worlds: Worlds,
    at_work: Mutex<HashMap<RunId, AtWork>>,
    mailbox: Arc<Mailbox>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unreachable(error: &dyn std::fmt::Display) -> HandsError {
    HandsError::Unreachable(error.to_string())
}

impl Company {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        options: Options,
        worlds: Worlds,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        Self {
            store,
            options: Options {
                // An agent that has spent its share comes back; whoever sent it decides.
                on_budget: OnBudget::Refuse,
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

    fn engine(&self, agent: &RunId, name: &str) -> Result<Engine<Coding>, HandsError> {
        let world = (self.worlds)(agent, name);
        Engine::new(Coding, Arc::clone(&self.store), world, self.options.clone())
            .map_err(|error| HandsError::Failed(error.to_string()))
    }

    /// Works on an agent's run, unless somebody here does already.
    async fn employ(&self, agent: &RunId) -> Result<(), HandsError> {
        let busy = |at_work: &AtWork| {
            let rest = locked(&at_work.rest);
            rest.is_none() || matches!(*rest, Some(Rest::Over))
        };
        if locked(&self.at_work).get(agent).is_some_and(busy) {
            return Ok(());
        }
        let known = super::reader(Arc::clone(&self.store))
            .map_err(|failure| HandsError::Failed(failure.message))?
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
                Some(Rest::Waiting(_) | Rest::Paused | Rest::Trouble(_))
            );
            !(resting && agents.contains(run))
        });
    }

    /// What the agents that rest say, where one is done or none works any more.
    fn settled(&self, agents: &[RunId]) -> Option<Result<RunId, HandsError>> {
        let at_work = locked(&self.at_work);
        let mut resting = 0;
        let mut why: Option<HandsError> = None;
        for agent in agents {
            let Some(at_work) = at_work.get(agent) else {
                continue;
            };
            match &*locked(&at_work.rest) {
                None => continue,
                Some(Rest::Over) => return Some(Ok(agent.clone())),
                Some(Rest::Waiting(interrupt)) => {
                    if let Some(held) = held(interrupt) {
                        why = Some(held);
                    } else {
                        why.get_or_insert_with(|| {
                            let what = super::report::waiting_for(interrupt);
                            HandsError::Unreachable(format!("{agent} {what}"))
                        });
                    }
                }
                Some(Rest::Paused) => {
                    why.get_or_insert_with(|| unreachable(&"the agents were put down"));
                }
                Some(Rest::Trouble(message)) => {
                    why.get_or_insert_with(|| unreachable(message));
                }
            }
            resting += 1;
        }
        (resting == agents.len())
            .then(|| Err(why.unwrap_or_else(|| unreachable(&"no agent works"))))
    }

    async fn returned(&self, agent: &RunId) -> Result<Returned, HandsError> {
        let reader = super::reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| HandsError::Failed(failure.message))?;
        let known = reader
            .show(agent, None)
            .await
            .map_err(|error| unreachable(&error))?;
        returned(&known).ok_or_else(|| HandsError::Failed(format!("{agent} is not over")))
    }
}

/// What an agent waits for, where people can answer it.
fn held(interrupt: &Interrupt) -> Option<HandsError> {
    let (approval, reason) = match interrupt {
        Interrupt::Held {
            approval, reason, ..
        }
        | Interrupt::Approval {
            approval, reason, ..
        } => (approval.clone(), reason.clone()),
        _ => return None,
    };
    Some(HandsError::Held { approval, reason })
}

fn name_of(known: &RunState<Work>) -> String {
    let handoff = known.state.task.handoff.as_ref();
    handoff.map_or_else(String::new, |handoff| handoff.job.to_string())
}

fn returned(known: &RunState<Work>) -> Option<Returned> {
    let ended = known.progress.ended.as_ref()?;
    Some(told(known, ended.exit, &ended.summary))
}

/// What is told of an agent to whoever sent it.
fn told(known: &RunState<Work>, exit: Exit, summary: &str) -> Returned {
    let work = &known.state;
    let (by, said) = work.made.clone().unwrap_or_default();
    let by = work.answer.as_ref().map_or(by, |answer| answer.by.clone());
    let produced = work.produced.as_ref();
    let spent = Dimension::ALL.into_iter();
    Returned {
        run: known.progress.run.clone(),
        exit,
        summary: summary.to_owned(),
        by,
        said,
        files: produced.map(|made| made.files.clone()).unwrap_or_default(),
        diff: produced
            .map(|made| made.diff.chars().take(TOLD).collect())
            .unwrap_or_default(),
        lines: produced.map_or(0, |made| changed_lines(&made.diff)),
        tree: produced.map(|made| made.tree),
        answer: work.answer.clone(),
        confidence: work.confidence.clone(),
        spent: spent
            .map(|dimension| (dimension, known.progress.ledger.spent(dimension)))
            .filter(|(_, amount)| *amount > 0)
            .collect(),
    }
}

/// How many lines a change adds and removes.
fn changed_lines(diff: &str) -> u64 {
    let (plus, minus) = super::words::counted(diff);
    u64::try_from(plus + minus).unwrap_or(u64::MAX)
}

/// Drives an agent's run until it rests.
async fn drive(engine: &Engine<Coding>, store: &dyn Store, agent: &RunId) -> Rest {
    let mut troubles = 0;
    loop {
        let again = match step(engine, store, agent).await {
            Ok(Some(rest)) => return rest,
            Ok(None) => "somebody else works on it".to_owned(),
            Err(why) => why,
        };
        troubles += 1;
        if troubles > PATIENCE {
            return Rest::Trouble(format!("{agent}: {again}"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn step(
    engine: &Engine<Coding>,
    store: &dyn Store,
    agent: &RunId,
) -> Result<Option<Rest>, String> {
    let row = store.run(agent).await.map_err(|error| error.to_string())?;
    let row = row.ok_or_else(|| "the run is not there".to_owned())?;
    if row.status == Status::Done {
        return Ok(Some(Rest::Over));
    }
    let held = worker::release_dead(store, &row).await;
    if let Held::By(owner) = held.map_err(|failure| failure.message)? {
        return Err(format!("{owner} works on it"));
    }
    let known = engine.show(agent, None).await;
    let known = known.map_err(|error| error.to_string())?;
    if let Some(signal) = worker::go_on(&known) {
        let sent = engine.send(agent, &signal).await;
        sent.map_err(|error| error.to_string())?;
    }
    match engine.resume(agent).await {
        Ok(Some(Rested::Done(_))) => Ok(Some(Rest::Over)),
        Ok(Some(Rested::Waiting(pending))) => Ok(Some(Rest::Waiting(pending.interrupt))),
        Ok(Some(Rested::Paused)) => Ok(Some(Rest::Paused)),
        Ok(Some(Rested::Trouble(message))) => Err(message),
        Ok(None) => match known.progress.pending {
            Some(pending) => Ok(Some(Rest::Waiting(pending.interrupt))),
            None => Ok(None),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[async_trait]
impl Crew for Company {
    async fn begin(&self, agent: &RunId, task: &Task, limits: &Amounts) -> Result<(), HandsError> {
        let start = Start {
            limits: limits.clone(),
            run: Some(agent.clone()),
            ..Start::default()
        };
        let reader = super::reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| HandsError::Failed(failure.message))?;
        match reader.start(task, &start).await {
            Ok(_) | Err(lula_graph::EngineError::Store(StoreError::RunExists(_))) => {}
            Err(error) => return Err(unreachable(&error)),
        }
        self.employ(agent).await
    }

    async fn wait(&self, agents: &[RunId]) -> Result<News, HandsError> {
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
                return Ok(News::Wish { wish });
            }
            match self.settled(agents) {
                Some(Ok(agent)) => {
                    let returned = self.returned(&agent).await?;
                    return Ok(News::Back(Box::new(returned)));
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
            let signal = Signal::Cancel {
                by: by.clone(),
                reason,
            };
            let _ = self.store.send(agent, &signal).await;
        }
        // Whoever rests, or was left by a process that is gone, has to hear it too.
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

    async fn propose(&self, _: &Wish) -> Result<Said, HandsError> {
        Err(HandsError::Failed(
            "whoever leads a plan decides about it".to_owned(),
        ))
    }

    async fn answer(&self, wish: &EffectId, said: &Said) -> Result<(), HandsError> {
        self.mailbox.answer(wish, said);
        Ok(())
    }

    async fn dismiss(&self, agents: &[RunId]) -> Result<Vec<Returned>, HandsError> {
        self.stop(agents).await;
        let reader = super::reader(Arc::clone(&self.store));
        let reader = reader.map_err(|failure| HandsError::Failed(failure.message))?;
        let mut ended = Vec::new();
        for agent in agents {
            let known = reader.show(agent, None).await;
            let known = known.map_err(|error| unreachable(&error))?;
            let late = || told(&known, Exit::Failed, "it did not stop in time");
            ended.push(returned(&known).unwrap_or_else(late));
        }
        Ok(ended)
    }
}
