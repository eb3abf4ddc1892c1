//! `lula lessons`: what failed attempts showed

use std::path::Path;

use lula_agents::lessons::LessonRecord;
use lula_host::history::{History, lessons};
use lula_host::repository::{around, find_git};
use lula_host::{runs, store};
use lula_protocol::calendar::utc_text;
use lula_protocol::{Code, RunExit};
use lula_store::SecretGuard;
use serde_json::{Value, json};

use crate::cli::LessonsCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, TextTable, paint, plain, visible};

pub(super) fn run(
    command: &LessonsCommand,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    match command {
        LessonsCommand::List { repo } => list(&known(repo.as_deref(), session)?, session),
        LessonsCommand::Show { id, repo } => show(&named(id, repo.as_deref(), session)?, session),
        LessonsCommand::Forget { id, repo } => {
            let record = named(id, repo.as_deref(), session)?;
            lessons::forget(&record.lesson.id, &session.host)?;
            if session.screen.is_json() {
                session
                    .screen
                    .document(&json!({"forgotten": record.lesson.id}))?;
            } else {
                let text = format!("{} is forgotten", record.lesson.id);
                session.screen.note(&text);
            }
            Ok(RunExit::Verified)
        }
    }
}

fn known(repo: Option<&Path>, session: &CliSession) -> Result<Vec<LessonRecord>, CommandFailure> {
    let (top, _) = around(repo, &find_git(&session.host)?)?;
    if !store::is_there(&session.host)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        let history = History::read(store).await?;
        let repository = top.to_string_lossy();
        Ok(history.lessons(&repository, &session.host).await?)
    })
}

fn named(
    id: &str,
    repo: Option<&Path>,
    session: &CliSession,
) -> Result<LessonRecord, CommandFailure> {
    let mut records = known(repo, session)?;
    records.retain(|record| record.lesson.id.starts_with(id));
    let message = match records.len() {
        1 => return Ok(records.remove(0)),
        0 => format!("there is no lesson {id:?} of this repository"),
        _ => format!("several lessons begin with {id:?}"),
    };
    Err(
        CommandFailure::new(Code::NothingThere, RunExit::Usage, message)
            .remedy("`lula lessons list` names them"),
    )
}

fn value(record: &LessonRecord) -> Result<Value, CommandFailure> {
    let mut value = serde_json::to_value(&record.lesson)?;
    value["retired"] = json!(record.retired);
    value["uplift_permille"] = json!(record.lesson.uplift());
    Ok(value)
}

fn uplift(record: &LessonRecord) -> String {
    record.lesson.uplift().map_or_else(
        || "unknown".to_owned(),
        |uplift| format!("{:+} %", uplift / 10),
    )
}

fn list(records: &[LessonRecord], session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        let all: Result<Vec<Value>, CommandFailure> = records.iter().map(value).collect();
        screen.document(&all?)?;
        return Ok(RunExit::Verified);
    }
    if records.is_empty() {
        screen.note("no attempt has failed here in a way that teaches something");
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    let head = [
        "lesson",
        "shown",
        "verified",
        "uplift",
        "state",
        "what it says",
    ];
    table.row(head.map(|name| paint(DIM, name)));
    for record in records {
        let lesson = &record.lesson;
        table.row([
            lesson.id.clone(),
            lesson.uses.to_string(),
            lesson.wins.to_string(),
            uplift(record),
            record.retired.unwrap_or("in use").to_owned(),
            plain(&lesson.text, 160),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}

fn show(record: &LessonRecord, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&value(record)?)?;
        return Ok(RunExit::Verified);
    }
    let lesson = &record.lesson;
    let mut table = TextTable::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("lesson", lesson.id.clone());
    row("says", visible(&lesson.text));
    row("attempt of", visible(&lesson.author));
    row("failure", lesson.fingerprint.clone());
    for shown in &lesson.evidence {
        let at = format!("event {} of {}", shown.event, shown.run.short());
        row("shown by", at);
    }
    row(
        "record",
        format!(
            "{} uses, {} verified, {} not; held back {} times, {} verified; uplift {}",
            lesson.uses,
            lesson.wins,
            lesson.losses,
            lesson.held_back,
            lesson.held_back_wins,
            uplift(record)
        ),
    );
    row("expires", utc_text(lesson.expires_ms));
    row("state", record.retired.unwrap_or("in use").to_owned());
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
