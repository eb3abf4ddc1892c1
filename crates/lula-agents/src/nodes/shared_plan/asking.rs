//! Asking a model for tasks until its answer can be used.

use lula_graph::{NodeContext, VisitStop};
use lula_models::normal::{ModelMessage, ModelRequest, OutputShape};
use serde::Deserialize;
use serde_json::json;

use super::written::ProposedStep;
use crate::coder::conversation::CoderConversation;
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::recovery::AttemptFailureClass;

/// So often a plan that was refused may be made again.
const REPAIRS: u32 = 2;

/// What a model answers.
#[derive(Debug, Deserialize)]
pub(super) struct PlannerAnswer {
    #[serde(default)]
    pub(super) replaces: String,
    pub(super) tasks: Vec<ProposedStep>,
}

/// The rules, with what several repositories add to them.
pub(super) fn told_names(rules: &str, names: &[String]) -> String {
    if names.is_empty() {
        return rules.to_owned();
    }
    format!(
        "{rules} There are several repositories: {}. Each task is about one, `repository`, and its \
         files and commands are relative to the top of that one.",
        names.join(", ")
    )
}

/// Asks until the answer is accepted, and tells why it was not.
pub(super) async fn conversation<T>(
    chosen: &ChosenModel<'_>,
    (rules, names): (&str, &[String]),
    words: &str,
    tally: &mut VisitModelUsage,
    ctx: &mut NodeContext<'_>,
    accept: &mut (dyn FnMut(PlannerAnswer) -> Result<T, Vec<String>> + Send),
) -> Result<Result<T, (AttemptFailureClass, String)>, VisitStop> {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let mut schema = json!({
        "type": "object", "required": ["replaces", "tasks"], "additionalProperties": false,
        "properties": {
            "replaces": {"type": "string"},
            "tasks": {"type": "array", "items": {
                "type": "object", "additionalProperties": false,
                "required": ["id", "goal", "needs", "files", "done_when", "role"],
                "properties": {
                    "id": {"type": "string"}, "goal": {"type": "string"}, "needs": strings,
                    "files": strings, "done_when": strings, "role": {"type": "string"},
                },
            }},
        },
    });
    if !names.is_empty() {
        let task = &mut schema["properties"]["tasks"]["items"];
        task["properties"]["repository"] = json!({"type": "string", "enum": names});
        if let Some(required) = task["required"].as_array_mut() {
            required.push(json!("repository"));
        }
    }
    let model = chosen.model;
    let output = OutputShape::Json {
        name: "plan".to_owned(),
        schema,
    };
    let messages = vec![ModelMessage::system(rules), ModelMessage::user(words)];
    let request = ModelRequest::new(&model.model, messages, model.max_tokens).with_output(output);
    let mut talk = match CoderConversation::begin(chosen, request, tally) {
        Ok(talk) => talk,
        Err(why) => return Ok(Err((AttemptFailureClass::BadPlan, why))),
    };
    let mut last = String::new();
    for _ in 0..=REPAIRS {
        let answer = match talk.ask(ctx).await? {
            Ok(answer) => answer,
            Err(trouble) if trouble.unavailable => {
                return Ok(Err((
                    AttemptFailureClass::ModelUnavailable,
                    trouble.message,
                )));
            }
            Err(trouble) => return Ok(Err((AttemptFailureClass::BadPlan, trouble.message))),
        };
        let value = answer.json.unwrap_or_default();
        let read = serde_json::from_value::<PlannerAnswer>(value);
        let made = read
            .map_err(|error| vec![error.to_string()])
            .and_then(&mut *accept);
        match made {
            Ok(made) => return Ok(Ok(made)),
            Err(reasons) => {
                last = reasons.join("; ");
                talk.say(ModelMessage::user(format!(
                    "That was not accepted: {last}. Answer with all tasks again."
                )));
            }
        }
    }
    let why = format!("{} made no plan that can be used: {last}", model.name);
    Ok(Err((AttemptFailureClass::BadPlan, why)))
}
