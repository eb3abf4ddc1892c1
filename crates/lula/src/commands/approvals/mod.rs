//! `lula approvals`, `lula approve`, `lula reject`

mod keys;
mod remote;

use std::io::{self, BufRead, IsTerminal, Write};

use lula_gate::approvals::keys::OWNER_ROLE;
use lula_gate::approvals::{
    ApprovalsError, Desk, KeyError, Keyring, LocalDesk, Settled, Standing, Stored,
};
use lula_protocol::{ApprovalId, Code, Decision, Exit};
use serde_json::{Value, json};

use crate::cli::{AnswerFlags, ApprovalsCommand};
use crate::failure::Failure;
use crate::record::{local_principal, now_ms, spoken_time};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint};

/// The database of the hands, in the state directory.
const DATABASE: &str = "hands.db";

pub(super) fn run(command: Option<ApprovalsCommand>, session: &Session) -> Result<Exit, Failure> {
    match command {
        None => list(session),
        Some(ApprovalsCommand::Show { id }) => show_one(&id, session),
        Some(ApprovalsCommand::Keys { command }) => keys::run(command, session),
    }
}

/// Shows a question with exactly the bytes that would be approved.
pub(crate) fn show_one(id: &str, session: &Session) -> Result<Exit, Failure> {
    if let Some(run) = super::runs::run_meant(id, session)? {
        return super::runs::show_question(&run, session);
    }
    let id = parse_id(id)?;
    let mut desk = local_desk(session)?.ok_or_else(|| unknown(&id))?;
    show(&desk.load(&id)?, session)?;
    Ok(Exit::Verified)
}

/// Nothing was ever asked where there is no database.
fn local_desk(session: &Session) -> Result<Option<LocalDesk>, Failure> {
    let state = session.state_directory()?;
    let database = state.join(DATABASE);
    if !database.exists() {
        return Ok(None);
    }
    Ok(Some(LocalDesk::open(&database, Keyring::open(&state)?)?))
}

fn parse_id(text: &str) -> Result<ApprovalId, Failure> {
    text.parse().map_err(|error| {
        Failure::new(Code::BadCommandLine, Exit::Usage, format!("{error}"))
            .remedy("`lula approvals` lists what waits")
    })
}

fn unknown(id: &ApprovalId) -> Failure {
    ApprovalsError::Unknown(id.clone()).into()
}

fn list(session: &Session) -> Result<Exit, Failure> {
    let now = now_ms();
    let pending = match local_desk(session)? {
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
        return Ok(Exit::Verified);
    }
    let mut table = Table::default();
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
    if pending.is_empty() && by_runs.is_empty() {
        screen.note("nothing waits for an answer");
    } else {
        screen.line(table.render(0).trim_end())?;
        screen.note(&paint(
            DIM,
            "`lula approvals show ID`, then `lula approve ID` or `lula reject ID`",
        ));
    }
    Ok(Exit::Verified)
}

fn remaining(stored: &Stored, now: u64) -> String {
    let minutes = stored.challenge.expires_ms.saturating_sub(now) / 60_000;
    format!("{minutes}m left")
}

fn spoken_standing(standing: &Standing) -> String {
    match standing {
        Standing::Pending { approvals, needed } => paint(WARN, format!("{approvals}/{needed}")),
        Standing::Approved { by_silence: false } => paint(GOOD, "approved"),
        Standing::Approved { by_silence: true } => paint(GOOD, "approved by silence"),
        Standing::Over { end } => paint(
            BAD,
            match end {
                Settled::Used => "used",
                Settled::Void => "void",
                Settled::Rejected => "rejected",
                Settled::Expired => "expired",
            },
        ),
    }
}

fn document(stored: &Stored, now: u64) -> Value {
    json!({
        "id": stored.id(),
        "digest": stored.challenge.digest,
        "subject": stored.subject,
        "class": stored.approval.class,
        "reason": stored.challenge.reason,
        "requester": stored.approval.requester,
        "asked_ms": stored.asked_ms,
        "expires_ms": stored.challenge.expires_ms,
        "terms": stored.approval.terms,
        "votes": stored.approval.votes,
        "standing": stored.standing(now),
        "rendered": String::from_utf8_lossy(&stored.rendered),
    })
}

