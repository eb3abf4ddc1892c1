//! What was done or looked at, and what a model wanted.

use lula_agents::deeds::Taken;
use lula_agents::hands::{Delivered, Place, Said};
use lula_agents::pick::Picked;
use lula_agents::verdict::Evidence;
use lula_agents::work::Baseline;
use lula_models::normal::{ModelResponse, Part};
use lula_protocol::event::EffectResult;
use serde_json::Value;

use super::{Kind, Teller, Words, read, words};
use crate::runs::words::{about, base, first_line, looked_text, picked, place, size, weighed};

impl Teller {
    /// Something that was done or looked at.
    pub(super) fn act(
        &mut self,
        name: &str,
        result: &EffectResult,
        value: Option<&Value>,
    ) -> Words {
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
            "pick_tests" => {
                let found: Option<Picked> = read(value);
                words(
                    Kind::Act,
                    name,
                    found.as_ref().map_or_else(String::new, picked),
                )
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
