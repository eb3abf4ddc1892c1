//! What happened to a plan that several agents share, in words.

use lula_agents::work::RunStateEvent;

/// Most tests that are named in one line.
const NAMED: usize = 5;

/// What happened among several agents, in words.
pub fn summary(event: &RunStateEvent) -> Option<(String, Option<bool>)> {
    use lula_agents::plan::StepTransition;
    Some(match event {
        RunStateEvent::Answered { answer } => {
            (format!("{}: {}", answer.by, answer.text), answer.approve)
        }
        RunStateEvent::Shared { dag, .. } => {
            let names: Vec<String> = dag
                .in_order()
                .iter()
                .map(|entry| entry.step.id.to_string())
                .collect();
            let text = format!("{} tasks: {}", names.len(), names.join(", "));
            (text, None)
        }
        RunStateEvent::PlanRefused { by, reasons } => {
            let text = format!("the plan of {by} was refused: {}", reasons.join("; "));
            (text, Some(false))
        }
        RunStateEvent::Patched { by, dag, .. } => (
            format!("{by} changed the plan to version {}", dag.version),
            None,
        ),
        RunStateEvent::PatchRefused { by, reason } => {
            let text = format!("a change of the plan by {by} was refused: {reason}");
            (text, Some(false))
        }
        RunStateEvent::Wished { step, answer, .. } => {
            let first = answer.text.lines().next().unwrap_or_default();
            let text = format!("{step} wants another plan: {first}");
            (text, Some(!answer.failed))
        }
        RunStateEvent::Merged { step, flaky, .. } if !flaky.is_empty() => {
            let names: Vec<&str> = flaky.iter().map(String::as_str).take(NAMED).collect();
            let more = match flaky.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let text = format!(
                "flaky, and not held against {step}: {}{more} failed, and without it too",
                names.join(", ")
            );
            (text, None)
        }
        RunStateEvent::Reviewed { review } => {
            let mut text = format!("the whole beside the task: {}", review.told());
            for doubt in &review.doubts {
                text.push_str("; ");
                text.push_str(doubt);
            }
            (text, None)
        }
        RunStateEvent::StepChanged { change } => match change {
            StepTransition::Leased { id, run } => (format!("{id} begins as {run}"), None),
            StepTransition::AwaitingMerge { id } => (format!("{id} is done and verified"), None),
            StepTransition::Merged { id, .. } => (format!("{id} is merged"), Some(true)),
            StepTransition::Conflict { id, said } => {
                let said = said.lines().next().unwrap_or_default();
                (format!("{id} does not fit: {said}"), Some(false))
            }
            StepTransition::Failed { id, reason } => {
                (format!("{id} failed: {reason}"), Some(false))
            }
            StepTransition::Skipped { id, reason } => {
                (format!("{id} is skipped: {reason}"), Some(false))
            }
        },
        _ => return None,
    })
}
