//! What agents want changed in the plan they are part of, and what they are told.

use std::collections::BTreeSet;

use lula_graph::{NodeContext, NodeExit};
use lula_protocol::BudgetAmounts;
use serde::Deserialize;

use super::left;
use super::written::{ProposedStep, names, outline, steps};
use crate::graph::{NodeDeparture, RunNodeExit};
use crate::plan::{
    PlanBounds, PlanGraph, PlanPatch, PlanPatchOperation, PlanStep, StepId, StepStatus,
};
use crate::runner_port::Reply;
use crate::team::wish::MOST;
use crate::team::{PlanChangeRequest, RunAuthority, SharedPlan};
use crate::work::{CodingState, RunStateEvent};

/// What an agent wants changed, as it writes it.
#[derive(Debug, Default, Deserialize)]
// Error texts that logs hold name these types: the old names stay in them.
#[serde(rename = "Wanted", default, deny_unknown_fields)]
struct WishedPlanChange {
    add: Vec<ProposedStep>,
    replace: Option<WishedReplacement>,
    cancel: Vec<String>,
    need: Vec<WishedDependency>,
    unneed: Vec<WishedDependency>,
}

#[derive(Debug, Deserialize)]
#[serde(rename = "Replacing", deny_unknown_fields)]
struct WishedReplacement {
    task: String,
    with: Vec<ProposedStep>,
}

#[derive(Debug, Deserialize)]
#[serde(rename = "Needing", deny_unknown_fields)]
struct WishedDependency {
    task: String,
    needs: String,
}

/// Decides about the wish of an agent. The same wish is decided once, however often it is said.
pub(in crate::nodes) fn consider(
    work: &CodingState,
    joint: &SharedPlan,
    wish: &PlanChangeRequest,
    ctx: &NodeContext<'_>,
) -> NodeDeparture {
    let told = |answer: Reply| RunStateEvent::Wished {
        wish: wish.id.clone(),
        step: wish.step.clone(),
        answer,
    };
    if let Some(answer) = joint.wishes.decided.get(&wish.id) {
        return NodeExit::by(RunNodeExit::More).with(told(answer.clone()));
    }
    let names = names(work);
    let bounds = PlanBounds {
        repositories: work.repositories.len(),
        roles: &joint.roles.names(),
        left: left(ctx),
    };
    match wished(joint, wish, &names, &bounds) {
        Ok((patch, dag)) => {
            let plan = outline(&dag, &names);
            let text = format!("Accepted. The plan is now:\n{plan}");
            let patched = RunStateEvent::Patched {
                by: wish.step.to_string(),
                patch,
                dag,
            };
            NodeExit::by(RunNodeExit::More)
                .with(patched)
                .with(told(Reply {
                    text,
                    failed: false,
                    refused: None,
                }))
        }
        Err(reasons) => {
            let plan = outline(&joint.dag, &names);
            let why = reasons.join("; ");
            let text = format!("Refused: {why}. The plan stays as it is:\n{plan}");
            NodeExit::by(RunNodeExit::More).with(told(Reply::failed(text)))
        }
    }
}

/// The plan as an agent wants it, or everything that speaks against it.
fn wished(
    joint: &SharedPlan,
    wish: &PlanChangeRequest,
    names: &[String],
    bounds: &PlanBounds<'_>,
) -> Result<(PlanPatch, PlanGraph), Vec<String>> {
    if joint.wishes.decided.len() >= MOST {
        return Err(vec![format!("{MOST} wishes of agents were considered")]);
    }
    let wanted: WishedPlanChange =
        serde_json::from_value(wish.arguments.clone()).map_err(|error| vec![error.to_string()])?;
    let id = |text: &str| StepId::new(text).map_err(|why| vec![why]);
    // What one agent works on is not another agent's to take away.
    let unbegun = |text: &str| {
        let id = id(text)?;
        match joint.dag.steps.get(&id).map(|entry| &entry.status) {
            Some(StepStatus::Pending) | None => Ok(id),
            Some(status) => Err(vec![format!(
                "{id} has begun ({}), and only whoever leads the plan can take it out",
                status.name()
            )]),
        }
    };
    let mut ops = Vec::new();
    let added = steps(wanted.add, &joint.roles, names)?;
    within(joint, &wish.step, &added)?;
    ops.extend(
        added
            .into_iter()
            .map(|step| PlanPatchOperation::AddTask { step }),
    );
    if let Some(replacing) = wanted.replace {
        let old = unbegun(&replacing.task)?;
        let new = steps(replacing.with, &joint.roles, names)?;
        within(joint, &old, &new)?;
        ops.push(PlanPatchOperation::Replace { old, new });
    }
    for text in &wanted.cancel {
        ops.push(PlanPatchOperation::Cancel { id: unbegun(text)? });
    }
    for edge in &wanted.need {
        let (from, to) = (id(&edge.needs)?, id(&edge.task)?);
        ops.push(PlanPatchOperation::AddEdge { from, to });
    }
    for edge in &wanted.unneed {
        let (from, to) = (id(&edge.needs)?, id(&edge.task)?);
        ops.push(PlanPatchOperation::RemoveEdge { from, to });
    }
    let patch = PlanPatch {
        base_version: joint.dag.version,
        ops,
    };
    let dag = joint.dag.patch(&patch, bounds);
    dag.map(|dag| (patch, dag))
        .map_err(|refusal| vec![refusal.to_string()])
}

