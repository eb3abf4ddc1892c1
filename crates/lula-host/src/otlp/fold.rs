//! From the log of one run to its spans. Pure: times, names and ids come from the log alone.

use std::collections::BTreeMap;

use lula_agents::work::RunStateEvent;
use lula_models::normal::{ModelResponse, ModelStopReason};
use lula_protocol::event::EffectResult;
use lula_protocol::{
    BudgetAmounts, BudgetDimension, EffectClass, EffectId, EventBody, RunExit, RunId,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::{SpanId, TraceContext};
use super::names;
use super::span::{RunSpan, SpanAttributes, SpanValue, SpanWork};
use crate::story::StoryEvent;
use crate::trace::times;

/// Nodes in which a model works as an agent.
const AGENTS: [&str; 2] = ["planner", "coder"];

/// One entry of a log with what was read of it.
pub(super) struct ReadEntry {
    pub(super) body: EventBody,
    pub(super) values: Vec<Value>,
    pub(super) moment: StoryEvent,
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}

const fn class_name(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => "read",
        EffectClass::Model => "model",
        EffectClass::Tree => "tree",
        EffectClass::Cas => "cas",
        EffectClass::External => "external",
    }
}

fn exit_name(exit: RunExit) -> String {
    serde_json::to_value(exit)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Why a model stopped, by the names of the conventions.
fn finish(stop: &ModelStopReason) -> String {
    match stop {
        ModelStopReason::End => "stop".to_owned(),
        ModelStopReason::Calls => "tool_call".to_owned(),
        ModelStopReason::Length => "length".to_owned(),
        ModelStopReason::Filter => "content_filter".to_owned(),
        ModelStopReason::Refusal => "refusal".to_owned(),
        ModelStopReason::Other(other) => other.clone(),
    }
}

/// The provider and the model of a name such as `anthropic/NAME` or `openai@https://HOST/v1/NAME`.
fn names_of(name: &str) -> (&str, &str) {
    let provider = name.split(['@', '/']).next().unwrap_or_default();
    let model = name.rsplit('/').next().unwrap_or_default();
    (provider, model)
}

/// An effect that was announced.
struct OpenEffect {
    name: String,
    class: EffectClass,
    begin_ms: u64,
}

/// The spans of one run.
pub(super) struct SpanFold<'a> {
    run: &'a RunId,
    above: Option<SpanId>,
    spans: Vec<RunSpan>,
    /// The spans of the visit under way: their parent is known, its own span comes last.
    visit: Vec<RunSpan>,
    visit_seq: Option<u64>,
    open: BTreeMap<EffectId, OpenEffect>,
    waits: Option<(u64, u64)>,
    last_ms: u64,
    ended: Option<RunExit>,
    root: SpanAttributes,
}

impl<'a> SpanFold<'a> {
    /// The spans of a log: below `above`, and under a name of its own where it is an agent's.
    pub(super) fn of(
        run: &'a RunId,
        above: Option<SpanId>,
        agent: Option<&str>,
        entries: &[ReadEntry],
    ) -> Vec<RunSpan> {
        let begin_ms = entries.first().map_or(0, |entry| entry.moment.at_ms);
        let mut fold = Self {
            run,
            above,
            spans: Vec::new(),
            visit: Vec::new(),
            visit_seq: None,
            open: BTreeMap::new(),
            waits: None,
            last_ms: begin_ms,
            ended: None,
            root: SpanAttributes::default(),
        };
        let moments: Vec<StoryEvent> = entries.iter().map(|one| one.moment.clone()).collect();
        for (entry, time) in entries.iter().zip(times(&moments)) {
            fold.take(entry, time);
        }
        fold.close_visit(fold.last_ms, None);
        fold.end(begin_ms, agent);
        fold.spans
    }

