//! Tasks as models write them and as they are shown to models.

use std::fmt::Write;

use lula_protocol::BudgetAmounts;
use serde::Deserialize;

use crate::plan::{PathScope, PlanGraph, PlanStep, StepId};
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
    /// Where there are several.
    #[serde(default)]
    repository: String,
}

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
    let mut wrong = Vec::new();
    let mut steps = Vec::new();
    for task in written {
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
                goal: task.goal.chars().take(4000).collect(),
                deps,
                scope,
                budget: BudgetAmounts::none(),
                acceptance: task.done_when.into_iter().take(8).collect(),
                role: name.to_owned(),
            }),
            (id, scope, deps) => {
                wrong.extend(id.err());
                wrong.extend(scope.err());
                wrong.extend(deps.err());
            }
        }
    }
    if wrong.is_empty() {
        Ok(steps)
    } else {
        Err(wrong)
    }
}

/// A plan in a few lines, for the planner that changes it.
pub(super) fn outline(dag: &PlanGraph, names: &[String]) -> String {
    let mut text = String::new();
    for entry in dag.in_order() {
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
    }
    text
}
