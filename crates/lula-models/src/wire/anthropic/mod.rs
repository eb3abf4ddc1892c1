//! Anthropic messages.

mod answer;

use serde_json::{Map, Value, json};

use super::generations::{AnthropicGeneration, ThinkingForm, is_plain_schema};
use super::{WireError, WireProtocol, is_strict};
use crate::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, OutputShape, ThinkingEffort,
};
pub(super) use answer::{AnthropicReader, response};

/// Seams of the prompt cache a request may have.
const MAX_CACHE_SEAMS: usize = 4;
/// The tool a JSON answer is written through.
const ANSWER: &str = "answer";

pub(super) fn request(request: &ModelRequest, streamed: bool) -> Result<Value, WireError> {
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    body.insert("max_tokens".into(), request.max_tokens.into());
    let seams = cache_seams(&request.messages);
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (message, seam) in request.messages.iter().zip(seams) {
        let mut blocks = blocks(message);
        if let (true, Some(Value::Object(last))) = (seam, blocks.last_mut()) {
            last.insert("cache_control".into(), json!({"type": "ephemeral"}));
        }
        match message.role {
            // Rules that come late stay in their place, or they would move the cached prefix.
            MessageRole::System if turns.is_empty() => system.extend(blocks),
            MessageRole::System | MessageRole::User => turn(&mut turns, "user", blocks),
            MessageRole::Assistant => turn(&mut turns, "assistant", blocks),
        }
    }
    let messages: Vec<_> = turns
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect();
    body.insert("messages".into(), messages.into());
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    let generation = AnthropicGeneration::of(&request.model);
    let thinking = thinking(request, generation);
    if let Some(temperature) = request.temperature.filter(|_| {
        // A temperature beside thinking is refused by the provider, and by newer models always.
        thinking.is_none() && generation.temperature
    }) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(thinking) = thinking {
        body.insert("thinking".into(), thinking);
    }
    let config = output_config(request, generation);
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
    }
    tools(&mut body, request, generation)?;
    if streamed {
        body.insert("stream".into(), true.into());
    }
    Ok(Value::Object(body))
}

/// Thinking, where asked for and possible. By a budget the provider takes 1024 tokens at least, less
/// than the whole answer, no forced tool beside it, and no call of the model before it without the notes
/// that led to it.
fn thinking(request: &ModelRequest, generation: AnthropicGeneration) -> Option<Value> {
    let wanted = match request.effort {
        ThinkingEffort::Off => return None,
        ThinkingEffort::Low => 1024,
        ThinkingEffort::Medium => 4096,
        ThinkingEffort::High => 16_384,
    };
    if generation.thinking == ThinkingForm::Adaptive {
        return Some(json!({"type": "adaptive"}));
    }
    let possible = wanted.min(request.max_tokens / 2);
    let fits =
        possible >= 1024 && request.output == OutputShape::Text && has_notes(&request.messages);
    fits.then(|| json!({"type": "enabled", "budget_tokens": possible}))
}

/// Whether the last calls of the model come with its notes, where there are calls.
fn has_notes(messages: &[ModelMessage]) -> bool {
    let own = |message: &&ModelMessage| message.role == MessageRole::Assistant;
    let Some(last) = messages.iter().rev().find(own) else {
        return true;
    };
    let calls = last
        .parts
        .iter()
        .any(|part| matches!(part, MessagePart::Call(_)));
    let noted = |part: &MessagePart| {
        matches!(
            part,
            MessagePart::Reasoning {
                wire: WireProtocol::Messages,
                ..
            }
        )
    };
    !calls || last.parts.iter().any(noted)
}

/// How much is to be spent on an answer, and the schema it is held to, where the generation takes them
/// there.
fn output_config(request: &ModelRequest, generation: AnthropicGeneration) -> Map<String, Value> {
    let mut config = Map::new();
    if generation.thinking == ThinkingForm::Adaptive && request.effort != ThinkingEffort::Off {
        config.insert("effort".into(), json!(request.effort));
    }
    if let OutputShape::Json { schema, .. } = &request.output
        && by_format(schema, generation)
    {
        config.insert(
            "format".into(),
            json!({"type": "json_schema", "schema": schema}),
        );
    }
    config
}

/// Whether a schema is given to the provider to hold the answer to it.
fn by_format(schema: &Value, generation: AnthropicGeneration) -> bool {
    generation.format && is_strict(schema) && is_plain_schema(schema)
}

/// The first two seams, rules and task, are kept warm by every question; the last two hold the longest
/// prefixes.
fn cache_seams(messages: &[ModelMessage]) -> Vec<bool> {
    let all = messages.iter().filter(|message| message.cache_here).count();
    let first = MAX_CACHE_SEAMS / 2;
    let last = all.saturating_sub(MAX_CACHE_SEAMS - first);
    let mut seen = 0;
    messages
        .iter()
        .map(|message| {
            seen += usize::from(message.cache_here);
            message.cache_here && (seen <= first || seen > last)
        })
        .collect()
}

/// Turns must alternate, so neighbours of one role become one turn.
fn turn(turns: &mut Vec<(&'static str, Vec<Value>)>, role: &'static str, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some((last, content)) if *last == role => content.extend(blocks),
        _ => turns.push((role, blocks)),
    }
}

fn blocks(message: &ModelMessage) -> Vec<Value> {
    // Results come first: the provider refuses calls that are not answered right behind them.
    let is_result = |part: &&MessagePart| matches!(part, MessagePart::Result { .. });
    let (results, others): (Vec<_>, Vec<_>) = message.parts.iter().partition(is_result);
    results
        .into_iter()
        .chain(others)
        .filter_map(|part| match part {
            MessagePart::Text { text } if text.is_empty() => None,
            MessagePart::Text { text } => Some(json!({"type": "text", "text": text})),
            MessagePart::Image { media_type, base64 } => Some(json!({"type": "image", "source": {
                "type": "base64", "media_type": media_type, "data": base64,
            }})),
            MessagePart::Call(call) => {
                Some(json!({"type": "tool_use", "id": call.id, "name": call.name,
                "input": call.arguments}))
            }
            MessagePart::Result {
                id,
                content,
                failed,
                ..
            } => Some(json!({"type": "tool_result",
                "tool_use_id": id, "content": content, "is_error": failed})),
            MessagePart::Reasoning {
                wire: WireProtocol::Messages,
                raw,
                ..
            } => Some(raw.clone()),
            MessagePart::Reasoning { .. } | MessagePart::Broken { .. } => None,
        })
        .collect()
}

fn tools(
    body: &mut Map<String, Value>,
    request: &ModelRequest,
    generation: AnthropicGeneration,
) -> Result<(), WireError> {
    let mut tools: Vec<_> = request
        .sorted_tools()
        .into_iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description,
                "input_schema": tool.parameters})
        })
        .collect();
    match &request.output {
        OutputShape::Text => {}
        OutputShape::Json { schema, .. } if by_format(schema, generation) => {}
        // A tool is how every version of the protocol gives JSON of a schema. Newer ones refuse to be
        // forced to it; what they say instead is read as it is.
        OutputShape::Json { schema, .. } => {
            tools.push(json!({"name": ANSWER, "description": "Give the answer.",
                "input_schema": schema}));
            if generation.forced_tool {
                let choice = json!({"type": "tool", "name": ANSWER});
                body.insert("tool_choice".into(), choice);
            }
        }
        OutputShape::Grammar { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Messages,
                what: "a grammar",
            });
        }
        OutputShape::Edits { .. } => {
            return Err(WireError::Unsupported {
                wire: WireProtocol::Messages,
                what: "unshaped edits",
            });
        }
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    Ok(())
}
