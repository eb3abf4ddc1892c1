//! `lula repair` and `lula detect`

use std::path::Path;
use std::process::Command;

use crate::support::{LulaEnv, listing};

const CODE: &str = r"
def last(items):
    return items[len(items)]


def double(x):
    return x * 2
";

const UNFINISHED: &str = r"
def last(items):
    raise NotImplementedError


def double(x):
    return x * 2
";

const TESTS: &str = r"
import unittest

from items import double, last


class Items(unittest.TestCase):
    def test_last(self):
        self.assertEqual(last([1, 2, 3]), 3)

    def test_last_of_one(self):
        self.assertEqual(last([7]), 7)

    def test_double(self):
        self.assertEqual(double(4), 8)
";

fn project(world: &LulaEnv, code: &str) {
    std::fs::create_dir_all(world.work().join("tests")).unwrap();
    std::fs::write(world.work().join("items.py"), code).unwrap();
    std::fs::write(world.work().join("tests/__init__.py"), "").unwrap();
    std::fs::write(world.work().join("tests/test_code.py"), TESTS).unwrap();
}

fn apply(patch: &str, directory: &Path) {
    let file = directory.join("fix.patch");
    std::fs::write(&file, patch).unwrap();
    let status = Command::new("git")
        .current_dir(directory)
        .args(["apply", "fix.patch"])
        .status();
    assert!(status.unwrap().success(), "{patch}");
}

#[test]
fn failing_tests_get_a_patch_that_applies_and_mends_them() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let before = listing(&world.work());
    let ran = world.run(&["repair", "-q"]).exits(0);
    assert_eq!(listing(&world.work()), before, "repair changed the project");
    apply(&ran.stdout, &world.work());
    world
        .run(&["repair"])
        .exits(0)
        .says("nothing failing: 3 tests pass");
}

#[test]
fn the_evidence_is_told_to_machines() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let report = world.run(&["repair", "--json"]).exits(0).json();
    assert_eq!(report["outcome"], "fixed");
    assert_eq!(report["patches"][0]["evidence"]["reverted"], true);
    assert_eq!(report["receipt"]["tier"], "namespace");
    for file in report["patches"][0]["files"].as_array().unwrap() {
        assert_eq!(file["path"], "items.py", "a test was edited");
    }
}

#[test]
fn what_search_cannot_mend_is_a_failure_that_says_so() {
    let world = LulaEnv::new();
    project(&world, UNFINISHED);
    let ran = world.run(&["repair", "--budget", "5s"]);
    assert!(matches!(ran.status, 1 | 4), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    ran.says("needs a model");
}

#[test]
fn a_budget_that_is_spent_has_an_exit_code_of_its_own() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let hopeless = TESTS
        .replace("import unittest\n", "import time\nimport unittest\n")
        .replace("last([7]), 7)", "last([7]), object())");
    let hangs = "    def test_hangs(self):\n        while True:\n            try:\n                last([1])\n                time.sleep(3600)\n            except BaseException:\n                pass\n";
    let tests = format!("{hopeless}\n{hangs}");
    std::fs::write(world.work().join("tests/test_code.py"), tests).unwrap();
    let started = std::time::Instant::now();
    world.run(&["repair", "--budget", "3s"]).exits(4);
    // The tests would sleep for an hour; a busy machine may take its time.
    assert!(started.elapsed() < std::time::Duration::from_mins(2));
}

#[test]
fn a_project_without_tests_is_told_what_to_give() {
    let world = LulaEnv::new();
    std::fs::write(world.work().join("a.py"), "x = 1\n").unwrap();
    world
        .run(&["repair"])
        .exits(6)
        .says("error[L0801]")
        .says("--tests");
}

#[test]
fn detection_names_the_command_and_its_reason() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let found = world.run(&["detect", "--json"]).exits(0).json();
    assert_eq!(found["tests"][0]["framework"], "unittest");
    assert!(!found["tests"][0]["reason"].as_str().unwrap().is_empty());
    world
        .run(&["detect"])
        .exits(0)
        .says("  python3 -m unittest");
    let bin = world.work().join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("python3"), "").unwrap();
    world
        .run(&["detect"])
        .exits(0)
        .says(".venv/bin/python3 -m unittest");
}

#[test]
fn tests_that_need_what_is_not_installed_cannot_run_and_say_what_is_missing() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let needs = format!("import a_package_nobody_has\n{TESTS}");
    std::fs::write(world.work().join("tests/test_code.py"), needs).unwrap();
    let before = listing(&world.work());
    world.run(&["repair"]).exits(6).says("a_package_nobody_has");
    assert_eq!(listing(&world.work()), before);
}

#[test]
fn what_a_test_leaves_running_in_a_session_of_its_own_does_not_hold_the_budget_up() {
    let world = LulaEnv::new();
    project(&world, CODE);
    let leaves = TESTS
        .replace(
            "import unittest\n",
            "import subprocess\nimport unittest\n",
        )
        .replace(
            "    def test_double(self):\n",
            "    def test_double(self):\n        subprocess.Popen(['sleep', '3600'], start_new_session=True)\n",
        );
    std::fs::write(world.work().join("tests/test_code.py"), leaves).unwrap();
    let started = std::time::Instant::now();
    let ran = world.run(&["repair", "--budget", "20s"]);
    assert!(matches!(ran.status, 0 | 4), "{}", ran.stderr);
    // What is left behind keeps the pipes open for an hour; a busy machine may take its time.
    assert!(started.elapsed() < std::time::Duration::from_mins(3));
}
