//! What was done or looked at, and what a model wanted.

use lula_agents::effects::{Act, ResultDisplay};
use lula_agents::runner_port::{AgentWorkspace, Reply};
use lula_agents::test_selection::SelectedTests;
use lula_agents::verdict::VerificationEvidence;
use lula_agents::work::TestBaseline;
use lula_models::normal::{MessagePart, ModelResponse};
use lula_protocol::event::EffectResult;
use lula_runner_api::{CommittedChangeView, DeliveredView};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{StoryEventKind, StoryTeller, Words, read, words};
use crate::story::facts::{about, base, first_line, looked_text, picked, place, size, weighed};

impl StoryTeller {
    /// Something that was done or looked at.
    pub(super) fn act(
        &mut self,
        name: &str,
        result: &EffectResult,
        value: Option<&Value>,
    ) -> Words {
        let value = match (result, value) {
            (EffectResult::Failed(message), _) => {
                return words(StoryEventKind::Trouble, name, message).went(false);
            }
            (EffectResult::Done(_), None) => return words(StoryEventKind::Act, name, ""),
            (EffectResult::Done(_), Some(value)) => value,
        };
        let display = Act::named(name).map_or(ResultDisplay::Reply, |act| act.display);
        let text = match display {
            ResultDisplay::Name => String::new(),
            ResultDisplay::Place => result_text::<AgentWorkspace>(value, base),
            ResultDisplay::Files if !value.is_object() => {
                let files = value.as_array();
                files.map_or_else(String::new, |files| format!("{} files", files.len()))
            }
            ResultDisplay::Files | ResultDisplay::Reply => return self.reply(name, value),
            ResultDisplay::Tests => {
                result_text::<TestBaseline>(value, |found| looked_text(&found.looked))
            }
            ResultDisplay::Summary => {
                let summary = value.get("summary").and_then(Value::as_str);
                summary.unwrap_or_default().to_owned()
            }
            ResultDisplay::Picked => result_text::<SelectedTests>(value, picked),
            ResultDisplay::Evidence => result_text::<VerificationEvidence>(value, weighed),
            ResultDisplay::Change => {
                result_text::<CommittedChangeView>(value, |it| size(&it.diff, it.files.len()))
            }
            ResultDisplay::Delivery => {
                let text = result_text::<DeliveredView>(value, |it| place(it).to_owned());
                return words(StoryEventKind::Act, name, text).went(true);
            }
            ResultDisplay::Answer => {
                let response: Option<ModelResponse> = read(value);
                response.map_or_else(String::new, |it| self.answer(&it))
            }
        };
        words(StoryEventKind::Act, name, text)
    }

    /// What a tool replied, and what the model asked for.
    fn reply(&mut self, name: &str, value: &Value) -> Words {
        let label = self.label(name);
        match read::<Reply>(value) {
            Some(reply) if reply.failed => {
                let text = format!("{label}: {}", first_line(&reply.text));
                words(StoryEventKind::Act, name, text).went(false)
            }
            _ => words(StoryEventKind::Act, name, label),
        }
    }

    /// What a model wants, and remembers it for the acts that follow.
    fn answer(&mut self, response: &ModelResponse) -> String {
        self.asked.clear();
        let mut text = Vec::new();
        for part in &response.message().parts {
            match part {
                MessagePart::Text { text: said } if !said.trim().is_empty() => {
                    text.push(first_line(said).to_owned());
                }
                MessagePart::Call(call) => {
                    let about = about(&call.arguments);
                    text.push(format!("→ {} {about}", call.name).trim_end().to_owned());
                    self.asked.push_back((call.name.clone(), about));
                }
                MessagePart::Broken { name, why } => text.push(format!("→ {name}? ({why})")),
                _ => {}
            }
        }
        text.join("; ")
    }

    /// What an act is about: what the model asked for when it asked for it.
    fn label(&mut self, tool: &str) -> String {
        let act = Act::named(tool);
        let same = |asked: &str| asked == tool || act.is_some_and(|act| act.is_asked_as(asked));
        let at = self.asked.iter().position(|(asked, _)| same(asked));
        let Some(at) = at else { return String::new() };
        self.asked
            .drain(..=at)
            .next_back()
            .map_or_else(String::new, |(_, about)| about)
    }
}

/// What an act is called today, where logs still call it otherwise.
pub(super) fn shown(name: String) -> String {
    Act::named(&name).map_or(name, |act| act.name.to_owned())
}

/// A result in words; nothing where it is of another version.
fn result_text<T: DeserializeOwned>(value: &Value, words: impl FnOnce(&T) -> String) -> String {
    read(value).as_ref().map_or_else(String::new, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_told_with_what_the_model_asked_for() {
        let mut teller = StoryTeller::default();
        teller
            .asked
            .push_back(("read_file".to_owned(), "a.py".to_owned()));
        teller
            .asked
            .push_back(("edit_file".to_owned(), "b.py".to_owned()));
        assert_eq!(teller.label("write_file"), "b.py");
        assert_eq!(teller.label("exec"), "");
    }
}
