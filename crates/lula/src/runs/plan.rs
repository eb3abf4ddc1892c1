//! A plan of several tasks as a person sees it.

use lula_agents::plan::{PlanGraph, StepStatus};

use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain};

/// A plan, one task on a line, each after what it needs.
pub(crate) fn table(dag: &PlanGraph) -> String {
    let mut table = TextTable::default();
    for entry in dag.in_order() {
        table.row([
            mark(&entry.status),
            entry.step.id.to_string(),
            state(&entry.status),
            entry.step.role.clone(),
            plain(&entry.step.scope.patterns().join(" "), 40),
            paint(DIM, plain(&dag.order_told(&entry.step.id), 60)),
            plain(&entry.step.goal, 60),
        ]);
    }
    table.render(0).trim_end().to_owned()
}

pub(super) fn mark(status: &StepStatus) -> String {
    match status {
        StepStatus::Merged { .. } => paint(GOOD, "●"),
        StepStatus::Leased { .. } | StepStatus::AwaitingMerge { .. } => paint(STRONG, "◐"),
        StepStatus::Conflict { .. } => paint(WARN, "◑"),
        StepStatus::Failed { .. } => paint(BAD, "✗"),
        _ => paint(DIM, "○"),
    }
}

fn state(status: &StepStatus) -> String {
    let style = match status {
        StepStatus::Merged { .. } => GOOD,
        StepStatus::Failed { .. } => BAD,
        StepStatus::Conflict { .. } => WARN,
        StepStatus::Leased { .. } | StepStatus::AwaitingMerge { .. } => STRONG,
        _ => DIM,
    };
    paint(style, status.name())
}
