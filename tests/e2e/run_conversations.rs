//! Handing a change in is a question: what comes of it is told in the same conversation.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, MENDED, Models, Repo, edit, git, run_with};

/// The bug of [`Repo::buggy`] mended in a wrong way.
const WRONG: &str = "    return items[0]";

fn replaces(search: &str, replace: &str) -> Value {
    json!({"path": "items.py", "search": search, "replace": replace})
}

fn submits(summary: &str) -> Value {
    json!({"summary": summary})
}

fn sent(server: &MockModelServer, number: usize) -> String {
    String::from_utf8(server.arrived()[number].body.clone()).unwrap()
}

#[test]
fn a_change_that_fails_comes_back_with_its_evidence_and_stays_in_place() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    // The second edit only finds its place where the first one is still there.
    let script = ModelScript::default()
        .then_call("edit_file", replaces("    return items[len(items)]", WRONG))
        .then_call("submit", submits("the first one is the last one"))
        .then_call("edit_file", replaces(WRONG, MENDED))
        .then_call("submit", submits("the last one"));
    let server = MockModelServer::start(script).unwrap();
    let ran = run_with(&world, &Models::strong(&server), FIX, &[]);
    let report = ran.exits(0).json();
    assert_eq!(report["attempts"][0]["class"], "test_fail");
    assert_eq!(server.arrived().len(), 4, "nothing was asked for again");
    let third = sent(&server, 2);
    assert!(third.contains("Not accepted"), "{third}");
    assert!(third.contains("test_last"), "{third}");
    assert!(third.contains("the first one is the last one"), "{third}");
    assert!(
        third.starts_with(&sent(&server, 1)[..400]),
        "the prompt is the same from its beginning"
    );
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn after_three_wrong_changes_another_conversation_begins_and_knows_the_last_one() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let wrong = |number: usize| format!("    return items[0 * {number}]");
    let mut script = ModelScript::default();
    let mut stands = "    return items[len(items)]".to_owned();
    for number in 1..=3 {
        let summary = format!("try number {number}");
        script = script
            .then_call("edit_file", replaces(&stands, &wrong(number)))
            .then_call("submit", submits(&summary));
        stands = wrong(number);
    }
    let script = script
        .then_call("edit_file", edit())
        .then_call("submit", submits("from the end"));
    let server = MockModelServer::start(script).unwrap();
    let ran = run_with(&world, &Models::strong(&server), FIX, &[]);
    let report = ran.exits(0).json();
    assert_eq!(report["attempts"].as_array().unwrap().len(), 3);
    let fresh = (0..server.arrived().len())
        .map(|number| sent(&server, number))
        .find(|body| body.contains("An earlier attempt failed"))
        .expect("no conversation begins with what was tried");
    for known in ["try number 3", "items[0 * 3]", "test_last"] {
        assert!(fresh.contains(known), "{known}: {fresh}");
    }
    assert!(!fresh.contains("Not accepted"), "{fresh}");
}

#[test]
fn a_bug_report_over_a_green_suite_is_verified_by_a_test_that_its_coder_is_asked_for() {
    let world = LulaEnv::new();
    Repo::with(
        &world,
        &[
            ("items.py", "def last(items):\n    return items[-1]\n"),
            ("tests/__init__.py", ""),
            (
                "tests/test_items.py",
                "import unittest\nfrom items import last\n\n\nclass Items(unittest.TestCase):\n    def test_last(self):\n        self.assertEqual(last([1, 2]), 2)\n",
            ),
        ],
    );
    let test = "import unittest\nfrom items import last\n\n\nclass Empty(unittest.TestCase):\n    def test_nothing(self):\n        self.assertIsNone(last([]))\n";
    let script = ModelScript::default()
        .then_call(
            "edit_file",
            replaces(
                "    return items[-1]",
                "    return items[-1] if items else None",
            ),
        )
        .then_call("submit", submits("the last of nothing is None"))
        .then_call(
            "write_file",
            json!({"path": "tests/test_empty.py", "content": test}),
        )
        .then_call("submit", submits("with a test"));
    let server = MockModelServer::start(script).unwrap();
    let task = "last([]) raises an IndexError; it should be None";
    let ran = run_with(&world, &Models::strong(&server), task, &[]);
    let report = ran.exits(0).json();
    assert_eq!(report["attempts"][0]["class"], "no_evidence");
    assert!(
        sent(&server, 2).contains("Not verified"),
        "{}",
        sent(&server, 2)
    );
    let branch = report["delivered"]["branch"].as_str().unwrap();
    let delivered = git(
        &world.work(),
        &["show", &format!("{branch}:tests/test_empty.py")],
    );
    assert!(delivered.contains("assertIsNone"));
}

#[test]
fn a_coder_that_shows_nothing_more_is_left_to_a_person() {
    let world = LulaEnv::new();
    Repo::with(&world, &[("README", "a project\n")]);
    let wrote = json!({"path": "hello.txt", "content": "hello\n"});
    // The second time it says nothing that can be used; what it handed in is not lost by that.
    let script = ModelScript::default()
        .then_call("write_file", wrote)
        .then_call("submit", submits("wrote it"));
    let server = MockModelServer::start(script).unwrap();
    let task = "write a greeting into hello.txt";
    let ran = run_with(&world, &Models::strong(&server), task, &[]);
    let report = ran.exits(5).json();
    let branch = report["delivered"]["branch"].as_str().unwrap();
    assert_eq!(
        git(&world.work(), &["show", &format!("{branch}:hello.txt")]),
        "hello"
    );
}

#[test]
fn a_coder_that_is_blocked_says_why_and_nothing_is_delivered() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let why = "the schema generator is not installed here";
    let blocked = json!({"status": "blocked", "summary": why});
    let server =
        MockModelServer::start(ModelScript::default().then_call("submit", blocked)).unwrap();
    let ran = run_with(
        &world,
        &Models::strong(&server),
        "regenerate the schema",
        &[],
    );
    let report = ran.exits(1).json();
    assert!(
        report["summary"].as_str().unwrap().contains(why),
        "{report}"
    );
    assert!(report["delivered"].is_null());
    world
        .run(&["show", "last"])
        .exits(0)
        .says("blocked")
        .says("the schema generator");
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn a_decision_that_a_coder_needs_is_a_persons() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let asks = json!({"status": "needs_decision", "summary": "Raise or return None for nothing?",
        "options": ["raise", "return None"]});
    let script = ModelScript::default()
        .then_call("submit", asks)
        .then_call("edit_file", edit())
        .then_call("submit", submits("done"));
    let server = MockModelServer::start(script).unwrap();
    let ran = run_with(&world, &Models::strong(&server), FIX, &[]).exits(3);
    let summary = ran.json()["summary"].as_str().unwrap().to_owned();
    assert!(summary.contains("Raise or return None"), "{summary}");
    assert!(summary.contains("--answer 'return None'"), "{summary}");
    assert_eq!(server.arrived().len(), 1);
    world
        .run(&["resume", "last", "--answer", "return None", "--json"])
        .exits(0);
    let second = sent(&server, 1);
    assert!(second.contains("decided: return None"), "{second}");
}
