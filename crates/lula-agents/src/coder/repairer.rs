//! The built-in repairer as a coder: no model, only search.

use lula_graph::{Ctx, Visit};
use lula_protocol::Action;
use lula_protocol::call::WriteFile;

use super::{REPAIRER, done, gave_up};
use crate::deeds::{Deed, Found};
use crate::graph::{Coding, Way};
use crate::hands::{Refused, Said};
use crate::nodes::{tried, workspace};
use crate::recover::FailureClass;
use crate::work::Work;

pub(super) async fn write(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let place = workspace(work)?;
    let deed = Deed::Repair {
        workspace: place.clone(),
        tests: work.task.tests.clone(),
        folder: work.task.folder.clone(),
        search_ms: work.task.search_ms,
    };
    let found = match tried(ctx.effect::<Found>(deed.effect()).await)? {
        Ok(found) => found,
        Err(why) => return Ok(gave_up(FailureClass::NotFound, why, &[], REPAIRER)),
    };
    if found.files.is_empty() {
        return Ok(gave_up(
            FailureClass::NotFound,
            found.summary,
            &[],
            REPAIRER,
        ));
    }
    for file in found.files {
        let action = Action::WriteFile(WriteFile {
            path: file.path.clone(),
            content: file.text,
            executable: false,
        });
        let deed = Deed::Act {
            workspace: place.clone(),
            action,
        };
        let said: Said = ctx.effect(deed.effect()).await?;
        if said.failed {
            let named = [file.path];
            let class = said.refused.map_or(FailureClass::NotFound, Refused::class);
            return Ok(gave_up(class, said.text, &named, REPAIRER));
        }
    }
    Ok(done(Way::Edits, REPAIRER, found.summary))
}