/// What is added gets no more than the agent that wants it has, and what takes the place of a task no more
/// than that task has: an agent hands on its authority and makes none.
fn within(joint: &SharedPlan, giver: &StepId, new: &[PlanStep]) -> Result<(), Vec<String>> {
    let Some(giver) = joint.dag.steps.get(giver).map(|entry| &entry.step) else {
        // A task that is not there is refused by the plan itself.
        return Ok(());
    };
    let may = authority(joint, giver);
    let wider = |step: &PlanStep| {
        let told = |what: String| {
            format!(
                "{} would be given {what}, which {} does not have",
                step.id, giver.id
            )
        };
        if step.repo != giver.repo {
            return Some(told("another repository".to_owned()));
        }
        let excess = authority(joint, step).within(&may).err()?;
        Some(told(excess.0))
    };
    let wrong: Vec<String> = new.iter().filter_map(wider).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// What the agent of a step may do, as far as plans decide about it.
fn authority(joint: &SharedPlan, step: &PlanStep) -> RunAuthority {
    let role = joint.roles_of(step.repo).get(&step.role);
    let tools = role.map(|role| role.tools.iter().cloned().collect());
    RunAuthority {
        tools: tools.unwrap_or_default(),
        models: BTreeSet::new(),
        scope: step.scope.clone(),
        budget: BudgetAmounts::none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PathScope, StepFailurePolicy};
    use crate::team::AgentRoles;
    use lula_protocol::{EffectId, RunId};
    use serde_json::{Value, json};

    fn step(id: &str, role: &str, scope: &[&str]) -> PlanStep {
        PlanStep {
            id: StepId::new(id).unwrap(),
            repo: 0,
            goal: "x".to_owned(),
            deps: Vec::new(),
            scope: PathScope::new(scope).unwrap(),
            budget: BudgetAmounts::none(),
            acceptance: Vec::new(),
            role: role.to_owned(),
        }
    }

    /// What an agent is told that works on `step`.
    fn told(step_id: &str, arguments: Value) -> Result<PlanGraph, String> {
        let roles = AgentRoles::built_in();
        let names = roles.names();
        let bounds = PlanBounds {
            repositories: 1,
            roles: &names,
            left: BudgetAmounts::none(),
        };
        let steps = vec![
            step("own", "coder", &["src/**"]),
            step("docs", "coder", &["docs/**", "README.md"]),
            step("review", "reviewer", &[]),
        ];
        let dag = PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds).unwrap();
        let joint = SharedPlan::new(dag, roles.clone(), Vec::new());
        let wish = PlanChangeRequest {
            id: EffectId::from_parts(1, [1; 10]),
            run: RunId::from_parts(1, [1; 10]),
            step: StepId::new(step_id).unwrap(),
            arguments,
        };
        let wished = wished(&joint, &wish, &[], &bounds);
        wished.map(|(_, dag)| dag).map_err(|why| why.join("; "))
    }

    fn task(id: &str, role: &str, files: &[&str]) -> Value {
        json!({"id": id, "goal": "x", "files": files, "role": role})
    }

    #[test]
    fn an_agent_adds_nothing_that_may_do_more_than_itself() {
        let adds = |by: &str, new: Value| told(by, json!({"add": [new]}));
        assert!(adds("own", task("n", "coder", &["src/new.py"])).is_ok());
        assert!(adds("own", task("n", "reviewer", &[])).is_ok());
        for (by, new, why) in [
            ("own", task("n", "coder", &["docs/a.md"]), "docs/a.md"),
            // Everything, because nothing is named.
            ("own", task("n", "coder", &[]), "**"),
            ("review", task("n", "coder", &["src/a.py"]), "edit_file"),
        ] {
            let refused = adds(by, new).unwrap_err();
            assert!(refused.contains("does not have"), "{refused}");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn what_takes_the_place_of_a_task_may_do_no_more_than_that_task() {
        let with = |new: Value| told("own", json!({"replace": {"task": "docs", "with": [new]}}));
        let split = with(task("guide", "coder", &["docs/guide.md"])).unwrap();
        assert_eq!(split.version, 2);
        let refused = with(task("guide", "coder", &["src/a.py"])).unwrap_err();
        assert!(
            refused.contains("src/a.py, which docs does not have"),
            "{refused}"
        );
    }
}
