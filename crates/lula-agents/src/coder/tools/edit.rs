//! Edits of files: each is placed in memory, and written only if the file still parses.

use std::fmt::Write;

use lula_edit::syntax::{self, SyntaxVerdict};
use lula_edit::{AppliedEdit, FileEdit};
use lula_graph::{NodeContext, VisitStop};
use lula_protocol::call::WriteFile;
use lula_protocol::{ToolAction, WorkspaceId};
use serde_json::Value;

use super::{perform, text_of};
use crate::effects::RunEffect;
use crate::nodes::tried;
use crate::runner_port::Reply;

/// Finds the one place an edit means, in memory, and writes the file only if it still parses.
pub(super) async fn edit(
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
