//! Changes that do not fit to each other: tried again by the agent that made them, then by another,
//! then a person is asked. Who is done before whom is settled by the model, which answers some only
//! when it was asked something else: a task that looks at another begins when that one is merged.

use lula_models::script::ScriptTurn;
use serde_json::{Value, json};

use super::{
    TASK, delivered, own, plan, project, run, runs, scripted, sent, status, task, told, writes,
};
use crate::support::{LulaEnv, Repo, after, does};

/// Code that says one thing with one rate and another with another.
const BILL: &str = "from rates import rate\n\n\ndef total(n):\n    return n * rate()\n";

/// The task of a bill, which is right as long as no agent changes the rate.
fn bill() -> Value {
    let done = ["python3 -c 'import bill; assert bill.total(3) > 0'"];
    task(
        "bill",
        &[],
        &["bill.py", "tests/test_bill.py"],
        &done,
        "coder",
    )
}

/// A model that does it, and has a test say what three cost.
fn bills(when: &str, total: u32) -> ScriptTurn {
    let test = format!(
        "import unittest\n\nfrom bill import total\n\n\nclass Bill(unittest.TestCase):\n    \
         def test_total(self):\n        self.assertEqual(total(3), {total})\n"
    );
    does(
        when,
        &[writes("bill.py", BILL), writes("tests/test_bill.py", &test)],
    )
}

/// The task of another rate.
fn rate(id: &str, needs: &[&str], rate: u32) -> Value {
    let done = format!("python3 -c 'import rates; assert rates.rate() >= {rate}'");
    task(id, needs, &["rates.py"], &[&done], "coder")
}

fn rated(id: &str, rate: u32) -> ScriptTurn {
    let code = format!("def rate():\n    return {rate}\n");
    does(&own(id), &[writes("rates.py", &code)])
}

/// A task that begins when another is integrated.
fn seen(id: &str) -> Value {
    task(&format!("{id}-seen"), &[id], &[], &[], "researcher")
}

fn looks(id: &str) -> ScriptTurn {
    let submit = ("submit", json!({"summary": "seen"}));
    does(&own(id), &[submit])
}

#[test]
fn a_conflict_of_places_and_one_of_meanings_are_resolved() {
    let world = LulaEnv::new();
    project(&world);
    // The name is a file for one and a directory for the other.
    let file = task("file", &[], &["store"], &["test -f store"], "coder");
    let other = task(
        "folder",
        &[],
        &["store/a.txt", "shop/a.txt"],
        &["test -f store/a.txt || test -f shop/a.txt"],
        "coder",
    );
    let rates = rate("rates", &[], 2);
    let server = scripted(vec![
        plan(
            TASK,
            &[file, other, rates, bill(), seen("file"), seen("rates")],
        ),
        does(&own("file"), &[writes("store", "one\n")]),
        // With what did not fit before its eyes.
        does(
            "both sides changed",
            &[runs(
                "for f in store*; do mv \"$f\" /tmp/; done; printf 'one\\n' > store; \
                 mkdir -p shop; echo a > shop/a.txt",
            )],
        ),
        after(
            &sent("file-seen"),
            does(&own("folder"), &[writes("store/a.txt", "a\n")]),
        ),
        rated("rates", 2),
        bills("What was done is in your copy", 6),
        after(&sent("rates-seen"), bills(&own("bill"), 3)),
        looks("file-seen"),
        looks("rates-seen"),
    ]);
    let report = run(&world, &server, &["--agents", "6"]).exits(0).json();
    let told = told(&world, "does not fit");
    assert_eq!(told.len(), 2, "{told:?}\n{report}");
    let test = delivered(&world, "tests/test_bill.py");
    assert!(test.contains("total(3), 6"), "{test}");
    assert_eq!(delivered(&world, "store"), "one");
    assert_eq!(delivered(&world, "shop/a.txt"), "a");
}

#[test]
fn a_change_that_does_not_fit_twice_is_resolved_by_somebody_else() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![
        plan(
            TASK,
            &[
                bill(),
                rate("two", &[], 2),
                seen("two"),
                rate("three", &["two"], 3),
                seen("three"),
            ],
        ),
        bills("Resolve a conflict", 9),
        // By then the rate has changed once more.
        after(&sent("three-seen"), bills("6 != 3", 6)),
        after(&sent("two-seen"), bills(&own("bill"), 3)),
        rated("two", 2),
        after("6 != 3", rated("three", 3)),
        looks("two-seen"),
        looks("three-seen"),
    ]);
    let report = run(&world, &server, &["--agents", "6"]).exits(0).json();
    assert_eq!(status(&report, "bill"), "superseded");
    assert_eq!(told(&world, "bill does not fit").len(), 2, "{report}");
    let jobs = report["plan"]["jobs"].as_object().unwrap();
    let resolver = jobs
        .keys()
        .find(|id| id.starts_with("bill-resolve"))
        .unwrap();
    assert_eq!(status(&report, resolver), "integrated");
    assert!(delivered(&world, "tests/test_bill.py").contains("total(3), 9"));
    assert_eq!(server.unused(), 0);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn where_nobody_can_resolve_it_a_person_is_asked_and_what_they_say_is_done() {
    let world = LulaEnv::new();
    project(&world);
    let mut tasks = vec![bill()];
    let mut turns = Vec::new();
    let mut needs: Option<String> = None;
    // Whenever an agent sees that it does not fit, the rate changes once more.
    for number in 2..=5_u32 {
        let id = format!("r{number}");
        tasks.push(rate(&id, needs.as_deref().as_slice(), number));
        tasks.push(seen(&id));
        let total = 3 * (number - 1);
        let seen = sent(&format!("{id}-seen"));
        let misfit = format!("{total} != {}", total - 3);
        turns.push(looks(&format!("{id}-seen")));
        if number == 2 {
            turns.push(rated(&id, number));
            turns.push(after(&seen, bills(&own("bill"), 3)));
        } else {
            turns.push(after(&misfit, rated(&id, number)));
            turns.insert(0, after(&seen, bills(&misfit, total)));
        }
        needs = Some(id);
    }
    turns.insert(0, bills("15 != 12", 15));
    turns.insert(0, plan(TASK, &tasks));
    let server = scripted(turns);
    let report = run(&world, &server, &["--agents", "6"]).exits(3).json();
    assert_eq!(report["status"], "waiting", "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert!(
        summary.contains("two agents could not resolve it"),
        "{summary}"
    );
    assert!(summary.contains("--answer 'try again'"), "{summary}");
    assert!(Repo::of(&world).branches().is_empty());
    world
        .run(&["resume", "last", "--answer", "perhaps"])
        .exits(2)
        .says("give up, try again");
    world
        .run(&["resume", "last", "--answer", "try again"])
        .exits(0);
    assert!(delivered(&world, "tests/test_bill.py").contains("total(3), 15"));
    assert_eq!(server.unused(), 0);
    world
        .run(&["resume", "last", "--answer", "give up"])
        .exits(2)
        .says("waits for no choice");
    world.run(&["replay", "last", "--verify"]).exits(0);
}
