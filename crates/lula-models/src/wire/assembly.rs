//! Putting a streamed answer together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{WireError, malformed, read};
use crate::normal::{MessagePart, ModelStopReason, ModelToolCall, TokenUsage};

/// What a piece of a stream adds, for a person who watches. Never the basis of an action: only a whole
/// response holds calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamDelta {
    Text(String),
    /// More of the model's notes.
    Reasoning(String),
    /// The model begins to call a tool, which is named.
    CallStarted(String),
    /// A piece of a call's arguments: not whole, not to be acted on.
    CallArguments(String),
    /// Everything so far is void: the answer broke off or could not be used, and is asked anew.
    Discarded,
}

pub(crate) type AssembledAnswer = (Vec<MessagePart>, ModelStopReason, Option<TokenUsage>);

/// A block that is still being written.
#[derive(Debug)]
enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    Done(MessagePart),
}

/// Blocks in the order of their index.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    blocks: BTreeMap<u64, Block>,
}

impl Assembly {
    pub(crate) fn text(&mut self, index: u64, more: &str, deltas: &mut Vec<StreamDelta>) {
        if more.is_empty() {
            return;
        }
        deltas.push(StreamDelta::Text(more.to_owned()));
        match self
            .blocks
            .entry(index)
            .or_insert_with(|| Block::Text(String::new()))
        {
            Block::Text(text) => text.push_str(more),
            other => *other = Block::Text(more.to_owned()),
        }
    }

    pub(crate) fn start_call(
        &mut self,
        index: u64,
        id: &str,
        name: &str,
        deltas: &mut Vec<StreamDelta>,
    ) {
        deltas.push(StreamDelta::CallStarted(name.to_owned()));
        self.blocks.insert(
            index,
            Block::Call {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: String::new(),
            },
        );
    }

    pub(crate) fn arguments(
        &mut self,
        index: u64,
        more: &str,
        deltas: &mut Vec<StreamDelta>,
    ) -> Result<(), WireError> {
        if more.is_empty() {
            return Ok(());
        }
        match self.blocks.get_mut(&index) {
            Some(Block::Call { arguments, .. }) => {
                deltas.push(StreamDelta::CallArguments(more.to_owned()));
                arguments.push_str(more);
                Ok(())
            }
            _ => Err(WireError::Malformed("arguments without a call".to_owned())),
        }
    }

    pub(crate) fn has_call(&self, index: u64) -> bool {
        matches!(self.blocks.get(&index), Some(Block::Call { .. }))
    }

    pub(crate) fn done(&mut self, index: u64, part: MessagePart) {
        self.blocks.insert(index, Block::Done(part));
    }

    pub(crate) fn next_index(&self) -> u64 {
        self.blocks
            .last_key_value()
            .map_or(0, |(index, _)| index + 1)
    }

    /// The parts; calls only where the answer may hold them whole.
    pub(crate) fn finish(self, stop: &ModelStopReason) -> Vec<MessagePart> {
        let mut parts = Vec::new();
        for (place, block) in self.blocks.into_values().enumerate() {
            match block {
                Block::Text(text) if text.is_empty() => {}
                Block::Text(text) => parts.push(MessagePart::Text { text }),
                Block::Done(part) => parts.push(part),
                Block::Call {
                    id,
                    name,
                    arguments,
                } => {
                    parts.extend(call(place, id, name, &arguments, stop));
                }
            }
        }
        parts
    }
}

/// A whole call, or nothing where the length limit cut it, or a broken one: half a call is never
/// built.
pub(crate) fn call(
    place: usize,
    id: String,
    name: String,
    arguments: &str,
    stop: &ModelStopReason,
) -> Option<MessagePart> {
    match read::arguments(arguments) {
        Ok(arguments) => Some(MessagePart::Call(ModelToolCall {
            id: if id.is_empty() {
                format!("call_{place}")
            } else {
                id
            },
            name,
            arguments,
        })),
        Err(_) if *stop == ModelStopReason::Length => None,
        Err(why) => Some(MessagePart::Broken { name, why }),
    }
}

/// What the server says it stopped for, made honest: calls in the answer mean it waits for them.
pub(crate) fn settle_stop(stop: ModelStopReason, parts: &[MessagePart]) -> ModelStopReason {
    let has_calls = parts
        .iter()
        .any(|part| matches!(part, MessagePart::Call(_)));
    match stop {
        ModelStopReason::End if has_calls => ModelStopReason::Calls,
        ModelStopReason::Calls if !has_calls => ModelStopReason::End,
        other => other,
    }
}

/// A call written whole, as `tool_calls` of a message lists them.
pub(crate) struct ListedCall<'a> {
    id: Option<&'a str>,
    pub(crate) name: &'a str,
    arguments: &'a Value,
}

impl<'a> ListedCall<'a> {
    /// The calls of a message, in their order.
    pub(crate) fn of(message: &'a Value) -> impl Iterator<Item = Result<Self, WireError>> {
        let listed = message.get("tool_calls").and_then(Value::as_array);
        listed.into_iter().flatten().map(Self::read)
    }

    fn read(call: &'a Value) -> Result<Self, WireError> {
        let function = call
            .get("function")
            .ok_or_else(|| malformed("a call without a function"))?;
        let name =
            read::text(function, "name").ok_or_else(|| malformed("a call without a name"))?;
        Ok(Self {
            id: read::text(call, "id"),
            name,
            arguments: function.get("arguments").unwrap_or(&Value::Null),
        })
    }

    /// The part it becomes at a place, where the answer may hold it.
    pub(crate) fn part(&self, place: usize, stop: &ModelStopReason) -> Option<MessagePart> {
        whole_call(place, self.id, self.name, self.arguments, stop)
    }
}

/// A part from a call written whole.
pub(crate) fn whole_call(
    place: usize,
    id: Option<&str>,
    name: &str,
    arguments: &Value,
    stop: &ModelStopReason,
) -> Option<MessagePart> {
    let text = match arguments {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    call(
        place,
        id.unwrap_or_default().to_owned(),
        name.to_owned(),
        &text,
        stop,
    )
}
