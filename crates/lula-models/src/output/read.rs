//! Reading a whole answer as what was asked for, and saying exactly what is wrong with it.

use std::fmt;

use serde_json::Value;

use super::schema::{self, SchemaBreach};
use super::shape::{ExpectedAnswer, SAY, ShapedRequest};
use super::{lenient, text_calls};
use crate::normal::{MessagePart, ModelResponse, ModelStopReason, ModelTool, ModelToolCall};

/// An answer that was read and checked as its request demands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelAnswer {
    /// The words, without what was read from them.
    pub words: String,
    /// Whole calls of offered tools, their arguments checked against the tool's schema.
    pub calls: Vec<ModelToolCall>,
    /// The JSON value, checked against its schema.
    pub json: Option<Value>,
    /// The edits, not yet matched against any file.
    pub edits: Vec<lula_edit::FileEdit>,
    /// Whether the length limit cut the words.
    pub unfinished: bool,
}

/// What is wrong with an answer, in words that the model gets back.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerFault {
    /// It was cut by the length limit.
    Unfinished,
    /// There is nothing in it.
    Empty,
    /// It is not JSON.
    NotJson(String),
    /// It is JSON, but not of the schema.
    Breaches(Vec<SchemaBreach>),
    /// A call cannot be acted on.
    BadCall(String),
    /// Edits cannot be read.
    BadEdits(String),
    /// The model or the provider declined; asking again is not a repair.
    Declined(String),
}

impl AnswerFault {
    /// Whether quoting the fault to the model may help.
    pub const fn is_repairable(&self) -> bool {
        !matches!(self, Self::Declined(_))
    }
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished => f.write_str(
                "it was cut by the length limit before it was whole, so nothing of it was done: write \
                 less at once, one call at a time and a long text in several parts",
            ),
            Self::Empty => f.write_str("it is empty"),
            Self::NotJson(error) => write!(f, "it is not the JSON that was asked for: {error}"),
            Self::Breaches(breaches) => {
                f.write_str("the JSON does not fit its schema")?;
                breaches
                    .iter()
                    .try_for_each(|breach| write!(f, "\n- {breach}"))
            }
            Self::BadCall(error) => write!(f, "the tool call cannot be used: {error}"),
            Self::BadEdits(error) => write!(f, "the edits cannot be read: {error}"),
            Self::Declined(words) => write!(f, "the model declined: {words}"),
        }
    }
}

/// Reads the answer to a shaped question.
pub fn read(shaped: &ShapedRequest, response: &ModelResponse) -> Result<ModelAnswer, AnswerFault> {
    let words = response.words();
    match response.stop {
        ModelStopReason::Filter => {
            return Err(AnswerFault::Declined(
                "the provider's filter stopped it".to_owned(),
            ));
        }
        ModelStopReason::Refusal => return Err(AnswerFault::Declined(words)),
        _ => {}
    }
    let cut = response.stop == ModelStopReason::Length;
    let calls: Vec<ModelToolCall> = response.calls().cloned().collect();
    let broken = response.parts.iter().find_map(|part| match part {
        MessagePart::Broken { name, why } => Some(format!("the arguments of {name} are {why}")),
        _ => None,
    });
    if let Some(why) = broken {
        return Err(AnswerFault::BadCall(why));
    }
    match &shaped.expect {
        // Where tools are offered, what is missing may be a call: half an answer is not acted on.
        _ if cut && (shaped.expect != ExpectedAnswer::Words || !shaped.tools.is_empty()) => {
            Err(AnswerFault::Unfinished)
        }
        ExpectedAnswer::Json(schema) => {
            let value = json_answer(&words, schema)?;
            Ok(ModelAnswer {
                json: Some(value),
                ..ModelAnswer::default()
            })
        }
        ExpectedAnswer::Choice => choice(&words, &shaped.tools),
        ExpectedAnswer::Edits(format) => {
            let edits = lula_edit::parse(*format, &words)
                .map_err(|error| AnswerFault::BadEdits(error.to_string()))?;
            if edits.is_empty() {
                return Err(AnswerFault::BadEdits("there is no block in it".to_owned()));
            }
            Ok(ModelAnswer {
                words,
                edits,
                ..ModelAnswer::default()
            })
        }
        ExpectedAnswer::Words if !calls.is_empty() => {
            let calls = checked(calls, &shaped.tools)?;
            Ok(ModelAnswer {
                words,
                calls,
                unfinished: cut,
                ..ModelAnswer::default()
            })
        }
        ExpectedAnswer::Words => words_answer(words, cut, &shaped.tools),
    }
}

