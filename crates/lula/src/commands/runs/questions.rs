//! What runs ask, for `lula approvals`, `lula approve` and `lula reject`

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::consent;
use lula_host::record::local_principal;
use lula_host::{HostError, runs, store};
use lula_protocol::{ApprovalDecision, Code, RunExit, RunId};
use lula_store::SecretGuard;
use serde_json::json;

use crate::commands::approvals;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, TextTable, paint, plain, visible};

/// What runs wait with, for `lula approvals`.
pub(in crate::commands) fn questions(
    session: &CliSession,
) -> Result<Vec<(RunId, consent::RunApprovalQuestion)>, CommandFailure> {
    if !store::is_there(&session.host)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        Ok(consent::open_questions(store).await?)
    })
}

/// A question with exactly the change it is about.
fn present(
    known: &RunState<CodingState>,
    question: &consent::RunApprovalQuestion,
    session: &CliSession,
) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    let mut table = TextTable::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("question", question.approval.to_string());
    row("why", visible(&question.reason));
    row("run", known.progress.run.to_string());
    row("task", plain(&known.state.task.text, 400));
    row("digest", question.digest.to_string());
    if let Some(verdict) = &known.state.verdict {
        row(
            "verdict",
            format!("{}: {}", verdict.name(), plain(verdict.why(), 400)),
        );
    }
    screen.note(table.render(0).trim_end());
    match &known.state.proposal {
        Some(proposal) => screen.patch(&proposal.diff),
        None => Ok(()),
    }
}

/// Shows what a run asks.
pub(in crate::commands) fn show_question(
    run: &RunId,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            let message = format!("{run} asks nothing any more");
            return Err(
                CommandFailure::new(Code::UnknownApproval, RunExit::Usage, message)
                    .remedy("`lula show` tells what came of it"),
            );
        };
        if session.screen.is_json() {
            let diff = known.state.proposal.as_ref().map(|made| &made.diff);
            let id = &question.approval;
            session
                .screen
                .document(&json!({"id": id, "run": run, "digest": question.digest,
                "reason": question.reason, "rendered": diff}))?;
        } else {
            present(&known, &question, session)?;
        }
        Ok(RunExit::Verified)
    })
}

/// Answers what a run asks. Its driver goes on; where there is none, `lula resume` does.
pub(in crate::commands) fn answer(
    run: &RunId,
    decision: ApprovalDecision,
    yes: bool,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        let reader = runs::reader(store)?;
        let known = reader.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            return Err(HostError::NoQuestion(run.clone()).into());
        };
        let screen = &session.screen;
        if !screen.is_json() {
            present(&known, &question, session)?;
        }
        if !yes && !approvals::confirmed(decision)? {
            screen.note("nothing was answered");
            return Ok(RunExit::WaitingForApproval);
        }
        consent::answer(&reader, &known, &question, decision).await?;
        if screen.is_json() {
            screen.document(&json!({"run": run, "id": question.approval, "decision": decision}))?;
        } else {
            let said = match decision {
                ApprovalDecision::Approve => paint(GOOD, "approved"),
                ApprovalDecision::Reject => paint(BAD, "rejected"),
            };
            screen.note(&format!("{}: {said}", question.approval));
            screen.note(&paint(DIM, format!("lula resume {run}   goes on with it")));
        }
        Ok(RunExit::Verified)
    })
}
