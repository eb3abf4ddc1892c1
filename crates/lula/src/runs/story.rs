//! What the events of a run say, in a person's words. Pure: the log is the only source, for the
//! terminal, for `lula logs` and for `lula trace`.

use std::collections::{BTreeMap, VecDeque};

use lula_agents::deeds::Taken;
use lula_agents::hands::{Delivered, Place, Said};
use lula_agents::route::Lane;
use lula_agents::verdict::{Evidence, Verdict};
use lula_agents::work::{Baseline, End, Event};
use lula_models::normal::{ModelResponse, Part};
use lula_protocol::event::EffectResult;
use lula_protocol::{Amounts, Answer, Dimension, EffectId, EventBody, Exit, Interrupt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::report::{usd, waiting_for, word};
use super::words::{
    Tally, about, base, first_line, looked_text, place, plain, produced_text, size, weighed,
};

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

    /// Something that was done or looked at.
    fn act(&mut self, name: &str, result: &EffectResult, value: Option<&Value>) -> Words {
        let value = match (result, value) {
            (EffectResult::Failed(message), _) => {
                return words(Kind::Trouble, name, message).went(false);
            }
            (EffectResult::Done(_), None) => return words(Kind::Act, name, ""),
            (EffectResult::Done(_), Some(value)) => value,
        };
        match name {
            "open" => {
                let opened: Option<Place> = read(value);
                words(
                    Kind::Act,
                    name,
                    opened.as_ref().map_or_else(String::new, base),
                )
            }
            "list_files" | "fetch" | "reset" if !value.is_object() => {
                let count = value
                    .as_array()
                    .map(|files| format!("{} files", files.len()));
                words(Kind::Act, name, count.unwrap_or_default())
            }
            "run_tests" => {
                let looked: Option<Baseline> = read(value);
                let text = looked.as_ref().map(|found| looked_text(&found.looked));
                words(Kind::Act, name, text.unwrap_or_default())
            }
            "search_patch" => {
                let summary = value.get("summary").and_then(Value::as_str);
                words(Kind::Act, name, summary.unwrap_or_default())
            }
            "weigh" => {
                let evidence: Option<Evidence> = read(value);
                words(
                    Kind::Act,
                    name,
                    evidence.map_or_else(String::new, |it| weighed(&it)),
                )
            }
            "take_change" => {
                let taken: Option<Taken> = read(value);
                let text = taken.map(|it| size(&it.diff, it.files.len()));
                words(Kind::Act, name, text.unwrap_or_default())
            }
            "deliver" => {
                let arrived: Option<Delivered> = read(value);
                words(Kind::Act, name, arrived.as_ref().map_or("", place)).went(true)
            }
            "ask" => {
                let response: Option<ModelResponse> = read(value);
                words(
                    Kind::Act,
                    name,
                    response.map_or_else(String::new, |it| self.answer(&it)),
                )
            }
            _ => {
                let label = self.label(name);
                let said: Option<Said> = read(value);
                match said {
                    Some(said) if said.failed => {
                        let text = format!("{label}: {}", first_line(&said.text));
                        words(Kind::Act, name, text).went(false)
                    }
                    _ => words(Kind::Act, name, label),
                }
            }
        }
    }

    /// What a model wants, and remembers it for the acts that follow.
    fn answer(&mut self, response: &ModelResponse) -> String {
        self.asked.clear();
        let mut text = Vec::new();
        for part in &response.message().parts {
            match part {
                Part::Text { text: said } if !said.trim().is_empty() => {
                    text.push(first_line(said).to_owned());
                }
                Part::Call(call) => {
                    let about = about(&call.arguments);
                    text.push(format!("→ {} {about}", call.name).trim_end().to_owned());
                    self.asked.push_back((call.name.clone(), about));
                }
                Part::Broken { name, why } => text.push(format!("→ {name}? ({why})")),
                _ => {}
            }
        }
        text.join("; ")
    }

    /// What an act is about: what the model asked for when it asked for it.
    fn label(&mut self, tool: &str) -> String {
        let same = |asked: &str| match tool {
            "write_file" => matches!(asked, "write_file" | "edit_file"),
            "exec" => matches!(asked, "run" | "exec"),
            _ => asked == tool,
        };
        let at = self.asked.iter().position(|(asked, _)| same(asked));
        let Some(at) = at else { return String::new() };
        self.asked
            .drain(..=at)
            .next_back()
            .map_or_else(String::new, |(_, about)| about)
    }

    /// The end of a node, with what it found out.
    fn left(&mut self, node: &str, outcome: &str, values: &[Value]) -> Words {
        let mut texts = Vec::new();
        let mut good = None;
        for event in values.iter().filter_map(read::<Event>) {
            let (text, well) = self.event(&event);
            if !text.is_empty() {
                texts.push(text);
            }
            good = well.or(good);
        }
        if texts.is_empty() {
            texts.push(outcome.replace('_', " "));
        }
        let mut said = words(Kind::Step, node, texts.join("; "));
        said.good = good;
        said
    }

    fn event(&mut self, event: &Event) -> (String, Option<bool>) {
        match event {
            Event::Opened { place } => (base(place), None),
            Event::Routed { lane } => {
                let lane = match lane {
                    Lane::Interactive => "at once",
                    Lane::DeepPlanning => "with a plan",
                    Lane::Recovery => "again",
                };
                (lane.to_owned(), None)
            }
            Event::Planned { steps } if steps.is_empty() => (String::new(), None),
            Event::Planned { steps } => {
                (format!("{} steps: {}", steps.len(), steps.join(" ")), None)
            }
            Event::Examined { baseline } => {
                self.tests = baseline.looked.results().map(Tally::from);
                (looked_text(&baseline.looked), None)
            }
            Event::Coded { by, summary } => (format!("{by}: {}", first_line(summary)), None),
            Event::Executed { produced } => (produced_text(produced), None),
            Event::Failed { failure } => {
                let class = format!("{:?}", failure.class);
                let text = format!(
                    "{class} by {}: {}",
                    failure.by,
                    first_line(&failure.evidence)
                );
                (text, Some(false))
            }
            Event::Retrying { retry } => {
                let who = if retry.another_mind {
                    ", by another"
                } else {
                    ""
                };
                (
                    format!("again, from the {:?}{who}", retry.target).to_lowercase(),
                    None,
                )
            }
            Event::Judged { evidence, verdict } => {
                if let Some(results) = evidence.after.results() {
                    self.tests = Some(Tally::from(results));
                }
                let good = match verdict {
                    Verdict::Pass { .. } => Some(true),
                    Verdict::Fail { .. } => Some(false),
                    Verdict::Inconclusive { .. } => None,
                };
                (format!("{}: {}", verdict.name(), verdict.why()), good)
            }
            Event::Ending { end } => match end {
                End::NothingToDo { passing } => {
                    (format!("nothing fails: {passing} tests pass"), None)
                }
                End::Planned { tasks } => (format!("a plan of {tasks} tasks"), None),
                End::Rejected { why }
                | End::Halted { why }
                | End::Unclear { why }
                | End::NeedsModel { why }
                | End::Environment { why } => (why.clone(), Some(false)),
            },
            Event::Delivered { delivered } => (place(delivered).to_owned(), Some(true)),
            Event::Steered { notes } => (format!("heard {} notes", notes.len()), None),
            other => super::plan::told(other).unwrap_or_default(),
        }
    }
}

