//! What an agent wants changed in the plan it is part of. The run that leads the plan decides, and tells
//! the agent.
//!
//! The agent says what it wants by an effect of its own run and waits. The scheduler hears it where
//! it waits for agents, decides in one visit (`nodes/shared_plan/wishes.rs`; the same wish once,
//! however often it is said) and answers by an effect of the next visit. What a wish adds may do no
//! more than the agent itself, and what replaces a task no more than that task. An agent that needs
//! files beside its own names them; the scheduler gives them where no agent at work may write them.

use std::collections::BTreeMap;

use lula_protocol::{EffectId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::StepId;
use crate::runner_port::Reply;

/// The tool by which an agent says it.
pub const PROPOSE: &str = "propose";
/// So many wishes of a run are considered.
pub const MOST: usize = 24;
/// So many files may an agent want at once.
pub const FILES: usize = 8;

/// What an agent wants changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanChangeRequest {
    /// Its identity, the same however often it is said.
    pub id: EffectId,
    pub run: RunId,
    /// What it works on.
    #[serde(rename = "job")]
    pub step: StepId,
    /// The wish as the model wrote it.
    pub arguments: Value,
}

/// What agents wanted, and what they were told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanChangeRequests {
    /// What was decided of each.
    pub decided: BTreeMap<EffectId, Reply>,
    /// Those whose agents do not know it yet.
    pub owed: Vec<EffectId>,
}

impl PlanChangeRequests {
    /// Whether no agent ever wanted anything.
    pub fn is_empty(&self) -> bool {
        self.decided.is_empty()
    }

    /// Takes note of a decision, which the agent is to be told.
    pub fn decide(&mut self, id: &EffectId, answer: &Reply) {
        self.decided.insert(id.clone(), answer.clone());
        if !self.owed.contains(id) {
            self.owed.push(id.clone());
        }
    }

    /// What agents are still to be told.
    pub fn untold(&self) -> Vec<(EffectId, Reply)> {
        let told = |id: &EffectId| Some((id.clone(), self.decided.get(id)?.clone()));
        self.owed.iter().filter_map(told).collect()
    }
}
