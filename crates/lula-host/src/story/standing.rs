//! How a run stands, fact by fact.

use lula_agents::CodingState;
use lula_graph::RunState;

use super::facts::{first_look, size, spend};
use super::{environment, evidence};
use crate::report::RunReport;
use crate::text::{plain, visible};
use lula_protocol::calendar::utc_text;

/// What is known of a run, each with a name. `next` is what it does next, `began` when it began.
pub fn facts(
    known: &RunState<CodingState>,
    report: &RunReport,
    next: &str,
    began: u64,
) -> Vec<(&'static str, String)> {
    let (work, progress) = (&known.state, &known.progress);
    let mut rows = Vec::new();
    let mut row = |name: &'static str, text: String| rows.push((name, text));
    row("run", progress.run.to_string());
    row("task", plain(&work.task.text, 400));
    row("began", utc_text(began));
    let state = if progress.ended.is_some() {
        report.word()
    } else {
        report.status
    };
    row("state", format!("{state}: {}", plain(&report.summary, 400)));
    if progress.ended.is_none() {
        row("next", next.to_owned());
    }
    if let Some(place) = work.place_of(0) {
        row("base", visible(&place.origin.commit));
    }
    for note in &work.notes {
        row("note", plain(note, 400));
    }
    for failure in &work.failures {
        let text = plain(&failure.evidence, 200);
        row(
            "attempt",
            format!(
                "{}: {text} (by {})",
                failure.class.words(),
                visible(&failure.by)
            ),
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
    if let Some(confidence) = work.confidence.as_ref().filter(|it| it.is_calibrated()) {
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
    if let Some(proposal) = &work.proposal {
        row("change", size(&proposal.diff, proposal.files.len()));
    }
    for one in &report.missing {
        let text = format!("{}: {} ({})", one.task, one.goal, one.why);
        row("missing", plain(&text, 400));
    }
    if let Some(review) = &report.review {
        row("review", plain(&review.told(), 200));
        for doubt in &review.doubts {
            row("doubt", plain(doubt, 400));
        }
    }
    if let Some(delivered) = &report.delivered {
        let place = delivered
            .branch
            .as_deref()
            .or(delivered.directory.as_deref());
        row("delivered", visible(place.unwrap_or_default()));
    }
    for repo in 1..work.repositories.len() {
        let delivered = work.delivered_of(repo);
        let branch = delivered.and_then(|delivered| delivered.branch.as_deref());
        let repository = visible(work.repository(repo));
        let text = match branch {
            Some(branch) => format!("{repository}, branch {branch}"),
            None => repository,
        };
        row("repository", text);
    }
    if let Some(text) = spend(&report.spent) {
        row("spent", text);
    }
    row("events", progress.next_seq.to_string());
    rows
}
