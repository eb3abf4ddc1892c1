//! What a model can be trusted to do with structure.

use serde::{Deserialize, Serialize};

use crate::wire::{ServerQuirks, WireProtocol};

/// From strong to weak. Each rung can do what the rungs below it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputCapability {
    /// Words only; calls are asked for in text and read from it.
    Text,
    /// The server constrains the answer by a grammar.
    Grammar,
    /// The server constrains the answer by a JSON schema.
    JsonSchema,
    /// The model calls tools by itself.
    ToolCalls,
}

impl OutputCapability {
    const ALL: [Self; 4] = [Self::Text, Self::Grammar, Self::JsonSchema, Self::ToolCalls];

    /// The name in configuration and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Grammar => "grammar",
            Self::JsonSchema => "json-schema",
            Self::ToolCalls => "tool-calls",
        }
    }

    /// The capability of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|capability| capability.name() == name)
    }

    /// A careful first guess where the user said nothing: hosted models call tools; small local
    /// ones do not, but their servers constrain.
    pub fn presumed(wire: WireProtocol, quirks: &ServerQuirks) -> Self {
        match (wire, quirks.name.as_str()) {
            (WireProtocol::Ollama, _) | (_, "llamacpp" | "lmstudio" | "vllm") => Self::JsonSchema,
            (WireProtocol::Chat, "openai-compatible") => Self::Text,
            _ => Self::ToolCalls,
        }
    }

    /// The edit format to ask for first. A coding model of 1.5 billion parameters was seen to
    /// write blocks of old and new lines and whole files well, and numbered lines badly.
    pub const fn edit_format(self) -> lula_edit::EditFormat {
        match self {
            Self::ToolCalls | Self::JsonSchema | Self::Grammar => {
                lula_edit::EditFormat::SearchReplace
            }
            Self::Text => lula_edit::EditFormat::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_has_one_name() {
        for capability in OutputCapability::ALL {
            assert_eq!(serde_json::to_value(capability).unwrap(), capability.name());
            assert_eq!(
                OutputCapability::from_name(capability.name()),
                Some(capability)
            );
        }
    }

    #[test]
    fn small_local_models_are_constrained_and_unknown_servers_get_words() {
        let of = |wire, name| OutputCapability::presumed(wire, &ServerQuirks::of(name));
        assert_eq!(
            of(WireProtocol::Messages, "anthropic"),
            OutputCapability::ToolCalls
        );
        assert_eq!(
            of(WireProtocol::Chat, "llamacpp"),
            OutputCapability::JsonSchema
        );
        assert_eq!(
            of(WireProtocol::Ollama, "ollama"),
            OutputCapability::JsonSchema
        );
        assert_eq!(
            of(WireProtocol::Chat, "openai-compatible"),
            OutputCapability::Text
        );
    }
}
