//! What agents want changed in the plan they are part of, and what they are told.

use std::collections::BTreeSet;

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture};
use lula_protocol::BudgetAmounts;
use serde::Deserialize;

use super::super::sending::widened;
use super::super::tried;
use super::left as left_of_budget;
use super::written::{ProposedStep, changes, names, steps};
use crate::graph::{CodingGraph, RunNodeExit};
use crate::plan::{
    PathScope, PlanBounds, PlanGraph, PlanPatch, PlanPatchOperation, PlanStep, StepId, StepStatus,
};
use crate::runner_port::{AgentWorkspace, Reply};
use crate::team::wish::{FILES, MOST};
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
    /// Files that the agent itself wants to write.
    want_files: Vec<String>,
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
pub(in crate::nodes) async fn consider(
    work: &CodingState,
    joint: &SharedPlan,
    wish: &PlanChangeRequest,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let told = |answer: Reply| RunStateEvent::Wished {
        wish: wish.id.clone(),
        step: wish.step.clone(),
        answer,
    };
    let left = NodeExit::by(RunNodeExit::More);
    if let Some(answer) = joint.wishes.decided.get(&wish.id) {
        return Ok(left.with(told(answer.clone())));
    }
    let names = names(work);
    let bounds = PlanBounds {
        repositories: work.repositories.len(),
        roles: &joint.roles.names(),
        left: left_of_budget(ctx),
    };
    let refused = |why: String| {
        let text = format!("Refused: {why}. The plan stays as it is.");
        Ok(NodeExit::by(RunNodeExit::More).with(told(Reply::failed(text))))
    };
    let (patch, dag) = match wished(joint, wish, &names, &bounds) {
        Ok(wished) => wished,
        Err(reasons) => return refused(reasons.join("; ")),
    };
    // Files are given by the runner, which holds the agent to them, before the agent hears of it.
    let own = dag.steps.get(&wish.step);
    let was = joint.dag.steps.get(&wish.step);
    if let (Some(own), Some(was)) = (own, was)
        && own.step.scope != was.step.scope
    {
        let effect = widened(work, joint, own, &wish.run, ctx);
        let given = tried(ctx.effect::<AgentWorkspace>(effect.request()).await)?;
        if let Err(why) = given {
            return refused(format!("the files could not be given: {why}"));
        }
    }
    let text = format!("Accepted.\n{}", changes(&joint.dag, &dag, &names));
    let patched = RunStateEvent::Patched {
        by: wish.step.to_string(),
        patch,
        dag,
    };
    Ok(left.with(patched).with(told(Reply::plain(text))))
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
    if !wanted.want_files.is_empty() {
        let files = wanted_files(joint, wish, &wanted.want_files)?;
        ops.push(PlanPatchOperation::Widen {
            id: wish.step.clone(),
            files,
        });
    }
    let patch = PlanPatch {
        base_version: joint.dag.version,
        ops,
    };
    let dag = joint.dag.patch_checked(&patch, bounds);
    dag.map(|dag| (patch, dag))
        .map_err(|refusals| refusals.iter().map(ToString::to_string).collect())
}

/// The files that an agent is given beside its own, or why it is not: single files, which no other
/// agent at work may write.
fn wanted_files(
    joint: &SharedPlan,
    wish: &PlanChangeRequest,
    wanted: &[String],
) -> Result<PathScope, Vec<String>> {
    let Some(own) = joint.dag.steps.get(&wish.step) else {
        return Err(vec![format!("there is no task {}", wish.step)]);
    };
    if !matches!(&own.status, StepStatus::Leased { run } if *run == wish.run) {
        return Err(vec![format!("no agent works on {} any more", wish.step)]);
    }
    let role = joint.roles_of(own.step.repo).get(&own.step.role);
    if !role.is_some_and(|role| role.writes) {
        return Err(vec![format!("a {} writes no files", own.step.role)]);
    }
    let mut wrong = Vec::new();
    if wanted.len() > FILES {
        wrong.push(format!("at most {FILES} files can be wanted at once"));
    }
    let odd = |path: &&String| path.contains(['*', '?']) || path.ends_with('/');
    if let Some(path) = wanted.iter().find(odd) {
        wrong.push(format!("{path:?} is a pattern: name each file"));
    }
    let files = PathScope::new(wanted).map_err(|why| vec![why])?;
    let new = |path: &&String| !own.step.scope.holds(path);
    let new: Vec<&String> = files.patterns().iter().filter(new).collect();
    if new.is_empty() && wrong.is_empty() {
        return Err(vec![format!(
            "{} may write {} already",
            wish.step,
            files.patterns().join(", ")
        )]);
    }
    let others = joint.dag.steps.values().filter(|other| {
        other.step.id != wish.step && other.step.repo == own.step.repo && other.status.is_busy()
    });
    let new = PathScope::new(&new).map_err(|why| vec![why])?;
    for other in others {
        let taken = new.meeting(&other.step.scope);
        if !taken.is_empty() {
            wrong.push(format!(
                "{} may be written by {}, which is {}: do without, or say in your summary exactly \
                 what is missing there, or propose a task that needs {} and writes it",
                taken.join(", "),
                other.step.id,
                other.status.name(),
                other.step.id
            ));
        }
    }
    if wrong.is_empty() {
        Ok(files)
    } else {
        Err(wrong)
    }
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
    use crate::plan::{StepFailurePolicy, StepTransition};
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
            interfaces: String::new(),
        }
    }

    /// What an agent is told that works on `step`, while another works on the documents.
    fn told(step_id: &str, arguments: Value) -> Result<PlanGraph, String> {
        told_beside(step_id, arguments, &[])
    }

    fn told_beside(step_id: &str, arguments: Value, at_work: &[&str]) -> Result<PlanGraph, String> {
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
        let mut dag = PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds).unwrap();
        for name in at_work {
            let id = StepId::new(name).unwrap();
            let run = RunId::from_parts(1, [1; 10]);
            dag.advance(&StepTransition::Leased { id, run }).unwrap();
        }
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
            ("review", task("n", "coder", &["src/a.py"]), "apply_patch"),
        ] {
            let refused = adds(by, new).unwrap_err();
            assert!(refused.contains("does not have"), "{refused}");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn an_agent_is_given_a_file_that_no_other_at_work_may_write() {
        let wants = |files: &[&str], at_work: &[&str]| {
            told_beside("own", json!({"want_files": files}), at_work)
        };
        let given = wants(&["README.md", "cli.py"], &["own"]).unwrap();
        let own = &given.steps[&StepId::new("own").unwrap()];
        assert!(own.step.scope.holds("cli.py") && own.step.scope.holds("src/a.py"));
        let refused = wants(&["README.md", "cli.py"], &["own", "docs"]).unwrap_err();
        assert!(
            refused.contains("README.md may be written by docs"),
            "{refused}"
        );
        assert!(!refused.contains("cli.py"), "{refused}");
        for (files, why) in [
            (&["docs/**"][..], "is a pattern"),
            (&["src/a.py"], "already"),
            (&["../x"], "inside the repository"),
        ] {
            let refused = wants(files, &["own"]).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let refused = told_beside("review", json!({"want_files": ["x"]}), &["review"]);
        assert!(refused.unwrap_err().contains("writes no files"));
        assert!(
            wants(&["cli.py"], &[])
                .unwrap_err()
                .contains("no agent works")
        );
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
