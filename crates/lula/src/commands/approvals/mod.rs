//! `lula approvals`, `lula approve`, `lula reject`

pub(crate) mod flags;
mod keys;
mod remote;
mod server;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use lula_gate::approvals::{
    ApprovalDesk, ApprovalStanding, ApprovalsError, SettledApproval, StoredApproval,
};
use lula_host::approvals::{document, local_desk, sign, sign_here};
use lula_host::record::now_ms;
use lula_host::remote::ServerClient;
use lula_protocol::calendar::utc_text;
use lula_protocol::units::distance;
use lula_protocol::{ApprovalDecision, ApprovalId, Code, RunExit};
use serde_json::json;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{self, BAD, DIM, GOOD, STRONG, TextTable, WARN, paint};
use flags::{AnswerFlags, ApprovalsCommand};

pub(super) fn run(
    command: Option<ApprovalsCommand>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    match command {
        None => match ServerClient::configured(&session.host)? {
            Some(server) => server::list(&server, session),
            None => list(session),
        },
        Some(ApprovalsCommand::Show { id }) => show_one(&id, session),
        Some(ApprovalsCommand::Keys { command }) => keys::run(command, session),
    }
}

/// Shows a question with exactly the bytes that would be approved.
pub(crate) fn show_one(id: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if let Some(server) = ServerClient::configured(&session.host)? {
        return server::show(id, &server, session);
    }
    if let Some(run) = super::runs::run_meant(id, session)? {
        return super::runs::show_question(&run, session);
    }
    let id = parse_id(id)?;
    let mut desk = local_desk(&session.host)?.ok_or_else(|| unknown(&id))?;
    show(&desk.load(&id)?, session)?;
    Ok(RunExit::Verified)
}

fn parse_id(text: &str) -> Result<ApprovalId, CommandFailure> {
    text.parse().map_err(|error| {
        CommandFailure::new(Code::BadCommandLine, RunExit::Usage, format!("{error}"))
            .remedy("`lula approvals` lists what waits")
    })
}

