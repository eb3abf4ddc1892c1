//! A model with tools: a conversation in which every call is an effect, until it submits.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture};
use lula_models::normal::{MessagePart, MessageRole, ModelMessage, ModelRequest};
use lula_repair::trial::tail;
use serde_json::Value;

use super::conversation::CoderConversation;
use super::tools::{self, SUBMIT};
use super::{done, gave_up, prompt};
use crate::graph::{CodingGraph, RunNodeExit};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::workspace;
use crate::recovery::AttemptFailureClass;
use crate::runner_port::ToolRefusal;
use crate::work::{CodingState, ResearchAnswer, RunStateEvent};

/// Longest answer of a tool that a model is shown.
const SHOWN: usize = 16_000;

pub(super) async fn write(
    work: &CodingState,
    chosen: &ChosenModel<'_>,
    tally: &mut VisitModelUsage,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let model = chosen.model;
    let place = workspace(work)?;
    // What stays the same comes first: a prompt cache keeps it over attempts.
    let mut words = prompt::project(work);
    words.push_str(&prompt::task(work));
    let reads = !writes(work);
    let rules = if reads {
        prompt::ONLY_LOOKS
    } else {
        prompt::WITH_TOOLS
    };
    let messages = vec![
        ModelMessage::system(prompt::rules(work, rules)).cached(),
        ModelMessage::user(words).cached(),
    ];
    let request =
        ModelRequest::new(&model.model, messages, model.max_tokens).with_tools(tools::given(work));
    let mut talk = match CoderConversation::begin(chosen, request, tally) {
        Ok(talk) => talk,
        Err(why) => {
            return Ok(gave_up(
                AttemptFailureClass::Malformed,
                why,
                &[],
                &model.name,
            ));
        }
    };
    let mut changed = false;
    let mut approve = None;
    let mut summary = "the turns ran out".to_owned();
    for _ in 0..work.task.max_turns {
        let answer = match talk.ask(ctx).await? {
            Ok(answer) => answer,
            Err(trouble) => {
                let class = if trouble.unavailable {
                    AttemptFailureClass::ModelUnavailable
                } else {
                    AttemptFailureClass::Malformed
                };
                return Ok(gave_up(class, trouble.message, &[], &model.name));
            }
        };
        if answer.calls.is_empty() {
            // Words without a call are a report, and the tree is judged in any case.
            summary = answer.words;
            break;
        }
        let mut results = Vec::new();
        let mut submitted = None;
        for call in &answer.calls {
            if call.name == SUBMIT {
                submitted = Some(tools::text_of(&call.arguments, "summary"));
                approve = call.arguments.get("approve").and_then(Value::as_bool);
                continue;
            }
            let said = tools::call(work, &place, call, &mut changed, ctx).await?;
            // A rule can be worked around; a person's no is for the planner.
            if said.refused == Some(ToolRefusal::ByPeople) {
                let named = [call.name.clone()];
                return Ok(gave_up(
                    AttemptFailureClass::ApprovalRejected,
                    said.text,
                    &named,
                    &model.name,
                ));
            }
            results.push(MessagePart::Result {
                id: call.id.clone(),
                name: call.name.clone(),
                content: tail(&said.text, SHOWN).to_owned(),
                failed: said.failed,
            });
        }
        if let Some(words) = submitted {
            summary = words;
            break;
        }
        talk.say(ModelMessage {
            role: MessageRole::User,
            parts: results,
            cache_here: false,
        });
    }
    if reads {
        let answer = ResearchAnswer {
            by: model.name.clone(),
            text: summary.chars().take(4000).collect(),
            approve,
        };
        return Ok(NodeExit::by(RunNodeExit::Answered).with(RunStateEvent::Answered { answer }));
    }
    let way = if changed {
        RunNodeExit::Edits
    } else {
        RunNodeExit::NoOp
    };
    let summary: String = summary.chars().take(600).collect();
    Ok(done(way, &model.name, summary))
}

/// Whether the coder that works on it may change files.
fn writes(work: &CodingState) -> bool {
    let handoff = work.task.handoff.as_ref();
    handoff.is_none_or(|handoff| handoff.role.writes)
}
