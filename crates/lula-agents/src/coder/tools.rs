//! A model with tools: a conversation in which every call is an effect, until it submits.

use std::fmt::Write;

use lula_edit::syntax::{self, SyntaxVerdict};
use lula_edit::{AppliedEdit, FileEdit};
use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_models::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelTool, ModelToolCall,
};
use lula_protocol::call::{ListFiles, OutlineFile, ReadFile, SearchFiles, WriteFile};
use lula_protocol::{ToolAction, WorkspaceId};
use serde_json::{Value, json};

use super::conversation::CoderConversation;
use super::{done, gave_up, prompt};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::{shell, tried, workspace};
use crate::recovery::AttemptFailureClass;
use crate::runner_port::{Reply, ToolRefusal};
use crate::team::PROPOSE;
use crate::work::{CodingState, ResearchAnswer, RunStateEvent};
use lula_repair::trial::tail;

/// Longest answer of a tool that a model is shown.
const SHOWN: usize = 16_000;
/// How the model says that it is done.
const SUBMIT: &str = "submit";

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
        ModelRequest::new(&model.model, messages, model.max_tokens).with_tools(given(work));
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
                submitted = Some(text_of(&call.arguments, "summary"));
                approve = call.arguments.get("approve").and_then(Value::as_bool);
                continue;
            }
            let said = match forbidden(work, call) {
                Some(why) => Reply::failed(why),
                None if call.name == PROPOSE => propose(work, call, ctx).await?,
                None => act(&place, call, &mut changed, ctx).await?,
            };
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

/// Says what is wanted to the run that leads the plan.
async fn propose(
    work: &CodingState,
    call: &ModelToolCall,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let Some(handoff) = &work.task.handoff else {
        return Ok(Reply::failed("there is no plan here"));
    };
    let effect = RunEffect::Propose {
        step: handoff.step.clone(),
        arguments: call.arguments.clone(),
    };
    Ok(tried(ctx.effect::<Reply>(effect.request()).await)?.unwrap_or_else(Reply::failed))
}

/// Whether the coder that works on it may change files.
fn writes(work: &CodingState) -> bool {
    let handoff = work.task.handoff.as_ref();
    handoff.is_none_or(|handoff| handoff.role.writes)
}

/// The tools that the coder may call.
fn given(work: &CodingState) -> Vec<ModelTool> {
    let mut tools = offered();
    if let Some(handoff) = &work.task.handoff {
        tools.push(proposing());
        let allowed = &handoff.authority.tools;
        tools.retain(|tool| tool.name == SUBMIT || allowed.contains(&tool.name));
        if handoff.role_name == "reviewer" {
            tools.retain(|tool| tool.name != SUBMIT);
            tools.push(tool(
                SUBMIT,
                "Ends the review: whether you agree, and what is wrong where you do not.",
                &["approve", "summary"],
                &json!({"approve": {"type": "boolean"}, "summary": {"type": "string"}}),
            ));
        }
    }
    tools
}

/// Why a call is not for an agent, where it is not. What it does by commands is judged later.
fn forbidden(work: &CodingState, call: &ModelToolCall) -> Option<String> {
    let handoff = work.task.handoff.as_ref()?;
    if !handoff.authority.tools.contains(&call.name) {
        return Some(format!(
            "a {} has no tool {:?}",
            handoff.role_name, call.name
        ));
    }
    if !matches!(call.name.as_str(), "write_file" | "edit_file") {
        return None;
    }
    let path = text_of(&call.arguments, "path");
    let scope = &handoff.authority.scope;
    (!scope.holds(&path)).then(|| {
        format!(
            "{path} is not yours to change: only {} are",
            scope.patterns().join(", ")
        )
    })
}

fn text_of(arguments: &Value, name: &str) -> String {
    let text = arguments.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Does what a call asks for.
async fn act(
    place: &WorkspaceId,
    call: &ModelToolCall,
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    if call.name == "edit_file" {
        return edit(place, &call.arguments, changed, ctx).await;
    }
    let action = match action(call) {
        Ok(action) => action,
        Err(why) => return Ok(Reply::failed(why)),
    };
    let mutates = action.mutates();
    let said = perform(place, action, ctx).await?;
    *changed |= mutates && (!said.failed || call.name == "run");
    Ok(said)
}

async fn perform(
    place: &WorkspaceId,
    action: ToolAction,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let effect = RunEffect::Act {
        workspace: place.clone(),
        action,
    };
    Ok(tried(ctx.effect::<Reply>(effect.request()).await)?.unwrap_or_else(Reply::failed))
}

/// The tool of a call. A call describes an act; nothing in it speaks about permission.
fn action(call: &ModelToolCall) -> Result<ToolAction, String> {
    fn typed<T: serde::de::DeserializeOwned>(arguments: &Value) -> Result<T, String> {
        serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())
    }
    let arguments = &call.arguments;
    Ok(match call.name.as_str() {
        "read_file" => ToolAction::ReadFile(typed::<ReadFile>(arguments)?),
        "list_files" => ToolAction::ListFiles(typed::<ListFiles>(arguments)?),
        "search" => ToolAction::Search(typed::<SearchFiles>(arguments)?),
        "outline" => ToolAction::Outline(typed::<OutlineFile>(arguments)?),
        "write_file" => ToolAction::WriteFile(typed::<WriteFile>(arguments)?),
        "run" => shell(&text_of(arguments, "command"), ""),
        other => return Err(format!("there is no tool {other:?}")),
    })
}

