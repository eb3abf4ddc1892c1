//! A span: something of a run that has a beginning and an end.

use serde::{Serialize, Serializer};

use super::context::SpanId;
use super::names;

/// What kind of work a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SpanWork {
    /// A run as a whole.
    Workflow,
    /// A node of the graph.
    Node,
    /// An agent: its run, or a node in which a model works.
    Agent,
    /// A model was asked.
    Chat,
    /// Something was done or looked at.
    Tool,
    /// The run waited for a person or a time.
    Wait,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SpanValue {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
    Fraction(f64),
}

impl Serialize for SpanValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Texts(texts) => serializer.collect_seq(texts),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Fraction(number) => serializer.serialize_f64(*number),
        }
    }
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Attributes in the order in which they were found, each name once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SpanAttributes(pub(super) Vec<(&'static str, SpanValue)>);

impl SpanAttributes {
    pub(super) fn put(&mut self, name: &'static str, value: impl Into<SpanValue>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&SpanValue> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// Takes out what may only be exported where content is.
    pub(super) fn without_content(&mut self) {
        self.0
            .retain(|(name, _)| ![names::INPUT, names::OUTPUT].contains(name));
    }
}

impl Serialize for SpanAttributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// One span of a run, as its log has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSpan {
    pub(super) id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) work: SpanWork,
    /// Unix time in milliseconds.
    pub(super) begin_ms: u64,
    /// Unix time in milliseconds.
    pub(super) end_ms: u64,
    pub(super) failed: bool,
    pub(super) attributes: SpanAttributes,
}
