//! What runs ask, for `lula approvals`, `lula approve` and `lula reject`

use std::sync::Arc;

use lula_agents::Work;
use lula_graph::RunState;
use lula_protocol::{Code, Decision, Exit, RunId};
use lula_store::{ApprovalState, SecretGuard};
use serde_json::json;

use crate::commands::approvals;
use crate::failure::Failure;
use crate::record::local_principal;
use crate::runs::{self, consent, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, Table, paint, plain, visible};

/// What runs wait with, for `lula approvals`.
pub(in crate::commands) fn questions(
    session: &Session,
) -> Result<Vec<(RunId, consent::Question)>, Failure> {
    if !store::is_there(session)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(Arc::clone(&store))?;
        let by = local_principal()?;
        let mut found = Vec::new();
        for asked in store.approvals_in(ApprovalState::Open).await? {
            let known = reader.show(&asked.run, None).await?;
            if let Some(question) = consent::question(&known, &by)
                && question.approval == asked.approval
                && known.progress.ended.is_none()
            {
                found.push((asked.run, question));
            }
        }
        Ok(found)
    })
}

/// A question with exactly the change it is about.
fn present(
    known: &RunState<Work>,
    question: &consent::Question,
    session: &Session,
) -> Result<(), Failure> {
    let screen = &session.screen;
    let mut table = Table::default();
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
    match &known.state.produced {
        Some(produced) => screen.patch(&produced.diff),
        None => Ok(()),
    }
}

/// Shows what a run asks.
pub(in crate::commands) fn show_question(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            let message = format!("{run} asks nothing any more");
            return Err(Failure::new(Code::UnknownApproval, Exit::Usage, message)
                .remedy("`lula show` tells what came of it"));
        };
        if session.screen.is_json() {
            let diff = known.state.produced.as_ref().map(|made| &made.diff);
            let id = &question.approval;
            session
                .screen
                .document(&json!({"id": id, "run": run, "digest": question.digest,
                "reason": question.reason, "rendered": diff}))?;
        } else {
            present(&known, &question, session)?;
        }
        Ok(Exit::Verified)
    })
}

/// Answers what a run asks. Whoever drives it goes on; where nobody does, `lula resume` does.
pub(in crate::commands) fn answer(
    run: &RunId,
    decision: Decision,
    yes: bool,
    session: &Session,
) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(store)?;
        let known = reader.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            let message = format!("{run} asks nothing");
            return Err(Failure::new(Code::UnknownApproval, Exit::Usage, message)
                .remedy("`lula approvals` lists other questions"));
        };
        let screen = &session.screen;
        if !screen.is_json() {
            present(&known, &question, session)?;
        }
        if !yes && !approvals::confirmed(decision)? {
            screen.note("nothing was answered");
            return Ok(Exit::WaitingForApproval);
        }
        consent::answer(&reader, &known, &question, decision).await?;
        if screen.is_json() {
            screen.document(&json!({"run": run, "id": question.approval, "decision": decision}))?;
        } else {
            let said = match decision {
                Decision::Approve => paint(GOOD, "approved"),
                Decision::Reject => paint(BAD, "rejected"),
            };
            screen.note(&format!("{}: {said}", question.approval));
            screen.note(&paint(DIM, format!("lula resume {run}   goes on with it")));
        }
        Ok(Exit::Verified)
    })
}