fn unknown(id: &ApprovalId) -> CommandFailure {
    ApprovalsError::Unknown(id.clone()).into()
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let now = now_ms();
    let pending = match local_desk(&session.host)? {
        Some(mut desk) => desk.pending(now)?,
        None => Vec::new(),
    };
    let by_runs = super::runs::questions(session)?;
    let screen = &session.screen;
    if screen.is_json() {
        let mut documents: Vec<_> = pending.iter().map(|stored| document(stored, now)).collect();
        documents.extend(by_runs.iter().map(|(run, question)| {
            json!({"id": question.approval, "run": run, "digest": question.digest,
                "reason": question.reason})
        }));
        screen.document(&documents)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for stored in &pending {
        table.row([
            paint(STRONG, stored.id()),
            spoken_standing(&stored.standing(now)),
            remaining(stored, now),
            stored.challenge.reason.escape_debug().to_string(),
        ]);
    }
    for (run, question) in &by_runs {
        table.row([
            paint(STRONG, &question.approval),
            paint(WARN, "0/1"),
            run.short().to_owned(),
            question.reason.escape_debug().to_string(),
        ]);
    }
    say_how_to_answer(&table, pending.is_empty() && by_runs.is_empty(), session)
}

fn say_how_to_answer(
    table: &TextTable,
    is_empty: bool,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if is_empty {
        screen.note("nothing waits for an answer");
    } else {
        screen.line(table.render(0).trim_end())?;
        screen.note(&paint(
            DIM,
            "`lula approvals show ID`, then `lula approve ID` or `lula reject ID`",
        ));
    }
    Ok(RunExit::Verified)
}

fn remaining(stored: &StoredApproval, now: u64) -> String {
    let left = stored.challenge.expires_ms.saturating_sub(now);
    format!("{} left", distance(Duration::from_millis(left)))
}

fn spoken_standing(standing: &ApprovalStanding) -> String {
    match standing {
        ApprovalStanding::Pending { approvals, needed } => {
            paint(WARN, format!("{approvals}/{needed}"))
        }
        ApprovalStanding::Approved { by_silence: false } => paint(GOOD, "approved"),
        ApprovalStanding::Approved { by_silence: true } => paint(GOOD, "approved by silence"),
        ApprovalStanding::Over { end } => paint(
            BAD,
            match end {
                SettledApproval::Used => "used",
                SettledApproval::Void => "void",
                SettledApproval::Rejected => "rejected",
                SettledApproval::Expired => "expired",
            },
        ),
    }
}

/// The question on standard error, exactly the stored bytes on standard output.
fn show(stored: &StoredApproval, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    let now = now_ms();
    if !stored.is_intact() {
        let message = format!("what is stored for {} is not what was asked", stored.id());
        return Err(
            CommandFailure::new(Code::ApprovalsUnusable, RunExit::Failed, message)
                .remedy("do not approve it: run the task again"),
        );
    }
    if screen.is_json() {
        return screen.document(&document(stored, now));
    }
    let mut table = TextTable::default();
    let approval = &stored.approval;
    let mut row = |name: &str, value: String| table.row([paint(DIM, name), value]);
    row("question", stored.id().to_string());
    row("why", stored.challenge.reason.escape_debug().to_string());
    row("asked by", approval.requester.to_string());
    row("effect", approval.class.to_string());
    row("digest", stored.challenge.digest.to_string());
    row("base tree", stored.subject.base_tree.to_string());
    row("policy", stored.subject.policy.to_string());
    row("expires", utc_text(stored.challenge.expires_ms));
    row("standing", spoken_standing(&stored.standing(now)));
    for vote in &approval.votes {
        let decision = match vote.decision {
            ApprovalDecision::Approve => "approved",
            ApprovalDecision::Reject => "rejected",
        };
        row(
            "vote",
            format!("{} {decision} as {}", vote.approver, vote.role),
        );
    }
    screen.note(table.render(0).trim_end());
    match std::str::from_utf8(&stored.rendered) {
        Ok(text) => screen.patch(text),
        Err(_) if io::stdout().is_terminal() => screen.line(stored.rendered.escape_ascii()),
        Err(_) => Ok(io::stdout().lock().write_all(&stored.rendered)?),
    }
}

/// Answers a question of a server, where one is configured.
pub(super) fn answer_elsewhere(
    flags: &AnswerFlags,
    decision: ApprovalDecision,
    session: &CliSession,
) -> Result<Option<RunExit>, CommandFailure> {
    if flags.runner.is_some() {
        return Ok(None);
    }
    let server = ServerClient::configured(&session.host)?;
    server
        .map(|server| server::answer((&flags.id, flags.yes), decision, &server, session))
        .transpose()
}

/// Answers a question, after showing it.
pub(super) fn answer(
    flags: &AnswerFlags,
    decision: ApprovalDecision,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let id = parse_id(&flags.id)?;
    if let Some(runner) = &flags.runner {
        return remote::answer(&id, runner, flags, decision, session);
    }
    let mut desk = local_desk(&session.host)?.ok_or_else(|| unknown(&id))?;
    let stored = desk.load(&id)?;
    let screen = &session.screen;
    if !screen.is_json() {
        show(&stored, session)?;
    } else if !stored.is_intact() {
        return show(&stored, session).map(|()| RunExit::Failed);
    }
    if !flags.yes && !confirmed(decision)? {
        screen.note("nothing was answered");
        return Ok(RunExit::WaitingForApproval);
    }
    let role = stored.approval.terms.role.as_deref();
    let token = match &flags.key {
        Some(file) => sign(file, &stored.challenge, role, decision)?,
        None => sign_here(&desk, &stored, decision)?,
    };
    let standing = desk.vote(&token, now_ms())?;
    if screen.is_json() {
        screen.document(&json!({"id": id, "standing": standing}))?;
    } else {
        screen.note(&format!("{id}: {}", spoken_standing(&standing)));
    }
    Ok(match standing {
        ApprovalStanding::Pending { .. } => RunExit::WaitingForApproval,
        ApprovalStanding::Approved { .. } | ApprovalStanding::Over { .. } => RunExit::Verified,
    })
}

/// Asks on the terminal what becomes of a question.
pub(super) fn confirmed(decision: ApprovalDecision) -> Result<bool, CommandFailure> {
    term::confirmed(match decision {
        ApprovalDecision::Approve => "approve exactly this",
        ApprovalDecision::Reject => "reject this for good",
    })
}
