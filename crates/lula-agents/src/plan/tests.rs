//! Plans by example: what of them is refused, what begins, what happens when something fails.

use lula_protocol::{BudgetAmounts, BudgetDimension};

use super::examples::{bounds, dag, id, lease, merge, patched, run, step};
use super::*;

mod random;

#[test]
fn a_cycle_is_refused_with_the_way_round() {
    let steps = vec![
        step("a", &["c"], &[]),
        step("b", &["a"], &[]),
        step("c", &["b"], &[]),
    ];
    let refused = PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds()).unwrap_err();
    let PlanPatchRefusal::Cycle { steps } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(steps.len(), 4);
    assert_eq!(steps.first(), steps.last());
    let own = PlanGraph::new(
        vec![step("a", &["a"], &[])],
        StepFailurePolicy::Isolated,
        &bounds(),
    );
    assert!(matches!(own, Err(PlanPatchRefusal::Cycle { .. })));
}

#[test]
fn each_rule_has_its_reason() {
    let plan = dag(vec![step("a", &[], &["a/"]), step("b", &["a"], &["b/"])]);
    let add = |step: PlanStep| vec![PlanPatchOperation::AddTask { step }];
    let stale = PlanPatch {
        base_version: 0,
        ops: add(step("c", &[], &[])),
    };
    let stale = plan.patch(&stale, &bounds());
    assert!(matches!(
        stale,
        Err(PlanPatchRefusal::Stale { base: 0, now: 1 })
    ));
    let refused = |ops| patched(&plan, ops).unwrap_err();
    assert_eq!(refused(Vec::new()), PlanPatchRefusal::Empty);
    assert!(matches!(
        refused(add(step("a", &[], &[]))),
        PlanPatchRefusal::Taken { .. }
    ));
    let unknown = refused(add(step("c", &["nobody"], &[])));
    assert!(matches!(unknown, PlanPatchRefusal::Unknown { .. }));
    let mut elsewhere = step("c", &[], &[]);
    elsewhere.repo = 1;
    assert!(matches!(
        refused(add(elsewhere)),
        PlanPatchRefusal::NoRepository { .. }
    ));
    let mut actor = step("c", &[], &[]);
    actor.role = "actor".to_owned();
    assert!(matches!(
        refused(add(actor)),
        PlanPatchRefusal::NoRole { .. }
    ));
    let mut aimless = step("c", &[], &[]);
    aimless.goal = "  ".to_owned();
    assert!(matches!(
        refused(add(aimless)),
        PlanPatchRefusal::NoGoal { .. }
    ));
    let edge = PlanPatchOperation::RemoveEdge {
        from: id("b"),
        to: id("a"),
    };
    assert!(matches!(
        refused(vec![edge]),
        PlanPatchRefusal::NoEdge { .. }
    ));
    let many = (0..80)
        .map(|n| PlanPatchOperation::AddTask {
            step: step(&format!("n{n}"), &[], &[]),
        })
        .collect();
    assert!(matches!(
        refused(many),
        PlanPatchRefusal::TooManySteps { .. }
    ));
}

#[test]
fn a_plan_is_told_everything_that_is_wrong_with_it_at_once() {
    let mut actor = step("actor", &["nobody"], &["a"]);
    actor.role = "actor".to_owned();
    actor.goal = " ".to_owned();
    let steps = vec![
        actor,
        step("b", &["c"], &["b"]),
        step("c", &["b"], &["c"]),
        step("c", &[], &["d"]),
    ];
    let wrong = PlanGraph::checked(steps, StepFailurePolicy::Isolated, &bounds()).unwrap_err();
    let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    let told = told.join("\n");
    for part in [
        "no such role",
        "actor has no goal",
        "there is a task c already",
        "there is no task nobody",
        "wait for each other",
    ] {
        assert!(told.contains(part), "{part}:\n{told}");
    }
    assert_eq!(wrong.len(), 5, "{told}");
}

#[test]
fn a_step_at_work_may_be_given_more_files_and_one_that_is_done_may_not() {
    let mut plan = dag(vec![step("a", &[], &["a.py"]), step("b", &[], &["b.py"])]);
    lease(&mut plan, "a");
    let widen = |name: &str, file: &str| {
        vec![PlanPatchOperation::Widen {
            id: id(name),
            files: PathScope::new(&[file]).unwrap(),
        }]
    };
    let mut more = patched(&plan, widen("a", "cli.py")).unwrap();
    assert!(more.steps[&id("a")].step.scope.holds("cli.py"));
    assert!(more.steps[&id("a")].step.scope.holds("a.py"));
    merge(&mut more, "a");
    let late = patched(&more, widen("a", "late.py"));
    assert!(matches!(late, Err(PlanPatchRefusal::Settled { .. })));
}

#[test]
fn tasks_that_name_the_same_file_work_at_once_where_tests_judge_the_merge() {
    let mut plan = dag(vec![
        step("a", &[], &["a.py", "cli.py"]),
        step("b", &[], &["b.py", "cli.py"]),
        step("wide", &[], &["*.py"]),
    ]);
    let names = |plan: &PlanGraph| -> Vec<String> {
        let ready = plan.ready(5);
        ready.iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(&plan), ["a"]);
    plan.shared_files = SHARED_FILES;
    assert_eq!(names(&plan), ["a", "b"]);
    lease(&mut plan, "a");
    let waits = plan.waits(&id("wide")).unwrap().to_string();
    assert_eq!(waits, "waits for a, which may write *.py too");
    assert_eq!(plan.waits(&id("b")), Some(StepWait::Turn));
    assert_eq!(plan.waits(&id("a")), None, "it is at work");
}

