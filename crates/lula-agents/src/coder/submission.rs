//! How a model hands its change in, and what it is told when the change is not accepted.
//!
//! Handing in is a question: the answer comes from tests. A model can also say that it is blocked, or
//! that a person has to decide something first.

use std::fmt::Write;

use lula_models::normal::{MessagePart, MessageRole, ModelMessage, ModelTool, ModelToolCall};
use lula_repair::trial::excerpt;
use serde_json::{Value, json};

use super::tools::text_of;
use crate::recovery::{AttemptFailure, AttemptFailureClass};
use crate::work::OpenConversation;

/// How the model says that it is done.
pub(crate) const SUBMIT: &str = "submit";

/// Longest summary that is kept.
const SUMMARY: usize = 2_000;
/// Most answers that a person is given to choose from.
const OPTIONS: usize = 6;

/// What a model says when it hands in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Submission {
    /// The id of the call.
    pub(super) call: String,
    pub(super) status: SubmissionStatus,
    pub(super) summary: String,
    /// Whether a reviewer agrees.
    pub(super) approve: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SubmissionStatus {
    /// The task is done.
    Done,
    /// It cannot be done as things are.
    Blocked,
    /// A person has to choose first.
    NeedsDecision { options: Vec<String> },
}

impl Submission {
    /// What a call says; a status that is not known is taken for `done`, which tests decide about.
    pub(super) fn of(call: &ModelToolCall) -> Self {
        let arguments = &call.arguments;
        let status = match text_of(arguments, "status").as_str() {
            "blocked" => SubmissionStatus::Blocked,
            "needs_decision" => {
                let options = arguments.get("options").and_then(Value::as_array);
                let options = options.into_iter().flatten().filter_map(Value::as_str);
                let options = options.map(str::trim).filter(|option| !option.is_empty());
                SubmissionStatus::NeedsDecision {
                    options: options.take(OPTIONS).map(str::to_owned).collect(),
                }
            }
            _ => SubmissionStatus::Done,
        };
        Self {
            call: call.id.clone(),
            status,
            summary: excerpt(&text_of(arguments, "summary"), SUMMARY),
            approve: arguments.get("approve").and_then(Value::as_bool),
        }
    }
}

/// The tool, for a coder that changes files.
pub(super) fn tool() -> ModelTool {
    ModelTool {
        name: SUBMIT.to_owned(),
        description: "Hands the work in. `done`: the tests are run with the change and without it, and \
                      the answer says what is wrong if they do not accept it. `blocked`: it cannot be \
                      done here, with the reason in the summary; a person reads it. `needs_decision`: a \
                      person has to choose first; the summary is the question, `options` are the \
                      possible answers."
            .to_owned(),
        parameters: json!({
            "type": "object", "required": ["summary"], "additionalProperties": false,
            "properties": {
                "status": {"type": "string", "enum": ["done", "blocked", "needs_decision"]},
                "summary": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}},
            },
        }),
    }
}

impl OpenConversation {
    /// The conversation with what came of the change, as the answer to the call that handed it in.
    pub(super) fn answered(&self, failure: &AttemptFailure, tries: u32) -> Vec<ModelMessage> {
        self.told(not_accepted(failure, tries), true)
    }

    /// The conversation with an answer to the call that handed in.
    pub(super) fn told(&self, text: String, failed: bool) -> Vec<ModelMessage> {
        let mut parts = self.untold.clone();
        parts.push(match &self.submitted {
            Some(id) => MessagePart::Result {
                id: id.clone(),
                name: SUBMIT.to_owned(),
                content: text,
                failed,
            },
            None => MessagePart::text(text),
        });
        let mut messages = self.messages.clone();
        messages.push(ModelMessage {
            role: MessageRole::User,
            parts,
            cache_here: false,
        });
        messages
    }
}

/// Why a change was not accepted, for the model that made it: it knows its change.
fn not_accepted(failure: &AttemptFailure, tries: u32) -> String {
    let mut text = match failure.class {
        AttemptFailureClass::NoEvidence => "Not verified: ".to_owned(),
        _ => "Not accepted: ".to_owned(),
    };
    let _ = writeln!(text, "{}", failure.evidence.trim_end());
    if !failure.detail.is_empty() {
        let _ = writeln!(text, "{}", failure.detail.trim_end());
    }
    let left = match tries {
        1 => "one more time".to_owned(),
        more => format!("{more} more times"),
    };
    let _ = write!(
        text,
        "Your change is still in place. Go on from here, then call `{SUBMIT}` again (you can hand in {left})."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: Value) -> ModelToolCall {
        ModelToolCall {
            id: "call-1".to_owned(),
            name: SUBMIT.to_owned(),
            arguments,
        }
    }

    fn open(submitted: Option<&str>) -> OpenConversation {
        OpenConversation {
            by: "a/model".to_owned(),
            messages: vec![ModelMessage::user("the task")],
            untold: vec![MessagePart::Result {
                id: "call-0".to_owned(),
                name: "run".to_owned(),
                content: "exit status 0".to_owned(),
                failed: false,
            }],
            submitted: submitted.map(str::to_owned),
        }
    }

    #[test]
    fn a_model_says_that_it_is_done_blocked_or_needs_a_decision() {
        let status = |arguments| Submission::of(&call(arguments)).status;
        assert_eq!(status(json!({"summary": "x"})), SubmissionStatus::Done);
        assert_eq!(
            status(json!({"summary": "no compiler", "status": "blocked"})),
            SubmissionStatus::Blocked
        );
        assert_eq!(
            status(
                json!({"summary": "which?", "status": "needs_decision", "options": ["a", "", "b"]})
            ),
            SubmissionStatus::NeedsDecision {
                options: vec!["a".to_owned(), "b".to_owned()]
            }
        );
        assert_eq!(
            status(json!({"summary": "x", "status": "verified"})),
            SubmissionStatus::Done,
            "what a model claims is no verdict"
        );
    }

    #[test]
    fn what_came_of_a_change_answers_the_call_that_handed_it_in() {
        let failure = AttemptFailure::new(
            AttemptFailureClass::TestFail,
            "1 test fails",
            &[],
            "a/model",
        );
        let messages = open(Some("call-1")).answered(&failure, 2);
        let [_, last] = messages.as_slice() else {
            panic!("{messages:?}");
        };
        let [
            MessagePart::Result { id: other, .. },
            MessagePart::Result {
                id,
                content,
                failed,
                ..
            },
        ] = last.parts.as_slice()
        else {
            panic!("{last:?}");
        };
        assert_eq!(
            (other.as_str(), id.as_str(), *failed),
            ("call-0", "call-1", true)
        );
        assert!(
            content.starts_with("Not accepted: 1 test fails"),
            "{content}"
        );
        assert!(content.contains("still in place"), "{content}");
        assert!(content.contains("2 more times"), "{content}");
    }

    #[test]
    fn a_model_that_only_stopped_is_told_in_words() {
        let failure =
            AttemptFailure::new(AttemptFailureClass::NoEvidence, "no test", &[], "a/model");
        let messages = open(None).answered(&failure, 1);
        assert!(messages[1].words().starts_with("Not verified: no test"));
    }
}
