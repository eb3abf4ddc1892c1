//! Runs that are drawn by lot: a first plan, and everything that happens meanwhile.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Files that agents write, all of which some scope holds.
pub(super) const PATHS: [&str; 7] = [
    "a.txt",
    "src/b.txt",
    "src/c.txt",
    "docs/d.txt",
    "store",
    "store/x.txt",
    "new/e.txt",
];

/// What tasks may write. Most meet others; the fourth and the fifth do not, and cannot both be
/// there: a name is a file or a directory.
const SCOPES: [&[&str]; 10] = [
    &["a.txt"],
    &["src/b.txt"],
    &["src/c.txt"],
    &["store"],
    &["store/x.txt"],
    &["docs/d.txt"],
    &["new/**"],
    &["src/**"],
    &["docs/**", "a.txt"],
    &["**"],
];

/// A task as a planner or an agent writes it.
#[derive(Debug, Clone)]
pub(super) struct Drafted {
    name: u8,
    needs: Vec<u8>,
    scope: usize,
    /// Whether it wants no more than the agent that proposes it may write.
    modest: bool,
}

/// A change of a plan.
#[derive(Debug, Clone)]
pub(super) enum Rewiring {
    Add(Vec<Drafted>),
    Replace(u8, Vec<Drafted>),
    Cancel(u8),
    Need(u8, u8),
    Unneed(u8, u8),
}

/// What an agent does to one of the files it may write.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// One line takes the place of another.
    Replace(usize),
    /// One line more.
    Insert(usize),
    /// The file goes.
    Delete,
    /// A word that the project bears only once, in all files together.
    Word(u8),
}

/// How an agent comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Done,
    GivesUp,
    /// With a file that it may not write.
    Strays,
}

/// What is heard when the scheduler waits for agents.
#[derive(Debug, Clone)]
pub(super) enum Fate {
    /// One of them is done, having made these edits of files at these places among those it may
    /// write, and having mended what did not fit, or not.
    Back {
        who: usize,
        edits: Vec<(usize, Edit)>,
        mends: bool,
        how: How,
    },
    /// One of them wants another plan.
    Wish { who: usize, rewiring: Rewiring },
}

/// A run with everything that luck decides.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) plan: Vec<Drafted>,
    pub(super) fail_fast: bool,
    pub(super) at_once: u32,
    pub(super) fates: Vec<Fate>,
    /// What the planner says when a task failed.
    pub(super) amends: Vec<Rewiring>,
    /// Whether a person who is asked wants another try.
    pub(super) answers: Vec<bool>,
}

/// Long and short names, as models give them.
fn name(number: u8) -> String {
    match number % 5 {
        4 => format!("a-task-with-a-name-of-forty-characters{number:02}"),
        _ => format!("t{number}"),
    }
}

fn written(drafted: &Drafted) -> Value {
    let needs: Vec<String> = drafted.needs.iter().copied().map(name).collect();
    json!({"id": name(drafted.name), "goal": format!("do {}", name(drafted.name)),
        "needs": needs, "files": SCOPES[drafted.scope % SCOPES.len()],
        "done_when": [], "role": "coder"})
}

/// Tasks, some of which want these files.
fn all(drafted: &[Drafted], own: &[String]) -> Vec<Value> {
    let drafted = drafted.iter().map(|drafted| {
        let mut task = written(drafted);
        if drafted.modest && !own.is_empty() {
            task["files"] = json!(own);
        }
        task
    });
    drafted.collect()
}

impl Drawn {
    /// The first plan as a model says it: tasks need only such as stand before them.
    pub(super) fn spoken(&self) -> Value {
        let mut tasks: Vec<Value> = Vec::new();
        for drafted in &self.plan {
            let mut task = written(drafted);
            let known = |id: &Value| tasks.iter().any(|task| task["id"] == *id);
            if known(&task["id"]) {
                continue;
            }
            if let Some(needs) = task["needs"].as_array_mut() {
                needs.retain(known);
            }
            tasks.push(task);
        }
        if tasks.len() == 1 {
            // One task is not shared.
            tasks.push(json!({"id": "other", "goal": "do another", "needs": [],
                "files": ["new/**"], "done_when": [], "role": "coder"}));
        }
        json!({"replaces": "", "tasks": tasks})
    }
}

