//! `lula net` and `lula grant`: what sandboxes may reach, and what they did.

pub(crate) mod flags;

use lula_host::network::journal::{self, JournalEntry};
use lula_host::network::{self, grants, groups};
use lula_host::{record, runs, store};
use lula_protocol::RunExit;
use lula_sandbox::EarlyHelper;
use lula_store::SecretGuard;

use super::exec;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::status::ProcessExitStatus;
use crate::term::{BAD, DIM, GOOD, TextTable, WARN, paint, visible};
use flags::{GrantFlags, NetCommand};

pub(super) fn run(
    command: &NetCommand,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let exit = match command {
        NetCommand::Learn(flags) => return exec::learn(flags, session, helper),
        NetCommand::Log {
            door,
            denied,
            lines,
        } => log(door.as_deref(), *denied, *lines, session),
        NetCommand::Explain { host } => explain(host, session),
        NetCommand::Groups { groups, refresh } => show_groups(groups, *refresh, session),
        NetCommand::List => list(session),
    };
    exit.map(ProcessExitStatus::from)
}

/// What sandboxes of a run are called, or the word as it is.
fn subject(word: &str, session: &CliSession) -> Result<String, CommandFailure> {
    let run = runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        Ok::<_, CommandFailure>(runs::named(&*store, word).await.ok())
    });
    // `last` is the latest sandbox here, and a run elsewhere.
    match run? {
        Some(run) if word != "last" => Ok(network::subject_of(&run)),
        _ => Ok(word.to_owned()),
    }
}

fn log(
    door: Option<&str>,
    denied: bool,
    lines: usize,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let mut entries = journal::read(&session.host)?;
    if let Some(word) = door {
        let subject = subject(word, session)?;
        entries.retain(|entry| {
            let mut names = entry.subject.iter().chain([&entry.door]);
            names.any(|name| name.starts_with(&subject))
        });
    }
    entries.retain(|entry| !denied || entry.record.denial.is_some());
    let entries = entries.split_off(entries.len().saturating_sub(lines));
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&entries)?;
        return Ok(RunExit::Verified);
    }
    screen.line(table(&entries).render(0).trim_end())?;
    Ok(RunExit::Verified)
}

fn table(entries: &[JournalEntry]) -> TextTable {
    let mut table = TextTable::default();
    for entry in entries {
        let record = &entry.record;
        let verdict = match (&record.denial, &record.failure) {
            (Some(_), _) => paint(BAD, "denied"),
            (None, Some(_)) => paint(WARN, "failed"),
            (None, None) => paint(GOOD, "allowed"),
        };
        let dialled = record.dialled.map(|address| address.to_string());
        let host = record.name.clone().or(dialled).unwrap_or_default();
        let why = record.denial.as_ref().map(|denial| denial.text.clone());
        let detail = why.or_else(|| record.failure.clone());
        let detail = detail.or_else(|| record.request.clone());
        let bytes = format!("{} up, {} down", record.bytes_up, record.bytes_down);
        table.row([
            paint(DIM, record::age(entry.time_ms)),
            entry.door.clone(),
            verdict,
            visible(&format!("{host}:{}", record.port)),
            paint(
                DIM,
                record
                    .attribution
                    .as_deref()
                    .map(visible)
                    .unwrap_or_default(),
            ),
            visible(&detail.unwrap_or(bytes)),
        ]);
    }
    table
}

fn explain(host: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let ruling = network::explain(host, &session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&ruling)?;
    } else {
        let name = format!("{}:{}", ruling.name, ruling.port);
        match (&ruling.rule, &ruling.grant) {
            (Some(rule), _) => screen.line(format!("{name} is reached: {rule} allows it"))?,
            (None, Some(grant)) => {
                screen.line(format!("{name} is not reached; {grant} would allow it"))?;
            }
            (None, None) => screen.line(format!("{name} is not reached"))?,
        }
        for group in &ruling.groups {
            screen.line(format!("the group {group} contains it"))?;
        }
        screen.line(table(&ruling.seen).render(0).trim_end())?;
    }
    Ok(if ruling.rule.is_some() {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}

fn show_groups(
    named: &[String],
    refresh: bool,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let here = network::project();
    let mut answers = groups::GroupAnswers::open(&session.host)?;
    let all = groups::names().map(str::to_owned);
    let wanted: Vec<String> = if named.is_empty() {
        all.collect()
    } else {
        named.to_vec()
    };
    let mut found = Vec::new();
    for name in &wanted {
        let live = session.screen.live("asking the tools");
        let group = if refresh {
            answers.ask(name, &here)
        } else {
            answers.group(name, &here)
        };
        drop(live);
        match group {
            Ok(group) => found.push(group),
            // One of several that no tool here knows is no failure.
            Err(error) if named.is_empty() => session.screen.detail(&error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for group in &found {
        let rules: Vec<_> = group.rules.iter().map(ToString::to_string).collect();
        let asked = format!("{}, {}", group.asked, record::age(group.asked_ms));
        table.row([
            group.name.clone(),
            visible(&rules.join(", ")),
            paint(DIM, asked),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let doors = grants::doors(&session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&doors)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for door in &doors {
        table.row([
            door.door.clone(),
            paint(DIM, record::age(door.begun_ms)),
            door.subject.as_deref().map(visible).unwrap_or_default(),
            door.granted.join(", "),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}

pub(super) fn grant(flags: &GrantFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let target = match flags.target.as_str() {
        "last" => "last".to_owned(),
        word if word.starts_with("net-") => word.to_owned(),
        word => subject(word, session)?,
    };
    let doors = grants::change(&target, &flags.rule, flags.revoke, &session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&doors)?;
        return Ok(RunExit::Verified);
    }
    let done = if flags.revoke {
        "taken back from"
    } else {
        "granted to"
    };
    for door in &doors {
        screen.note(&format!("{} {done} {}", flags.rule, door.door));
    }
    Ok(RunExit::Verified)
}
