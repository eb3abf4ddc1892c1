//! What the agents of this process want of whoever leads their plan, and what they are told.
//!
//! It is kept in memory, because a plan is driven by one process: agents are begun by whoever leads it,
//! in that process, and `lula resume` goes on with a plan and never with one agent of it. What has to
//! outlive that process is in the logs. A wish is an effect of the agent's run whose identity follows from
//! it: cut off, it is ordered again when the agent goes on, and comes here again. The decision is an event
//! of the plan, under that identity, before the agent hears of it: a wish that was decided gets the same
//! answer, and one that was not is decided once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lula_agents::crew::{News, Returned};
use lula_agents::hands::Said;
use lula_agents::team::Wish;
use lula_agents::{Crew, HandsError, Task};
use lula_protocol::{Amounts, EffectId, RunId};
use tokio::sync::Notify;

#[derive(Default)]
struct Letters {
    wishes: Vec<Wish>,
    answers: HashMap<EffectId, Said>,
    closed: bool,
}

/// Wishes and answers.
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    /// Wakes whoever leads.
    pub(super) news: Arc<Notify>,
    /// Wakes agents.
    told: Notify,
}

impl Mailbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            letters: Mutex::default(),
            news: Arc::new(Notify::new()),
            told: Notify::new(),
        })
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first wish of one of these agents.
    pub(super) fn first(&self, agents: &[RunId]) -> Option<Wish> {
        let letters = self.letters();
        let mut wishes = letters.wishes.iter();
        wishes.find(|wish| agents.contains(&wish.run)).cloned()
    }

    /// Tells an agent what was decided.
    pub(super) fn answer(&self, id: &EffectId, said: &Said) {
        let mut letters = self.letters();
        letters.wishes.retain(|wish| wish.id != *id);
        letters.answers.insert(id.clone(), said.clone());
        drop(letters);
        self.told.notify_waiters();
    }

    /// Nobody answers any more: agents that wait are put down.
    pub(super) fn close(&self) {
        self.letters().closed = true;
        self.told.notify_waiters();
    }

    /// Says what an agent wants, and waits for the answer.
    async fn propose(&self, wish: &Wish) -> Result<Said, HandsError> {
        let _waiting = {
            let mut letters = self.letters();
            if !letters.wishes.iter().any(|other| other.id == wish.id) {
                letters.wishes.push(wish.clone());
            }
            Waiting {
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
                    return Err(HandsError::Unreachable(why));
                }
            }
            told.await;
        }
    }
}

/// An agent that goes away takes its wish along.
struct Waiting<'a> {
    mailbox: &'a Mailbox,
    id: &'a EffectId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut letters = self.mailbox.letters();
        letters.wishes.retain(|wish| wish.id != *self.id);
    }
}

/// The company as an agent has it: it can say what it wants, and have nobody work for it.
pub(crate) struct Member(pub(crate) Arc<Mailbox>);

fn nobody<T>() -> Result<T, HandsError> {
    let why = "an agent has no agents of its own".to_owned();
    Err(HandsError::Failed(why))
}

#[async_trait]
impl Crew for Member {
    async fn begin(&self, _: &RunId, _: &Task, _: &Amounts) -> Result<(), HandsError> {
        nobody()
    }

    async fn wait(&self, _: &[RunId]) -> Result<News, HandsError> {
        nobody()
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<Returned>, HandsError> {
        nobody()
    }

    async fn propose(&self, wish: &Wish) -> Result<Said, HandsError> {
        self.0.propose(wish).await
    }

    async fn answer(&self, _: &EffectId, _: &Said) -> Result<(), HandsError> {
        nobody()
    }
}
