//! The tools of a coder: each call becomes an effect, and its reply what the model is told.

mod definitions;
mod edit;

use lula_graph::{NodeContext, VisitStop};
use lula_models::normal::ModelToolCall;
use lula_protocol::call::{ListFiles, OutlineFile, ReadFile, SearchFiles, WriteFile};
use lula_protocol::{ToolAction, WorkspaceId};
use serde_json::Value;

use crate::effects::RunEffect;
use crate::nodes::{shell, tried};
use crate::runner_port::Reply;
use crate::team::PROPOSE;
use crate::work::CodingState;

pub(super) use definitions::given;

/// Does what a call asks for, where the coder may ask for it.
pub(super) async fn call(
    work: &CodingState,
    place: &WorkspaceId,
    call: &ModelToolCall,
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    match forbidden(work, call) {
        Some(why) => Ok(Reply::failed(why)),
        None if call.name == PROPOSE => propose(work, call, ctx).await,
        None => act(place, call, changed, ctx).await,
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
    Ok(tried(ctx.effect::<Reply>(effect.request()).await)?.unwrap_or_else(Reply::failed))
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

pub(super) fn text_of(arguments: &Value, name: &str) -> String {
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
        return edit::edit(place, &call.arguments, changed, ctx).await;
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
