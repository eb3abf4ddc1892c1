//! Answering a question of a runner elsewhere.

use lula_host::remote_approvals::RemoteApprovals;
use lula_protocol::calendar::utc_text;
use lula_protocol::{ApprovalDecision, ApprovalId, RunExit};
use lula_runner_api::ApprovalView;
use serde_json::json;

use super::confirmed;
use super::flags::AnswerFlags;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, TextTable, paint, visible};

pub(super) fn answer(
    id: &ApprovalId,
    runner: &str,
    flags: &AnswerFlags,
    decision: ApprovalDecision,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let runner = RemoteApprovals::at(runner)?;
    let view = runner.question(id)?;
    if !session.screen.is_json() {
        show(&view, session)?;
    }
    if !flags.yes && !confirmed(decision)? {
        session.screen.note("nothing was answered");
        return Ok(RunExit::WaitingForApproval);
    }
    let view = runner.answer(&view, flags.key.as_deref(), decision)?;
    if session.screen.is_json() {
        session
            .screen
            .document(&json!({"id": id, "standing": view.standing}))?;
    } else {
        let text = format!(
            "{id}: {}, {} of {} agreed",
            view.standing, view.approvals, view.needed
        );
        session.screen.note(&text);
    }
    Ok(match view.standing.as_str() {
        "pending" => RunExit::WaitingForApproval,
        _ => RunExit::Verified,
    })
}

fn show(view: &ApprovalView, session: &CliSession) -> Result<(), CommandFailure> {
    let mut table = TextTable::default();
    let mut row = |name: &str, value: String| table.row([paint(DIM, name), value]);
    row("question", view.challenge.id.to_string());
    row("why", visible(&view.challenge.reason));
    row("asked by", view.requester.to_string());
    row("digest", view.challenge.digest.to_string());
    row("expires", utc_text(view.challenge.expires_ms));
    row(
        "standing",
        format!("{}, {} of {}", view.standing, view.approvals, view.needed),
    );
    session.screen.note(table.render(0).trim_end());
    session.screen.patch(&view.rendered)
}
