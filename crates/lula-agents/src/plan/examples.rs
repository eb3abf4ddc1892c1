//! Plans that tests begin with.

use lula_protocol::{BudgetAmounts, RunId};

use super::*;

const ROLES: &[&str] = &["coder", "reviewer"];

/// The name of a step.
pub(crate) fn id(text: &str) -> StepId {
    StepId::new(text).unwrap()
}

/// A step with what it needs and where it may write.
pub(crate) fn step(name: &str, deps: &[&str], scope: &[&str]) -> PlanStep {
    PlanStep {
        id: id(name),
        repo: 0,
        goal: format!("do {name}"),
        deps: deps.iter().map(|dep| id(dep)).collect(),
        scope: PathScope::new(scope).unwrap(),
        budget: BudgetAmounts::none(),
        acceptance: Vec::new(),
        role: "coder".to_owned(),
        interfaces: String::new(),
    }
}

/// What a plan may ask for.
pub(crate) fn bounds() -> PlanBounds<'static> {
    PlanBounds {
        repositories: 1,
        roles: ROLES,
        left: BudgetAmounts::none(),
    }
}

/// The run of an agent.
pub(crate) fn run(number: u64) -> RunId {
    RunId::from_parts(number, [7; 10])
}

/// A plan whose failures skip only what needs them.
pub(crate) fn dag(steps: Vec<PlanStep>) -> PlanGraph {
    PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds()).unwrap()
}

/// An agent takes a step on.
pub(crate) fn lease(dag: &mut PlanGraph, name: &str) {
    dag.advance(&StepTransition::Leased {
        id: id(name),
        run: run(1),
    })
    .unwrap();
}

/// The work of a step is merged.
pub(crate) fn merge(dag: &mut PlanGraph, name: &str) {
    dag.advance(&StepTransition::AwaitingMerge { id: id(name) })
        .unwrap();
    dag.advance(&StepTransition::Merged {
        id: id(name),
        commit: Some("c".to_owned()),
    })
    .unwrap();
}

/// A plan after a patch.
pub(crate) fn patched(
    dag: &PlanGraph,
    ops: Vec<PlanPatchOperation>,
) -> Result<PlanGraph, PlanPatchRefusal> {
    let patch = PlanPatch {
        base_version: dag.version,
        ops,
    };
    dag.patch(&patch, &bounds())
}
