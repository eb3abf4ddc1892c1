//! What a call would change, and what people see of it before they agree.

use lula_protocol::{Code, Digest, ToolAction, ToolCall, ToolOutcome};

use super::exec::failed;
use super::gate::ShownApproval;
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::snapshots::{label_problem, snapshot_named};
use crate::toolbox::frame::{ToolboxAnswer, ToolboxPlan, ToolboxQuestion};

/// What a call would change, or why it cannot be tried.
pub(super) fn plan(
    room: &RunnerWorkspace,
    call: &ToolCall,
) -> Result<Result<Option<ToolboxPlan>, ToolOutcome>, RequestRefusal> {
    match &call.action {
        ToolAction::WriteFile(_) | ToolAction::ApplyPatch(_) => {
            match room.ask(ToolboxQuestion::Plan(call.action.clone()))? {
                Ok(ToolboxAnswer::Plan(plan)) => Ok(Ok(Some(plan))),
                Ok(_) => Err(RequestRefusal::ToolBroke(
                    "an answer of another kind".to_owned(),
                )),
                Err(failure) => Ok(Err(failed(failure.code, failure.message))),
            }
        }
        ToolAction::Undo(undo) => Ok(match snapshot_named(room, undo.to.as_deref()) {
            Some(_) => Ok(None),
            None => Err(failed(
                Code::NothingThere,
                "there is no such snapshot in the workspace: take one first",
            )),
        }),
        ToolAction::Snapshot(snapshot) => Ok(match label_problem(&snapshot.label) {
            Some(problem) => Err(failed(Code::BadRequest, problem)),
            None => Ok(None),
        }),
        _ => Ok(Ok(None)),
    }
}

/// What people see before they agree.
pub(super) fn shown(
    room: &RunnerWorkspace,
    call: &ToolCall,
    plan: Option<&ToolboxPlan>,
) -> Result<Result<ShownApproval, ToolOutcome>, RequestRefusal> {
    if let Some(plan) = plan {
        if plan.truncated {
            let message = "the change is too long to be shown to people, who have to agree to it";
            return Ok(Err(failed(Code::OverLimit, message)));
        }
        let images = serde_json::to_vec(&plan.images)
            .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
        return Ok(Ok(ShownApproval {
            rendered: format!("{}{}", labels(plan), plan.diff),
            base_tree: Digest::of_bytes(&images),
        }));
    }
    let rendered = serde_json::to_string_pretty(&call.action)
        .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
    Ok(Ok(ShownApproval {
        rendered,
        base_tree: room.workspace().diff()?.digest,
    }))
}

/// What a reviewer should look at twice, one line for each file.
fn labels(plan: &ToolboxPlan) -> String {
    let mut text = String::new();
    for image in &plan.images {
        text.push_str(&super::views::labels(&image.path));
    }
    text
}