fn words_answer(words: String, cut: bool, tools: &[ModelTool]) -> Result<ModelAnswer, AnswerFault> {
    let calls = if tools.is_empty() {
        Vec::new()
    } else {
        match text_calls::parse(&words, tools) {
            Ok(calls) => checked(calls, tools)?,
            Err(_) if cut => return Err(AnswerFault::Unfinished),
            Err(error) => return Err(AnswerFault::BadCall(error.to_string())),
        }
    };
    if calls.is_empty() && words.trim().is_empty() {
        return Err(if cut {
            AnswerFault::Unfinished
        } else {
            AnswerFault::Empty
        });
    }
    Ok(ModelAnswer {
        words,
        calls,
        unfinished: cut,
        ..ModelAnswer::default()
    })
}

fn json_answer(words: &str, schema: &Value) -> Result<Value, AnswerFault> {
    let value = lenient::value(words).map_err(AnswerFault::NotJson)?;
    let breaches =
        schema::check(schema, &value).map_err(|error| AnswerFault::NotJson(error.to_string()))?;
    if breaches.is_empty() {
        Ok(value)
    } else {
        Err(AnswerFault::Breaches(breaches))
    }
}

fn choice(words: &str, tools: &[ModelTool]) -> Result<ModelAnswer, AnswerFault> {
    let value = lenient::value(words).map_err(AnswerFault::NotJson)?;
    let arguments = value.get("arguments").cloned().unwrap_or(Value::Null);
    match value.get("tool").and_then(Value::as_str) {
        Some(SAY) => {
            let text = arguments
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if text.is_empty() {
                return Err(AnswerFault::Empty);
            }
            Ok(ModelAnswer {
                words: text.to_owned(),
                ..ModelAnswer::default()
            })
        }
        Some(name) => {
            let call = ModelToolCall {
                id: "choice_0".to_owned(),
                name: name.to_owned(),
                arguments,
            };
            Ok(ModelAnswer {
                calls: checked(vec![call], tools)?,
                ..ModelAnswer::default()
            })
        }
        None => Err(AnswerFault::NotJson(
            "there is no field \"tool\"".to_owned(),
        )),
    }
}

/// Calls of offered tools whose arguments fit. A schema this crate cannot check is left to the
/// tool, which checks its arguments in any case.
fn checked(
    calls: Vec<ModelToolCall>,
    tools: &[ModelTool],
) -> Result<Vec<ModelToolCall>, AnswerFault> {
    for call in &calls {
        let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
            let known: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            return Err(AnswerFault::BadCall(format!(
                "there is no tool {:?}; the tools are {}",
                call.name,
                known.join(", ")
            )));
        };
        if !call.arguments.is_object() {
            return Err(AnswerFault::BadCall(format!(
                "the arguments of {} are no object",
                call.name
            )));
        }
        if let Ok(breaches) = schema::check(&tool.parameters, &call.arguments)
            && !breaches.is_empty()
        {
            let list: Vec<_> = breaches.iter().map(ToString::to_string).collect();
            return Err(AnswerFault::BadCall(format!(
                "the arguments of {}: {}",
                call.name,
                list.join("; ")
            )));
        }
    }
    Ok(calls)
}

/// The conversation with edits of which some found no place: only those are asked for again.
/// `None` where all found theirs.
pub fn ask_edits_again(
    shaped: &ShapedRequest,
    response: &ModelResponse,
    batch: &lula_edit::EditBatchResult,
) -> Option<ShapedRequest> {
    let failed: Vec<String> = batch
        .failures()
        .map(|(index, error)| format!("- block {}: {error}", index + 1))
        .collect();
    if failed.is_empty() {
        return None;
    }
    let fault = AnswerFault::BadEdits(format!(
        "the other blocks are fine and kept, write only these again\n{}",
        failed.join("\n")
    ));
    Some(ask_again(shaped, response, &fault))
}

