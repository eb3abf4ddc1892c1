//! Plans under random rewiring: what must hold whatever planners, agents and luck do.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::plan::examples::{bounds, id, run, step};
use crate::plan::*;

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
