//! Repositories of several projects: a change is judged by the tests of those that it touches.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Repo, git, run_with};

const SOUND: &str = "exports.sum = (numbers) => numbers.reduce((all, one) => all + one, 0);\n";
const BUGGY: &str = "exports.sum = (numbers) => numbers.reduce((all, one) => all - one, 0);\n";
const WEB_TESTS: &str = "const test = require('node:test');
const assert = require('node:assert');
const { sum } = require('../sum.js');

test('adds up', () => assert.strictEqual(sum([1, 2, 3]), 6));
test('of nothing is nothing', () => assert.strictEqual(sum([]), 0));
";
const API_TESTS: &str = "import unittest

from api import double


class Doubles(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double(2), 4)
";

/// A service in Python beside a page in JavaScript, and nothing to test at the top.
fn two_projects(world: &LulaEnv, sum: &str) {
    let files = [
        ("README.md", "two projects\n"),
        (
            "api/pyproject.toml",
            "[project]\nname = \"api\"\nversion = \"1\"\n",
        ),
        ("api/api.py", "def double(x):\n    return 2 * x\n"),
        ("api/tests/__init__.py", ""),
        ("api/tests/test_api.py", API_TESTS),
        (
            "web/package.json",
            "{\"name\": \"web\", \"scripts\": {\"test\": \"node --test test/\"}}\n",
        ),
        ("web/sum.js", sum),
        ("web/test/sum.test.js", WEB_TESTS),
    ];
    Repo::with(world, &files);
}

/// A model that writes one file and says that all is well.
fn writes(attempts: usize, path: &str, content: &str) -> MockModelServer {
    let mut script = ModelScript::default();
    for _ in 0..attempts {
        script = script
            .then_call("write_file", json!({"path": path, "content": content}))
            .then_call("submit", json!({"summary": "all tests pass"}));
    }
    MockModelServer::start(script).unwrap()
}

fn passing(looked: &Value) -> Vec<&str> {
    let ids = looked["ran"]["passing"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap()).collect()
}

#[test]
fn detection_lists_every_project_and_its_tests() {
    let world = LulaEnv::new();
    two_projects(&world, SOUND);
    let found = world.run(&["detect", "--json"]).exits(0).json();
    assert_eq!(found["projects"], json!(["api", "web"]));
    let folders: Vec<&Value> = found["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tests| &tests["folder"])
        .collect();
    assert!(
        folders.contains(&&json!("api")) && folders.contains(&&json!("web")),
        "{found}"
    );
}

#[test]
fn the_project_whose_tests_fail_is_the_one_that_is_mended() {
    let world = LulaEnv::new();
    two_projects(&world, BUGGY);
    world.run(&["run", "--task", FIX]).exits(0);
    let report = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(
        report["state"]["repositories"][0]["baseline"]["folder"], "web",
        "{report}"
    );
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    assert_eq!(
        git(&world.work(), &["show", &format!("{branch}:web/sum.js")]),
        SOUND.trim_end()
    );
}

#[test]
fn a_change_is_judged_by_the_tests_of_the_project_it_touches() {
    let task = "make sum() faster";
    let world = LulaEnv::new();
    two_projects(&world, SOUND);
    // The tests of the service pass, and say nothing of the page.
    let server = writes(2, "web/sum.js", BUGGY);
    let report = run_with(
        &world,
        &Models::strong(&server),
        task,
        &["--max-loops", "1"],
    );
    let report = report.exits(1).json();
    let attempt = report["attempts"][0].to_string();
    assert!(
        attempt.contains("web/") && attempt.contains("adds up"),
        "{attempt}"
    );
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn new_tests_of_another_project_are_evidence() {
    let world = LulaEnv::new();
    two_projects(&world, SOUND);
    let tests = "const test = require('node:test');
const assert = require('node:assert');
const { mean } = require('../mean.js');
test('the mean', () => assert.strictEqual(mean([1, 3]), 2));
";
    let code =
        "const { sum } = require('./sum.js');\nexports.mean = (all) => sum(all) / all.length;\n";
    let script = ModelScript::default()
        .then_call(
            "write_file",
            json!({"path": "web/mean.js", "content": code}),
        )
        .then_call(
            "write_file",
            json!({"path": "web/test/mean.test.js", "content": tests}),
        )
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(
        &world,
        &Models::strong(&server),
        "add a mean() to the page",
        &[],
    );
    report.exits(0);
    let report = world.run(&["show", "last", "--json"]).exits(0).json();
    let evidence = &report["state"]["evidence"];
    let after = passing(&evidence["after"]);
    assert!(
        after
            .iter()
            .any(|id| id.starts_with("web/") && id.contains("the mean")),
        "{after:?}"
    );
    // The first project's tests count too, and both commands are told.
    assert!(after.iter().any(|id| id.contains("test_two")), "{after:?}");
    let command = evidence["command"].as_str().unwrap();
    assert!(
        command.contains("unittest") && command.contains("(cd web && "),
        "{command}"
    );
}