impl Rewiring {
    /// As the planner says it, which can replace and add.
    pub(super) fn spoken(&self) -> Value {
        match self {
            Self::Add(tasks) => json!({"replaces": "", "tasks": all(tasks, &[])}),
            Self::Replace(old, tasks) => {
                json!({"replaces": name(*old), "tasks": all(tasks, &[])})
            }
            _ => json!({"replaces": "", "tasks": []}),
        }
    }

    /// As an agent proposes it that may write these files.
    pub(super) fn proposed(&self, own: &[String]) -> Value {
        let edge = |task: u8, needs: u8| json!([{"task": name(task), "needs": name(needs)}]);
        match self {
            Self::Add(tasks) => json!({"add": all(tasks, own)}),
            Self::Replace(old, tasks) => {
                json!({"replace": {"task": name(*old), "with": all(tasks, own)}})
            }
            Self::Cancel(task) => json!({"cancel": [name(*task)]}),
            Self::Need(task, needs) => json!({"need": edge(*task, *needs)}),
            Self::Unneed(task, needs) => json!({"unneed": edge(*task, *needs)}),
        }
    }
}

/// Names of the first plan; what comes later has names of its own, most of the time.
const FIRST: std::ops::Range<u8> = 0..10;
const LATER: std::ops::Range<u8> = 8..40;

fn drafted(names: std::ops::Range<u8>) -> impl Strategy<Value = Drafted> {
    let needs = prop::collection::vec(FIRST, 0..2);
    let modest = prop::bool::weighted(0.6);
    (names, needs, 0..SCOPES.len(), modest).prop_map(|(name, needs, scope, modest)| Drafted {
        name,
        needs,
        scope,
        modest,
    })
}

fn rewiring() -> impl Strategy<Value = Rewiring> {
    let some = || prop::collection::vec(drafted(LATER), 1..3);
    prop_oneof![
        3 => some().prop_map(Rewiring::Add),
        3 => (FIRST, some()).prop_map(|(old, new)| Rewiring::Replace(old, new)),
        1 => FIRST.prop_map(Rewiring::Cancel),
        2 => (FIRST, FIRST).prop_map(|(a, b)| Rewiring::Need(a, b)),
        1 => (FIRST, FIRST).prop_map(|(a, b)| Rewiring::Unneed(a, b)),
    ]
}

fn edit() -> impl Strategy<Value = (usize, Edit)> {
    let edit = prop_oneof![
        3 => (0..8_usize).prop_map(Edit::Replace),
        3 => (0..8_usize).prop_map(Edit::Insert),
        1 => Just(Edit::Delete),
        12 => (0..4_u8).prop_map(Edit::Word),
    ];
    (any::<usize>(), edit)
}

fn fate() -> impl Strategy<Value = Fate> {
    let how = prop_oneof![8 => Just(How::Done), 1 => Just(How::GivesUp), 1 => Just(How::Strays)];
    let edits = prop::collection::vec(edit(), 1..4);
    prop_oneof![
        4 => (any::<usize>(), edits, prop::bool::weighted(0.7), how).prop_map(
            |(who, edits, mends, how)| Fate::Back { who, edits, mends, how }
        ),
        1 => (any::<usize>(), rewiring())
            .prop_map(|(who, rewiring)| Fate::Wish { who, rewiring }),
    ]
}

pub(super) fn drawn() -> impl Strategy<Value = Drawn> {
    (
        prop::collection::vec(drafted(FIRST), 3..9),
        prop::bool::weighted(0.2),
        1..6_u32,
        prop::collection::vec(fate(), 0..24),
        prop::collection::vec(rewiring(), 0..5),
        prop::collection::vec(any::<bool>(), 0..4),
    )
        .prop_map(|(plan, fail_fast, at_once, fates, amends, answers)| Drawn {
            plan,
            fail_fast,
            at_once,
            fates,
            amends,
            answers,
        })
}