    fn take(&mut self, entry: &ReadEntry, (begin_ms, end_ms): (u64, u64)) {
        let (seq, at_ms) = (entry.moment.seq, entry.moment.at_ms);
        match &entry.body {
            EventBody::RunStarted { .. } => {
                let task = entry.values.first().and_then(|task| task.get("text"));
                let task = task.and_then(Value::as_str).unwrap_or_default();
                self.root.put(names::INPUT, task);
            }
            EventBody::NodeEntered { .. } => self.visit_seq = Some(seq),
            EventBody::ReadDone { name, result, .. } => {
                let value = entry.values.first();
                let class = if name == "ask" {
                    EffectClass::Model
                } else {
                    EffectClass::Read
                };
                let act = self.act(seq, name, class, result, value, &BudgetAmounts::none());
                self.visit.push(RunSpan {
                    begin_ms,
                    end_ms,
                    ..act
                });
            }
            EventBody::EffectIntended {
                effect,
                class,
                name,
                ..
            } => {
                let open = OpenEffect {
                    name: name.clone(),
                    class: *class,
                    begin_ms: at_ms,
                };
                self.open.insert(effect.clone(), open);
            }
            EventBody::EffectSettled {
                effect,
                spent,
                result,
                ..
            } => {
                let Some(open) = self.open.remove(effect) else {
                    return;
                };
                let value = entry.values.first();
                let mut act = self.act(seq, &open.name, open.class, result, value, spent);
                act.attributes.put(names::TOOL_CALL, effect.to_string());
                self.visit.push(RunSpan {
                    begin_ms: open.begin_ms,
                    end_ms: at_ms,
                    ..act
                });
            }
            EventBody::Suspended { .. } => self.waits = Some((seq, at_ms)),
            EventBody::Resolved { .. } => {
                if let Some((seq, begin_ms)) = self.waits.take() {
                    let wait = self.wait(seq, begin_ms, at_ms);
                    self.visit.push(wait);
                }
            }
            EventBody::NodeLeft { outcome, .. } => {
                self.close_visit(at_ms, Some((entry, outcome)));
            }
            EventBody::RunEnded { exit, summary, .. } => {
                self.ended = Some(*exit);
                self.root.put(names::OUTPUT, summary.as_str());
            }
            _ => {}
        }
        self.last_ms = self.last_ms.max(end_ms);
    }

    fn wait(&self, seq: u64, begin_ms: u64, end_ms: u64) -> RunSpan {
        let mut attributes = SpanAttributes::default();
        attributes.put(names::WAITS, "person");
        attributes.put(names::EVENT, seq);
        RunSpan {
            id: SpanId::at(self.run, seq, "wait"),
            parent: None,
            name: "wait".to_owned(),
            work: SpanWork::Wait,
            begin_ms,
            end_ms,
            failed: false,
            attributes,
        }
    }

    /// Something that was done, or a model that was asked; its time is put in by the caller.
    fn act(
        &self,
        seq: u64,
        name: &str,
        class: EffectClass,
        result: &EffectResult,
        value: Option<&Value>,
        spent: &BudgetAmounts,
    ) -> RunSpan {
        let mut attributes = SpanAttributes::default();
        let is_chat = class == EffectClass::Model;
        if is_chat {
            attributes.put(names::OPERATION, "chat");
            if let Some(answer) = read::<ModelResponse>(value) {
                let reasons = vec![finish(&answer.stop)];
                attributes.put(names::FINISH_REASONS, SpanValue::Texts(reasons));
                if let Some(usage) = &answer.usage {
                    attributes.put(names::INPUT_TOKENS, usage.input);
                    attributes.put(names::OUTPUT_TOKENS, usage.output);
                    attributes.put(names::CACHE_READ, usage.cache_read);
                    attributes.put(names::CACHE_CREATION, usage.cache_write);
                    attributes.put(names::REASONING, usage.reasoning);
                }
            }
        } else {
            attributes.put(names::OPERATION, "execute_tool");
            attributes.put(names::TOOL_NAME, name);
            attributes.put(names::TOOL_TYPE, "function");
        }
        attributes.put(names::EFFECT_CLASS, class_name(class));
        attributes.put(names::EVENT, seq);
        let cost = spent
            .iter()
            .find(|(one, _)| *one == BudgetDimension::MicroUsd);
        if let Some((_, cost)) = cost {
            attributes.put(names::COST, cost);
        }
        let replied = value.and_then(|value| value.get("failed"));
        let replied = replied.and_then(Value::as_bool).unwrap_or(false);
        let failed = matches!(result, EffectResult::Failed(_)) || replied;
        if failed {
            let kind = if replied {
                "tool_error"
            } else {
                "effect_failed"
            };
            attributes.put(names::ERROR_TYPE, kind);
        }
        RunSpan {
            id: SpanId::at(self.run, seq, "act"),
            parent: None,
            name: if is_chat {
                "chat".to_owned()
            } else {
                format!("execute_tool {name}")
            },
            work: if is_chat {
                SpanWork::Chat
            } else {
                SpanWork::Tool
            },
            begin_ms: 0,
            end_ms: 0,
            failed,
            attributes,
        }
    }

