//! `lula runs`, `lula show` and `lula undo`

use std::path::Path;
use std::sync::Arc;

use lula_protocol::event::Parent;
use lula_protocol::{Code, Exit, RunId};
use lula_store::{RunFilter, SecretGuard, Status};
use serde::Serialize;

use super::run::find_git;
use crate::cli_runs::ShowFlags;
use crate::failure::Failure;
use crate::hands;
use crate::runs::report::RunReport;
use crate::runs::{self, store};
use crate::session::Session;
use crate::term::{DIM, STRONG, Table, paint};

/// One run in the list.
#[derive(Serialize)]
struct Row {
    run: RunId,
    status: Status,
    task: String,
    events: u64,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
}

pub(super) fn list(session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(Arc::clone(&store))?;
        let mut rows = Vec::new();
        for row in store.runs(&RunFilter::default()).await? {
            // One run that cannot be read must not hide the others.
            let (task, summary) = match reader.show(&row.run, None).await {
                Ok(known) => {
                    let report = RunReport::of(&known);
                    (known.state.task.text.clone(), report.summary)
                }
                Err(error) => (String::new(), error.to_string()),
            };
            rows.push(Row {
                run: row.run,
                status: row.status,
                task,
                events: row.head.next,
                summary,
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
        }
        let mut table = Table::default();
        for row in &rows {
            table.row([
                row.run.to_string(),
                row.status.to_string(),
                one_line(&row.task, 40),
                one_line(&row.summary, 100),
            ]);
        }
        if !rows.is_empty() {
            screen.line(table.render(0).trim_end())?;
        }
        Ok(Exit::Verified)
    })
}

fn one_line(text: &str, most: usize) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most - 1).collect();
    format!("{cut}…")
}

/// A run at one position of its log, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    at: u64,
    next: String,
    state_digest: String,
    state: &'a lula_agents::Work,
}

pub(super) fn show(flags: &ShowFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        let reader = runs::reader(store)?;
        let known = reader.show(&run, flags.at).await?;
        let report = RunReport::of(&known);
        let next = format!("{:?}", reader.next(&known));
        let screen = &session.screen;
        if screen.is_json() {
            let digest = known
                .digest()
                .map_err(|error| Failure::new(Code::Internal, Exit::Failed, error.to_string()))?;
            screen.document(&Shown {
                report: &report,
                at: known.progress.next_seq,
                next,
                state_digest: digest.to_string(),
                state: &known.state,
            })?;
            return Ok(Exit::Verified);
        }
        let mut table = Table::default();
        let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
        row("run", run.to_string());
        row("task", one_line(&known.state.task.text, 400));
        row("status", format!("{}: {}", report.status, report.summary));
        row("events", known.progress.next_seq.to_string());
        row("next", next);
        if let Some(place) = &known.state.place {
            row("base", place.commit.clone());
        }
        for failure in &known.state.failures {
            let text = one_line(&failure.evidence, 200);
            row(
                "attempt",
                format!("{:?} by {}: {text}", failure.class, failure.by),
            );
        }
        if let Some(verdict) = &known.state.verdict {
            row("verdict", format!("{}: {}", verdict.name(), verdict.why()));
        }
        if let Some(delivered) = &report.delivered {
            row("branch", delivered.branch.clone().unwrap_or_default());
        }
        screen.line(table.render(0).trim_end())?;
        if !report.diff.is_empty() {
            screen.line(format!("\n{}", paint(STRONG, "The change")))?;
            screen.patch(&report.diff)?;
        }
        Ok(Exit::Verified)
    })
}

pub(super) fn undo(name: &str, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, name).await?;
        let known = runs::reader(store)?.show(&run, None).await?;
        let refuse = |message: String| {
            Failure::new(Code::RunRefused, Exit::Failed, message)
                .remedy("`lula show` tells what the run delivered")
        };
        let Some(delivered) = &known.state.delivered else {
            return Err(refuse(format!("{run} delivered nothing")));
        };
        let git = find_git(session)?;
        let repository = Path::new(&known.state.task.repository);
        let undone = hands::undo(&git, repository, delivered);
        let undone = undone.map_err(|error| refuse(error.to_string()))?;
        if session.screen.is_json() {
            session.screen.document(&undone)?;
        } else {
            session
                .screen
                .note(&format!("the branch {} is gone", undone.branch));
            let back = format!(
                "git branch {} {}   brings it back",
                undone.branch, undone.kept_as
            );
            session.screen.note(&paint(DIM, back));
        }
        Ok(Exit::Verified)
    })
}
