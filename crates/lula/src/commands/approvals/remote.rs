//! Answering a question of a runner elsewhere. What it shows is checked against what would be
//! signed: a runner cannot have something approved that it did not show.

use lula_config::variables::RUNNER_KEY;
use lula_protocol::{ApprovalId, Code, Decision, Exit};
use lula_runner::api::ApprovalView;
use lula_runner::client::{Address, Client, ClientError};
use serde_json::json;

use super::{confirmed, keys};
use crate::cli::AnswerFlags;
use crate::failure::Failure;
use crate::record::spoken_time;
use crate::runs::block_on;
use crate::session::Session;
use crate::term::{DIM, Table, paint, visible};

pub(super) fn answer(
    id: &ApprovalId,
    runner: &str,
    flags: &AnswerFlags,
    decision: Decision,
    session: &Session,
) -> Result<Exit, Failure> {
    let address = runner.parse::<Address>().map_err(|error| {
        Failure::new(Code::BadCommandLine, Exit::Usage, error.to_string())
            .remedy("for example --runner 10.0.0.5:7070")
    })?;
    let bearer = std::env::var(RUNNER_KEY).ok().filter(|key| !key.is_empty());
    let client = Client::new(address, bearer.map(Into::into));
    let view = block_on(async { client.approval(id).await.map_err(|error| refused(&error)) })?;
    if !view.is_intact() {
        let message = format!("what the runner shows for {id} is not what it asks about");
        return Err(Failure::new(Code::ApprovalsUnusable, Exit::Failed, message)
            .remedy("do not approve it, and look at that runner"));
    }
    if !session.screen.is_json() {
        show(&view, session)?;
    }
    if !flags.yes && !confirmed(decision)? {
        session.screen.note("nothing was answered");
        return Ok(Exit::WaitingForApproval);
    }
    let Some(file) = &flags.key else {
        return Err(Failure::new(
            Code::BadCommandLine,
            Exit::Usage,
            "there is no key to answer with",
        )
        .remedy("give --key FILE"));
    };
    let token = keys::sign(file, &view.challenge, view.role.as_deref(), decision)?;
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
        "pending" => Exit::WaitingForApproval,
        _ => Exit::Verified,
    })
}

fn show(view: &ApprovalView, session: &Session) -> Result<(), Failure> {
    let mut table = Table::default();
    let mut row = |name: &str, value: String| table.row([paint(DIM, name), value]);
    row("question", view.challenge.id.to_string());
    row("why", visible(&view.challenge.reason));
    row("asked by", view.requester.to_string());
    row("digest", view.challenge.digest.to_string());
    row("expires", spoken_time(view.challenge.expires_ms));
    row(
        "standing",
        format!("{}, {} of {}", view.standing, view.approvals, view.needed),
    );
    session.screen.note(table.render(0).trim_end());
    session.screen.patch(&view.rendered)
}

fn refused(error: &ClientError) -> Failure {
    Failure::new(Code::VoteRefused, Exit::Failed, error.to_string())
        .remedy("is the runner there, and LULA_RUNNER_KEY its key?")
}
