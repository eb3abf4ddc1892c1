//! What the agents of this process want of the run that leads their plan, and what they are told.
//!
//! It is kept in memory, because a plan is driven by one process: agents are begun by the run that leads it,
//! in that process, and `lula resume` goes on with a plan and never with one agent of it. What has to
//! outlive that process is in the logs. A wish is an effect of the agent's run whose identity follows from
//! it: cut off, it is ordered again when the agent goes on, and comes here again. The decision is an event
//! of the plan, under that identity, before the agent hears of it: a wish that was decided gets the same
//! answer, and one that was not is decided once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lula_agents::agent_pool::{AgentPoolEvent, AgentResult};
use lula_agents::runner_port::Reply;
use lula_agents::team::PlanChangeRequest;
use lula_agents::{AgentPoolPort, RunTask, RunnerPortError};
use lula_protocol::{BudgetAmounts, EffectId, RunId};
use tokio::sync::Notify;

#[derive(Default)]
struct MailboxContents {
    wishes: Vec<PlanChangeRequest>,
    answers: HashMap<EffectId, Reply>,
    closed: bool,
}

/// Plan changes that agents ask for, and what the leading run answers.
pub(crate) struct PlanChangeMailbox {
    letters: Mutex<MailboxContents>,
    /// Wakes the run that leads.
    pub(crate) news: Arc<Notify>,
    /// Wakes agents that wait for an answer.
    told: Notify,
}

impl PlanChangeMailbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            letters: Mutex::default(),
            news: Arc::new(Notify::new()),
            told: Notify::new(),
        })
    }

    fn letters(&self) -> MutexGuard<'_, MailboxContents> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first wish of one of these agents.
    pub(crate) fn first(&self, agents: &[RunId]) -> Option<PlanChangeRequest> {
        let letters = self.letters();
        let mut wishes = letters.wishes.iter();
        wishes.find(|wish| agents.contains(&wish.run)).cloned()
    }

    /// Tells an agent what was decided.
    pub(crate) fn answer(&self, id: &EffectId, said: &Reply) {
        let mut letters = self.letters();
        letters.wishes.retain(|wish| wish.id != *id);
        letters.answers.insert(id.clone(), said.clone());
        drop(letters);
        self.told.notify_waiters();
    }

    /// The leading run answers no more: agents that wait are put down.
    pub(crate) fn close(&self) {
        self.letters().closed = true;
        self.told.notify_waiters();
    }

    /// Says what an agent wants, and waits for the answer.
    async fn propose(&self, wish: &PlanChangeRequest) -> Result<Reply, RunnerPortError> {
        let _waiting = {
            let mut letters = self.letters();
            if !letters.wishes.iter().any(|other| other.id == wish.id) {
                letters.wishes.push(wish.clone());
            }
            PendingPlanChange {
                mailbox: self,
                id: &wish.id,
            }
        };
        self.news.notify_waiters();
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            // Heard from here on, also what comes while it is looked.
            told.as_mut().enable();
            {
                let mut letters = self.letters();
                if let Some(said) = letters.answers.remove(&wish.id) {
                    return Ok(said);
                }
                if letters.closed {
                    let why = "the agents were put down".to_owned();
                    return Err(RunnerPortError::Unreachable(why));
                }
            }
            told.await;
        }
    }
}

/// An agent that goes away takes its wish along.
struct PendingPlanChange<'a> {
    mailbox: &'a PlanChangeMailbox,
    id: &'a EffectId,
}

impl Drop for PendingPlanChange<'_> {
    fn drop(&mut self) {
        let mut letters = self.mailbox.letters();
        letters.wishes.retain(|wish| wish.id != *self.id);
    }
}

/// The company as an agent has it: it can say what it wants, and have no agents work for it.
pub(crate) struct AgentPoolMember(pub(crate) Arc<PlanChangeMailbox>);

fn no_agents<T>() -> Result<T, RunnerPortError> {
    let why = "an agent has no agents of its own".to_owned();
    Err(RunnerPortError::Failed(why))
}

#[async_trait]
impl AgentPoolPort for AgentPoolMember {
    async fn begin(
        &self,
        _: &RunId,
        _: &RunTask,
        _: &BudgetAmounts,
    ) -> Result<(), RunnerPortError> {
        no_agents()
    }

    async fn wait(&self, _: &[RunId]) -> Result<AgentPoolEvent, RunnerPortError> {
        no_agents()
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<AgentResult>, RunnerPortError> {
        no_agents()
    }

    async fn propose(&self, wish: &PlanChangeRequest) -> Result<Reply, RunnerPortError> {
        self.0.propose(wish).await
    }

    async fn answer(&self, _: &EffectId, _: &Reply) -> Result<(), RunnerPortError> {
        no_agents()
    }
}