    /// The visit that ended, or that was cut off.
    fn close_visit(&mut self, at_ms: u64, left: Option<(&ReadEntry, &String)>) {
        let mut acts = std::mem::take(&mut self.visit);
        let entered = self.visit_seq.take();
        let Some(last) = acts.last().map(|act| act.end_ms).or(left.map(|_| at_ms)) else {
            return;
        };
        let first = acts.iter().map(|act| act.begin_ms).min();
        let seq = entered
            .or(left.map(|(entry, _)| entry.moment.seq))
            .unwrap_or_default();
        let id = SpanId::at(self.run, seq, "visit");
        let mut attributes = SpanAttributes::default();
        let node = left.map_or_else(String::new, |(entry, _)| entry.moment.node.clone());
        let node = if node.is_empty() {
            "unfinished".to_owned()
        } else {
            node
        };
        let is_agent = AGENTS.contains(&node.as_str());
        if is_agent {
            attributes.put(names::OPERATION, "invoke_agent");
            attributes.put(names::AGENT_NAME, node.as_str());
        }
        attributes.put(names::NODE, node.as_str());
        attributes.put(names::EVENT, seq);
        if let Some((entry, outcome)) = left {
            attributes.put(names::VISIT, u64::from(entry.moment.visit));
            attributes.put(names::OUTCOME, outcome.as_str());
            Self::heard(entry, &mut acts, &mut attributes);
        }
        for act in &mut acts {
            act.parent = Some(id);
        }
        let name = if is_agent {
            format!("invoke_agent {node}")
        } else {
            node
        };
        self.spans.push(RunSpan {
            id,
            parent: Some(TraceContext::root(self.run)),
            name,
            work: if is_agent {
                SpanWork::Agent
            } else {
                SpanWork::Node
            },
            begin_ms: first.unwrap_or(self.last_ms).min(last),
            end_ms: last,
            failed: left.is_none(),
            attributes,
        });
        self.spans.append(&mut acts);
    }

    /// What the graph says at the end of a visit: which model it asked, how the change was judged.
    fn heard(entry: &ReadEntry, acts: &mut [RunSpan], visit: &mut SpanAttributes) {
        for value in &entry.values {
            match read::<RunStateEvent>(Some(value)) {
                Some(RunStateEvent::Asked { part }) => {
                    let (provider, model) = names_of(&part.model);
                    // The turns of a conversation are all of one model; a visit that asks several says so
                    // once for each, in their order.
                    let unnamed = |act: &&mut RunSpan| {
                        act.work == SpanWork::Chat
                            && act.attributes.get(names::REQUEST_MODEL).is_none()
                    };
                    for act in acts.iter_mut().filter(unnamed) {
                        act.name = format!("chat {model}");
                        act.attributes.put(names::REQUEST_MODEL, model);
                        act.attributes.put(names::PROVIDER, provider);
                        let warmth = f64::from(part.temperature_percent) / 100.0;
                        act.attributes
                            .put(names::TEMPERATURE, SpanValue::Fraction(warmth));
                    }
                }
                Some(RunStateEvent::Judged { verdict, .. }) => {
                    visit.put(names::EVALUATION, "lula.verdict");
                    visit.put(names::EVALUATION_LABEL, verdict.name());
                }
                _ => {}
            }
        }
    }

    /// The run as a whole, which comes first.
    fn end(&mut self, begin_ms: u64, agent: Option<&str>) {
        let mut attributes = std::mem::take(&mut self.root);
        let (operation, name) = if let Some(agent) = agent {
            attributes.put(names::AGENT_NAME, agent);
            attributes.put(names::AGENT_ID, self.run.to_string());
            ("invoke_agent", format!("invoke_agent {agent}"))
        } else {
            attributes.put(names::WORKFLOW, "lula");
            ("invoke_workflow", "invoke_workflow lula".to_owned())
        };
        attributes.put(names::OPERATION, operation);
        attributes.put(names::CONVERSATION, self.run.to_string());
        attributes.put(names::RUN, self.run.to_string());
        let failed = self.ended.is_some_and(|exit| exit != RunExit::Verified);
        if let Some(exit) = self.ended {
            attributes.put(names::EXIT, exit_name(exit));
            if failed {
                attributes.put(names::ERROR_TYPE, exit_name(exit));
            }
        }
        let root = RunSpan {
            id: TraceContext::root(self.run),
            parent: self.above,
            name,
            work: if agent.is_some() {
                SpanWork::Agent
            } else {
                SpanWork::Workflow
            },
            begin_ms,
            end_ms: self.last_ms,
            failed,
            attributes,
        };
        self.spans.insert(0, root);
    }
}