/// What people were asked and said.
fn said_by_people(body: &EventBody) -> Words {
    match body {
        EventBody::Suspended { interrupt, .. } => {
            let kind = match interrupt {
                Interrupt::Timer { .. } => Kind::Aside,
                _ => Kind::Person,
            };
            words(kind, "waits", waiting_for(interrupt))
        }
        EventBody::Resolved { answer, .. } => {
            let (text, good) = match answer {
                Answer::Approved => ("approved".to_owned(), Some(true)),
                Answer::Rejected { reason } => (format!("rejected: {reason}"), Some(false)),
                Answer::Chose { choice, by, note } => (format!("{by} chose {choice} {note}"), None),
                Answer::Fired => ("the time has come".to_owned(), None),
                Answer::Raised => ("there is more to spend".to_owned(), None),
            };
            let mut said = words(Kind::Person, "answer", text);
            said.good = good;
            said
        }
        EventBody::Voted {
            by, role, decision, ..
        } => {
            let decision = format!("{decision:?}").to_lowercase();
            words(Kind::Person, "vote", format!("{by} as {role}: {decision}"))
        }
        EventBody::LimitRaised { dimension, to, by } => {
            let to = match dimension {
                Dimension::MicroUsd => usd(*to),
                _ => to.to_string(),
            };
            words(
                Kind::Person,
                "budget",
                format!("{by} raised {dimension} to {to}"),
            )
        }
        EventBody::SignalIgnored { reason } => words(Kind::Trouble, "ignored", reason),
        EventBody::Steered { by, text } => words(Kind::Person, "note", format!("{by}: {text}")),
        EventBody::CancelRequested { by, reason } => {
            words(Kind::Person, "cancel", format!("{by}: {reason}"))
        }
        EventBody::EffectRefused {
            name,
            dimension,
            asked,
            free,
            ..
        } => words(
            Kind::Trouble,
            name,
            format!("may need {asked} of {dimension}, {free} are left"),
        ),
        other => words(Kind::Aside, other.kind(), ""),
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
    fn an_act_is_told_with_what_the_model_asked_for() {
        let mut teller = Teller::default();
        teller
            .asked
            .push_back(("read_file".to_owned(), "a.py".to_owned()));
        teller
            .asked
            .push_back(("edit_file".to_owned(), "b.py".to_owned()));
        assert_eq!(teller.label("write_file"), "b.py");
        assert_eq!(teller.label("exec"), "");
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
