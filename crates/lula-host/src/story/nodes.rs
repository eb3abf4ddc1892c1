//! What a node found out by its end.

use std::fmt::Write;

use lula_agents::recovery::RetryTarget;
use lula_agents::route::TaskLane;
use lula_agents::verdict::{RunVerdict, TestRunAttempt};
use lula_agents::work::{EarlyEnd, ForeseenQuestion, RepositoryEvent, RetryPlan, RunStateEvent};
use serde_json::Value;

use super::{StoryEventKind, StoryTeller, Words, read, words};
use crate::story::facts::{TestTally, base, first_line, looked_text, place, proposal_text};
use crate::story::{chat, contest, plan};

impl StoryTeller {
    /// The end of a node, with what it found out.
    pub(super) fn left(&mut self, node: &str, outcome: &str, values: &[Value]) -> Words {
        let mut texts = Vec::new();
        let mut good = None;
        let events: Vec<RunStateEvent> = values.iter().filter_map(read::<RunStateEvent>).collect();
        let judged = events
            .iter()
            .any(|event| matches!(event, RunStateEvent::Judged { .. }));
        let failed = events.iter().find_map(|event| match event {
            RunStateEvent::Failed { failure } => Some(failure.class),
            _ => None,
        });
        for event in &events {
            self.planned(event);
            // Nothing shows that it is wrong, and it is tried again all the same.
            if let (RunStateEvent::Judged { evidence, verdict }, Some(class)) = (event, failed)
                && let RunVerdict::Inconclusive { why } = verdict
            {
                let tally = evidence.after.results().map(TestTally::from);
                self.tests = tally.or(self.tests);
                texts.push(format!("not done, {}: {why}", class.words()));
                good = Some(false);
                continue;
            }
            // What was judged says why it failed.
            if judged && matches!(event, RunStateEvent::Failed { .. }) {
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
        let mut said = words(StoryEventKind::Step, node, texts.join("; "));
        said.good = good;
        said
    }

    /// Keeps the plan as it is.
    fn planned(&mut self, event: &RunStateEvent) {
        match (event, &mut self.plan) {
            (RunStateEvent::Shared { dag, .. } | RunStateEvent::Patched { dag, .. }, plan) => {
                *plan = Some(dag.clone());
            }
            (RunStateEvent::StepChanged { change }, Some(dag)) => {
                // A step that cannot have happened changes nothing.
                let _ = dag.advance(change);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &RunStateEvent) -> (String, Option<bool>) {
        match event {
            RunStateEvent::Routed { lane } => {
                let lane = match lane {
                    TaskLane::Interactive => "at once",
                    TaskLane::DeepPlanning => "with a plan",
                    TaskLane::Recovery => "again",
                };
                (lane.to_owned(), None)
            }
            RunStateEvent::Planned { steps } if steps.is_empty() => (String::new(), None),
            RunStateEvent::Planned { steps } => {
                (format!("{} steps: {}", steps.len(), steps.join(" ")), None)
            }
            // What is broken is told as the end that the run comes to by it.
            RunStateEvent::Repository(RepositoryEvent::Tested { repo: 0, baseline })
                if matches!(baseline.looked, TestRunAttempt::EnvironmentBroken(_)) =>
            {
                (String::new(), None)
            }
            RunStateEvent::Repository(RepositoryEvent::Tested { repo: 0, baseline }) => {
                self.tests = baseline.looked.results().map(TestTally::from);
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
            RunStateEvent::Coded { by, summary } => {
                (format!("{by}: {}", first_line(summary)), None)
            }
            RunStateEvent::Foreseen { questions } => (foreseen_text(questions), None),
            RunStateEvent::Finished { commands } => (finished_text(commands), None),
            RunStateEvent::Executed { proposal } => (proposal_text(proposal), None),
            RunStateEvent::Failed { failure } => {
                let text = format!(
                    "{}: {} (by {})",
                    failure.class.words(),
                    first_line(&failure.evidence),
                    failure.by
                );
                (text, Some(false))
            }
            RunStateEvent::Retrying { retry } => (retry_text(retry), None),
            RunStateEvent::Judged { evidence, verdict } => {
                if let Some(results) = evidence.after.results() {
                    self.tests = Some(TestTally::from(results));
                }
                let good = match verdict {
                    RunVerdict::Pass { .. } => Some(true),
                    RunVerdict::Fail { .. } => Some(false),
                    RunVerdict::Inconclusive { .. } => None,
                };
                let name = match verdict {
                    RunVerdict::Fail { class, .. } => format!("fail, {}", class.words()),
                    _ => verdict.name().to_owned(),
                };
                (format!("{name}: {}", verdict.why()), good)
            }
            RunStateEvent::Rated { rating } => {
                let broken = rating.scores.iter();
                let broken = broken.filter(|one| one.score.is_some_and(|score| score < 0));
                let broken: Vec<String> = broken
                    .map(|one| format!("{}: {}", one.id, one.why))
                    .collect();
                (broken.join("; "), None)
            }
            RunStateEvent::Weighed { confidence } => {
                let look = if confidence.second_look {
                    "after a second look"
                } else {
                    ""
                };
                // A number that nothing calibrates tells a person nothing.
                let sure = if confidence.is_calibrated() {
                    format!("confidence {}", confidence.spoken())
                } else {
                    String::new()
                };
                let told = [sure.as_str(), look]
                    .into_iter()
                    .filter(|one| !one.is_empty());
                (told.collect::<Vec<_>>().join(", "), None)
            }
            RunStateEvent::Ending { end } => end_text(end),
            RunStateEvent::Repository(RepositoryEvent::Delivered { delivered, .. }) => {
                (place(delivered).to_owned(), Some(true))
            }
            RunStateEvent::Repository(RepositoryEvent::Opened { places, .. }) => {
                let places = places.iter().map(|one| {
                    let name = one.repository.rsplit('/').next().unwrap_or_default();
                    format!("{name} {}", base(&one.place))
                        .trim_start()
                        .to_owned()
                });
                (places.collect::<Vec<_>>().join("; "), None)
            }
            RunStateEvent::Repository(RepositoryEvent::Tested { baseline, .. }) => {
                (looked_text(&baseline.looked), None)
            }
            RunStateEvent::Chat { what, .. } => chat::summary(what),
            RunStateEvent::Steered { notes } => (format!("heard {} notes", notes.len()), None),
            other => plan::summary(other)
                .or_else(|| contest::summary(other))
                .unwrap_or_default(),
        }
    }
}

/// Why a run ends before it came to a verdict.
fn end_text(end: &EarlyEnd) -> (String, Option<bool>) {
    match end {
        EarlyEnd::NothingToDo { passing, .. } => {
            (format!("nothing to do: {passing} tests pass"), None)
        }
        EarlyEnd::Planned { tasks } => (format!("a plan of {tasks} tasks"), None),
        EarlyEnd::Rejected { why }
        | EarlyEnd::Halted { why }
        | EarlyEnd::Unclear { why }
        | EarlyEnd::NeedsModel { why }
        | EarlyEnd::OutOfTime { why }
        | EarlyEnd::Environment { why, .. } => (why.clone(), Some(false)),
        EarlyEnd::Blocked { by, why } => {
            (format!("{by} is blocked: {}", first_line(why)), Some(false))
        }
    }
}

/// How an attempt follows a failed one.
fn retry_text(retry: &RetryPlan) -> String {
    let from = match retry.target {
        RetryTarget::Conversation => return "the coder is told, and goes on".to_owned(),
        RetryTarget::Coder => "the coder",
        RetryTarget::Context => "a new look at the project",
        RetryTarget::Planner => "a new plan",
    };
    let who = if retry.another_model {
        ", by another model if there is one"
    } else {
        ""
    };
    format!("begins anew, from {from}{who}")
}

/// What rules will ask people about, and what they would ask about if it left anything behind.
fn foreseen_text(questions: &[ForeseenQuestion]) -> String {
    let told = questions.iter().map(|one| {
        let ForeseenQuestion { act, reason, waits } = one;
        if *waits {
            format!("will ask: {act}: {reason}")
        } else {
            format!("{act} runs in private copies, without a question: {reason}")
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Which commands finished a change.
fn finished_text(commands: &[String]) -> String {
    let commands: Vec<_> = commands.iter().map(|one| format!("{one:?}")).collect();
    format!("finished by {}", commands.join(", "))
}
