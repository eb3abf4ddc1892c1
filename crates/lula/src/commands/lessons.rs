//! `lula lessons`: what failed attempts showed

use std::path::Path;

use lula_agents::lessons::Record;
use lula_protocol::{Code, Exit};
use lula_store::SecretGuard;
use serde_json::{Value, json};

use super::run::{find_git, repository};
use crate::cli::LessonsCommand;
use crate::failure::Failure;
use crate::record::spoken_time;
use crate::runs::{self, lessons, store};
use crate::session::Session;
use crate::term::{DIM, Table, paint, plain, visible};

pub(super) fn run(command: &LessonsCommand, session: &Session) -> Result<Exit, Failure> {
    match command {
        LessonsCommand::List { repo } => list(&known(repo.as_deref(), session)?, session),
        LessonsCommand::Show { id, repo } => show(&named(id, repo.as_deref(), session)?, session),
        LessonsCommand::Forget { id, repo } => {
            let record = named(id, repo.as_deref(), session)?;
            lessons::forget(&record.lesson.id, session)?;
            if session.screen.is_json() {
                session
                    .screen
                    .document(&json!({"forgotten": record.lesson.id}))?;
            } else {
                let text = format!("{} is forgotten", record.lesson.id);
                session.screen.note(&text);
            }
            Ok(Exit::Verified)
        }
    }
}

fn known(repo: Option<&Path>, session: &Session) -> Result<Vec<Record>, Failure> {
    let (top, _) = repository(repo, &find_git(session)?)?;
    if !store::is_there(session)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        lessons::of(&top.to_string_lossy(), store, session).await
    })
}

fn named(id: &str, repo: Option<&Path>, session: &Session) -> Result<Record, Failure> {
    let mut records = known(repo, session)?;
    records.retain(|record| record.lesson.id.starts_with(id));
    let message = match records.len() {
        1 => return Ok(records.remove(0)),
        0 => format!("there is no lesson {id:?} of this repository"),
        _ => format!("several lessons begin with {id:?}"),
    };
    Err(Failure::new(Code::NothingThere, Exit::Usage, message)
        .remedy("`lula lessons list` names them"))
}

fn value(record: &Record) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(&record.lesson)?;
    value["retired"] = json!(record.retired);
    value["uplift_permille"] = json!(record.lesson.uplift());
    Ok(value)
}

fn uplift(record: &Record) -> String {
    record.lesson.uplift().map_or_else(
        || "unknown".to_owned(),
        |uplift| format!("{:+} %", uplift / 10),
    )
}

fn list(records: &[Record], session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if screen.is_json() {
        let all: Result<Vec<Value>, Failure> = records.iter().map(value).collect();
        screen.document(&all?)?;
        return Ok(Exit::Verified);
    }
    if records.is_empty() {
        screen.note("no attempt has failed here in a way that teaches something");
        return Ok(Exit::Verified);
    }
    let mut table = Table::default();
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
    Ok(Exit::Verified)
}

fn show(record: &Record, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&value(record)?)?;
        return Ok(Exit::Verified);
    }
    let lesson = &record.lesson;
    let mut table = Table::default();
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
    row("expires", spoken_time(lesson.expires_ms));
    row("state", record.retired.unwrap_or("in use").to_owned());
    screen.line(table.render(0).trim_end())?;
    Ok(Exit::Verified)
}