#[test]
fn what_has_begun_comes_to_need_nothing_and_what_is_done_stays() {
    let mut plan = dag(vec![step("a", &[], &["a"]), step("b", &[], &["b"])]);
    lease(&mut plan, "a");
    let edge = PlanPatchOperation::AddEdge {
        from: id("b"),
        to: id("a"),
    };
    assert!(matches!(
        patched(&plan, vec![edge]),
        Err(PlanPatchRefusal::Begun { .. })
    ));
    let replace = PlanPatchOperation::Replace {
        old: id("a"),
        new: vec![step("c", &[], &[])],
    };
    let held = patched(&plan, vec![replace]);
    assert!(matches!(held, Err(PlanPatchRefusal::Settled { .. })));
    merge(&mut plan, "a");
    let cancel = PlanPatchOperation::Cancel { id: id("a") };
    assert!(matches!(
        patched(&plan, vec![cancel]),
        Err(PlanPatchRefusal::Settled { .. })
    ));
}

#[test]
fn the_sum_of_budgets_stays_within_what_is_left() {
    let cost = |name: &str, amount| PlanStep {
        budget: BudgetAmounts::none().with(BudgetDimension::MicroUsd, amount),
        ..step(name, &[], &[])
    };
    let bounds = PlanBounds {
        left: BudgetAmounts::none().with(BudgetDimension::MicroUsd, 100),
        ..bounds()
    };
    let new = |steps| PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds);
    assert!(new(vec![cost("a", 60), cost("b", 40)]).is_ok());
    let over = new(vec![cost("a", 60), cost("b", 41)]).unwrap_err();
    assert!(matches!(
        over,
        PlanPatchRefusal::OverBudget {
            asked: 101,
            left: 100,
            ..
        }
    ));
}

#[test]
fn a_replaced_step_hands_on_what_it_needs_and_who_needs_it() {
    let mut plan = dag(vec![
        step("a", &[], &["a"]),
        step("b", &["a"], &["b"]),
        step("c", &["b"], &["c"]),
    ]);
    lease(&mut plan, "a");
    merge(&mut plan, "a");
    let new = vec![step("b1", &[], &["b1"]), step("b2", &["b1"], &["b2"])];
    let replace = PlanPatchOperation::Replace { old: id("b"), new };
    let plan = patched(&plan, vec![replace]).unwrap();
    assert_eq!(plan.steps[&id("b")].status, StepStatus::Superseded);
    assert_eq!(plan.steps[&id("b1")].step.deps, [id("a")]);
    assert_eq!(plan.steps[&id("b2")].step.deps, [id("a"), id("b1")]);
    assert_eq!(plan.steps[&id("c")].step.deps, [id("b1"), id("b2")]);
    assert_eq!(plan.ready(9), [id("b1")]);
}

#[test]
fn overlapping_scopes_take_turns_and_others_do_not() {
    let mut plan = dag(vec![
        step("a", &[], &["src/"]),
        step("b", &[], &["src/x.py"]),
        step("c", &[], &["docs/"]),
    ]);
    assert_eq!(plan.ready(9), [id("a"), id("c")]);
    assert_eq!(plan.ready(1), [id("a")]);
    lease(&mut plan, "a");
    assert_eq!(plan.ready(9), [id("c")]);
    merge(&mut plan, "a");
    assert_eq!(plan.ready(9), [id("b"), id("c")]);
}

#[test]
fn a_failure_skips_what_needs_it_or_everything() {
    for (mode, c) in [
        (StepFailurePolicy::Isolated, "pending"),
        (StepFailurePolicy::Fast, "skipped"),
    ] {
        let mut plan = dag(vec![
            step("a", &[], &["a"]),
            step("b", &["a"], &["b"]),
            step("c", &[], &["c"]),
        ]);
        plan.on_failure = mode;
        lease(&mut plan, "a");
        let reason = StepFailureReason::NotDone {
            said: "no".to_owned(),
        };
        plan.advance(&StepTransition::Failed {
            id: id("a"),
            reason,
        })
        .unwrap();
        let SchedulerMove::Skip(skipped) = plan.next(9) else {
            panic!("{:?}", plan.next(9))
        };
        for (id, reason) in skipped {
            plan.advance(&StepTransition::Skipped { id, reason })
                .unwrap();
        }
        assert_eq!(plan.steps[&id("b")].status.name(), "skipped");
        assert_eq!(plan.steps[&id("c")].status.name(), c);
    }
}

#[test]
fn a_conflict_is_tried_once_more_and_then_resolved_by_somebody_else() {
    let mut plan = dag(vec![step("a", &[], &["a"])]);
    for _ in 0..MAX_ATTEMPTS {
        assert_eq!(plan.next(9), SchedulerMove::Start(vec![id("a")]));
        lease(&mut plan, "a");
        plan.advance(&StepTransition::AwaitingMerge { id: id("a") })
            .unwrap();
        let said = "both changed a".to_owned();
        plan.advance(&StepTransition::Conflict { id: id("a"), said })
            .unwrap();
    }
    assert_eq!(plan.next(9), SchedulerMove::Resolve(id("a")));
    let again = plan.advance(&StepTransition::Leased {
        id: id("a"),
        run: run(2),
    });
    assert!(again.is_err());
}
