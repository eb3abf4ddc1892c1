//! What rules say about acts before any of them is done.

use lula_protocol::ToolAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks what the rules of a workspace say about acts, without doing any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeActs {
    /// At most 128, in the order in which they are answered.
    #[schemars(length(max = 128))]
    pub acts: Vec<ForeseenAct>,
}

/// An act that is not begun yet, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ForeseenAct {
    /// A tool will be called like this.
    Call {
        /// The tool and what it is given.
        action: ToolAction,
    },
    /// A change will leave the workspace for its repository; its files are not known yet.
    Deliver,
}

/// What the rules say about each of the acts that were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActRulings {
    /// In the order of the acts.
    pub rulings: Vec<ActRuling>,
}

/// What the rules say about one act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActRuling {
    /// The strictest of everything that matched.
    pub ruling: RulingView,
    /// The id of the rule that decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in one sentence.
    pub reason: String,
}

/// Whether an act would be done at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RulingView {
    /// It would be done.
    Allow,
    /// People would be asked first.
    Ask,
    /// It would be refused.
    Deny,
}
