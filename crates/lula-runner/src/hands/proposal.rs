//! What a call would change, and what people see of it before they agree.

use lula_protocol::{Action, Code, Digest, Outcome, ToolCall};

use super::exec::failed;
use super::gate::Shown;
use super::refusal::Refusal;
use super::room::Room;
use super::snapshots::{label_problem, snapshot_named};
use crate::toolbox::frame::{Answer, Ask, Plan};

/// What a call would change, or why it cannot be tried.
pub(super) fn plan(room: &Room, call: &ToolCall) -> Result<Result<Option<Plan>, Outcome>, Refusal> {
    match &call.action {
        Action::WriteFile(_) | Action::ApplyPatch(_) => {
            match room.ask(Ask::Plan(call.action.clone()))? {
                Ok(Answer::Plan(plan)) => Ok(Ok(Some(plan))),
                Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
                Err(failure) => Ok(Err(failed(failure.code, failure.message))),
            }
        }
        Action::Undo(undo) => Ok(match snapshot_named(room, undo.to.as_deref()) {
            Some(_) => Ok(None),
            None => Err(failed(
                Code::NothingThere,
                "there is no such snapshot in the workspace: take one first",
            )),
        }),
        Action::Snapshot(snapshot) => Ok(match label_problem(&snapshot.label) {
            Some(problem) => Err(failed(Code::BadRequest, problem)),
            None => Ok(None),
        }),
        _ => Ok(Ok(None)),
    }
}

/// What people see before they agree.
pub(super) fn shown(
    room: &Room,
    call: &ToolCall,
    plan: Option<&Plan>,
) -> Result<Result<Shown, Outcome>, Refusal> {
    if let Some(plan) = plan {
        if plan.truncated {
            let message = "the change is too long to be shown to people, who have to agree to it";
            return Ok(Err(failed(Code::OverLimit, message)));
        }
        let images = serde_json::to_vec(&plan.images)
            .map_err(|error| Refusal::Internal(error.to_string()))?;
        return Ok(Ok(Shown {
            rendered: format!("{}{}", labels(plan), plan.diff),
            base_tree: Digest::of_bytes(&images),
        }));
    }
    let rendered = serde_json::to_string_pretty(&call.action)
        .map_err(|error| Refusal::Internal(error.to_string()))?;
    Ok(Ok(Shown {
        rendered,
        base_tree: room.workspace().diff()?.digest,
    }))
}

/// What a reviewer should look at twice, one line for each file.
fn labels(plan: &Plan) -> String {
    let mut text = String::new();
    for image in &plan.images {
        text.push_str(&super::views::labels(&image.path));
    }
    text
}
