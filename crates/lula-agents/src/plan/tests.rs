//! Plans under random rewiring: what must hold whatever planners, agents and luck do.

use std::collections::BTreeSet;

use lula_protocol::{BudgetAmounts, BudgetDimension, RunId};
use proptest::prelude::*;

use super::*;

const ROLES: &[&str] = &["coder", "reviewer"];

fn id(text: &str) -> StepId {
    StepId::new(text).unwrap()
}

fn step(name: &str, deps: &[&str], scope: &[&str]) -> PlanStep {
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

fn bounds() -> PlanBounds<'static> {
    PlanBounds {
        repositories: 1,
        roles: ROLES,
        left: BudgetAmounts::none(),
    }
}

fn run(number: u64) -> RunId {
    RunId::from_parts(number, [7; 10])
}

fn dag(steps: Vec<PlanStep>) -> PlanGraph {
    PlanGraph::new(steps, StepFailurePolicy::Isolated, &bounds()).unwrap()
}

fn lease(dag: &mut PlanGraph, name: &str) {
    dag.advance(&StepTransition::Leased {
        id: id(name),
        run: run(1),
    })
    .unwrap();
}

fn merge(dag: &mut PlanGraph, name: &str) {
    dag.advance(&StepTransition::AwaitingMerge { id: id(name) })
        .unwrap();
    dag.advance(&StepTransition::Merged {
        id: id(name),
        commit: Some("c".to_owned()),
    })
    .unwrap();
}

fn patched(dag: &PlanGraph, ops: Vec<PlanPatchOperation>) -> Result<PlanGraph, PlanPatchRefusal> {
    let patch = PlanPatch {
        base_version: dag.version,
        ops,
    };
    dag.patch(&patch, &bounds())
}

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

/// Something that happens while a plan is worked on.
#[derive(Debug, Clone)]
enum PlanIncident {
    /// The agent at that place among the running ones comes back with this.
    Back(usize, u8),
    /// The planner or an agent proposes this.
    Patch(Vec<RawOp>, bool),
    /// The plan goes on.
    On,
}

#[derive(Debug, Clone)]
enum RawOp {
    Add(u8, Vec<u8>, u8),
    Edge(u8, u8),
    Unedge(u8, u8),
    Cancel(u8),
    Replace(u8, Vec<(u8, Vec<u8>, u8)>),
}

const SCOPES: [&str; 6] = ["a/", "b/", "a/x.py", "**/x.py", "c/y.md", "b/deep/"];

fn named(number: u8) -> StepId {
    id(&format!("j{}", number % 24))
}

fn raw_step(number: u8, deps: &[u8], scope: u8) -> PlanStep {
    PlanStep {
        id: named(number),
        deps: deps.iter().map(|dep| named(*dep)).collect(),
        scope: PathScope::new(&[SCOPES[usize::from(scope) % SCOPES.len()]]).unwrap(),
        ..step("x", &[], &[])
    }
}

fn op(raw: &RawOp) -> PlanPatchOperation {
    match raw {
        RawOp::Add(number, deps, scope) => PlanPatchOperation::AddTask {
            step: raw_step(*number, deps, *scope),
        },
        RawOp::Edge(from, to) => PlanPatchOperation::AddEdge {
            from: named(*from),
            to: named(*to),
        },
        RawOp::Unedge(from, to) => PlanPatchOperation::RemoveEdge {
            from: named(*from),
            to: named(*to),
        },
        RawOp::Cancel(number) => PlanPatchOperation::Cancel { id: named(*number) },
        RawOp::Replace(old, new) => PlanPatchOperation::Replace {
            old: named(*old),
            new: new.iter().map(|(n, d, s)| raw_step(*n, d, *s)).collect(),
        },
    }
}

fn raw_ops() -> impl Strategy<Value = Vec<RawOp>> {
    let added = || {
        (
            any::<u8>(),
            prop::collection::vec(any::<u8>(), 0..3),
            any::<u8>(),
        )
    };
    let one = prop_oneof![
        3 => added().prop_map(|(n, d, s)| RawOp::Add(n, d, s)),
        2 => any::<(u8, u8)>().prop_map(|(a, b)| RawOp::Edge(a, b)),
        1 => any::<(u8, u8)>().prop_map(|(a, b)| RawOp::Unedge(a, b)),
        1 => any::<u8>().prop_map(RawOp::Cancel),
        2 => (any::<u8>(), prop::collection::vec(added(), 0..3))
            .prop_map(|(old, new)| RawOp::Replace(old, new)),
    ];
    prop::collection::vec(one, 1..4)
}

fn luck() -> impl Strategy<Value = PlanIncident> {
    prop_oneof![
        4 => Just(PlanIncident::On),
        4 => any::<(usize, u8)>().prop_map(|(at, how)| PlanIncident::Back(at, how)),
        2 => (raw_ops(), any::<bool>()).prop_map(|(ops, stale)| PlanIncident::Patch(ops, stale)),
    ]
}

/// A plan with everything that is checked of it.
struct CheckedPlan {
    dag: PlanGraph,
    began_after: Vec<(StepId, BTreeSet<StepId>)>,
    runs: u64,
}

impl CheckedPlan {
    fn advance(&mut self, transition: &StepTransition) {
        let before = self.dag.measure();
        self.dag.advance(transition).unwrap();
        assert!(self.dag.measure() < before, "{transition:?} goes nowhere");
    }

