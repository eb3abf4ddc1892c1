//! What models take, told by their names: providers change what a request may say from one generation
//! to the next. A name that tells nothing is asked as every generation once took it, and what a server
//! refuses is left out of the next try (`client.rs`).

use serde_json::Value;

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingForm {
    /// `thinking: {type: enabled, budget_tokens}`: up to the generation 4.5, and where nothing is known.
    Budget,
    /// `thinking: {type: adaptive}` with `output_config.effort`: from 4.6 on. 4.7 and later refuse a
    /// budget.
    Adaptive,
}

/// What a model of Anthropic takes. As the provider's pages said on 2026-10-10: thinking and effort
/// (platform.claude.com, "Adaptive thinking", "Effort"), sampling ("What's new" of 4.7 and 5), forced
/// tools ("Claude Sonnet 5.5", "Claude Opus 5.5").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnthropicGeneration {
    pub(crate) thinking: ThinkingForm,
    /// Takes a temperature: those before 4.7.
    pub(crate) temperature: bool,
    /// Takes `tool_choice` with a tool: those before 5.1.
    pub(crate) forced_tool: bool,
    /// Holds an answer to a schema by `output_config.format`: those from 4.6 on, as far as is used here.
    pub(crate) format: bool,
}

impl AnthropicGeneration {
    /// The generation that a name tells.
    pub(crate) fn of(model: &str) -> Self {
        let version = version(model).unwrap_or((0, 0));
        Self {
            thinking: if version >= (4, 6) {
                ThinkingForm::Adaptive
            } else {
                ThinkingForm::Budget
            },
            temperature: version < (4, 7),
            forced_tool: version < (5, 1),
            format: version >= (4, 6),
        }
    }
}

/// The generation in a name such as `claude-opus-5-5` or `anthropic/claude-sonnet-4.6`; a date is none.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let rest = name.strip_prefix("claude-")?;
    let mut numbers = rest
        .split(['-', '.', '@', ':'])
        .skip_while(|part| part.parse::<u32>().is_err())
        .map_while(|part| part.parse::<u32>().ok())
        .filter(|number| *number < 100);
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

/// Whether a model of `OpenAI` reasons before it answers: such models refuse a temperature and the field
/// `max_tokens`, and their notes come back encrypted.
pub(crate) fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let reasons = ["o1", "o3", "o4", "gpt-5", "gpt-6"]
        .iter()
        .any(|start| name.starts_with(start));
    reasons && !name.contains("-chat")
}

/// Whether a schema says nothing that constrained decoding of Anthropic refuses: only these words, and
/// every object closed.
pub(crate) fn is_plain_schema(schema: &Value) -> bool {
    const WORDS: [&str; 9] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "description",
    ];
    let Value::Object(fields) = schema else {
        return false;
    };
    fields.iter().all(|(word, value)| match word.as_str() {
        "properties" => value
            .as_object()
            .is_some_and(|all| all.values().all(is_plain_schema)),
        "items" => is_plain_schema(value),
        "anyOf" => value
            .as_array()
            .is_some_and(|all| all.iter().all(is_plain_schema)),
        known => WORDS.contains(&known),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_tells_its_generation_and_a_date_does_not() {
        for (name, expected) in [
            ("claude-opus-5-5", Some((5, 5))),
            ("claude-opus-4-5-20251101", Some((4, 5))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("anthropic/claude-sonnet-4.6", Some((4, 6))),
            ("claude-fable-5-1", Some((5, 1))),
            ("claude-haiku-4-5@20251001", Some((4, 5))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("strong", None),
        ] {
            assert_eq!(version(name), expected, "{name}");
        }
    }

    #[test]
    fn each_generation_is_asked_as_it_wants() {
        let old = AnthropicGeneration::of("claude-sonnet-4-5");
        assert_eq!(
            (old.thinking, old.temperature),
            (ThinkingForm::Budget, true)
        );
        let between = AnthropicGeneration::of("claude-opus-4-6");
        assert_eq!(
            (between.thinking, between.temperature),
            (ThinkingForm::Adaptive, true)
        );
        let new = AnthropicGeneration::of("claude-sonnet-5");
        assert_eq!(
            (new.temperature, new.forced_tool, new.format),
            (false, true, true)
        );
        assert!(!AnthropicGeneration::of("claude-sonnet-5-5").forced_tool);
        assert_eq!(
            AnthropicGeneration::of("strong"),
            AnthropicGeneration::of("claude-3-5-haiku")
        );
    }

    #[test]
    fn a_schema_with_bounds_is_not_plain() {
        assert!(is_plain_schema(
            &json!({"type": "object", "required": ["n"],
            "additionalProperties": false, "properties": {"n": {"type": "integer"}}})
        ));
        assert!(!is_plain_schema(
            &json!({"type": "object", "properties": {"n": {"minimum": 1}}})
        ));
    }
}
