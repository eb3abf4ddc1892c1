//! Asking a model for tasks until its answer can be used. A model that calls tools may look at the
//! project before it answers.

use lula_graph::{NodeContext, VisitStop};
use lula_models::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelTool, OutputShape,
};
use lula_models::output::{AnswerFault, ModelAnswer, OutputCapability, lenient, schema};
use lula_protocol::WorkspaceId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::written::ProposedStep;
use crate::coder::conversation::CoderConversation;
use crate::coder::tools::{self, AnswerRoom};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::recovery::AttemptFailureClass;
use crate::task::ModelChoice;

/// So often a plan that was refused may be made again.
const REPAIRS: u32 = 3;
/// So often a model may look before it has to answer.
const LOOKS: u32 = 12;
/// How a model that calls tools gives its answer.
const PLAN: &str = "plan";

/// What a model answers.
#[derive(Debug, Deserialize)]
pub(super) struct PlannerAnswer {
    #[serde(default)]
    pub(super) replaces: String,
    pub(super) tasks: Vec<ProposedStep>,
}

/// Why a planner gave no answer that can be used.
pub(super) type PlannerFailure = (AttemptFailureClass, String);

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

/// The form of an answer.
fn form(names: &[String]) -> Value {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let mut form = json!({
        "type": "object", "required": ["replaces", "tasks"], "additionalProperties": false,
        "properties": {
            "replaces": {"type": "string"},
            "tasks": {"type": "array", "items": {
                "type": "object", "additionalProperties": false,
                "required": ["id", "goal", "needs", "files", "done_when", "role"],
                "properties": {
                    "id": {"type": "string"}, "goal": {"type": "string"}, "needs": strings,
                    "files": strings, "done_when": strings, "role": {"type": "string"},
                    "interfaces": {"type": "string"},
                },
            }},
        },
    });
    if !names.is_empty() {
        let task = &mut form["properties"]["tasks"]["items"];
        task["properties"]["repository"] = json!({"type": "string", "enum": names});
        if let Some(required) = task["required"].as_array_mut() {
            required.push(json!("repository"));
        }
    }
    form
}

/// A conversation about a plan.
pub(super) struct PlannerConversation<'a> {
    talk: CoderConversation<'a>,
    model: &'a ModelChoice,
    form: Value,
    /// Where it may look; nowhere where the model calls no tools.
    looks_at: Option<WorkspaceId>,
    repairs: u32,
    looks: u32,
    /// The calls of its last answer, each of which is owed a result.
    calls: Vec<(String, String)>,
}

impl<'a> PlannerConversation<'a> {
    pub(super) fn begin(
        chosen: &ChosenModel<'a>,
        (rules, names): (&str, &[String]),
        words: &str,
        workspace: &WorkspaceId,
        tally: &'a mut VisitModelUsage,
    ) -> Result<Self, PlannerFailure> {
        let model = chosen.model;
        let form = form(names);
        let looks = model.capability == OutputCapability::ToolCalls;
        let mut rules = rules.to_owned();
        if looks {
            rules.push_str(
                " Look at what matters before you cut, with the tools, and answer by calling `plan`.",
            );
        }
        let messages = vec![
            ModelMessage::system(rules).cached(),
            ModelMessage::user(words).cached(),
        ];
        let request = ModelRequest::new(&model.model, messages, model.max_tokens);
        let request = if looks {
            let mut tools = tools::looking();
            tools.push(ModelTool {
                name: PLAN.to_owned(),
                description: "Gives the answer: the tasks.".to_owned(),
                parameters: form.clone(),
            });
            request.with_tools(tools)
        } else {
            request.with_output(OutputShape::Json {
                name: PLAN.to_owned(),
                schema: form.clone(),
            })
        };
        let talk = CoderConversation::begin(chosen, request, tally)
            .map_err(|why| (AttemptFailureClass::BadPlan, why))?;
        Ok(Self {
            talk,
            model,
            form,
            looks_at: looks.then(|| workspace.clone()),
            repairs: 0,
            looks: 0,
            calls: Vec::new(),
        })
    }

