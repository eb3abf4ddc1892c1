//! The only way to other agents: whoever is behind this trait keeps a run for each of them.

use async_trait::async_trait;
use lula_protocol::{Amounts, Digest, EffectId, Exit, RunId};
use serde::{Deserialize, Serialize};

use crate::glean::Confidence;
use crate::hands::{HandsError, Said};
use crate::task::Task;
use crate::team::Wish;
use crate::work::Answer;

/// What an agent came back with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Returned {
    /// Its run.
    pub run: RunId,
    /// How that ended.
    pub exit: Exit,
    /// In one sentence.
    pub summary: String,
    /// Who did it: a model, or `repairer`.
    pub by: String,
    /// What it says of it.
    pub said: String,
    /// The files it changed.
    pub files: Vec<String>,
    /// The change, as far as others are shown it.
    pub diff: String,
    /// How many lines the whole change adds and removes.
    #[serde(default)]
    pub lines: u64,
    /// The state of its workspace that was judged.
    pub tree: Option<Digest>,
    /// What it found out, where it only looked.
    pub answer: Option<Answer>,
    /// How sure it is of the change, where that was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// What it spent.
    pub spent: Amounts,
}

/// What is heard of agents at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum News {
    /// One wants the plan changed, and waits for the answer.
    Wish {
        /// How.
        wish: Wish,
    },
    /// One is done.
    Back(Box<Returned>),
}

/// Agents at work.
#[async_trait]
pub trait Crew: Send + Sync + 'static {
    /// Begins the run of an agent, or finds it: from here on it is worked on.
    async fn begin(&self, agent: &RunId, task: &Task, limits: &Amounts) -> Result<(), HandsError>;

    /// Waits until one of these agents is done or wants something. Where all of them wait for
    /// people, says for what.
    async fn wait(&self, agents: &[RunId]) -> Result<News, HandsError>;

    /// Ends these agents. Returns when nothing of them is left running.
    async fn stop(&self, agents: &[RunId]);

    /// Ends these agents, and tells what each came to before that.
    async fn dismiss(&self, agents: &[RunId]) -> Result<Vec<Returned>, HandsError>;

    /// Says what an agent wants of whoever leads its plan. Returns with the answer.
    async fn propose(&self, wish: &Wish) -> Result<Said, HandsError>;

    /// Answers an agent.
    async fn answer(&self, wish: &EffectId, said: &Said) -> Result<(), HandsError>;
}

/// Nobody: a run without agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

#[async_trait]
impl Crew for Alone {
    async fn begin(&self, _: &RunId, _: &Task, _: &Amounts) -> Result<(), HandsError> {
        Err(HandsError::Failed("there are no agents here".to_owned()))
    }

    async fn wait(&self, _: &[RunId]) -> Result<News, HandsError> {
        Err(HandsError::Failed("there are no agents here".to_owned()))
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<Returned>, HandsError> {
        Err(HandsError::Failed("there are no agents here".to_owned()))
    }

    async fn propose(&self, _: &Wish) -> Result<Said, HandsError> {
        Err(HandsError::Failed("there is no plan here".to_owned()))
    }

    async fn answer(&self, _: &EffectId, _: &Said) -> Result<(), HandsError> {
        Err(HandsError::Failed("there are no agents here".to_owned()))
    }
}
