//! The tests nearest to a change run first: a wrong change is known to be wrong soon, and a right one
//! is never believed by them alone.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{FIX, LulaEnv, MENDED, Models, Repo, edit, run_with};

/// A project with tests that have nothing to do with the bug.
fn project(world: &LulaEnv) {
    let far = |name: &str, test: &str| {
        format!(
            "import unittest\n\n\nclass Far(unittest.TestCase):\n    def test_{name}(self):\n        \
             self.assertEqual({test})\n"
        )
    };
    // Quick tests are all run at once.
    let (a, b) = (
        far("a", "__import__('time').sleep(3.1), None"),
        far("b", "2, 2"),
    );
    let c = far("c", "open('limit.txt').read(), '3'");
    let more = [
        ("tests/test_a.py", a.as_str()),
        ("tests/test_b.py", &b),
        ("tests/test_c.py", &c),
        ("limit.txt", "3"),
    ];
    Repo::buggy_with(world, &more);
}

#[test]
fn a_wrong_change_is_known_by_the_nearest_tests_and_a_right_one_only_by_all() {
    let world = LulaEnv::new();
    project(&world);
    let wrong = json!({"path": "items.py", "search": "    return items[len(items)]",
        "replace": "    return items[0]"});
    let right = json!({"path": "items.py", "search": "    return items[0]", "replace": MENDED});
    let script = ModelScript::default()
        .then_call("edit_file", wrong)
        .then_call("submit", json!({"summary": "done"}))
        .then_call("edit_file", right)
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(report["attempts"][0]["class"], "test_fail");
    let why = report["attempts"][0]["evidence"].as_str().unwrap();
    assert!(
        why.contains("1 of the 2 tests nearest to the change fail; the others were not run"),
        "{why}"
    );

    // The change that passed was judged by all tests, with it and without it.
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    let evidence = &shown["state"]["evidence"];
    assert_eq!(evidence["first"]["enough"], false);
    assert_eq!(evidence["first"]["picked"].as_array().unwrap().len(), 2);
    assert_eq!(
        evidence["after"]["ran"]["passing"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    assert_eq!(
        evidence["without"]["ran"]["failing"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let text = world.run(&["show", "last"]).exits(0).stdout;
    assert!(
        text.contains("the 2 nearest tests first: 2 tests: 2 pass, 0 fail; then all were run"),
        "{text}"
    );
    let told = world.run(&["logs", "last"]).exits(0).stdout;
    for line in [
        "2 of 5 tests are nearest to last",
        "1 pass, 1 fail; the others were not run",
    ] {
        assert!(told.contains(line), "{told}");
    }
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_change_that_breaks_what_is_far_away_does_not_pass() {
    let world = LulaEnv::new();
    project(&world);
    // What was wrong is mended, and a file changed that no test names as code.
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("write_file", json!({"path": "limit.txt", "content": "4"}))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &["--max-loops", "0"])
        .exits(1)
        .json();
    let why = report["attempts"][0]["evidence"].as_str().unwrap();
    assert!(why.contains("1 test that passed no longer does"), "{why}");
    assert!(why.contains("tests.test_c.Far.test_c"), "{why}");
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["state"]["evidence"]["first"]["enough"], false);
    assert!(Repo::of(&world).branches().is_empty());
}
