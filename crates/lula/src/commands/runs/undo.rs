//! `lula undo RUN`

use lula_host::remote::RunAccess;
use lula_host::runs;
use lula_host::undo::UndoOutcome;
use lula_protocol::{RunExit, RunId};
use serde_json::json;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint, visible};

pub(in crate::commands) fn undo(
    run: &RunId,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let taken_back =
        runs::block_on(async { RunAccess::open(&session.host).await?.undo(run).await })?;
    let screen = &session.screen;
    match taken_back {
        UndoOutcome::Files { workspace, files } if screen.is_json() => {
            screen.document(&json!({"workspace": workspace, "files": files}))?;
        }
        UndoOutcome::Files { workspace, files } => {
            screen.note(&format!("{} as before the run", files.join(", ")));
            let back = format!("lula redo {workspace}   brings the change back");
            screen.note(&paint(DIM, back));
        }
        UndoOutcome::Branches(undone) if screen.is_json() => {
            let undone: Vec<_> = undone.iter().map(|(_, one)| one).collect();
            match undone.as_slice() {
                [one] => screen.document(one)?,
                several => screen.document(&several)?,
            }
        }
        UndoOutcome::Branches(undone) => {
            for (repository, one) in &undone {
                screen.note(&format!("the branch {} is gone", one.branch));
                let back = format!(
                    "git -C {} branch {} {}   brings it back",
                    visible(&repository.display().to_string()),
                    one.branch,
                    one.kept_as
                );
                screen.note(&paint(DIM, back));
            }
        }
    }
    Ok(RunExit::Verified)
}
