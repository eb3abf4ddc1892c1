//! Answering a question of a runner elsewhere. What it shows is checked against what would be
//! signed: a runner cannot have something approved that it did not show.

use lula_config::variables::RUNNER_KEY;
use lula_host::approvals::sign;
use lula_host::runs::block_on;
use lula_protocol::calendar::utc_text;
use lula_protocol::{ApprovalDecision, ApprovalId, Code, RunExit};
use lula_runner_api::ApprovalView;
use lula_runner_api::client::{RunnerAddress, RunnerClient, RunnerClientError};
use serde_json::json;

use super::confirmed;
use crate::cli::AnswerFlags;
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
    let address = runner.parse::<RunnerAddress>().map_err(|error| {
        CommandFailure::new(Code::BadCommandLine, RunExit::Usage, error.to_string())
            .remedy("for example --runner 10.0.0.5:7070")
    })?;
    let bearer = std::env::var(RUNNER_KEY).ok().filter(|key| !key.is_empty());
    let client = RunnerClient::new(address, bearer.map(Into::into));
    let view = block_on(async { client.approval(id).await.map_err(|error| refused(&error)) })?;
    if !view.is_intact() {
        let message = format!("what the runner shows for {id} is not what it asks about");
        return Err(
            CommandFailure::new(Code::ApprovalsUnusable, RunExit::Failed, message)
                .remedy("do not approve it, and look at that runner"),
        );
    }
    if !session.screen.is_json() {
        show(&view, session)?;
    }
    if !flags.yes && !confirmed(decision)? {
        session.screen.note("nothing was answered");
        return Ok(RunExit::WaitingForApproval);
    }
    let Some(file) = &flags.key else {
        return Err(CommandFailure::new(
            Code::BadCommandLine,
            RunExit::Usage,
            "there is no key to answer with",
        )
        .remedy("give --key FILE"));
    };
    let token = sign(file, &view.challenge, view.role.as_deref(), decision)?;
    let view = block_on(async { client.vote(&token).await.map_err(|error| refused(&error)) })?;
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

fn refused(error: &RunnerClientError) -> CommandFailure {
    CommandFailure::new(Code::VoteRefused, RunExit::Failed, error.to_string())
        .remedy("is the runner there, and LULA_RUNNER_KEY its key?")
}