/// Finds the one place an edit means, in memory, and writes the file only if it still parses.
async fn edit(
    place: &WorkspaceId,
    arguments: &Value,
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let path = text_of(arguments, "path");
    let effect = RunEffect::Fetch {
        workspace: place.clone(),
        path: path.clone(),
    };
    let current: Option<String> = match tried(ctx.effect(effect.request()).await)? {
        Ok(text) => text,
        Err(why) => return Ok(Reply::failed(why)),
    };
    let wanted = FileEdit::Replace {
        path: path.clone(),
        search: text_of(arguments, "search"),
        replace: text_of(arguments, "replace"),
    };
    let (text, applied) = match lula_edit::apply(&wanted, current.as_deref()) {
        Ok(done) => done,
        Err(error) => return Ok(Reply::failed(error.to_string())),
    };
    if applied == AppliedEdit::Nothing {
        return Ok(Reply::failed("this edit changes nothing"));
    }
    if let SyntaxVerdict::Broken { .. } = syntax::check(&path, current.as_deref(), &text) {
        let mut why = format!("{path} would no longer parse; nothing was written");
        let _ = write!(
            why,
            ": {:?}",
            syntax::check(&path, current.as_deref(), &text)
        );
        return Ok(Reply::failed(why));
    }
    let action = ToolAction::WriteFile(WriteFile {
        path,
        content: text,
        executable: false,
    });
    let said = perform(place, action, ctx).await?;
    *changed |= !said.failed;
    Ok(said)
}

fn tool(name: &str, description: &str, required: &[&str], properties: &Value) -> ModelTool {
    ModelTool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "required": required, "properties": properties,
            "additionalProperties": false}),
    }
}

fn proposing() -> ModelTool {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let tasks = json!({"type": "array", "items": {
        "type": "object", "required": ["id", "goal"], "additionalProperties": false,
        "properties": {
            "id": {"type": "string"}, "goal": {"type": "string"}, "needs": strings,
            "files": strings, "done_when": strings, "role": {"type": "string"},
            "repository": {"type": "string"},
        },
    }});
    let edges = json!({"type": "array", "items": {
        "type": "object", "required": ["task", "needs"], "additionalProperties": false,
        "properties": {"task": {"type": "string"}, "needs": {"type": "string"}},
    }});
    tool(
        PROPOSE,
        "Proposes a change of the plan that your task is part of: tasks to add, one that nobody has \
         begun to replace with others, tasks to cancel, and what needs what. All of it is applied or \
         nothing; the answer says why not, and shows the plan. Your own task stays as it is.",
        &[],
        &json!({
            "add": tasks,
            "replace": {"type": "object", "required": ["task", "with"],
                "additionalProperties": false,
                "properties": {"task": {"type": "string"}, "with": tasks}},
            "cancel": strings, "need": edges, "unneed": edges,
        }),
    )
}

fn offered() -> Vec<ModelTool> {
    let string = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    vec![
        tool(
            "read_file",
            "Reads a file, or the lines from one number to another.",
            &["path"],
            &json!({"path": string(), "from_line": number(), "to_line": number()}),
        ),
        tool(
            "list_files",
            "Lists files below a directory; an empty path is the top.",
            &[],
            &json!({"path": string(), "glob": string()}),
        ),
        tool(
            "search",
            "Finds lines that match a regular expression, or a text as it is with literal.",
            &["pattern"],
            &json!({"pattern": string(), "literal": {"type": "boolean"}, "glob": string()}),
        ),
        tool(
            "outline",
            "Lists the functions of a file with their lines.",
            &["path"],
            &json!({"path": string()}),
        ),
        tool(
            "edit_file",
            "Replaces lines of a file: search stands there exactly once; empty makes a new file.",
            &["path", "search", "replace"],
            &json!({"path": string(), "search": string(), "replace": string()}),
        ),
        tool(
            "write_file",
            "Writes a whole file.",
            &["path", "content"],
            &json!({"path": string(), "content": string(), "executable": {"type": "boolean"}}),
        ),
        tool(
            "run",
            "Runs a shell command at the top of the project, in a sandbox without network.",
            &["command"],
            &json!({"command": string()}),
        ),
        tool(
            SUBMIT,
            "Ends the work. Call it when the task is done.",
            &["summary"],
            &json!({"summary": string()}),
        ),
    ]
}
