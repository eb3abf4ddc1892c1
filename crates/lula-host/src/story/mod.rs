//! What the events of a run say, in a person's words. Pure: the log is the only source, for the
//! terminal, for `lula logs` and for `lula trace`.
//!
//! `view.rs` shows the moments as they come (`board.rs` is the plan below the moving line), `lula
//! logs` prints them, and `commands/trace/` lays them out in time and makes the page of them, where
//! every word of a run passes one escaping function. What people say to a run (votes, notes,
//! limits, an end) are signals in the store: the process that drives the run takes them into its
//! log, and the next turn of a model hears a note at a place that a replay finds again
//! (`NodeContext::hear`). A commit names the digest of the run's log as it was before the delivery
//! (`NodeContext::head`), which a replay checks.

mod acts;
pub mod board;
mod chat;
pub mod contest;
pub mod environment;
pub mod evidence;
pub mod facts;
pub mod follow;
mod nodes;
mod people;
pub mod plan;
pub mod standing;

use std::collections::{BTreeMap, VecDeque};

use lula_agents::plan::PlanGraph;
use lula_agents::work::RunStateEvent;
use lula_agents::{RunNode, RunNodeExit};
use lula_graph::GraphLabel;
use lula_protocol::{BudgetAmounts, EffectId, EventBody, RunExit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::report::word;
use crate::text::plain;
use facts::TestTally;
use people::said_by_people;

/// Longest text of one moment.
const LONGEST: usize = 240;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoryEventKind {
    /// Bookkeeping that only the log needs.
    Aside,
    /// Something was done or looked at.
    Act,
    /// A node of the graph ended.
    Step,
    /// A person was asked or said something.
    Person,
    /// Something did not go as it should.
    Trouble,
    End,
}

/// Whether a live view needs to tell of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveRelevance {
    /// A live view tells of it.
    News,
    /// The plan that is drawn below shows it too.
    ShownInPlan,
    /// The operator knows it, or need not.
    Known,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoryEvent {
    /// Position in the log.
    pub seq: u64,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// What kind of thing.
    pub kind: StoryEventKind,
    /// The event, as the log calls it.
    pub event: &'static str,
    /// Whether it is the end of an effect that others may have been beside.
    #[serde(skip)]
    pub settles: bool,
    /// Whether a live view needs to tell of it.
    #[serde(skip)]
    pub relevance: LiveRelevance,
    /// The node it belongs to.
    pub node: String,
    /// How often the node was left before.
    pub visit: u32,
    /// What it is, in a word or two.
    pub name: String,
    pub text: String,
    /// Whether it went well, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// How long it took, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    #[serde(skip_serializing_if = "BudgetAmounts::is_empty")]
    pub spent: BudgetAmounts,
}

/// Tells the story of a run, event by event.
#[derive(Debug, Default)]
pub struct StoryTeller {
    node: String,
    visit: u32,
    /// Effects under way: what they are called, and since when.
    open: BTreeMap<EffectId, (String, u64)>,
    /// Tools a model asked for and that were not called yet.
    asked: VecDeque<(String, String)>,
    /// The plan that several agents share, as it is now.
    pub plan: Option<PlanGraph>,
    /// What the tests said last.
    pub tests: Option<TestTally>,
    /// What was spent so far.
    pub spent: BudgetAmounts,
}

/// What is said of one event before its place is known.
struct Words {
    kind: StoryEventKind,
    name: String,
    text: String,
    good: Option<bool>,
    took_ms: Option<u64>,
    spent: BudgetAmounts,
}

fn words(kind: StoryEventKind, name: &str, text: impl AsRef<str>) -> Words {
    Words {
        kind,
        name: plain(name, 40),
        text: plain(text.as_ref(), LONGEST),
        good: None,
        took_ms: None,
        spent: BudgetAmounts::none(),
    }
}

impl Words {
    const fn went(mut self, well: bool) -> Self {
        self.good = Some(well);
        self
    }
}

fn relevance(body: &EventBody, values: &[Value], node: &str, good: Option<bool>) -> LiveRelevance {
    // What rules will ask is news, also where the gate lets the run through.
    let foreseen = |value: &Value| {
        matches!(
            read::<RunStateEvent>(value),
            Some(RunStateEvent::Foreseen { .. })
        )
    };
    match body {
        EventBody::RunStarted { .. } => LiveRelevance::Known,
        EventBody::NodeLeft { node, outcome, .. }
            if node == RunNode::PolicyGate.name()
                && outcome == RunNodeExit::Allow.name()
                && !values.iter().any(foreseen) =>
        {
            LiveRelevance::Known
        }
        _ if node == RunNode::Scheduler.name() && good.is_none() => LiveRelevance::ShownInPlan,
        _ => LiveRelevance::News,
    }
}

impl StoryTeller {
    /// What an event says. `values` are its payloads, in order.
    pub fn tell(
        &mut self,
        (seq, at_ms): (u64, u64),
        body: &EventBody,
        values: &[Value],
    ) -> StoryEvent {
        if let EventBody::NodeEntered { node, visit } | EventBody::NodeLeft { node, visit, .. } =
            body
        {
            self.node.clone_from(node);
            self.visit = *visit;
        }
        let said = self.words(at_ms, body, values);
        for (dimension, amount) in said.spent.iter() {
            let sum = self.spent.0.entry(dimension).or_default();
            *sum = sum.saturating_add(amount);
        }
        StoryEvent {
            seq,
            at_ms,
            kind: said.kind,
            event: body.kind(),
            settles: matches!(body, EventBody::EffectSettled { .. }),
            relevance: relevance(body, values, &self.node, said.good),
            node: self.node.clone(),
            visit: self.visit,
            name: acts::shown(said.name),
            text: said.text,
            good: said.good,
            took_ms: said.took_ms,
            spent: said.spent,
        }
    }

    fn words(&mut self, at_ms: u64, body: &EventBody, values: &[Value]) -> Words {
        match body {
            EventBody::RunStarted { .. } => {
                let task = values.first().and_then(|task| task.get("text"));
                let task = task.and_then(Value::as_str).unwrap_or_default();
                words(StoryEventKind::Step, "task", task)
            }
            EventBody::RunTaken { worker } => {
                words(StoryEventKind::Aside, "taken up", format!("by {worker}"))
            }
            EventBody::NodeEntered { .. } => words(StoryEventKind::Aside, "begins", ""),
            EventBody::ClockRead { .. } => words(StoryEventKind::Aside, "clock", ""),
            EventBody::HeadRead { head, .. } => {
                words(StoryEventKind::Aside, "record", head.to_string())
            }
            EventBody::Heard { count, .. } => words(
                StoryEventKind::Aside,
                "heard",
                format!("{count} notes are passed on"),
            ),
            EventBody::ReadDone {
                name,
                result,
                took_ms,
                ..
            } => {
                let mut said = self.act(name, result, values.first());
                said.took_ms = Some(*took_ms);
                said
            }
            EventBody::EffectIntended { effect, name, .. } => {
                self.open.insert(effect.clone(), (name.clone(), at_ms));
                words(StoryEventKind::Aside, name, "begins")
            }
            EventBody::EffectRetried {
                effect, attempt, ..
            } => {
                let name = self
                    .open
                    .get(effect)
                    .map_or("", |(name, _)| name)
                    .to_owned();
                let text = format!("a lost step is done again (try {attempt})");
                words(StoryEventKind::Trouble, &name, text)
            }
            EventBody::EffectSettled {
                effect,
                spent,
                result,
                ..
            } => {
                let (name, begun) = self.open.remove(effect).unwrap_or_default();
                let mut said = self.act(&name, result, values.first());
                said.took_ms = Some(at_ms.saturating_sub(begun));
                said.spent = spent.clone();
                said
            }
            EventBody::NodeLeft {
                node,
                outcome,
                events: _,
                ..
            } => self.left(node, outcome, values),
            EventBody::StuckDetected { strikes, .. } => words(
                StoryEventKind::Trouble,
                "stuck",
                format!("the same thing again and again (strike {strikes})"),
            ),
            EventBody::RunEnded { exit, summary, .. } => {
                words(StoryEventKind::End, word(*exit), summary).went(*exit == RunExit::Verified)
            }
            EventBody::Sealed { key, .. } => {
                words(StoryEventKind::Aside, "sealed", format!("by {key}"))
            }
            EventBody::Overridden { .. } => {
                words(StoryEventKind::Person, "fork", "goes on otherwise")
            }
            EventBody::Migrated { from, to } => words(
                StoryEventKind::Aside,
                "migrated",
                format!("from {from} to {to}"),
            ),
            _ => said_by_people(body),
        }
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(value: Value) -> EventBody {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_end_of_a_node_says_what_it_found_out() {
        let mut teller = StoryTeller::default();
        let left =
            body(json!({"kind": "node_left", "node": "ingest", "visit": 0, "outcome": "ok"}));
        let opened = json!({"event": "opened", "place": {
            "workspace": "ws_00000000000000000000000000", "commit": "0123456789abcdef",
            "uncommitted": 2}});
        let moment = teller.tell((3, 5), &left, &[opened]);
        assert_eq!(moment.text, "base 0123456789; 2 files not committed");
        assert_eq!(
            (moment.node.as_str(), moment.kind),
            ("ingest", StoryEventKind::Step)
        );
    }
}
