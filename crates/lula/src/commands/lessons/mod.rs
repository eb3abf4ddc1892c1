//! `lula lessons`: what failed attempts showed

pub(crate) mod flags;

use lula_agents::lessons::LessonRecord;
use lula_host::history::lessons::forget;
use lula_host::lessons::{self, document, named, uplift};
use lula_protocol::RunExit;
use lula_protocol::calendar::utc_text;
use serde_json::json;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, TextTable, paint, plain, visible};
use flags::LessonsCommand;

pub(super) fn run(
    command: &LessonsCommand,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let host = &session.host;
    match command {
        LessonsCommand::List { repo } => {
            list(&lessons::of_repository(repo.as_deref(), host)?, session)
        }
        LessonsCommand::Show { id, repo } => show(&named(id, repo.as_deref(), host)?, session),
        LessonsCommand::Forget { id, repo } => {
            let record = named(id, repo.as_deref(), host)?;
            forget(&record.lesson.id, host)?;
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

fn list(records: &[LessonRecord], session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        let all: Result<Vec<_>, _> = records.iter().map(document).collect();
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
        screen.document(&document(record)?)?;
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
