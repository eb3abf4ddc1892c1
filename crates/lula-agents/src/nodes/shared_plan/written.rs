//! Tasks as models write them and as they are shown to models.

use std::fmt::Write;

use lula_protocol::BudgetAmounts;
use serde::Deserialize;

use crate::plan::{PathScope, PlanGraph, PlanStep, PlanStepEntry, StepId};
use crate::team::AgentRoles;
use crate::work::CodingState;

/// A task as a model writes it.
#[derive(Debug, Deserialize)]
pub(super) struct ProposedStep {
    id: String,
    goal: String,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    done_when: Vec<String>,
    #[serde(default)]
    role: String,
    /// What it provides to other tasks and needs of them.
    #[serde(default)]
    interfaces: String,
    /// Where there are several.
    #[serde(default)]
    repository: String,
}

/// Longest goal and longest text about interfaces, in characters.
const GOAL: usize = 4_000;
const INTERFACES: usize = 2_000;
/// Most commands of a task.
const COMMANDS: usize = 8;

/// The repositories as a plan names them; none where there is only one.
pub(super) fn names(work: &CodingState) -> Vec<String> {
    match work.repositories.len() {
        1 => Vec::new(),
        count => (0..count).map(|repo| work.repository_name(repo)).collect(),
    }
}

/// Tasks as a plan has them, or everything that is wrong with them.
pub(super) fn steps(
    written: Vec<ProposedStep>,
    roles: &AgentRoles,
    names: &[String],
) -> Result<Vec<PlanStep>, Vec<String>> {
    let (steps, wrong) = read(written, roles, names);
    if wrong.is_empty() {
        Ok(steps)
    } else {
        Err(wrong)
    }
}

/// The tasks that can be read, and everything that is wrong with the others.
pub(super) fn read(
    written: Vec<ProposedStep>,
    roles: &AgentRoles,
    names: &[String],
) -> (Vec<PlanStep>, Vec<String>) {
    let mut wrong = Vec::new();
    let mut steps = Vec::new();
    for task in written {
        for (what, text, most) in [
            ("goal", &task.goal, GOAL),
            ("text about interfaces", &task.interfaces, INTERFACES),
        ] {
            if text.chars().count() > most {
                let id = &task.id;
                wrong.push(format!(
                    "the {what} of {id} has more than {most} characters"
                ));
            }
        }
        if task.done_when.len() > COMMANDS {
            wrong.push(format!(
                "{} has more than {COMMANDS} commands in done_when",
                task.id
            ));
        }
        let name = if task.role.is_empty() {
            "coder"
        } else {
            &task.role
        };
        let writes = roles.get(name).is_none_or(|role| role.writes);
        let scope = match (writes, task.files.is_empty()) {
            (false, _) => Ok(PathScope::default()),
            (true, true) => Ok(PathScope::everything()),
            (true, false) => PathScope::new(&task.files),
        };
        let repo = names.iter().position(|name| *name == task.repository);
        if repo.is_none() && !names.is_empty() {
            wrong.push(format!(
                "{} is about the repository {:?}, and there are only {}",
                task.id,
                task.repository,
                names.join(", ")
            ));
        }
        let deps: Result<Vec<StepId>, String> =
            task.needs.iter().map(|id| StepId::new(id)).collect();
        match (StepId::new(&task.id), scope, deps) {
            (Ok(id), Ok(scope), Ok(deps)) => steps.push(PlanStep {
                id,
                repo: repo.unwrap_or(0),
                goal: task.goal,
                deps,
                scope,
                budget: BudgetAmounts::none(),
                acceptance: task.done_when,
                role: name.to_owned(),
                interfaces: task.interfaces.trim().to_owned(),
            }),
            (id, scope, deps) => {
                wrong.extend(id.err());
                wrong.extend(scope.err());
                wrong.extend(deps.err());
            }
        }
    }
    (steps, wrong)
}

/// What each role is, as the planner is told it.
pub(super) fn roles_told(roles: &AgentRoles) -> String {
    let names = roles.names();
    let told = names.iter().filter_map(|name| {
        let writes = roles.get(name)?.writes;
        let what = if writes { "writes" } else { "only looks" };
        Some(format!("{name} ({what})"))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A plan in a few lines, for the planner that changes it.
pub(super) fn outline(dag: &PlanGraph, names: &[String]) -> String {
    let mut text = String::new();
    for entry in dag.in_order() {
        line(&mut text, entry, names);
    }
    text
}

fn line(text: &mut String, entry: &PlanStepEntry, names: &[String]) {
    let needs: Vec<&str> = entry.step.deps.iter().map(StepId::as_str).collect();
    if let Some(name) = names.get(entry.step.repo) {
        let _ = write!(text, "in {name}: ");
    }
    let _ = writeln!(
        text,
        "{} ({}, {}) needs [{}] files [{}] done when [{}]: {}",
        entry.step.id,
        entry.step.role,
        entry.status.name(),
        needs.join(", "),
        entry.step.scope.patterns().join(", "),
        entry.step.acceptance.join("; "),
        entry.step.goal
    );
    if !entry.step.interfaces.is_empty() {
        let _ = writeln!(text, "  interfaces: {}", entry.step.interfaces);
    }
}

/// What a patch changed, and nothing else of the plan.
pub(super) fn changes(before: &PlanGraph, after: &PlanGraph, names: &[String]) -> String {
    let mut text = String::new();
    for entry in after.in_order() {
        let id = &entry.step.id;
        let Some(was) = before.steps.get(id) else {
            text.push_str("new: ");
            line(&mut text, entry, names);
            continue;
        };
        if was.status != entry.status {
            let _ = writeln!(text, "{id} is {} now", entry.status.name());
        }
        if was.step.deps != entry.step.deps {
            let needs: Vec<&str> = entry.step.deps.iter().map(StepId::as_str).collect();
            let _ = writeln!(text, "{id} needs [{}] now", needs.join(", "));
        }
        if was.step.scope != entry.step.scope {
            let files = entry.step.scope.patterns().join(", ");
            let _ = writeln!(text, "{id} may write [{files}] now");
        }
    }
    text
}
