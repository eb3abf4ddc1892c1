//! `lula show` and `lula diff RUN`

use lula_agents::CodingState;
use lula_graph::{NextRunStep, RunState};
use lula_host::history::listing::{is_driven, started_ms};
use lula_host::remote::RunAccess;
use lula_host::report::RunReport;
use lula_host::runs;
use lula_host::story::evidence;
use lula_host::story::standing::facts;
use lula_protocol::{Code, RunExit, RunId};
use serde::Serialize;
use serde_json::json;

use super::style;
use crate::cli::runs::ShowFlags;
use crate::failure::CommandFailure;
use crate::runs::{contest, plan};
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, paint};

/// A run at one position of its log, for programs.
#[derive(Serialize)]
struct RunAtEventDocument<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    at: u64,
    next: String,
    state_digest: String,
    state: &'a lula_agents::CodingState,
}

pub(in crate::commands) fn show(
    flags: &ShowFlags,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let store = access.store;
        let began = started_ms(&*store, &run).await;
        let row = store.run(&run).await?;
        let driven = flags.at.is_none() && row.as_ref().is_some_and(is_driven);
        let reader = runs::reader(store)?;
        let known = reader.show(&run, flags.at).await?;
        let mut report = RunReport::of(&known);
        if driven {
            report.status = "running";
            report.summary = format!("it is being worked on: `lula logs -f {run}` follows it");
        }
        let next = match reader.next(&known) {
            NextRunStep::Enter { node, visit: 0 } => format!("the {node:?}").to_lowercase(),
            NextRunStep::Enter { node, visit } => {
                format!("the {node:?}, for the {}. time", visit + 1).to_lowercase()
            }
            NextRunStep::Await(_) => "an answer".to_owned(),
            NextRunStep::Done(_)
            | NextRunStep::Finish
            | NextRunStep::Halt(_)
            | NextRunStep::Cancel => "nothing".to_owned(),
        };
        let screen = &session.screen;
        if screen.is_json() {
            let digest = known.digest().map_err(|error| {
                CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string())
            })?;
            screen.document(&RunAtEventDocument {
                report: &report,
                at: known.progress.next_seq,
                next,
                state_digest: digest.to_string(),
                state: &known.state,
            })?;
            return Ok(RunExit::Verified);
        }
        let table = table(&known, &report, &next, began);
        screen.line(table.render(0).trim_end())?;
        if let Some(plan) = &report.plan {
            screen.line(format!("\n{}", plan::table(plan)))?;
        }
        if let Some(best_of) = &report.best_of {
            screen.line(format!("\n{}", contest::table(best_of)))?;
        }
        let said = evidence::said(&known.state);
        if !said.is_empty() {
            screen.line(format!("\n{}", paint(STRONG, "What failing tests said")))?;
            for line in said {
                screen.line(line)?;
            }
        }
        if !report.diff.is_empty() {
            screen.line(format!("\n{}", paint(STRONG, "The change")))?;
            screen.patch(&report.diff)?;
        }
        Ok(RunExit::Verified)
    })
}

fn table(known: &RunState<CodingState>, report: &RunReport, next: &str, began: u64) -> TextTable {
    let mut table = TextTable::default();
    for (name, text) in facts(known, report, next, began) {
        let text = match (name, text.split_once(": ")) {
            ("state", Some((state, rest))) => {
                format!("{}: {rest}", paint(style(report.standing()), state))
            }
            _ => text,
        };
        table.row([paint(DIM, name), text]);
    }
    table
}

pub(in crate::commands) fn diff(
    run: &RunId,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let store = RunAccess::open(&session.host).await?.store;
        let known = runs::reader(store)?.show(run, None).await?;
        let report = RunReport::of(&known);
        let screen = &session.screen;
        if screen.is_json() {
            let verdict = known.state.verdict.as_ref();
            screen.document(
                &json!({"run": run, "files": report.files(), "diff": report.diff,
                "verdict": verdict, "delivered": report.delivered}),
            )?;
            return Ok(RunExit::Verified);
        }
        if report.diff.is_empty() {
            screen.note(&format!("{run} has changed nothing"));
        } else {
            screen.patch(&report.diff)?;
        }
        Ok(RunExit::Verified)
    })
}
