//! Where the time and the money of a run went: the moments of its log, laid out in time. Pure.

use lula_protocol::Amounts;
use serde::Serialize;

use crate::runs::story::{Kind, Moment};

/// Something that has a beginning and an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Span {
    /// What it is.
    pub(super) name: String,
    /// What is to be said of it.
    pub(super) text: String,
    /// Milliseconds since the run began.
    pub(super) begin_ms: u64,
    /// The same.
    pub(super) end_ms: u64,
    /// Whether it went well, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) good: Option<bool>,
    /// What it cost.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub(super) spent: Amounts,
    /// Whether the run only waited.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) waiting: bool,
}

impl Span {
    pub(super) const fn took_ms(&self) -> u64 {
        self.end_ms.saturating_sub(self.begin_ms)
    }
}

/// One visit to a node, with what was done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Visit {
    #[serde(flatten)]
    pub(super) span: Span,
    /// What was done, in order.
    pub(super) acts: Vec<Span>,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct Timeline {
    /// Unix time in milliseconds.
    pub(super) start_ms: u64,
    /// How long it lasted.
    pub(super) total_ms: u64,
    pub(super) visits: Vec<Visit>,
}

/// When each moment was over and how long it took. Everything of one commit has the same time: what
/// took long there came one after the other, and the last was over when it was committed.
fn times(moments: &[Moment]) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = moments.iter().map(|it| (it.at_ms, it.at_ms)).collect();
    let mut end = moments.len();
    while end > 0 {
        let at = moments[end - 1].at_ms;
        let first = moments[..end]
            .iter()
            .rposition(|moment| moment.at_ms != at)
            .map_or(0, |before| before + 1);
        let earliest = first
            .checked_sub(1)
            .map_or(0, |before| moments[before].at_ms);
        let mut cursor = at;
        for index in (first..end).rev() {
            let took = moments[index].took_ms.unwrap_or(0);
            let begin = if moments[index].event == "effect_settled" {
                at.saturating_sub(took)
            } else {
                cursor.saturating_sub(took).max(earliest)
            };
            times[index] = (begin, cursor);
            if moments[index].event != "effect_settled" {
                cursor = begin;
            }
        }
        end = first;
    }
    times
}

impl Timeline {
    /// Of all moments of a run, in order.
    pub(super) fn of(moments: &[Moment]) -> Self {
        let start_ms = moments.first().map_or(0, |moment| moment.at_ms);
        let ended_ms = moments.last().map_or(start_ms, |moment| moment.at_ms);
        let mut timeline = Self {
            start_ms,
            total_ms: ended_ms.saturating_sub(start_ms),
            visits: Vec::new(),
        };
        let since = |ms: u64| ms.saturating_sub(start_ms);
        let mut acts: Vec<Span> = Vec::new();
        let mut waits: Option<Span> = None;
        let mut last = 0;
        for (moment, (begin, end)) in moments.iter().zip(times(moments)) {
            let span = |waiting| Span {
                name: moment.name.clone(),
                text: moment.text.clone(),
                begin_ms: since(begin),
                end_ms: since(end),
                good: moment.good,
                spent: moment.spent.clone(),
                waiting,
            };
            match (moment.event, moment.kind) {
                ("suspended", _) => waits = Some(span(true)),
                ("resolved", _) => {
                    if let Some(mut wait) = waits.take() {
                        wait.end_ms = since(end);
                        wait.text = format!("{} ({})", wait.text, moment.text);
                        acts.push(wait);
                    }
                }
                ("node_left", _) => {
                    // What people said came while the run waited, and is told with it.
                    acts.sort_by_key(|act| act.begin_ms);
                    let begin_ms = acts.first().map_or(last, |act| act.begin_ms.max(last));
                    let end_ms = acts.iter().map(|act| act.end_ms).max().unwrap_or(begin_ms);
                    last = end_ms;
                    let mut spent = Amounts::none();
                    for (dimension, amount) in acts.iter().flat_map(|act| act.spent.iter()) {
                        *spent.0.entry(dimension).or_default() += amount;
                    }
                    timeline.visits.push(Visit {
                        span: Span {
                            begin_ms,
                            end_ms,
                            spent,
                            ..span(false)
                        },
                        acts: std::mem::take(&mut acts),
                    });
                }
                ("run_started", _) | (_, Kind::Aside | Kind::End) => {}
                (_, Kind::Act | Kind::Step | Kind::Person | Kind::Trouble) => {
                    acts.push(span(false));
                }
            }
        }
        acts.extend(waits);
        if let Some(first) = acts.first() {
            // The visit that has not ended, or was cut off.
            let node = moments.last().map_or("", |moment| &moment.node);
            timeline.visits.push(Visit {
                span: Span {
                    name: node.to_owned(),
                    text: String::new(),
                    begin_ms: first.begin_ms,
                    end_ms: timeline.total_ms,
                    good: None,
                    spent: Amounts::none(),
                    waiting: false,
                },
                acts,
            });
        }
        timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(at_ms: u64, event: &'static str, kind: Kind, name: &str, took: u64) -> Moment {
        Moment {
            seq: 0,
            at_ms,
            kind,
            event,
            node: "context_builder".to_owned(),
            visit: 0,
            name: name.to_owned(),
            text: String::new(),
            good: None,
            took_ms: (took > 0).then_some(took),
            spent: Amounts::none(),
        }
    }

    #[test]
    fn what_was_committed_together_is_laid_out_one_after_the_other() {
        let timeline = Timeline::of(&[
            moment(1000, "run_started", Kind::Step, "task", 0),
            moment(4000, "read_done", Kind::Act, "list_files", 500),
            moment(4000, "read_done", Kind::Act, "run_tests", 2000),
            moment(4000, "node_left", Kind::Step, "context_builder", 0),
            moment(5000, "effect_settled", Kind::Act, "ask", 900),
            moment(5000, "node_left", Kind::Step, "coder", 0),
        ]);
        let spans: Vec<_> = timeline
            .visits
            .iter()
            .flat_map(|visit| std::iter::once(&visit.span).chain(&visit.acts))
            .map(|span| (span.name.as_str(), span.begin_ms, span.end_ms))
            .collect();
        assert_eq!(
            spans,
            [
                ("context_builder", 500, 3000),
                ("list_files", 500, 1000),
                ("run_tests", 1000, 3000),
                ("coder", 3100, 4000),
                ("ask", 3100, 4000),
            ]
        );
        assert_eq!(timeline.total_ms, 4000);
    }

    #[test]
    fn a_wait_lasts_until_it_is_answered() {
        let timeline = Timeline::of(&[
            moment(0, "run_started", Kind::Step, "task", 0),
            moment(10, "suspended", Kind::Person, "waits", 0),
            moment(60, "resolved", Kind::Person, "answer", 0),
            moment(60, "node_left", Kind::Step, "reporter", 0),
        ]);
        let wait = &timeline.visits[0].acts[0];
        assert_eq!((wait.begin_ms, wait.end_ms, wait.waiting), (10, 60, true));
    }
}
