//! Where the time and the money of a run went: the moments of its log, laid out in time. Pure.

use lula_protocol::BudgetAmounts;
use serde::Serialize;

use crate::story::{StoryEvent, StoryEventKind};

/// Something that has a beginning and an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceSpan {
    pub name: String,
    /// What is to be said of it.
    pub text: String,
    /// Milliseconds since the run began.
    pub begin_ms: u64,
    /// Milliseconds since the run began, at the end of the span.
    pub end_ms: u64,
    /// Whether it went well, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    #[serde(skip_serializing_if = "BudgetAmounts::is_empty")]
    pub spent: BudgetAmounts,
    /// Whether the run only waited.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waiting: bool,
}

impl TraceSpan {
    /// How long it lasted.
    pub const fn took_ms(&self) -> u64 {
        self.end_ms.saturating_sub(self.begin_ms)
    }
}

/// One visit to a node, with what was done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceVisit {
    #[serde(flatten)]
    pub span: TraceSpan,
    /// What was done, in order.
    pub acts: Vec<TraceSpan>,
}

/// The visits of a run along its time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunTimeline {
    /// Unix time in milliseconds.
    pub start_ms: u64,
    /// How long it lasted.
    pub total_ms: u64,
    /// What was done, node by node.
    pub visits: Vec<TraceVisit>,
}

/// When each moment was over and how long it took. Everything of one commit has the same time: what
/// took long there came one after the other, and the last was over when it was committed.
pub(crate) fn times(moments: &[StoryEvent]) -> Vec<(u64, u64)> {
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
            let begin = if moments[index].settles {
                at.saturating_sub(took)
            } else {
                cursor.saturating_sub(took).max(earliest)
            };
            times[index] = (begin, cursor);
            if !moments[index].settles {
                cursor = begin;
            }
        }
        end = first;
    }
    times
}

impl RunTimeline {
    /// Of all moments of a run, in order.
    pub fn of(moments: &[StoryEvent]) -> Self {
        let start_ms = moments.first().map_or(0, |moment| moment.at_ms);
        let ended_ms = moments.last().map_or(start_ms, |moment| moment.at_ms);
        let mut timeline = Self {
            start_ms,
            total_ms: ended_ms.saturating_sub(start_ms),
            visits: Vec::new(),
        };
        let since = |ms: u64| ms.saturating_sub(start_ms);
        let mut acts: Vec<TraceSpan> = Vec::new();
        let mut waits: Option<TraceSpan> = None;
        let mut last = 0;
        for (moment, (begin, end)) in moments.iter().zip(times(moments)) {
            let span = |waiting| TraceSpan {
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
                    let mut spent = BudgetAmounts::none();
                    for (dimension, amount) in acts.iter().flat_map(|act| act.spent.iter()) {
                        *spent.0.entry(dimension).or_default() += amount;
                    }
                    timeline.visits.push(TraceVisit {
                        span: TraceSpan {
                            begin_ms,
                            end_ms,
                            spent,
                            ..span(false)
                        },
                        acts: std::mem::take(&mut acts),
                    });
                }
                ("run_started", _) | (_, StoryEventKind::Aside | StoryEventKind::End) => {}
                (
                    _,
                    StoryEventKind::Act
                    | StoryEventKind::Step
                    | StoryEventKind::Person
                    | StoryEventKind::Trouble,
                ) => {
                    acts.push(span(false));
                }
            }
        }
        acts.extend(waits);
        if let Some(first) = acts.first() {
            // The visit that has not ended, or was cut off.
            let node = moments.last().map_or("", |moment| &moment.node);
            timeline.visits.push(TraceVisit {
                span: TraceSpan {
                    name: node.to_owned(),
                    text: String::new(),
                    begin_ms: first.begin_ms,
                    end_ms: timeline.total_ms,
                    good: None,
                    spent: BudgetAmounts::none(),
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

    fn moment(
        at_ms: u64,
        event: &'static str,
        kind: StoryEventKind,
        name: &str,
        took: u64,
    ) -> StoryEvent {
        StoryEvent {
            seq: 0,
            at_ms,
            kind,
            event,
            settles: event == "effect_settled",
            relevance: crate::story::LiveRelevance::News,
            node: "context_builder".to_owned(),
            visit: 0,
            name: name.to_owned(),
            text: String::new(),
            good: None,
            took_ms: (took > 0).then_some(took),
            spent: BudgetAmounts::none(),
        }
    }

    #[test]
    fn what_was_committed_together_is_laid_out_one_after_the_other() {
        let timeline = RunTimeline::of(&[
            moment(1000, "run_started", StoryEventKind::Step, "task", 0),
            moment(4000, "read_done", StoryEventKind::Act, "list_files", 500),
            moment(4000, "read_done", StoryEventKind::Act, "run_tests", 2000),
            moment(
                4000,
                "node_left",
                StoryEventKind::Step,
                "context_builder",
                0,
            ),
            moment(5000, "effect_settled", StoryEventKind::Act, "ask", 900),
            moment(5000, "node_left", StoryEventKind::Step, "coder", 0),
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
        let timeline = RunTimeline::of(&[
            moment(0, "run_started", StoryEventKind::Step, "task", 0),
            moment(10, "suspended", StoryEventKind::Person, "waits", 0),
            moment(60, "resolved", StoryEventKind::Person, "answer", 0),
            moment(60, "node_left", StoryEventKind::Step, "reporter", 0),
        ]);
        let wait = &timeline.visits[0].acts[0];
        assert_eq!((wait.begin_ms, wait.end_ms, wait.waiting), (10, 60, true));
    }
}