/// How much warmer a model is asked after a bad answer.
const WARMER: f64 = 0.4;

/// The conversation with a bad answer and what is wrong with it, for another try.
pub fn ask_again(
    shaped: &ShapedRequest,
    response: &ModelResponse,
    fault: &AnswerFault,
) -> ShapedRequest {
    use crate::normal::ModelMessage;
    let mut again = shaped.clone();
    // Unanswered calls may not stay in a conversation: the protocols refuse them.
    let mut said = response.message();
    said.parts
        .retain(|part| matches!(part, MessagePart::Text { .. }));
    if !said.words().trim().is_empty() {
        again.request.messages.push(said);
    }
    // A model that is asked coldly gives the same answer again, where it was not only too long.
    if *fault != AnswerFault::Unfinished {
        let warmer = again.request.temperature.unwrap_or(0.0) + WARMER;
        again.request.temperature = Some(warmer.min(1.0));
    }
    again.request.messages.push(ModelMessage::user(format!(
        "Your answer could not be used: {fault}\nAnswer again, in the form that was asked for."
    )));
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::{ModelMessage, ModelRequest, OutputShape};
    use crate::output::{OutputCapability, shape};
    use lula_protocol::Digest;
    use serde_json::json;

    fn tools() -> Vec<ModelTool> {
        vec![ModelTool {
            name: "read_file".into(),
            description: "Reads a file.".into(),
            parameters: json!({"type": "object", "required": ["path"],
                "properties": {"path": {"type": "string"}}}),
        }]
    }

    fn asked(capability: OutputCapability) -> ShapedRequest {
        let request =
            ModelRequest::new("m", vec![ModelMessage::user("go")], 100).with_tools(tools());
        shape(&request, capability).unwrap()
    }

    fn said(text: &str, stop: ModelStopReason) -> ModelResponse {
        ModelResponse {
            parts: vec![MessagePart::text(text)],
            stop,
            usage: None,
            raw: Digest::of_bytes(b""),
        }
    }

    #[test]
    fn the_same_call_is_read_on_every_rung() {
        let call = r#"{"name": "read_file", "arguments": {"path": "a"}}"#;
        for (capability, text) in [
            (OutputCapability::ToolCalls, format!("```json\n{call}\n```")),
            (
                OutputCapability::JsonSchema,
                r#"{"tool": "read_file", "arguments": {"path": "a"}}"#.into(),
            ),
            (
                OutputCapability::Grammar,
                r#"{"tool": "read_file", "arguments": {"path": "a"}}"#.into(),
            ),
            (
                OutputCapability::Text,
                format!("<tool_call>{call}</tool_call>"),
            ),
        ] {
            let answer = read(&asked(capability), &said(&text, ModelStopReason::End)).unwrap();
            assert_eq!(
                answer.calls[0].arguments,
                json!({"path": "a"}),
                "{capability:?}"
            );
        }
    }

    #[test]
    fn a_constrained_model_can_also_speak() {
        let text = r#"{"tool": "finish", "arguments": {"text": "done"}}"#;
        let answer = read(
            &asked(OutputCapability::JsonSchema),
            &said(text, ModelStopReason::End),
        )
        .unwrap();
        assert_eq!((answer.words.as_str(), answer.calls.len()), ("done", 0));
    }

    #[test]
    fn arguments_that_do_not_fit_are_quoted_back() {
        let text = r#"<tool_call>{"name": "read_file", "arguments": {"file": "a"}}</tool_call>"#;
        let shaped = asked(OutputCapability::Text);
        let response = said(text, ModelStopReason::End);
        let fault = read(&shaped, &response).unwrap_err();
        let again = ask_again(&shaped, &response, &fault);
        let last = again.request.messages.last().unwrap().words();
        assert!(last.contains("the field \"path\" is missing"), "{last}");
        assert_eq!(
            again.request.messages.len(),
            shaped.request.messages.len() + 2
        );
        assert!(again.request.temperature > shaped.request.temperature);
    }

    #[test]
    fn an_answer_cut_by_its_length_is_never_acted_on() {
        let text = r#"<tool_call>{"name": "read_file", "arguments": {"path": "/etc/pass"#;
        let shaped = asked(OutputCapability::Text);
        assert_eq!(
            read(&shaped, &said(text, ModelStopReason::Length)),
            Err(AnswerFault::Unfinished)
        );
        let whole = r#"{"tool": "read_file", "arguments": {"path": "a"}}"#;
        let shaped = asked(OutputCapability::JsonSchema);
        assert_eq!(
            read(&shaped, &said(whole, ModelStopReason::Length)),
            Err(AnswerFault::Unfinished)
        );
    }

    #[test]
    fn only_the_edits_that_found_no_place_are_asked_for_again() {
        let format = lula_edit::EditFormat::SearchReplace;
        let request = ModelRequest::new("m", vec![ModelMessage::user("go")], 100)
            .with_output(OutputShape::Edits { format });
        let shaped = shape(&request, OutputCapability::Text).unwrap();
        let block =
            |old: &str| format!("a.py\n<<<<<<< SEARCH\n{old}\n=======\nz = 9\n>>>>>>> REPLACE\n");
        let response = said(
            &format!("{}{}", block("x = 1"), block("y = 2")),
            ModelStopReason::End,
        );
        let answer = read(&shaped, &response).unwrap();
        let with = |text: &str| lula_edit::apply_all(&answer.edits, |_| Some(text.to_owned()));
        assert_eq!(
            ask_edits_again(&shaped, &response, &with("x = 1\ny = 2\n")),
            None
        );
        let again = ask_edits_again(&shaped, &response, &with("x = 1\n")).unwrap();
        let last = again.request.messages.last().unwrap().words();
        assert!(
            last.contains("- block 2: these lines are not in a.py"),
            "{last}"
        );
        assert!(!last.contains("block 1"), "{last}");
    }

    #[test]
    fn a_refusal_is_surfaced_and_not_repaired() {
        let fault = read(
            &asked(OutputCapability::Text),
            &said("no", ModelStopReason::Refusal),
        )
        .unwrap_err();
        assert!(!fault.is_repairable());
    }

    #[test]
    fn json_is_checked_whatever_the_server_promised() {
        let schema = json!({"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}}});
        let request = ModelRequest::new("m", vec![ModelMessage::user("go")], 100).with_output(
            OutputShape::Json {
                name: "n".into(),
                schema,
            },
        );
        for capability in [OutputCapability::ToolCalls, OutputCapability::Text] {
            let shaped = shape(&request, capability).unwrap();
            let good = read(
                &shaped,
                &said("```json\n{\"n\": 3,}\n```", ModelStopReason::End),
            )
            .unwrap();
            assert_eq!(good.json, Some(json!({"n": 3})));
            let bad = read(&shaped, &said("{\"n\": \"3\"}", ModelStopReason::End)).unwrap_err();
            assert!(
                bad.to_string()
                    .contains("/n: must be integer, but is a string"),
                "{bad}"
            );
        }
    }

    #[test]
    fn earlier_calls_become_words_for_a_model_that_cannot_call() {
        let mut request =
            ModelRequest::new("m", vec![ModelMessage::user("go")], 100).with_tools(tools());
        request.messages.push(ModelMessage {
            role: crate::normal::MessageRole::User,
            parts: vec![MessagePart::Result {
                id: "1".into(),
                name: "read_file".into(),
                content: "x = 1".into(),
                failed: false,
            }],
            cache_here: false,
        });
        let shaped = shape(&request, OutputCapability::Text).unwrap();
        assert!(shaped.request.tools.is_empty());
        let last = shaped.request.messages.last().unwrap().words();
        assert_eq!(last, "The tool read_file answered:\nx = 1\n");
    }
}
