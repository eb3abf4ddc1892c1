//! The tools of a coder: each call becomes an effect, and its reply what the model is told.

mod arguments;
mod definitions;
mod pictures;
mod reports;

use lula_graph::{NodeContext, VisitStop};
use lula_models::normal::ModelToolCall;
use lula_protocol::{ToolAction, WorkspaceId};
use lula_runner_api::CommittedChangeView;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::effects::{RunEffect, TodoItem, TodoSummary};
use crate::nodes::tried;
use crate::runner_port::{Reply, excerpt};
use crate::task::ModelChoice;
use crate::team::PROPOSE;
use crate::work::{CodingState, TestBaseline};

pub(crate) use arguments::action;
pub(super) use arguments::text_of;
pub(super) use definitions::given;
pub(crate) use definitions::{looking, offered};
pub(crate) use pictures::shown_parts;
pub(crate) use reports::{diff as diff_report, tests as test_report};

/// The context of a model that says nothing of it, in tokens.
const USUAL_CONTEXT: u64 = 100_000;
/// Bytes of a token, about.
const TOKEN: u64 = 3;
/// One answer of a tool may take this part of the context, and so many bytes.
const PART: u64 = 8;
const LEAST: u64 = 4_000;
const MOST: u64 = 48_000;
/// Most things that a plan holds, and the longest of them.
const TODO: usize = 50;
const TODO_TEXT: usize = 300;

/// What a model can be shown of one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerRoom {
    /// Most bytes of its text.
    pub(crate) bytes: usize,
    /// How many more pictures the conversation holds; nothing where the model takes none.
    pub(crate) pictures: Option<usize>,
}

impl AnswerRoom {
    /// What a model can be shown in a conversation that holds so many pictures.
    pub(crate) fn of(model: &ModelChoice, pictures: usize) -> Self {
        let context = model.context.unwrap_or(USUAL_CONTEXT);
        let bytes = (context.saturating_mul(TOKEN) / PART).clamp(LEAST, MOST);
        let left = pictures::MOST.saturating_sub(pictures);
        Self {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            pictures: model.settings.pictures.then_some(left),
        }
    }
}

/// A text as a model with so much room is shown it: both ends, at whole lines, with what is left out
/// between them.
pub(super) fn shown(text: &str, room: usize) -> String {
    // What a tool says about its answer takes a few bytes more.
    excerpt(text, room.saturating_add(room / 8), 0)
}

/// Does what a call asks for, where the coder may ask for it. `room` is what its answer may take.
pub(super) async fn call(
    work: &CodingState,
    place: &WorkspaceId,
    call: &ModelToolCall,
    room: AnswerRoom,
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    if let Some(why) = forbidden(work, call) {
        return Ok(Reply::failed(why));
    }
    match call.name.as_str() {
        PROPOSE => propose(work, call, ctx).await,
        "diff" => diff(place, room.bytes, ctx).await,
        "test" => test(work, place, &call.arguments, room.bytes, ctx).await,
        "todo" => todo(&call.arguments, ctx).await,
        _ => act(place, call, room, changed, ctx).await,
    }
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
    done(effect, ctx).await
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
    let paths = match arguments::written(call) {
        Ok(paths) => paths,
        Err(why) => return Some(why),
    };
    let why = paths.iter().find_map(|path| {
        let leaves = path.split('/').any(|part| part == "..");
        let odd = leaves.then(|| format!("{path} is not written as a path below the top"));
        odd.or_else(|| handoff.refuses_write(path))
    });
    why.map(|why| format!("nothing was changed: {why}"))
}

/// What a call of one of the tools that look at files is shown; they are for planners too.
pub(crate) async fn look(
    place: &WorkspaceId,
    call: &ModelToolCall,
    room: AnswerRoom,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    if !looking().iter().any(|tool| tool.name == call.name) {
        let why = format!("there is no tool {:?} here", call.name);
        return Ok(Reply::failed(why));
    }
    let said = act(place, call, room, &mut false, ctx).await?;
    Ok(Reply {
        text: shown(&said.text, room.bytes),
        ..said
    })
}

/// Does what a call asks of the workspace.
async fn act(
    place: &WorkspaceId,
    call: &ModelToolCall,
    room: AnswerRoom,
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let action = match arguments::action(call, room) {
        Ok(action) => action,
        Err(why) => return Ok(Reply::failed(why)),
    };
    // A command that fails may have changed something all the same.
    let by_command = matches!(action, ToolAction::Exec(_) | ToolAction::Job(_));
    let mutates = action.mutates();
    let effect = RunEffect::Act {
        workspace: place.clone(),
        action,
        shown: u32::try_from(room.bytes).ok(),
    };
    let said = pictures::told(done(effect, ctx).await?, room);
    *changed |= mutates && (!said.failed || by_command);
    Ok(said)
}

/// What was changed so far.
async fn diff(
    place: &WorkspaceId,
    room: usize,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let effect = RunEffect::TakeChange {
        workspace: place.clone(),
    };
    let taken: Result<CommittedChangeView, String> = tried(ctx.effect(effect.request()).await)?;
    Ok(taken.map_or_else(Reply::failed, |taken| reports::change(&taken, room)))
}

/// What the tests say of the workspace as it is.
async fn test(
    work: &CodingState,
    place: &WorkspaceId,
    arguments: &Value,
    room: usize,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let names: Vec<String> = match listed(arguments, "names") {
        Ok(names) => names,
        Err(why) => return Ok(Reply::failed(why)),
    };
    let effect = RunEffect::RunTests {
        workspace: place.clone(),
        tests: work.task.tests.clone(),
        folder: work.task.folder_of(0).to_owned(),
        accept: Vec::new(),
        tests_ms: work.task.tests_ms,
    };
    let found: Result<TestBaseline, String> = tried(ctx.effect(effect.request()).await)?;
    Ok(found.map_or_else(Reply::failed, |now| {
        reports::tests(&now, work.baseline_of(0), &names, room)
    }))
}

/// What the tests say now, in words.
pub(crate) fn tested(now: &TestBaseline, before: Option<&TestBaseline>, room: usize) -> String {
    reports::tests(now, before, &[], room).text
}

/// Writes down what the coder plans to do.
async fn todo(arguments: &Value, ctx: &mut NodeContext<'_>) -> Result<Reply, VisitStop> {
    let mut items: Vec<TodoItem> = match listed(arguments, "items") {
        Ok(items) => items,
        Err(why) => return Ok(Reply::failed(why)),
    };
    if items.is_empty() || items.len() > TODO {
        return Ok(Reply::failed(format!("a plan has 1 to {TODO} items")));
    }
    for item in &mut items {
        item.text = item.text.chars().take(TODO_TEXT).collect();
    }
    let effect = RunEffect::Todo { items };
    let noted: Result<TodoSummary, String> = tried(ctx.effect(effect.request()).await)?;
    Ok(noted.map_or_else(Reply::failed, |noted| Reply::plain(noted.summary)))
}

/// A list among the arguments; an empty one where there is none.
fn listed<T: DeserializeOwned>(arguments: &Value, name: &str) -> Result<Vec<T>, String> {
    let Some(list) = arguments.get(name).filter(|list| !list.is_null()) else {
        return Ok(Vec::new());
    };
    serde_json::from_value(list.clone()).map_err(|error| format!("`{name}`: {error}"))
}

async fn done(effect: RunEffect, ctx: &mut NodeContext<'_>) -> Result<Reply, VisitStop> {
    Ok(tried(ctx.effect::<Reply>(effect.request()).await)?.unwrap_or_else(Reply::failed))
}

#[cfg(test)]
mod tests;