/// The question on standard error, exactly the stored bytes on standard output.
fn show(stored: &Stored, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    let now = now_ms();
    if !stored.is_intact() {
        let message = format!("what is stored for {} is not what was asked", stored.id());
        return Err(Failure::new(Code::ApprovalsUnusable, Exit::Failed, message)
            .remedy("do not approve it: run the task again"));
    }
    if screen.is_json() {
        return screen.document(&document(stored, now));
    }
    let mut table = Table::default();
    let approval = &stored.approval;
    let mut row = |name: &str, value: String| table.row([paint(DIM, name), value]);
    row("question", stored.id().to_string());
    row("why", stored.challenge.reason.escape_debug().to_string());
    row("asked by", approval.requester.to_string());
    row("effect", approval.class.to_string());
    row("digest", stored.challenge.digest.to_string());
    row("base tree", stored.subject.base_tree.to_string());
    row("policy", stored.subject.policy.to_string());
    row("expires", spoken_time(stored.challenge.expires_ms));
    row("standing", spoken_standing(&stored.standing(now)));
    for vote in &approval.votes {
        let decision = match vote.decision {
            Decision::Approve => "approved",
            Decision::Reject => "rejected",
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

/// Answers a question, after showing it.
pub(super) fn answer(
    flags: &AnswerFlags,
    decision: Decision,
    session: &Session,
) -> Result<Exit, Failure> {
    let id = parse_id(&flags.id)?;
    if let Some(runner) = &flags.runner {
        return remote::answer(&id, runner, flags, decision, session);
    }
    let mut desk = local_desk(session)?.ok_or_else(|| unknown(&id))?;
    let stored = desk.load(&id)?;
    let screen = &session.screen;
    if !screen.is_json() {
        show(&stored, session)?;
    } else if !stored.is_intact() {
        return show(&stored, session).map(|()| Exit::Failed);
    }
    if !flags.yes && !confirmed(decision)? {
        screen.note("nothing was answered");
        return Ok(Exit::WaitingForApproval);
    }
    let role = stored.approval.terms.role.as_deref();
    let token = match &flags.key {
        Some(file) => keys::sign(file, &stored.challenge, role, decision)?,
        None => desk.keys().sign(
            &stored.challenge,
            &local_principal()?,
            role.unwrap_or(OWNER_ROLE),
            decision,
        )?,
    };
    let standing = desk.vote(&token, now_ms())?;
    if screen.is_json() {
        screen.document(&json!({"id": id, "standing": standing}))?;
    } else {
        screen.note(&format!("{id}: {}", spoken_standing(&standing)));
    }
    Ok(match standing {
        Standing::Pending { .. } => Exit::WaitingForApproval,
        Standing::Approved { .. } | Standing::Over { .. } => Exit::Verified,
    })
}

/// Asks on the terminal. Where there is none, nobody can have looked.
pub(super) fn confirmed(decision: Decision) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::new(
            Code::BadCommandLine,
            Exit::Usage,
            "there is no terminal to ask on",
        )
        .remedy("give --yes where a script answers"));
    }
    let what = match decision {
        Decision::Approve => "approve exactly this",
        Decision::Reject => "reject this for good",
    };
    let mut screen = anstream::stderr();
    write!(screen, "{what}? type yes: ")?;
    screen.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}

impl From<ApprovalsError> for Failure {
    fn from(error: ApprovalsError) -> Self {
        let (code, exit, remedy) = match &error {
            ApprovalsError::Unknown(_) => (
                Code::UnknownApproval,
                Exit::Usage,
                "`lula approvals` lists what waits",
            ),
            ApprovalsError::Vote(_)
            | ApprovalsError::Token(_)
            | ApprovalsError::OtherQuestion
            | ApprovalsError::Refused(_) => (
                Code::VoteRefused,
                Exit::Failed,
                "`lula approvals show ID` shows the question and every vote",
            ),
            _ => (
                Code::ApprovalsUnusable,
                Exit::Environment,
                "check the space and the rights of the state directory",
            ),
        };
        Self::new(code, exit, error.to_string()).remedy(remedy)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let failure = Self::new(Code::KeysUnusable, Exit::Environment, error.to_string());
        match error {
            KeyError::NoKeyFor { .. } => {
                failure.remedy("somebody who holds that role has to answer")
            }
            _ => failure.remedy("check the key file in the state directory"),
        }
    }
}
