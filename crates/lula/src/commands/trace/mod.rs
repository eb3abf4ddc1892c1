//! `lula trace`: the timeline of a run, as text, as a page and as JSON.

mod html;
mod lanes;
mod timeline;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lula_agents::Work;
use lula_graph::RunState;
use lula_protocol::{Code, Exit, RunId};
use lula_store::SecretGuard;
use serde::Serialize;

use self::lanes::Lane;
use self::timeline::{Span, Timeline};
use crate::cli::runs::TraceFlags;
use crate::failure::Failure;
use crate::runs::follow::Follower;
use crate::runs::report::{RunReport, word};
use crate::runs::story::Moment;
use crate::runs::view::spend;
use crate::runs::{self, plan, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, WARN, human, paint, plain};

/// Width of the bars.
const BAR: usize = 24;

/// Everything that is known of a run and how it came about.
struct Trace {
    known: RunState<Work>,
    report: RunReport,
    timeline: Timeline,
    moments: Vec<Moment>,
    /// The agents, where there were several.
    lanes: Vec<Lane>,
    /// Digest of the last entry of the log.
    head: String,
}

/// The same for programs.
#[derive(Serialize)]
struct Document<'a> {
    run: &'a RunId,
    standing: &'static str,
    summary: &'a str,
    #[serde(flatten)]
    timeline: &'a Timeline,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agents: &'a [Lane],
}

pub(super) fn run(flags: &TraceFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        let known = runs::reader(Arc::clone(&store))?.show(&run, None).await?;
        let mut moments = Vec::new();
        let mut head = String::new();
        Follower::new(Arc::clone(&store), run.clone())
            .catch_up(|record, moment, _| {
                moments.push(moment.clone());
                head = record.hash.to_string();
            })
            .await?;
        let began_ms = moments.first().map_or(0, |moment| moment.at_ms);
        let lanes = lanes::lanes(&store, &known, began_ms).await?;
        let trace = Trace {
            lanes,
            report: RunReport::of(&known),
            known,
            timeline: Timeline::of(&moments),
            moments,
            head,
        };
        let screen = &session.screen;
        if let Some(file) = &flags.html {
            write(file, &html::page(&trace))?;
            screen.note(&format!("the page is {}", file.display()));
        }
        if let Some(file) = &flags.svg {
            let Some(picture) = trace.picture() else {
                let message = format!("{run} had no agents beside each other to draw");
                return Err(Failure::new(Code::RunRefused, Exit::Usage, message)
                    .remedy("`lula trace RUN --html FILE` shows any run"));
            };
            write(file, &picture)?;
            screen.note(&format!("the picture is {}", file.display()));
        }
        if screen.is_json() {
            screen.document(&Document {
                run: &run,
                standing: trace.standing(),
                summary: &trace.report.summary,
                timeline: &trace.timeline,
                agents: &trace.lanes,
            })?;
        } else if flags.html.is_none() && flags.svg.is_none() {
            screen.line(text(&trace).trim_end())?;
        }
        Ok(Exit::Verified)
    })
}

/// Writes a file whole or not at all.
fn write(file: &Path, page: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", file.display());
        Failure::new(Code::FileAccess, Exit::Environment, message)
            .remedy("name a file in a directory that exists and can be written")
    };
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let mut draft = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    draft.write_all(page.as_bytes()).map_err(failed)?;
    draft.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

impl Trace {
    /// The agents beside each other, where there were several.
    fn picture(&self) -> Option<String> {
        // Whoever tries the same as others waits for nobody.
        let plan = self.report.plan.clone().unwrap_or_default();
        let total = self.timeline.total_ms;
        (!self.lanes.is_empty()).then(|| lanes::svg(&plan, &self.lanes, total))
    }

    fn standing(&self) -> &'static str {
        if self.known.progress.ended.is_some() {
            word(self.report.exit)
        } else {
            self.report.status
        }
    }
}

fn text(trace: &Trace) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let standing = trace.standing();
    let style = match standing {
        "verified" => GOOD,
        "failed" | "not possible" => BAD,
        _ => WARN,
    };
    let total = trace.timeline.total_ms;
    let mut facts = vec![spoken(total)];
    facts.extend(spend(&trace.report.spent));
    line(format!(
        "{} {} {}",
        trace.known.progress.run,
        paint(style, standing),
        paint(DIM, facts.join(", "))
    ));
    line(plain(&trace.known.state.task.text, 400));
    line(String::new());
    for visit in &trace.timeline.visits {
        let name = format!("{:<17}", visit.span.name);
        line(row(&visit.span, &paint(STRONG, name), total));
        for act in &visit.acts {
            let name = format!("  {:<15}", act.name);
            line(row(act, &paint(DIM, name), total));
        }
    }
    if let Some(plan) = &trace.report.plan {
        line(String::new());
        plan::table(plan)
            .lines()
            .for_each(|row| line(row.to_owned()));
    }
    if let Some(best_of) = &trace.report.best_of {
        line(String::new());
        best_of.table().lines().for_each(|row| line(row.to_owned()));
    }
    if !trace.lanes.is_empty() {
        line(String::new());
        for lane in &trace.lanes {
            let span = Span {
                name: lane.task.to_string(),
                text: format!("{} {}", lane.standing, lane.run),
                begin_ms: lane.begin_ms,
                end_ms: lane.end_ms,
                good: matches!(lane.standing, "failed" | "not possible").then_some(false),
                spent: lula_protocol::Amounts::none(),
                waiting: false,
            };
            let name = format!("{:<17}", plain(lane.task.as_str(), 17));
            line(row(&span, &paint(STRONG, name), total));
        }
    }
    line(String::new());
    line(format!(
        "{} {}",
        paint(style, format!("{standing}:")),
        plain(&trace.report.summary, 400)
    ));
    line(paint(
        DIM,
        format!("{} events up to {}", trace.moments.len(), trace.head),
    ));
    out
}

fn row(span: &Span, name: &str, total: u64) -> String {
    let mut text = span.text.clone();
    if span.good == Some(false) {
        text = paint(BAD, text);
    }
    if let Some(spent) = spend(&span.spent) {
        text = format!("{text} {}", paint(DIM, format!("({spent})")));
    }
    let (begin, took) = (spoken(span.begin_ms), spoken(span.took_ms()));
    format!("{begin:>9}  {name} {}  {took:>8}  {text}", bar(span, total))
}

/// Where in the whole something lies.
fn bar(span: &Span, total: u64) -> String {
    let scale = |ms: u64| {
        let cells = u64::try_from(BAR).unwrap_or(u64::MAX);
        usize::try_from(ms.saturating_mul(cells) / total.max(1))
            .unwrap_or(BAR)
            .min(BAR)
    };
    let begin = scale(span.begin_ms).min(BAR - 1);
    let end = scale(span.end_ms).max(begin + 1);
    let fill = if span.waiting { "░" } else { "█" };
    format!(
        "{}{}{}",
        " ".repeat(begin),
        fill.repeat(end - begin),
        " ".repeat(BAR - end)
    )
}

fn spoken(ms: u64) -> String {
    human(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::Amounts;

    #[test]
    fn a_bar_never_leaves_its_place() {
        for (begin_ms, end_ms, total) in [(0, 0, 0), (0, 10, 10), (10, 10, 10), (99, 100, 10)] {
            let span = Span {
                name: String::new(),
                text: String::new(),
                begin_ms,
                end_ms,
                good: None,
                spent: Amounts::none(),
                waiting: false,
            };
            assert_eq!(bar(&span, total).chars().count(), BAR);
        }
    }
}
