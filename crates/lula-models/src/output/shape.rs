//! Shaping a question to what the model can do.

use serde_json::{Value, json};

use super::OutputCapability;
use super::gbnf;
use super::schema::UnsupportedSchema;
use crate::normal::{MessagePart, MessageRole, ModelMessage, ModelRequest, ModelTool, OutputShape};

/// The name under which a constrained model gives plain words instead of a call. A name like
/// `say` tempts small models to repeat the task instead of working on it.
pub const SAY: &str = "finish";

/// What the answer must be read as.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpectedAnswer {
    /// Words, with native calls or calls in the text.
    Words,
    /// One JSON object naming a tool, or [`SAY`].
    Choice,
    /// One JSON value of this schema.
    Json(Value),
    /// Edits in this format.
    Edits(lula_edit::EditFormat),
}

/// A question as this model can take it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapedRequest {
    pub request: ModelRequest,
    /// How the answer is read.
    pub expect: ExpectedAnswer,
    /// The tools that were offered, however they were offered.
    pub tools: Vec<ModelTool>,
}

/// Shapes a request for a model of this capability.
pub fn shape(
    request: &ModelRequest,
    capability: OutputCapability,
) -> Result<ShapedRequest, UnsupportedSchema> {
    let tools = request.tools.clone();
    let mut request = request.clone();
    let expect = match &request.output {
        OutputShape::Edits { format } => {
            let format = *format;
            tell(&mut request, format.instructions());
            request.output = OutputShape::Text;
            ExpectedAnswer::Edits(format)
        }
        OutputShape::Json { name, schema } => {
            let (name, schema) = (name.clone(), schema.clone());
            request.output = constrain(&mut request, name, &schema, capability)?;
            ExpectedAnswer::Json(schema)
        }
        OutputShape::Grammar { .. } => ExpectedAnswer::Words,
        OutputShape::Text if tools.is_empty() || capability == OutputCapability::ToolCalls => {
            ExpectedAnswer::Words
        }
        OutputShape::Text => {
            flatten_calls(&mut request.messages);
            request.tools.clear();
            if capability == OutputCapability::Text {
                tell(&mut request, &text_tools(&tools));
                ExpectedAnswer::Words
            } else {
                let schema = choice(&tools);
                tell(&mut request, &choice_tools(&tools));
                request.output =
                    constrain(&mut request, "next_step".to_owned(), &schema, capability)?;
                ExpectedAnswer::Choice
            }
        }
    };
    Ok(ShapedRequest {
        request,
        expect,
        tools,
    })
}

/// A schema as strongly as the server can hold the model to it.
fn constrain(
    request: &mut ModelRequest,
    name: String,
    schema: &Value,
    capability: OutputCapability,
) -> Result<OutputShape, UnsupportedSchema> {
    match capability {
        OutputCapability::ToolCalls | OutputCapability::JsonSchema => Ok(OutputShape::Json {
            name,
            schema: schema.clone(),
        }),
        OutputCapability::Grammar => Ok(OutputShape::Grammar {
            gbnf: gbnf::of_schema(schema)?,
        }),
        OutputCapability::Text => {
            tell(
                request,
                &format!("Answer with one JSON value of this schema and nothing else:\n{schema}"),
            );
            Ok(OutputShape::Text)
        }
    }
}

/// Instructions go last among the rules that open the conversation, so the cached prefix stays.
fn tell(request: &mut ModelRequest, words: &str) {
    let rules = request
        .messages
        .iter()
        .take_while(|message| message.role == MessageRole::System)
        .count();
    request.messages.insert(rules, ModelMessage::system(words));
}

fn choice(tools: &[ModelTool]) -> Value {
    let form = |name: &str, arguments: &Value| {
        json!({"type": "object", "required": ["tool", "arguments"], "additionalProperties": false,
            "properties": {"tool": {"const": name}, "arguments": arguments}})
    };
    let say = json!({"type": "object", "required": ["text"], "additionalProperties": false,
        "properties": {"text": {"type": "string"}}});
    let mut forms: Vec<_> = tools
        .iter()
        .map(|tool| form(&tool.name, &tool.parameters))
        .collect();
    forms.push(form(SAY, &say));
    json!({"anyOf": forms})
}

fn list(tools: &[ModelTool]) -> String {
    let mut sorted: Vec<_> = tools.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted
        .into_iter()
        .map(|tool| {
            format!(
                "- {}: {} Arguments: {}\n",
                tool.name, tool.description, tool.parameters
            )
        })
        .collect::<Vec<_>>()
        .concat()
}

fn choice_tools(tools: &[ModelTool]) -> String {
    format!(
        "Tools:\n{}Answer with one JSON object: {{\"tool\": NAME, \"arguments\": {{…}}}}. Only when \
         nothing is left to do: {{\"tool\": \"{SAY}\", \"arguments\": {{\"text\": YOUR REPORT}}}}.",
        list(tools)
    )
}

fn text_tools(tools: &[ModelTool]) -> String {
    format!(
        "Tools:\n{}To use a tool, write exactly\n<tool_call>\n{{\"name\": NAME, \"arguments\": \
         {{…}}}}\n</tool_call>\nand stop. Without such a block your words are the answer.",
        list(tools)
    )
}

/// A model without native calls sees earlier calls and their results as words.
fn flatten_calls(messages: &mut [ModelMessage]) {
    for part in messages
        .iter_mut()
        .flat_map(|message| message.parts.iter_mut())
    {
        let words = match part {
            MessagePart::Call(call) => {
                let call = json!({"tool": call.name, "arguments": call.arguments});
                format!("{call}")
            }
            MessagePart::Result {
                name,
                content,
                failed,
                ..
            } => {
                let outcome = if *failed { "failed" } else { "answered" };
                format!("The tool {name} {outcome}:\n{content}\n")
            }
            _ => continue,
        };
        *part = MessagePart::text(words);
    }
}