    /// The next answer, after as much looking as the model does and may do.
    pub(super) async fn answer(
        &mut self,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Result<PlannerAnswer, PlannerFailure>, VisitStop> {
        loop {
            let answer = match self.talk.ask(ctx).await? {
                Ok(answer) => answer,
                Err(trouble) if trouble.unavailable => {
                    let class = AttemptFailureClass::ModelUnavailable;
                    return Ok(Err((class, trouble.message)));
                }
                Err(trouble) => {
                    return Ok(Err((AttemptFailureClass::BadPlan, trouble.message)));
                }
            };
            if self.look(&answer, ctx).await? {
                continue;
            }
            let fault = match self.read(&answer) {
                Ok(read) => return Ok(Ok(read)),
                Err(fault) => fault,
            };
            if let Some(failure) = self.refuse(&[fault]) {
                return Ok(Err(failure));
            }
        }
    }

    /// Says what is wrong with the last answer; the end of it where that was said too often.
    pub(super) fn refuse(&mut self, reasons: &[String]) -> Option<PlannerFailure> {
        let told = reasons.join("; ");
        self.repairs += 1;
        if self.repairs > REPAIRS {
            let why = format!("{} made no plan that can be used: {told}", self.model.name);
            return Some((AttemptFailureClass::BadPlan, why));
        }
        let text = format!(
            "That was not accepted:\n- {}\nAnswer with all tasks again.",
            reasons.join("\n- ")
        );
        let calls = std::mem::take(&mut self.calls);
        self.talk.say(if calls.is_empty() {
            ModelMessage::user(text)
        } else {
            let told = |(id, name): (String, String)| result(id, &name, text.clone(), true);
            results(calls.into_iter().map(told).collect())
        });
        None
    }

    /// Whether the model looked instead of answering, and was told what it sees.
    async fn look(
        &mut self,
        answer: &ModelAnswer,
        ctx: &mut NodeContext<'_>,
    ) -> Result<bool, VisitStop> {
        let Some(place) = self.looks_at.clone() else {
            return Ok(false);
        };
        let answers = answer.calls.iter().any(|call| call.name == PLAN);
        if answers || answer.calls.is_empty() {
            return Ok(false);
        }
        let (mut seen, mut shown) = (Vec::new(), Vec::new());
        for call in &answer.calls {
            self.looks += 1;
            let (text, failed) = if self.looks > LOOKS {
                let text = "you have looked enough: answer with `plan` now".to_owned();
                (text, true)
            } else {
                let room = AnswerRoom::of(self.model, self.talk.pictures() + shown.len() / 2);
                let mut said = tools::look(&place, call, room, ctx).await?;
                shown.extend(tools::shown_parts(&mut said));
                (said.text, said.failed)
            };
            seen.push(result(call.id.clone(), &call.name, text, failed));
        }
        if self.looks > LOOKS * 2 {
            return Ok(false);
        }
        seen.extend(shown);
        self.talk.say(results(seen));
        Ok(true)
    }

    /// The answer as it was given: by the call, or in words.
    fn read(&mut self, answer: &ModelAnswer) -> Result<PlannerAnswer, String> {
        let calls = answer.calls.iter();
        self.calls = calls
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        let call = answer.calls.iter().find(|call| call.name == PLAN);
        let value = match (call, &answer.json) {
            (Some(call), _) => call.arguments.clone(),
            (None, Some(json)) => json.clone(),
            (None, None) => lenient::value(&answer.words)
                .map_err(|why| AnswerFault::NotJson(why).to_string())?,
        };
        let breaches = schema::check(&self.form, &value).map_err(|error| error.to_string())?;
        if !breaches.is_empty() {
            return Err(AnswerFault::Breaches(breaches).to_string());
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

fn result(id: String, name: &str, content: String, failed: bool) -> MessagePart {
    MessagePart::Result {
        id,
        name: name.to_owned(),
        content,
        failed,
    }
}

fn results(parts: Vec<MessagePart>) -> ModelMessage {
    ModelMessage {
        role: MessageRole::User,
        parts,
        cache_here: false,
    }
}
