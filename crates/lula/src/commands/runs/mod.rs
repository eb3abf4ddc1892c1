//! `lula runs`, and what is seen and decided of one run afterwards.

mod questions;
mod show;
mod undo;

use std::sync::Arc;

use lula_protocol::event::Parent;
use lula_protocol::{Amounts, ApprovalId, Exit, RunId};
use lula_store::{RunFilter, RunRow, SecretGuard, Status, Store};
use serde::Serialize;

use crate::failure::Failure;
use crate::record::now_ms;
use crate::runs::report::{RunReport, word};
use crate::runs::worker::is_dead;
use crate::runs::{self, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint, plain};

pub(super) use questions::{answer, questions, show_question};
pub(super) use show::{diff, show};
pub(super) use undo::undo;

/// One run in the list.
#[derive(Serialize)]
struct Row {
    run: RunId,
    status: Status,
    /// In a word for people: verified, failed, running, waiting, interrupted…
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    task: String,
    started_ms: u64,
    events: u64,
    summary: String,
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    spent: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
}

pub(super) fn list(session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(Arc::clone(&store))?;
        let mut rows = Vec::new();
        for row in store.runs(&RunFilter::default()).await? {
            let started_ms = started_ms(&*store, &row.run).await;
            // One run that cannot be read must not hide the others.
            let known = reader.show(&row.run, None).await;
            // Agents are told of with the run they work for.
            if let Ok(known) = &known
                && known.state.task.handoff.is_some()
            {
                continue;
            }
            let driven = is_driven(&row);
            let (task, report, unreadable) = match &known {
                Ok(known) => (
                    known.state.task.text.clone(),
                    Some(RunReport::of(known)),
                    None,
                ),
                Err(error) => (String::new(), None, Some(error.to_string())),
            };
            let standing = match &report {
                None => "unreadable",
                Some(report) if row.status == Status::Done => word(report.exit),
                Some(_) if driven => "running",
                Some(report) => report.status,
            };
            rows.push(Row {
                run: row.run,
                status: row.status,
                standing,
                exit: report.as_ref().map(|report| report.exit),
                task,
                started_ms,
                events: row.head.next,
                spent: report
                    .as_ref()
                    .map(|it| it.spent.clone())
                    .unwrap_or_default(),
                summary: match report {
                    Some(_) if driven => String::new(),
                    Some(report) => report.summary,
                    None => unreadable.unwrap_or_default(),
                },
                parent: row.parent,
            });
        }
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&rows)?;
            return Ok(Exit::Verified);
        }
        if rows.is_empty() {
            screen.note("there is no run yet: `lula run --task …` begins one");
            return Ok(Exit::Verified);
        }
        let mut table = Table::default();
        let head = ["run", "when", "state", "task", "what came of it"];
        table.row(head.map(|name| paint(DIM, name)));
        for row in &rows {
            table.row([
                row.run.short().to_owned(),
                age(row.started_ms),
                paint(style(row.standing), row.standing),
                plain(&row.task, 32),
                plain(&row.summary, 120),
            ]);
        }
        screen.line(table.render(0).trim_end())?;
        Ok(Exit::Verified)
    })
}

/// Whether a process works on it now.
fn is_driven(row: &RunRow) -> bool {
    row.status == Status::Running && !row.owner.as_deref().is_some_and(is_dead)
}

async fn started_ms(store: &dyn Store, run: &RunId) -> u64 {
    let first = store.read(run, 0, 1).await.ok();
    first
        .and_then(|page| page.first().map(|record| record.at_ms))
        .unwrap_or_default()
}

fn style(standing: &str) -> anstyle::Style {
    match standing {
        "verified" => GOOD,
        "failed" | "not possible" | "unreadable" => BAD,
        "running" => STRONG,
        _ => WARN,
    }
}

/// How long ago, roughly.
fn age(ms: u64) -> String {
    let seconds = now_ms().saturating_sub(ms) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The run that a word means, where it may also mean something else: by its id, by the end of it
/// where that is long enough to be no accident, or by what it asks.
pub(super) fn run_meant(word: &str, session: &Session) -> Result<Option<RunId>, Failure> {
    let certain = word == "last" || word.starts_with("run_");
    let possible = word.len() >= 6 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let looked_for = certain || (possible && store::is_there(session)?);
    if !looked_for {
        return Ok(None);
    }
    let found = runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        if let Ok(question) = word.parse::<ApprovalId>() {
            return Ok(store.approval(&question).await?.map(|asked| asked.run));
        }
        runs::named(&*store, word).await.map(Some)
    });
    // What was only possible was meant otherwise.
    if certain {
        found
    } else {
        Ok(found.ok().flatten())
    }
}
