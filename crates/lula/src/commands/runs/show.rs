//! `lula show` and `lula diff RUN`

use lula_agents::Work;
use lula_graph::{RunState, Step};
use lula_protocol::{Code, Exit, RunId};
use lula_store::SecretGuard;
use serde::Serialize;
use serde_json::json;

use super::{is_driven, started_ms, style};
use crate::cli::runs::ShowFlags;
use crate::failure::Failure;
use crate::record::spoken_time;
use crate::runs::report::RunReport;
use crate::runs::view::spend;
use crate::runs::words::{first_look, size};
use crate::runs::{self, environment, evidence, plan, store};
use crate::session::Session;
use crate::term::{DIM, STRONG, Table, paint, plain, visible};

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

pub(in crate::commands) fn show(flags: &ShowFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
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
            Step::Enter { node, visit: 0 } => format!("the {node:?}").to_lowercase(),
            Step::Enter { node, visit } => {
                format!("the {node:?}, for the {}. time", visit + 1).to_lowercase()
            }
            Step::Await(_) => "an answer".to_owned(),
            Step::Done(_) | Step::Finish | Step::Halt(_) | Step::Cancel => "nothing".to_owned(),
        };
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
        let table = facts(&known, &report, &next, began);
        screen.line(table.render(0).trim_end())?;
        if let Some(plan) = &report.plan {
            screen.line(format!("\n{}", plan::table(plan)))?;
        }
        if let Some(best_of) = &report.best_of {
            screen.line(format!("\n{}", best_of.table()))?;
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
        Ok(Exit::Verified)
    })
}

fn facts(known: &RunState<Work>, report: &RunReport, next: &str, began: u64) -> Table {
    let (work, progress) = (&known.state, &known.progress);
    let mut table = Table::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("run", progress.run.to_string());
    row("task", plain(&work.task.text, 400));
    row("began", spoken_time(began));
    let state = if progress.ended.is_some() {
        report.word()
    } else {
        report.status
    };
    row(
        "state",
        format!(
            "{}: {}",
            paint(style(state), state),
            plain(&report.summary, 400)
        ),
    );
    if progress.ended.is_none() {
        row("next", next.to_owned());
    }
    if let Some(place) = &work.place {
        row("base", visible(&place.commit));
    }
    for note in &work.notes {
        row("note", plain(note, 400));
    }
    for failure in &work.failures {
        let text = plain(&failure.evidence, 200);
        row(
            "attempt",
            format!("{:?} by {}: {text}", failure.class, visible(&failure.by)),
        );
    }
    if let Some((by, summary)) = &work.made {
        row(
            "made by",
            format!("{}: {}", visible(by), plain(summary, 200)),
        );
    }
    if let Some(verdict) = &work.verdict {
        row(
            "verdict",
            format!("{}: {}", verdict.name(), plain(verdict.why(), 400)),
        );
    }
    let evidence = work.evidence.as_ref();
    if let Some(first) = evidence.and_then(|evidence| evidence.first.as_ref()) {
        row("looked", first_look(first));
    }
    for (name, text) in evidence::rows(work) {
        row(name, text);
    }
    if let Some(broken) = &report.environment {
        for (name, text) in environment::facts(broken) {
            row(name, text);
        }
        for line in broken.output.lines() {
            row("output", visible(line));
        }
    }
    if let Some(confidence) = &work.confidence {
        row("confidence", confidence.spoken());
    }
    let broken = work
        .ratings
        .iter()
        .filter(|rating| rating.attempt == work.loops);
    for score in broken.flat_map(|rating| &rating.scores) {
        if score.score.is_some_and(|score| score < 0) {
            row(
                "guideline",
                format!("{}: {}", score.id, plain(&score.why, 200)),
            );
        }
    }
    if let Some(produced) = &work.produced {
        row("change", size(&produced.diff, produced.files.len()));
    }
    if let Some(delivered) = &report.delivered {
        let place = delivered
            .branch
            .as_deref()
            .or(delivered.directory.as_deref());
        row("delivered", visible(place.unwrap_or_default()));
    }
    for site in &work.sites {
        let delivered = site.delivered.as_ref();
        let branch = delivered.and_then(|delivered| delivered.branch.as_deref());
        let text = match branch {
            Some(branch) => format!("{}, branch {branch}", visible(&site.repository)),
            None => visible(&site.repository),
        };
        row("repository", text);
    }
    if let Some(text) = spend(&report.spent) {
        row("spent", text);
    }
    row("events", progress.next_seq.to_string());
    table
}

pub(in crate::commands) fn diff(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let report = RunReport::of(&known);
        let screen = &session.screen;
        if screen.is_json() {
            let verdict = known.state.verdict.as_ref();
            screen.document(
                &json!({"run": run, "files": report.files(), "diff": report.diff,
                "verdict": verdict, "delivered": report.delivered}),
            )?;
            return Ok(Exit::Verified);
        }
        if report.diff.is_empty() {
            screen.note(&format!("{run} has changed nothing"));
        } else {
            screen.patch(&report.diff)?;
        }
        Ok(Exit::Verified)
    })
}
