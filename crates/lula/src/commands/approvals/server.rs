//! Questions of a server, and answers to them as the holder of its key.

use std::sync::Arc;

use lula_host::remote::{RemoteApproval, ServerClient};
use lula_host::runs;
use lula_protocol::{ApprovalDecision, RunExit};
use serde_json::json;

use super::{confirmed, say_how_to_answer};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain, visible};

pub(super) fn list(server: &ServerClient, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let all = runs::block_on(async { Ok::<_, CommandFailure>(server.approvals().await?) })?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&all)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for asked in &all {
        table.row([
            paint(STRONG, &asked.id),
            paint(WARN, format!("{}/{}", asked.votes(), asked.needed)),
            asked.run.short().to_owned(),
            asked.reason.escape_debug().to_string(),
        ]);
    }
    say_how_to_answer(&table, all.is_empty(), session)
}

fn present(asked: &RemoteApproval, session: &CliSession) -> Result<(), CommandFailure> {
    let mut table = TextTable::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("question", asked.id.to_string());
    row("why", visible(&asked.reason));
    row("run", asked.run.to_string());
    row("task", plain(&asked.task, 400));
    row("digest", asked.digest.to_string());
    session.screen.note(table.render(0).trim_end());
    session
        .screen
        .patch(asked.rendered.as_deref().unwrap_or_default())
}

pub(super) fn show(
    name: &str,
    server: &Arc<ServerClient>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let asked = runs::block_on(async { Ok::<_, CommandFailure>(server.approval(name).await?) })?;
    if session.screen.is_json() {
        session.screen.document(&asked)?;
    } else {
        present(&asked, session)?;
    }
    Ok(RunExit::Verified)
}

pub(super) fn answer(
    (name, yes): (&str, bool),
    decision: ApprovalDecision,
    server: &Arc<ServerClient>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let asked = server.approval(name).await?;
        let screen = &session.screen;
        if !screen.is_json() {
            present(&asked, session)?;
        }
        if !yes && !confirmed(decision)? {
            screen.note("nothing was answered");
            return Ok(RunExit::WaitingForApproval);
        }
        server.vote(&asked, decision).await?;
        if screen.is_json() {
            screen.document(&json!({"run": asked.run, "id": asked.id, "decision": decision}))?;
        } else {
            let said = match decision {
                ApprovalDecision::Approve => paint(GOOD, "approved"),
                ApprovalDecision::Reject => paint(BAD, "rejected"),
            };
            screen.note(&format!("{}: {said}", asked.id));
        }
        Ok(RunExit::Verified)
    })
}
