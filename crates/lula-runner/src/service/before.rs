//! How an effect that was cut off is taken back.

use lula_protocol::{Digest, ToolAction, ToolCall};
use lula_workspace::checkout;
use serde::{Deserialize, Serialize};

use super::RunnerService;
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::snapshots::{OURS, snapshot_named};
use crate::toolbox::frame::{FileImage, ToolboxAnswer, ToolboxPlan, ToolboxQuestion};

/// Largest layer that is copied before a command, so that a crash in its middle can be taken back.
const COPIED: u64 = 64 << 20;

/// How a cut-off effect is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EffectRollback {
    /// By putting these files back.
    Files(Vec<FileImage>),
    /// By returning to this snapshot, which was taken for it.
    Snapshot(String),
    /// By going through with it: it returns to this snapshot itself.
    Restoring(String),
    /// It leaves nothing that doing it again would not.
    Nothing,
    /// It cannot be taken back.
    Lost,
    /// A commit of these paths is there whole or not at all.
    Commit(Vec<String>),
    /// An undo is there if the diff is no longer this one.
    Undo(Digest),
    /// Branches of several repositories are all there, or are taken back.
    Branches(Vec<checkout::BranchUpdate>),
}

impl EffectRollback {
    /// How that call is taken back. A copy is taken where only a copy could do it.
    pub(super) fn of(room: &RunnerWorkspace, call: &ToolCall, plan: Option<&ToolboxPlan>) -> Self {
        match &call.action {
            ToolAction::WriteFile(_) | ToolAction::ApplyPatch(_) => {
                Self::Files(plan.map(|plan| plan.images.clone()).unwrap_or_default())
            }
            ToolAction::Undo(undo) => {
                let label = snapshot_named(room, undo.to.as_deref());
                Self::Restoring(label.unwrap_or_default())
            }
            ToolAction::Exec(_) | ToolAction::Git(_) if call.action.mutates() => {
                let label = format!("{OURS}{}", call.effect);
                let copied = room.workspace().snapshot_within(&label, COPIED);
                match copied {
                    Ok(()) => Self::Snapshot(label),
                    // Too large to be copied before every command, or never still: then a crash in the
                    // middle of this one is told as what it is.
                    Err(_) => Self::Lost,
                }
            }
            _ => Self::Nothing,
        }
    }

    /// As it was written down. What cannot be read cannot be taken back.
    pub(super) fn read(before: Option<&str>) -> Self {
        before
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or(Self::Lost)
    }

    /// A copy that served its purpose; one that stays takes space and nothing else.
    pub(super) fn forget_copy(&self, room: &RunnerWorkspace) {
        if let Self::Snapshot(label) = self {
            let _ = room.workspace().forget_snapshot(label);
        }
    }
}

impl RunnerService {
    /// Makes the world what it was before an effect.
    pub(super) fn take_back(
        &self,
        room: Option<&RunnerWorkspace>,
        before: &EffectRollback,
    ) -> Result<(), RequestRefusal> {
        let room = || {
            room.ok_or_else(|| RequestRefusal::Internal("an effect has no workspace".to_owned()))
        };
        match before {
            EffectRollback::Files(images) => {
                match room()?.ask(ToolboxQuestion::PutBack(images.clone()))? {
                    Ok(ToolboxAnswer::PutBack) => Ok(()),
                    Ok(_) => Err(RequestRefusal::ToolBroke(
                        "an answer of another kind".to_owned(),
                    )),
                    Err(failure) => Err(RequestRefusal::ToolBroke(failure.message)),
                }
            }
            EffectRollback::Snapshot(label) => {
                room()?.restore(label)?;
                Ok(room()?.workspace().forget_snapshot(label)?)
            }
            EffectRollback::Restoring(label) => room()?.restore(label),
            EffectRollback::Branches(branches) => Ok(checkout::take_back(self.git()?, branches)?),
            EffectRollback::Nothing
            | EffectRollback::Lost
            | EffectRollback::Commit(_)
            | EffectRollback::Undo(_) => Ok(()),
        }
    }
}
