//! What a person says to the agents of a plan while they work: to all of them, or to those of one
//! task. A note for one task begins with `@TASK`; it reaches the agent at work and every later one
//! that takes the task on.

use crate::plan::{PlanGraph, StepId};

/// A note for one task, as the log of the run that leads keeps it.
pub fn addressed(task: &StepId, text: &str) -> String {
    format!("@{task} {text}")
}

/// The task that a note is for, where it is for one of the plan, and what it says.
fn read<'a>(note: &'a str, plan: &PlanGraph) -> (Option<StepId>, &'a str) {
    let named = note.strip_prefix('@').and_then(|rest| {
        let (name, text) = rest.split_once(char::is_whitespace)?;
        let id = StepId::new(name).ok()?;
        plan.steps.contains_key(&id).then_some((id, text.trim()))
    });
    named.map_or((None, note), |(id, text)| (Some(id), text))
}

/// What of these notes is for the agent of a step, in their order. A step that takes the place of
/// another has its name at the beginning of its own.
pub fn notes_for<'a>(
    step: &StepId,
    notes: impl IntoIterator<Item = &'a str>,
    plan: &PlanGraph,
) -> Vec<String> {
    let own = |task: &StepId| {
        let rest = step.as_str().strip_prefix(task.as_str());
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with("-resolve") || rest.starts_with("-more")
        })
    };
    let mut found = Vec::new();
    for note in notes {
        let (to, text) = read(note, plan);
        if to.is_none_or(|task| own(&task)) {
            found.push(text.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::examples::{dag, step};

    fn plan() -> PlanGraph {
        let steps = ["alpha", "beta", "alpha-resolve2"];
        dag(steps.map(|name| step(name, &[], &[name])).to_vec())
    }

    #[test]
    fn a_note_for_one_task_reaches_its_agents_and_no_other() {
        let alpha = StepId::new("alpha").unwrap();
        let notes = [
            "mind the cache".to_owned(),
            addressed(&alpha, "two spaces"),
            // Nobody here has that name: it is for all.
            "@alice asked for it".to_owned(),
        ];
        let told = |name: &str| {
            let step = StepId::new(name).unwrap();
            notes_for(&step, notes.iter().map(String::as_str), &plan())
        };
        assert_eq!(told("alpha").len(), 3);
        assert_eq!(told("alpha")[1], "two spaces");
        assert_eq!(told("alpha-resolve2"), told("alpha"));
        assert_eq!(told("beta"), ["mind the cache", "@alice asked for it"]);
    }
}
