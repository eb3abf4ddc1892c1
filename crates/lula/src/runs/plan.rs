//! A plan of several tasks as a person sees it.

use lula_agents::dag::{Dag, Entry, JobId, Status};
use lula_agents::work::Event;

use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint, plain};

/// A plan, one task on a line, each after what it needs.
pub(crate) fn table(dag: &Dag) -> String {
    let mut table = Table::default();
    for entry in dag.in_order() {
        table.row([
            mark(&entry.status),
            entry.job.id.to_string(),
            state(&entry.status),
            entry.job.role.clone(),
            plain(&entry.job.scope.patterns().join(" "), 40),
            needs(entry),
            plain(&entry.job.goal, 60),
        ]);
    }
    table.render(0).trim_end().to_owned()
}

fn needs(entry: &Entry) -> String {
    if entry.job.deps.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = entry.job.deps.iter().map(JobId::as_str).collect();
    paint(DIM, format!("after {}", names.join(", ")))
}

pub(super) fn mark(status: &Status) -> String {
    match status {
        Status::Integrated { .. } => paint(GOOD, "●"),
        Status::Leased { .. } | Status::Produced { .. } => paint(STRONG, "◐"),
        Status::Conflict { .. } => paint(WARN, "◑"),
        Status::Failed { .. } => paint(BAD, "✗"),
        _ => paint(DIM, "○"),
    }
}

fn state(status: &Status) -> String {
    let style = match status {
        Status::Integrated { .. } => GOOD,
        Status::Failed { .. } => BAD,
        Status::Conflict { .. } => WARN,
        Status::Leased { .. } | Status::Produced { .. } => STRONG,
        _ => DIM,
    };
    paint(style, status.name())
}

/// What happened among several agents, in words.
pub(crate) fn told(event: &Event) -> Option<(String, Option<bool>)> {
    use lula_agents::dag::Step;
    Some(match event {
        Event::Answered { answer } => (format!("{}: {}", answer.by, answer.text), answer.approve),
        Event::Shared { dag, .. } => {
            let names: Vec<String> = dag
                .in_order()
                .iter()
                .map(|entry| entry.job.id.to_string())
                .collect();
            let text = format!("{} tasks: {}", names.len(), names.join(", "));
            (text, None)
        }
        Event::PlanRefused { by, reasons } => {
            let text = format!("the plan of {by} was refused: {}", reasons.join("; "));
            (text, Some(false))
        }
        Event::Patched { by, dag, .. } => (
            format!("{by} changed the plan to version {}", dag.version),
            None,
        ),
        Event::PatchRefused { by, reason } => {
            let text = format!("a change of the plan by {by} was refused: {reason}");
            (text, Some(false))
        }
        Event::Wished { job, answer, .. } => {
            let first = answer.text.lines().next().unwrap_or_default();
            let text = format!("{job} wants another plan: {first}");
            (text, Some(!answer.failed))
        }
        Event::Job { change } => match change {
            Step::Leased { id, run } => (format!("{id} begins as {run}"), None),
            Step::Produced { id } => (format!("{id} is done and verified"), None),
            Step::Integrated { id, .. } => (format!("{id} is integrated"), Some(true)),
            Step::Conflict { id, said } => {
                let said = said.lines().next().unwrap_or_default();
                (format!("{id} does not fit: {said}"), Some(false))
            }
            Step::Failed { id, reason } => (format!("{id} failed: {reason}"), Some(false)),
            Step::Skipped { id, reason } => (format!("{id} is skipped: {reason}"), Some(false)),
        },
        _ => return None,
    })
}
