//! What an agent wants changed in the plan it is part of. Whoever leads the plan decides, and tells
//! the agent.

use std::collections::BTreeMap;

use lula_protocol::{EffectId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dag::JobId;
use crate::hands::Said;

/// The tool by which an agent says it.
pub const PROPOSE: &str = "propose";
/// So many wishes of a run are considered.
pub const MOST: usize = 8;

/// What an agent wants changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// Its identity, the same however often it is said.
    pub id: EffectId,
    /// The agent's run.
    pub run: RunId,
    /// What it works on.
    pub job: JobId,
    /// In its words.
    pub arguments: Value,
}

/// What agents wanted, and what they were told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wishes {
    /// What was decided of each.
    pub decided: BTreeMap<EffectId, Said>,
    /// Those whose agents do not know it yet.
    pub owed: Vec<EffectId>,
}

impl Wishes {
    /// Whether nobody ever wanted anything.
    pub fn is_empty(&self) -> bool {
        self.decided.is_empty()
    }

    /// Takes note of a decision, which the agent is to be told.
    pub fn decide(&mut self, id: &EffectId, answer: &Said) {
        self.decided.insert(id.clone(), answer.clone());
        if !self.owed.contains(id) {
            self.owed.push(id.clone());
        }
    }

    /// What agents are still to be told.
    pub fn untold(&self) -> Vec<(EffectId, Said)> {
        let told = |id: &EffectId| Some((id.clone(), self.decided.get(id)?.clone()));
        self.owed.iter().filter_map(told).collect()
    }
}
