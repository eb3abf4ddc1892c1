//! `lula runs`, and what is seen and decided of one run afterwards.

mod questions;
mod show;
mod undo;

use lula_host::record::age;
use lula_host::remote::RunAccess;
use lula_host::standing::{RunStanding, StandingTone};
use lula_host::{runs, store};
use lula_protocol::{ApprovalId, RunExit, RunId};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain};

pub(super) use questions::{answer, questions, show_question};
pub(super) use show::{diff, show};
pub(super) use undo::undo;

pub(super) fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let rows = RunAccess::open(&session.host).await?.list().await?;
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&rows)?;
            return Ok(RunExit::Verified);
        }
        if rows.is_empty() {
            screen.note("there is no run yet: `lula run 'TASK'` begins one");
            return Ok(RunExit::Verified);
        }
        let mut table = TextTable::default();
        let head = ["run", "when", "state", "task", "what came of it"];
        table.row(head.map(|name| paint(DIM, name)));
        for row in &rows {
            table.row([
                row.run.short().to_owned(),
                age(row.started_ms),
                paint(style(row.standing), row.standing.word()),
                plain(&row.task, 32),
                plain(&row.summary, 120),
            ]);
        }
        screen.line(table.render(0).trim_end())?;
        Ok(RunExit::Verified)
    })
}

fn style(standing: RunStanding) -> anstyle::Style {
    match standing.tone() {
        StandingTone::Good => GOOD,
        StandingTone::Bad => BAD,
        StandingTone::Active => STRONG,
        StandingTone::Open => WARN,
    }
}

/// The run that a word means, where it may also mean something else: by its id, by the end of it
/// where that is long enough to be no accident, or by what it asks.
pub(super) fn run_meant(word: &str, session: &CliSession) -> Result<Option<RunId>, CommandFailure> {
    let certain = word == "last" || word.starts_with("run_");
    let possible = word.len() >= 6 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let looked_for = certain || (possible && store::is_there(&session.host)?);
    if !looked_for {
        return Ok(None);
    }
    let found: Result<_, CommandFailure> = runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        if let Ok(question) = word.parse::<ApprovalId>() {
            return Ok(access
                .store
                .approval(&question)
                .await?
                .map(|asked| asked.run));
        }
        Ok(Some(access.named(word).await?))
    });
    // What was only possible was meant otherwise.
    if certain {
        found
    } else {
        Ok(found.ok().flatten())
    }
}
