//! The only way to other agents: the agent pool behind this trait keeps a run for each of them.

use async_trait::async_trait;
use lula_protocol::{BudgetAmounts, Digest, EffectId, RunExit, RunId};
use serde::{Deserialize, Serialize};

use crate::guidelines::ChangeConfidence;
use crate::runner_port::{Reply, RunnerPortError};
use crate::task::RunTask;
use crate::team::PlanChangeRequest;
use crate::work::ResearchAnswer;

/// What an agent came back with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentResult {
    /// The run that the agent was.
    pub run: RunId,
    pub exit: RunExit,
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
    /// The change in a few lines: its files, and what it defines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outline: String,
    /// Tests that it brings along and that pass with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_tests: Vec<String>,
    /// The state of its workspace that was judged.
    pub tree: Option<Digest>,
    /// What it found out, where it only looked.
    pub answer: Option<ResearchAnswer>,
    /// How sure it is of the change, where that was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ChangeConfidence>,
    pub spent: BudgetAmounts,
}

/// What is heard of agents at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentPoolEvent {
    /// One wants the plan changed, and waits for the answer.
    Wish { wish: PlanChangeRequest },
    /// An agent is done, and this is its result.
    Back(Box<AgentResult>),
}

/// The agents of a run, as the run that leads them works with them.
#[async_trait]
pub trait AgentPoolPort: Send + Sync + 'static {
    /// Begins the run of an agent, or finds it: from here on it is worked on.
    async fn begin(
        &self,
        agent: &RunId,
        task: &RunTask,
        limits: &BudgetAmounts,
    ) -> Result<(), RunnerPortError>;

    /// Waits until one of these agents is done or wants something. Where all of them wait for
    /// people, says for what.
    async fn wait(&self, agents: &[RunId]) -> Result<AgentPoolEvent, RunnerPortError>;

    /// Ends these agents. Returns when nothing of them is left running.
    async fn stop(&self, agents: &[RunId]);

    /// Ends these agents, and tells what each came to before that.
    async fn dismiss(&self, agents: &[RunId]) -> Result<Vec<AgentResult>, RunnerPortError>;

    /// Says what an agent wants of the run that leads its plan. Returns with the answer.
    async fn propose(&self, wish: &PlanChangeRequest) -> Result<Reply, RunnerPortError>;

    /// Answers an agent's wish, so that its `propose` returns.
    async fn answer(&self, wish: &EffectId, said: &Reply) -> Result<(), RunnerPortError>;
}

/// An agent pool without agents, for a run that works alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAgentPool;

#[async_trait]
impl AgentPoolPort for NoAgentPool {
    async fn begin(
        &self,
        _: &RunId,
        _: &RunTask,
        _: &BudgetAmounts,
    ) -> Result<(), RunnerPortError> {
        Err(RunnerPortError::Failed(
            "there are no agents here".to_owned(),
        ))
    }

    async fn wait(&self, _: &[RunId]) -> Result<AgentPoolEvent, RunnerPortError> {
        Err(RunnerPortError::Failed(
            "there are no agents here".to_owned(),
        ))
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<AgentResult>, RunnerPortError> {
        Err(RunnerPortError::Failed(
            "there are no agents here".to_owned(),
        ))
    }

    async fn propose(&self, _: &PlanChangeRequest) -> Result<Reply, RunnerPortError> {
        Err(RunnerPortError::Failed("there is no plan here".to_owned()))
    }

    async fn answer(&self, _: &EffectId, _: &Reply) -> Result<(), RunnerPortError> {
        Err(RunnerPortError::Failed(
            "there are no agents here".to_owned(),
        ))
    }
}
