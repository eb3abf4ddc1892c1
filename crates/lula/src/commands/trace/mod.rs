//! `lula trace`: the timeline of a run, as text, as a page and as JSON.

use std::time::Duration;

use lula_host::otlp::{OtlpExporter, OtlpTarget};
use lula_host::output::write_whole;
use lula_host::remote::RunAccess;
use lula_host::runs;
use lula_host::standing::StandingTone;
use lula_host::story::facts::spend;
use lula_host::trace::{Trace, TraceSpan};
use lula_protocol::{Code, RunExit};

use crate::cli::runs::TraceFlags;
use crate::failure::CommandFailure;
use crate::runs::{contest, plan};
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, WARN, paint, plain, rough_duration};

/// Width of the bars.
const BAR: usize = 24;

pub(super) fn run(flags: &TraceFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let trace = Trace::read(&access.store, &run).await?;
        let screen = &session.screen;
        if let Some(url) = &flags.otlp {
            let target = OtlpTarget::Url(url.clone());
            if let Some(collector) = OtlpExporter::open(&target, &session.host)? {
                let sent = collector.export(&access.store, &run).await?;
                let (count, to) = (sent.spans.len(), collector.url());
                screen.note(&format!("{count} spans of trace {} sent to {to}", sent.id));
            }
        }
        if let Some(file) = &flags.html {
            write_whole(file, &trace.page())?;
            screen.note(&format!("the page is {}", file.display()));
        }
        if let Some(file) = &flags.svg {
            let Some(picture) = trace.picture() else {
                let message = format!("{run} had no agents beside each other to draw");
                return Err(
                    CommandFailure::new(Code::RunRefused, RunExit::Usage, message)
                        .remedy("`lula trace RUN --html FILE` shows any run"),
                );
            };
            write_whole(file, &picture)?;
            screen.note(&format!("the picture is {}", file.display()));
        }
        if screen.is_json() {
            screen.document(&trace.document())?;
        } else if flags.html.is_none() && flags.svg.is_none() && flags.otlp.is_none() {
            screen.line(text(&trace).trim_end())?;
        }
        Ok(RunExit::Verified)
    })
}

fn text(trace: &Trace) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let standing = trace.standing();
    let style = match standing.tone() {
        StandingTone::Good => GOOD,
        StandingTone::Bad => BAD,
        StandingTone::Active | StandingTone::Open => WARN,
    };
    let standing = standing.word();
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
        contest::table(best_of)
            .lines()
            .for_each(|row| line(row.to_owned()));
    }
    if !trace.lanes.is_empty() {
        line(String::new());
        for lane in &trace.lanes {
            let span = TraceSpan {
                name: lane.task.to_string(),
                text: format!("{} {}", lane.standing.word(), lane.run),
                begin_ms: lane.begin_ms,
                end_ms: lane.end_ms,
                good: (lane.standing.tone() == StandingTone::Bad).then_some(false),
                spent: lula_protocol::BudgetAmounts::none(),
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

fn row(span: &TraceSpan, name: &str, total: u64) -> String {
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
fn bar(span: &TraceSpan, total: u64) -> String {
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
    rough_duration(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::BudgetAmounts;

    #[test]
    fn a_bar_never_leaves_its_place() {
        for (begin_ms, end_ms, total) in [(0, 0, 0), (0, 10, 10), (10, 10, 10), (99, 100, 10)] {
            let span = TraceSpan {
                name: String::new(),
                text: String::new(),
                begin_ms,
                end_ms,
                good: None,
                spent: BudgetAmounts::none(),
                waiting: false,
            };
            assert_eq!(bar(&span, total).chars().count(), BAR);
        }
    }
}