    fn patch(&mut self, ops: Vec<PlanPatchOperation>, stale: bool) {
        let patch = PlanPatch {
            base_version: self.dag.version.wrapping_sub(u32::from(stale)),
            ops,
        };
        let before = self.dag.clone();
        let patched = self.dag.patch(&patch, &bounds());
        assert_eq!(self.dag, before, "asking changes nothing");
        match patched {
            Ok(next) => {
                assert!(!stale);
                assert_eq!(next.version, before.version + 1);
                assert!(next.measure() < before.measure(), "{patch:?}");
                for (id, entry) in &before.steps {
                    let after = &next.steps[id];
                    if entry.status.is_busy() {
                        assert_eq!(entry.step.deps, after.step.deps, "{id} had begun");
                    }
                    if matches!(entry.status, StepStatus::Merged { .. }) {
                        assert_eq!(entry, after, "{id} was done");
                    }
                }
                self.dag = next;
            }
            Err(refusal) => assert!(!refusal.to_string().is_empty()),
        }
        assert_eq!(self.dag.cycle(), None);
    }

    /// Does what comes next. Whether anything does.
    fn on(&mut self) -> bool {
        match self.dag.next(3) {
            SchedulerMove::Merge(id) => {
                let commit = Some("c".to_owned());
                self.advance(&StepTransition::Merged { id, commit });
            }
            SchedulerMove::Resolve(old) => {
                let resolver = PlanStep {
                    id: id(&format!("r{}", self.dag.steps.len())),
                    deps: Vec::new(),
                    ..self.dag.steps[&old].step.clone()
                };
                let ops = vec![PlanPatchOperation::Replace {
                    old: old.clone(),
                    new: vec![resolver],
                }];
                let version = self.dag.version;
                self.patch(ops, false);
                if self.dag.version == version {
                    let said = "nobody is left".to_owned();
                    let reason = StepFailureReason::Conflict { said };
                    self.advance(&StepTransition::Failed { id: old, reason });
                }
            }
            SchedulerMove::Skip(steps) => {
                for (id, reason) in steps {
                    self.advance(&StepTransition::Skipped { id, reason });
                }
            }
            SchedulerMove::Start(steps) => {
                for id in steps {
                    self.start(id);
                }
            }
            SchedulerMove::Wait => return self.dag.running().next().is_some() && self.back(0, 0),
            SchedulerMove::Finish => return false,
        }
        true
    }

    fn start(&mut self, id: StepId) {
        let entry = &self.dag.steps[&id];
        for dep in &entry.step.deps {
            let status = &self.dag.steps[dep].status;
            let there = matches!(status, StepStatus::Merged { .. } | StepStatus::Superseded);
            assert!(there, "{id} began before {dep}, which is {}", status.name());
        }
        for other in self.dag.steps.values() {
            if !other.status.is_busy() {
                continue;
            }
            let common = other.step.scope.files_in_common(&entry.step.scope);
            let most = usize::try_from(self.dag.shared_files).unwrap();
            let apart = common.is_some_and(|files| files.len() <= most);
            assert!(apart, "{id} writes where {} does", other.step.id);
        }
        let needed = entry.step.deps.iter().cloned().collect();
        self.began_after.push((id.clone(), needed));
        self.runs += 1;
        let run = run(self.runs);
        self.advance(&StepTransition::Leased { id, run });
    }

    fn back(&mut self, at: usize, how: u8) -> bool {
        let running: Vec<StepId> = self.dag.running().map(|(id, _)| id.clone()).collect();
        if running.is_empty() {
            return false;
        }
        let id = running[at % running.len()].clone();
        let said = "seen".to_owned();
        if how % 4 == 3 {
            let reason = StepFailureReason::NotDone { said };
            self.advance(&StepTransition::Failed { id, reason });
            return true;
        }
        self.advance(&StepTransition::AwaitingMerge { id: id.clone() });
        if how % 4 == 2 {
            self.advance(&StepTransition::Conflict { id, said });
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// I8, I9, I16, I21 and scopes: no cycle, nothing begins before what it needs, no step writes
    /// where another does but for files that both name, a refused patch changes nothing, and every
    /// plan comes to its end.
    #[test]
    fn random_plans_under_random_rewiring_come_to_their_end(
        first in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..3), any::<u8>()), 1..12),
        fast in any::<bool>(),
        shared in 0..3_u32,
        lucks in prop::collection::vec(luck(), 0..60),
    ) {
        let mut steps: Vec<PlanStep> = Vec::new();
        for (number, deps, scope) in &first {
            let mut step = raw_step(*number, deps, *scope);
            // A first plan that is refused has nothing to go on with.
            step.deps.retain(|dep| steps.iter().any(|known: &PlanStep| known.id == *dep));
            if steps.iter().all(|known| known.id != step.id) {
                steps.push(step);
            }
        }
        let mode = if fast { StepFailurePolicy::Fast } else { StepFailurePolicy::Isolated };
        let mut dag = PlanGraph::new(steps, mode, &bounds()).unwrap();
        dag.shared_files = shared;
        let mut watched = CheckedPlan { dag, began_after: Vec::new(), runs: 0 };
        for luck in lucks {
            match luck {
                PlanIncident::On => { watched.on(); }
                PlanIncident::Back(at, how) => { watched.back(at, how); }
                PlanIncident::Patch(ops, stale) => watched.patch(ops.iter().map(op).collect(), stale),
            }
        }
        let mut steps = 0;
        while watched.on() {
            steps += 1;
            prop_assert!(steps < 2000, "{:?}", watched.dag);
        }
        prop_assert_eq!(watched.dag.next(3), SchedulerMove::Finish);
        for (id, entry) in &watched.dag.steps {
            prop_assert!(entry.status.is_over(), "{} is {}", id, entry.status.name());
        }
        prop_assert_eq!(watched.dag.in_order().len(), watched.dag.steps.len());
    }
}
