//! What the events of a run say, in a person's words. Pure: the log is the only source, for the
//! terminal, for `lula logs` and for `lula trace`.

mod acts;
mod nodes;
mod people;

use std::collections::{BTreeMap, VecDeque};

use lula_agents::dag::Dag;
use lula_protocol::{Amounts, EffectId, EventBody, Exit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::report::word;
use super::words::Tally;
use crate::term::plain;
use people::said_by_people;

/// Longest text of one moment.
const LONGEST: usize = 240;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Bookkeeping.
    Aside,
    /// Something was done or looked at.
    Act,
    /// A node ended.
    Step,
    /// A person was asked or said something.
    Person,
    /// Something did not go as it should.
    Trouble,
    /// The run ended.
    End,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Moment {
    /// Position in the log.
    pub(crate) seq: u64,
    /// Unix time in milliseconds.
    pub(crate) at_ms: u64,
    /// What kind of thing.
    pub(crate) kind: Kind,
    /// The event, as the log calls it.
    pub(crate) event: &'static str,
    /// The node it belongs to.
    pub(crate) node: String,
    /// How often the node was left before.
    pub(crate) visit: u32,
    /// What it is, in a word or two.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
    /// Whether it went well, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) good: Option<bool>,
    /// How long it took, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<u64>,
    /// What it cost.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub(crate) spent: Amounts,
}

/// Tells the story of a run, event by event.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    node: String,
    visit: u32,
    /// Effects under way: what they are called, and since when.
    open: BTreeMap<EffectId, (String, u64)>,
    /// Tools a model asked for and that were not called yet.
    asked: VecDeque<(String, String)>,
    /// The plan that several agents share, as it is now.
    pub(crate) plan: Option<Dag>,
    /// What the tests said last.
    pub(crate) tests: Option<Tally>,
    /// What was spent so far.
    pub(crate) spent: Amounts,
}

/// What is said of one event before its place is known.
struct Words {
    kind: Kind,
    name: String,
    text: String,
    good: Option<bool>,
    took_ms: Option<u64>,
    spent: Amounts,
}

fn words(kind: Kind, name: &str, text: impl AsRef<str>) -> Words {
    Words {
        kind,
        name: plain(name, 40),
        text: plain(text.as_ref(), LONGEST),
        good: None,
        took_ms: None,
        spent: Amounts::none(),
    }
}

impl Words {
    const fn went(mut self, well: bool) -> Self {
        self.good = Some(well);
        self
    }
}

impl Teller {
    /// What an event says. `values` are its payloads, in order.
    pub(crate) fn tell(
        &mut self,
        (seq, at_ms): (u64, u64),
        body: &EventBody,
        values: &[Value],
    ) -> Moment {
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
        Moment {
            seq,
            at_ms,
            kind: said.kind,
            event: body.kind(),
            node: self.node.clone(),
            visit: self.visit,
            name: said.name,
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
                words(Kind::Step, "task", task)
            }
            EventBody::RunTaken { worker } => {
                words(Kind::Aside, "taken up", format!("by {worker}"))
            }
            EventBody::NodeEntered { .. } => words(Kind::Aside, "begins", ""),
            EventBody::ClockRead { .. } => words(Kind::Aside, "clock", ""),
            EventBody::HeadRead { head, .. } => words(Kind::Aside, "record", head.to_string()),
            EventBody::Heard { count, .. } => {
                words(Kind::Aside, "heard", format!("{count} notes are passed on"))
            }
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
                words(Kind::Aside, name, "begins")
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
                words(Kind::Trouble, &name, text)
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
                Kind::Trouble,
                "stuck",
                format!("the same thing again and again (strike {strikes})"),
            ),
            EventBody::RunEnded { exit, summary, .. } => {
                words(Kind::End, word(*exit), summary).went(*exit == Exit::Verified)
            }
            EventBody::Sealed { key, .. } => words(Kind::Aside, "sealed", format!("by {key}")),
            EventBody::Overridden { .. } => words(Kind::Person, "fork", "goes on otherwise"),
            EventBody::Migrated { from, to } => {
                words(Kind::Aside, "migrated", format!("from {from} to {to}"))
            }
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
        let mut teller = Teller::default();
        let left =
            body(json!({"kind": "node_left", "node": "ingest", "visit": 0, "outcome": "ok"}));
        let opened = json!({"event": "opened", "place": {
            "workspace": "ws_00000000000000000000000000", "commit": "0123456789abcdef",
            "uncommitted": 2}});
        let moment = teller.tell((3, 5), &left, &[opened]);
        assert_eq!(moment.text, "base 0123456789; 2 files not committed");
        assert_eq!((moment.node.as_str(), moment.kind), ("ingest", Kind::Step));
    }
}
