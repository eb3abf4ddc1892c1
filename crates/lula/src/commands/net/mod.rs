//! `lula net` and `lula grant`: what sandboxes may reach, and what they did.

pub(crate) mod flags;

use lula_host::network::journal::{NetworkLogEntry, NetworkLogFilter};
use lula_host::network::{self, grants, groups};
use lula_host::record;
use lula_protocol::RunExit;
use lula_sandbox::EarlyHelper;
use serde::Serialize;

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
    let host = &session.host;
    let mut exit = RunExit::Verified;
    match command {
        NetCommand::Learn(flags) => return exec::learn(flags, session, helper),
        NetCommand::Log {
            door,
            denied,
            lines,
        } => {
            let filter = NetworkLogFilter {
                door: door.as_deref(),
                denied: *denied,
                lines: *lines,
            };
            let entries = filter.read(host)?;
            show(&entries, &log(&entries), session)?;
        }
        NetCommand::Explain { host: name } => {
            let ruling = network::explain(name, host)?;
            if ruling.rule.is_none() {
                exit = RunExit::Failed;
            }
            let mut table = TextTable::default();
            ruling
                .lines()
                .into_iter()
                .for_each(|line| table.row([line]));
            show(&ruling, &(table.render(0) + &log(&ruling.seen)), session)?;
        }
        NetCommand::Groups { groups, refresh } => {
            let live = session.screen.live("asking the tools");
            let (found, missing) = groups::found(groups, *refresh, host)?;
            drop(live);
            for error in &missing {
                session.screen.detail(&error.to_string());
            }
            let mut table = TextTable::default();
            for group in &found {
                let asked = format!("{}, {}", group.asked, record::age(group.asked_ms));
                let rules = visible(&group.rules());
                table.row([group.name.clone(), rules, paint(DIM, asked)]);
            }
            show(&found, &table.render(0), session)?;
        }
        NetCommand::List => {
            let doors = grants::doors(host)?;
            let mut table = TextTable::default();
            for door in &doors {
                let subject = visible(door.subject.as_deref().unwrap_or_default());
                let age = paint(DIM, record::age(door.begun_ms));
                let reached = [&door.granted[..], &door.published[..]].concat();
                table.row([door.door.clone(), age, subject, reached.join(", ")]);
            }
            show(&doors, &table.render(0), session)?;
        }
    }
    Ok(exit.into())
}

fn show(document: &impl Serialize, text: &str, session: &CliSession) -> Result<(), CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(document)
    } else {
        session.screen.line(text.trim_end())
    }
}

fn log(entries: &[NetworkLogEntry]) -> String {
    let mut table = TextTable::default();
    for entry in entries {
        let verdict = match entry.verdict() {
            "denied" => paint(BAD, "denied"),
            "failed" => paint(WARN, "failed"),
            other => paint(GOOD, other),
        };
        let by = entry.record.attribution.as_deref().unwrap_or_default();
        table.row([
            paint(DIM, record::age(entry.time_ms)),
            entry.door.clone(),
            verdict,
            visible(&entry.place()),
            paint(DIM, visible(by)),
            visible(&entry.detail()),
        ]);
    }
    table.render(0)
}

pub(super) fn grant(flags: &GrantFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let granted = grants::GrantSubject::read(flags.rule.as_deref(), flags.port.as_deref())?;
    let doors = grants::change_to(&flags.target, &granted, flags.revoke, &session.host)?;
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
        screen.note(&format!("{granted} {done} {}", door.door));
        if flags.port.is_some() {
            for at in &door.published {
                screen.note(&format!("published: {at}"));
            }
        }
    }
    Ok(RunExit::Verified)
}
