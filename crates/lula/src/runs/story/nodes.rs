//! What a node found out by its end.

use std::fmt::Write;

use lula_agents::route::Lane;
use lula_agents::verdict::{Looked, Verdict};
use lula_agents::work::{End, Event};
use serde_json::Value;

use super::{Kind, Teller, Words, read, words};
use crate::runs::words::{Tally, base, first_line, looked_text, place, produced_text};
use crate::runs::{contest, plan};

impl Teller {
    /// The end of a node, with what it found out.
    pub(super) fn left(&mut self, node: &str, outcome: &str, values: &[Value]) -> Words {
        let mut texts = Vec::new();
        let mut good = None;
        let events: Vec<Event> = values.iter().filter_map(read::<Event>).collect();
        let judged = events
            .iter()
            .any(|event| matches!(event, Event::Judged { .. }));
        let failed = events.iter().find_map(|event| match event {
            Event::Failed { failure } => Some(failure.class),
            _ => None,
        });
        for event in &events {
            self.planned(event);
            // Nothing shows that it is wrong, and it is tried again all the same.
            if let (Event::Judged { evidence, verdict }, Some(class)) = (event, failed)
                && let Verdict::Inconclusive { why } = verdict
            {
                let tally = evidence.after.results().map(Tally::from);
                self.tests = tally.or(self.tests);
                texts.push(format!("not done, {class:?}: {why}"));
                good = Some(false);
                continue;
            }
            // What was judged says why it failed.
            if judged && matches!(event, Event::Failed { .. }) {
                continue;
            }
            let (text, well) = self.event(event);
            if !text.is_empty() {
                texts.push(text);
            }
            good = well.or(good);
        }
        if texts.is_empty() {
            texts.push(outcome.replace('_', " "));
        }
        let mut said = words(Kind::Step, node, texts.join("; "));
        said.good = good;
        said
    }

    /// Keeps the plan as it is.
    fn planned(&mut self, event: &Event) {
        match (event, &mut self.plan) {
            (Event::Shared { dag, .. } | Event::Patched { dag, .. }, plan) => {
                *plan = Some(dag.clone());
            }
            (Event::Job { change }, Some(dag)) => {
                // A step that cannot have happened changes nothing.
                let _ = dag.step(change);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) -> (String, Option<bool>) {
        match event {
            Event::Opened { place } => (base(place), None),
            Event::Routed { lane } => {
                let lane = match lane {
                    Lane::Interactive => "at once",
                    Lane::DeepPlanning => "with a plan",
                    Lane::Recovery => "again",
                };
                (lane.to_owned(), None)
            }
            Event::Planned { steps } if steps.is_empty() => (String::new(), None),
            Event::Planned { steps } => {
                (format!("{} steps: {}", steps.len(), steps.join(" ")), None)
            }
            // What is broken is told as the end that the run comes to by it.
            Event::Examined { baseline }
                if matches!(baseline.looked, Looked::EnvironmentBroken(_)) =>
            {
                (String::new(), None)
            }
            Event::Examined { baseline } => {
                self.tests = baseline.looked.results().map(Tally::from);
                let mut text = looked_text(&baseline.looked);
                if let Some(command) = &baseline.command {
                    let _ = write!(text, " ({command})");
                }
                for tried in baseline.accept.iter().filter(|tried| tried.succeeds) {
                    let told = "succeeds already, so it will show nothing";
                    let _ = write!(text, "; {:?} {told}", tried.command);
                }
                (text, None)
            }
            Event::Coded { by, summary } => (format!("{by}: {}", first_line(summary)), None),
            Event::Executed { produced } => (produced_text(produced), None),
            Event::Failed { failure } => {
                let class = format!("{:?}", failure.class);
                let text = format!(
                    "{class} by {}: {}",
                    failure.by,
                    first_line(&failure.evidence)
                );
                (text, Some(false))
            }
            Event::Retrying { retry } => {
                let who = if retry.another_mind {
                    ", by another"
                } else {
                    ""
                };
                (
                    format!("again, from the {:?}{who}", retry.target).to_lowercase(),
                    None,
                )
            }
            Event::Judged { evidence, verdict } => {
                if let Some(results) = evidence.after.results() {
                    self.tests = Some(Tally::from(results));
                }
                let good = match verdict {
                    Verdict::Pass { .. } => Some(true),
                    Verdict::Fail { .. } => Some(false),
                    Verdict::Inconclusive { .. } => None,
                };
                let name = match verdict {
                    Verdict::Fail { class, .. } => format!("fail, {class:?}"),
                    _ => verdict.name().to_owned(),
                };
                (format!("{name}: {}", verdict.why()), good)
            }
            Event::Rated { rating } => {
                let broken = rating.scores.iter();
                let broken = broken.filter(|one| one.score.is_some_and(|score| score < 0));
                let broken: Vec<String> = broken
                    .map(|one| format!("{}: {}", one.id, one.why))
                    .collect();
                (broken.join("; "), None)
            }
            Event::Weighed { confidence } => {
                let look = if confidence.second_look {
                    ", after a second look"
                } else {
                    ""
                };
                (format!("confidence {}{look}", confidence.spoken()), None)
            }
            Event::Ending { end } => match end {
                End::NothingToDo { passing, .. } => {
                    let text = format!("nothing to do: {passing} tests pass");
                    (text, None)
                }
                End::Planned { tasks } => (format!("a plan of {tasks} tasks"), None),
                End::Rejected { why }
                | End::Halted { why }
                | End::Unclear { why }
                | End::NeedsModel { why }
                | End::OutOfTime { why }
                | End::Environment { why, .. } => (why.clone(), Some(false)),
            },
            Event::Delivered { delivered } | Event::DeliveredToo { delivered, .. } => {
                (place(delivered).to_owned(), Some(true))
            }
            Event::OpenedToo { sites } => {
                let places = sites.iter().map(|site| {
                    let name = site.repository.rsplit('/').next().unwrap_or_default();
                    format!("{name} {}", base(&site.place))
                });
                (places.collect::<Vec<_>>().join("; "), None)
            }
            Event::ExaminedToo { baseline, .. } => (looked_text(&baseline.looked), None),
            Event::Steered { notes } => (format!("heard {} notes", notes.len()), None),
            other => plan::told(other)
                .or_else(|| contest::told(other))
                .unwrap_or_default(),
        }
    }
}
