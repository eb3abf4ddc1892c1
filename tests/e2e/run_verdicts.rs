//! What a run may call verified, and what it never does: no change, a change that makes no difference,
//! a change whose own tests fail, a change of the tests.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{CODE, FIX, LulaEnv, MENDED, Models, Repo, TESTS, edit, git, run_with};

/// The same project without the bug.
fn green(world: &LulaEnv) {
    let fixed = CODE.replace("    return items[len(items)]", MENDED);
    let files = [
        ("items.py", fixed.as_str()),
        ("tests/__init__.py", ""),
        ("tests/test_items.py", TESTS),
    ];
    Repo::with(world, &files);
}

/// A model that does these things, and says each time that it is done.
fn model(attempts: usize, calls: &[(&str, Value)]) -> MockModelServer {
    let mut script = ModelScript::default();
    for _ in 0..attempts {
        for (name, arguments) in calls {
            script = script.then_call(*name, arguments.clone());
        }
        script = script.then_call("submit", json!({"summary": "all tests pass now"}));
    }
    MockModelServer::start(script).unwrap()
}

fn writes(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn asked(server: &MockModelServer, number: usize) -> String {
    String::from_utf8(server.arrived()[number].body.clone()).unwrap()
}

const TASK: &str = "let there be a triple() beside double()";
const ACCEPT: [&str; 2] = ["--accept", "grep -q triple items.py"];

fn with_triple(body: &str) -> String {
    let fixed = CODE.replace("    return items[len(items)]", MENDED);
    format!("{fixed}\ndef triple(x):\n    return {body}\n")
}

#[test]
fn a_coder_that_does_nothing_is_never_verified() {
    for (task, more) in [(FIX, &[][..]), (TASK, &ACCEPT[..])] {
        let world = LulaEnv::new();
        Repo::buggy(&world);
        let server = model(4, &[]);
        let more = [more, &["--max-loops", "1"]].concat();
        let report = run_with(&world, &Models::strong(&server), task, &more);
        let report = report.exits(1).json();
        assert_eq!(report["attempts"][0]["class"], "no_change");
        assert!(Repo::of(&world).branches().is_empty());
    }
}

#[test]
fn a_change_whose_own_new_test_fails_is_not_verified_whatever_is_accepted() {
    let new = "import unittest\n\nfrom items import triple\n\n\nclass New(unittest.TestCase):\n    def \
               test_triple(self):\n        self.assertEqual(triple(2), 6, 'it is not six')\n";
    let old = format!("{TESTS}\n{new}");
    // In a file of its own, and in one that was there.
    for (path, text) in [("tests/test_new.py", new), ("tests/test_items.py", &old)] {
        let world = LulaEnv::new();
        green(&world);
        let server = model(
            2,
            &[
                writes("items.py", &with_triple("x * 2")),
                writes(path, text),
            ],
        );
        let more = [&ACCEPT[..], &["--max-loops", "1"]].concat();
        let report = run_with(&world, &Models::strong(&server), TASK, &more)
            .exits(1)
            .json();
        assert_eq!(report["verdict"]["verdict"], "fail", "{path}");
        assert_eq!(report["attempts"][0]["class"], "test_fail");
        let named = report["verdict"]["named"].to_string();
        assert!(named.contains("test_triple"), "{named}");
        assert!(
            report["tests"]["new_failing"]
                .to_string()
                .contains("test_triple")
        );
        assert!(Repo::of(&world).branches().is_empty());
        // The next coder is told what the test said, with which command.
        let told = asked(&server, 3);
        assert!(told.contains("it is not six"), "{told}");
        assert!(told.contains("The tests were run with"), "{told}");
        let shown = world.run(&["show", "last"]).exits(0).stdout;
        assert!(shown.contains("new, failing"), "{shown}");
        assert!(shown.contains("it is not six"), "{shown}");
    }
}

#[test]
fn a_new_test_in_an_existing_file_shows_that_the_task_is_done() {
    let world = LulaEnv::new();
    green(&world);
    let new = "\n    def test_triple(self):\n        from items import triple\n        \
               self.assertEqual(triple(2), 6)\n";
    let calls = [
        writes("items.py", &with_triple("x * 3")),
        writes("tests/test_items.py", &format!("{TESTS}{new}")),
    ];
    let server = model(1, &calls);
    let report = run_with(&world, &Models::strong(&server), TASK, &[])
        .exits(0)
        .json();
    let why = report["summary"].as_str().unwrap();
    assert!(
        why.contains("1 new test passes that fails without"),
        "{why}"
    );
    assert!(
        report["tests"]["new_passing"]
            .to_string()
            .contains("test_triple")
    );
    assert_eq!(
        report["evidence"]["touched_tests"],
        json!(["tests/test_items.py"])
    );
}

#[test]
fn a_change_that_old_tests_contradict_is_left_to_a_person() {
    let world = LulaEnv::new();
    green(&world);
    let code = CODE.replace("    return items[len(items)]", MENDED);
    let code = code.replace("return x * 2", "return x + x + 1");
    let calls = [
        writes("items.py", &code),
        writes(
            "tests/test_items.py",
            &TESTS.replace("double(4), 8", "double(4), 9"),
        ),
    ];
    let server = model(1, &calls);
    let task = "double() adds one from now on";
    let more = ["--accept", "grep -q 'x + 1' items.py"];
    let report = run_with(&world, &Models::strong(&server), task, &more)
        .exits(5)
        .json();
    let why = report["summary"].as_str().unwrap();
    assert!(why.contains("needs a person"), "{why}");
    assert!(why.contains("test_double"), "{why}");
}

#[test]
fn a_bug_report_over_a_green_suite_is_asked_of_the_model() {
    let world = LulaEnv::new();
    green(&world);
    let server = model(1, &[writes("items.py", &with_triple("x * 3"))]);
    let task = "pytest passes here, but the build is broken for users: triple() is missing";
    let report = run_with(&world, &Models::strong(&server), task, &ACCEPT)
        .exits(0)
        .json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(server.arrived().len(), 2);
    assert_eq!(report["before"]["accept"][0]["succeeds"], false);

    // The words of a repair with a command that fails are something to do as well.
    let world = LulaEnv::new();
    green(&world);
    let server = model(1, &[writes("items.py", &with_triple("x * 3"))]);
    run_with(&world, &Models::strong(&server), FIX, &ACCEPT).exits(0);
    assert_eq!(server.arrived().len(), 2);
}

#[test]
fn a_command_that_succeeds_already_is_told_before_it_costs_anything() {
    let world = LulaEnv::new();
    green(&world);
    let server = model(1, &[writes("items.py", &with_triple("x * 3"))]);
    let more = ["--accept", "test -f items.py"];
    let report = run_with(&world, &Models::strong(&server), TASK, &more)
        .exits(5)
        .json();
    assert_eq!(report["before"]["accept"][0]["succeeds"], true);
    let told = asked(&server, 0);
    assert!(told.contains("succeeds already"), "{told}");
    let logs = world.run(&["logs", "last"]).exits(0).stdout;
    assert!(logs.contains("succeeds already"), "{logs}");
}

#[test]
fn a_change_that_makes_no_difference_is_delivered_as_unverified() {
    let world = LulaEnv::new();
    green(&world);
    let server = model(1, &[writes("items.py", &with_triple("x * 3"))]);
    let report = run_with(&world, &Models::strong(&server), TASK, &[])
        .exits(5)
        .json();
    assert_eq!(report["verdict"]["verdict"], "inconclusive");
    let branch = report["delivered"]["branch"].as_str().unwrap();
    let message = git(&world.work(), &["log", "-1", "--format=%B", branch]);
    assert!(message.contains("Lula-Verdict: inconclusive"), "{message}");
    assert!(message.contains("Lula-Unverified: no test"), "{message}");

    // The same of a repair that mends nothing, once there is no try left.
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let wrong = json!({"path": "items.py", "search": "    return items[len(items)]",
        "replace": "    return items[0]"});
    let server = model(2, &[("edit_file", wrong)]);
    let report = run_with(&world, &Models::strong(&server), FIX, &["--max-loops", "1"]);
    let report = report.exits(5).json();
    assert_eq!(report["attempts"][0]["class"], "test_fail");
    assert_eq!(report["attempts"].as_array().unwrap().len(), 1);
    assert!(
        report["summary"].as_str().unwrap().contains("test_last"),
        "{report}"
    );
    assert_eq!(Repo::of(&world).branches().len(), 1);
    let told = asked(&server, 2);
    assert!(told.contains("AssertionError"), "{told}");
}

/// A test that no change of the code can mend.
const HOPELESS: &str = "import unittest\n\n\nclass Net(unittest.TestCase):\n    def test_net(self):\n        \
                        self.fail('no network')\n";

#[test]
fn what_failed_before_is_no_part_of_another_task() {
    let world = LulaEnv::new();
    Repo::buggy_with(&world, &[("tests/test_net.py", HOPELESS)]);
    let code = format!("{CODE}\ndef triple(x):\n    return x * 3\n");
    let server = model(1, &[writes("items.py", &code)]);
    let report = run_with(&world, &Models::strong(&server), TASK, &ACCEPT)
        .exits(0)
        .json();
    assert_eq!(report["before"]["given"].as_array().unwrap().len(), 2);
    assert_eq!(report["before"]["goal"], json!([]));
    assert_eq!(
        report["tests"]["still_failing"].as_array().unwrap().len(),
        2
    );
    assert!(asked(&server, 0).contains("are not part of the task"));
    assert!(
        report["before"]["command"]
            .as_str()
            .unwrap()
            .contains("unittest")
    );
}

#[test]
fn some_of_several_failing_tests_is_unverified_and_the_named_one_is_verified() {
    let world = LulaEnv::new();
    Repo::buggy_with(&world, &[("tests/test_net.py", HOPELESS)]);
    let server = model(2, &[("edit_file", edit())]);
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(5)
        .json();
    let why = report["summary"].as_str().unwrap();
    assert!(why.contains("1 of 2 failing tests pass now"), "{why}");
    assert!(why.contains("test_net"), "{why}");
    assert_eq!(Repo::of(&world).branches().len(), 1);

    let world = LulaEnv::new();
    Repo::buggy_with(&world, &[("tests/test_net.py", HOPELESS)]);
    let server = model(1, &[("edit_file", edit())]);
    let task = "fix the failing test test_last";
    run_with(&world, &Models::strong(&server), task, &[]).exits(0);
}

#[test]
fn a_repair_is_what_the_person_says_it_is() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let task = "something is wrong with last()";
    world
        .run(&["run", "--task", task])
        .exits(6)
        .says("--repair");
    world.run(&["run", "--task", task, "--repair"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn what_is_not_installed_is_no_task_for_a_model() {
    let world = LulaEnv::new();
    let needs = "import unittest\n\nimport surely_not_installed\n\n\nclass Needs(unittest.TestCase):\n    \
                 def test_it(self):\n        self.assertTrue(surely_not_installed)\n";
    let files = [
        ("items.py", CODE),
        ("tests/__init__.py", ""),
        ("tests/test_needs.py", needs),
    ];
    Repo::with(&world, &files);
    let server = model(1, &[writes("items.py", "x = 1\n")]);
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(6)
        .json();
    assert!(server.arrived().is_empty());
    assert_eq!(report["spent"]["model_calls"], Value::Null);
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn tests_that_do_not_end_are_no_failing_tests() {
    let world = LulaEnv::new();
    green(&world);
    let line = [
        "run",
        "--task",
        FIX,
        "--tests",
        "sleep 60",
        "--sandbox-timeout",
        "2s",
    ];
    world
        .run(&line)
        .exits(4)
        .says("out of time: the tests did not end within")
        .says("--sandbox-timeout");
}

#[test]
fn a_folder_that_is_named_is_what_the_task_is_about() {
    let world = LulaEnv::new();
    let files = [
        ("README", "many things\n"),
        ("tools/greet/Makefile", "test:\n\tgrep -q h words.txt\n"),
        ("tools/greet/words.txt", "hullo\n"),
    ];
    Repo::with(&world, &files);
    let edit = json!({"path": "tools/greet/words.txt", "search": "hullo", "replace": "hello"});
    let server = model(1, &[("edit_file", edit)]);
    let more = [
        "--repo",
        "tools/greet",
        "--accept",
        "grep -q hello words.txt",
    ];
    let task = "greet with hello";
    let report = run_with(&world, &Models::strong(&server), task, &more);
    let report = report.exits(0).json();
    assert_eq!(report["before"]["accept"][0]["succeeds"], false);
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["state"]["task"]["folder"], "tools/greet");
    assert!(asked(&server, 0).contains("about the folder tools/greet"));
}

#[test]
fn a_change_is_judged_once_and_beside_a_test_that_comes_and_goes_twice() {
    let looks = |more: &[(&str, &str)]| {
        let world = LulaEnv::new();
        Repo::buggy_with(&world, more);
        let server = Models::mending(1);
        let report = run_with(&world, &Models::strong(&server), FIX, &[])
            .exits(0)
            .json();
        let logs = world.run(&["logs", "last"]).exits(0).stdout;
        let second = report["confidence"]["second_look"] == true;
        (logs.matches(" verify ").count(), second)
    };
    assert_eq!(looks(&[]), (1, false));
    // It fails at first, and passes where it ran before.
    let comes_and_goes = "import os\nimport unittest\n\n\nclass Dice(unittest.TestCase):\n    def \
                          test_dice(self):\n        seen = os.path.exists('seen')\n        \
                          open('seen', 'w').close()\n        self.assertTrue(seen)\n";
    assert_eq!(looks(&[("tests/test_dice.py", comes_and_goes)]), (2, true));
}
