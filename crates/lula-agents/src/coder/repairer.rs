//! The built-in repairer as a coder: no model, only search.

use lula_graph::{NodeContext, NodeVisitFuture};
use lula_protocol::ToolAction;
use lula_protocol::call::WriteFile;

use super::{REPAIRER, done, gave_up};
use crate::effects::{RepairSearchResult, RunEffect};
use crate::graph::{CodingGraph, RunNodeExit};
use crate::nodes::{tried, workspace};
use crate::recovery::AttemptFailureClass;
use crate::runner_port::{Reply, ToolRefusal};
use crate::work::CodingState;

pub(super) async fn write(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let place = workspace(work)?;
    let effect = RunEffect::Search {
        workspace: place.clone(),
        tests: work.task.tests.clone(),
        folder: work.task.folder.clone(),
        search_ms: work.task.search_ms,
    };
    let found = match tried(ctx.effect::<RepairSearchResult>(effect.request()).await)? {
        Ok(found) => found,
        Err(why) => return Ok(gave_up(AttemptFailureClass::NotFound, why, &[], REPAIRER)),
    };
    if found.files.is_empty() {
        return Ok(gave_up(
            AttemptFailureClass::NotFound,
            found.summary,
            &[],
            REPAIRER,
        ));
    }
    for file in found.files {
        let action = ToolAction::WriteFile(WriteFile {
            path: file.path.clone(),
            content: file.text,
            executable: false,
        });
        let effect = RunEffect::Act {
            workspace: place.clone(),
            action,
            shown: None,
        };
        let said: Reply = ctx.effect(effect.request()).await?;
        if said.failed {
            let named = [file.path];
            let class = said
                .refused
                .map_or(AttemptFailureClass::NotFound, ToolRefusal::class);
            return Ok(gave_up(class, said.text, &named, REPAIRER));
        }
    }
    Ok(done(RunNodeExit::Edits, REPAIRER, found.summary))
}
