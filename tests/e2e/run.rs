//! `lula run`: from a task to a verified branch

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptedFault};
use serde_json::json;

use crate::support::{
    CODE, FIX, LulaEnv, MENDED, Models, Ran, Repo, TESTS, at_rest, edit, git, listing, run_with,
};

#[test]
fn failing_tests_become_a_verified_branch_and_nothing_else_is_touched() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let work = world.work();
    // Everything a person may have lying about.
    std::fs::write(work.join("notes.txt"), "mine\n").unwrap();
    std::fs::write(work.join("staged.py"), "x = 1\n").unwrap();
    git(&work, &["add", "staged.py"]);
    std::fs::write(work.join("tests/__init__.py"), "# not committed\n").unwrap();
    let outside_git = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        let mut files = files;
        files.retain(|(path, _)| !path.starts_with(work.join(".git")));
        files
    };
    let before = outside_git(listing(&work));
    let index = std::fs::read(work.join(".git/index")).unwrap();
    let head = git(&work, &["rev-parse", "HEAD"]);

    let ran = world.run(&["run", FIX]).exits(0);
    assert!(ran.stdout.contains(MENDED), "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("2 files have changes that are not committed"),
        "{}",
        ran.stderr
    );

    assert_eq!(outside_git(listing(&work)), before);
    assert_eq!(std::fs::read(work.join(".git/index")).unwrap(), index);
    assert_eq!(git(&work, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&work, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    assert_eq!(git(&work, &["rev-parse", &format!("{branch}^")]), head);
    let changed = git(&work, &["diff", "--name-only", "main", branch]);
    assert_eq!(changed, "items.py");
    let message = git(&work, &["log", "-1", "--format=%B", branch]);
    for trailer in [
        "Lula-Run: run_",
        "Lula-Model: repairer",
        "Lula-Verdict: pass",
        "Lula-Audit: b3:",
    ] {
        assert!(message.contains(trailer), "{message}");
    }
}

#[test]
fn a_model_with_tools_looks_edits_runs_and_submits() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("read_file", json!({"path": "items.py"}))
        .then_call("edit_file", edit())
        .then_call("run", json!({"command": "python3 -m unittest -q"}))
        .then_call("submit", json!({"summary": "fixed the index"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(report["files"], json!(["items.py"]));
    assert_eq!(report["spent"]["model_calls"], 4);
    assert_eq!(server.unused(), 0);
    // The model saw what its tools said.
    let last = String::from_utf8(server.arrived().last().unwrap().body.clone()).unwrap();
    assert!(last.contains("exit status 0"), "{last}");
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn a_weak_model_writes_one_edit_and_a_bad_one_is_asked_for_again() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let block = |search: &str| {
        format!("items.py\n<<<<<<< SEARCH\n{search}\n=======\n{MENDED}\n>>>>>>> REPLACE\n")
    };
    let script = ModelScript::say(block("    return things[0]"))
        .then_say(block("    return items[len(items)]"));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::weak(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(report["spent"]["model_calls"], 2);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn a_weak_model_that_hands_back_what_it_was_shown_is_told_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let block = |replace: &str| {
        format!(
            "items.py\n<<<<<<< SEARCH\n    return items[len(items)]\n=======\n{replace}\n>>>>>>> \
             REPLACE\n"
        )
    };
    let script = ModelScript::say(block("    return items[len(items)]")).then_say(block(MENDED));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::weak(&server), FIX, &["--max-loops", "0"])
        .exits(0)
        .json();
    assert_eq!(report["spent"]["model_calls"], 2);
    let second = String::from_utf8(server.arrived()[1].body.clone()).unwrap();
    assert!(second.contains("leave every file as it was"), "{second}");
}

#[test]
fn a_model_that_only_talks_never_passes() {
    for words in ["Done! All tests pass now.", "I have fixed everything."] {
        let world = LulaEnv::new();
        Repo::buggy(&world);
        let mut script = ModelScript::default();
        for _ in 0..8 {
            script = script.then_say(words);
        }
        let server = MockModelServer::start(script).unwrap();
        let report = run_with(&world, &Models::strong(&server), FIX, &["--max-loops", "1"]);
        let report = report.exits(1).json();
        assert_eq!(report["attempts"][0]["class"], "no_change");
        assert_eq!(report["delivered"], json!(null));
        assert!(Repo::of(&world).branches().is_empty());
    }
}

#[test]
fn answers_that_cannot_be_used_to_the_end_change_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let before = listing(&world.work());
    let mut script = ModelScript::default();
    for _ in 0..40 {
        script = script.then_say("Here is my edit: please imagine it.");
    }
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::weak(&server), FIX, &[])
        .exits(1)
        .json();
    assert_eq!(report["attempts"][0]["class"], "malformed");
    assert_eq!(report["diff"], "");
    assert_eq!(listing(&world.work()), before);
}

#[test]
fn a_model_that_changes_the_tests_instead_is_caught() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let rigged = TESTS.replace("last([1, 2, 3]), 3)", "3, 3)");
    let mut script = ModelScript::default();
    for _ in 0..3 {
        script = script
            .then_call(
                "write_file",
                json!({"path": "tests/test_items.py", "content": rigged}),
            )
            .then_call("submit", json!({"summary": "all green"}));
    }
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &["--max-loops", "1"]);
    let report = report.exits(1).json();
    assert_eq!(report["attempts"][0]["class"], "test_tampering");
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn without_tests_a_change_is_unverified_unless_a_command_shows_it() {
    let script = || {
        ModelScript::default()
            .then_call(
                "write_file",
                json!({"path": "hello.txt", "content": "hello\n"}),
            )
            .then_call("submit", json!({"summary": "wrote it"}))
    };
    let task = "write a greeting into hello.txt";
    let world = LulaEnv::new();
    Repo::with(&world, &[("README", "a project\n")]);
    let server = MockModelServer::start(script()).unwrap();
    let report = run_with(&world, &Models::strong(&server), task, &[])
        .exits(5)
        .json();
    assert_eq!(report["verdict"]["verdict"], "inconclusive");
    assert!(
        report["summary"].as_str().unwrap().contains("--accept"),
        "{report}"
    );

    let world = LulaEnv::new();
    Repo::with(&world, &[("README", "a project\n")]);
    let server = MockModelServer::start(script()).unwrap();
    let accept = ["--accept", "grep -q hello hello.txt"];
    let report = run_with(&world, &Models::strong(&server), task, &accept)
        .exits(0)
        .json();
    let branch = report["delivered"]["branch"].as_str().unwrap();
    let text = git(&world.work(), &["show", &format!("{branch}:hello.txt")]);
    assert_eq!(text, "hello");
}

#[test]
fn a_spent_budget_ends_cleanly_and_more_goes_on() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let small = ["--budget", "0.01"];
    let report = run_with(&world, &Models::strong(&server), FIX, &small)
        .exits(4)
        .json();
    assert_eq!(report["status"], "waiting");
    assert!(
        report["summary"].as_str().unwrap().contains("lula resume"),
        "{report}"
    );
    assert!(
        server.arrived().is_empty(),
        "nothing may be asked that may cost too much"
    );
    world.run(&["resume", "last", "--budget", "50"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn a_secret_in_the_environment_reaches_no_store() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("run", json!({"command": "env"}));
    let script = script.then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let keys = format!("{}=env:CANARY", server.url());
    let mut command = world.command(&[
        "run",
        "--task",
        FIX,
        "--model",
        &Models::strong(&server),
        "--coder",
        "model",
        "--models-keys",
        &keys,
    ]);
    let canary = "canary-3c1f9a7e5b";
    let ran = Ran::from(command.env("CANARY", canary).output().unwrap()).exits(0);
    assert!(!ran.stdout.contains(canary) && !ran.stderr.contains(canary));
    let sent = server.arrived();
    assert_eq!(
        sent[0].header("x-api-key"),
        Some(canary),
        "control: the key was used"
    );
    let state = world.home().join(".local/state/lula");
    for (path, bytes) in at_rest(&state) {
        let found = bytes
            .windows(canary.len())
            .any(|part| part == canary.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn what_needs_a_model_says_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world
        .run(&["run", "--task", "add a --verbose flag"])
        .exits(6)
        .says("not possible: this task needs a model")
        .says("--model");
}

#[test]
fn nothing_failing_is_said_and_nothing_done() {
    let world = LulaEnv::new();
    let fixed = CODE.replace("    return items[len(items)]", MENDED);
    Repo::with(
        &world,
        &[
            ("items.py", &fixed),
            ("tests/__init__.py", ""),
            ("tests/test_items.py", TESTS),
        ],
    );
    world
        .run(&["run", "--task", FIX])
        .exits(5)
        .says("nothing to do: nothing fails: 2 tests pass; nothing was changed");
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn a_directory_that_is_no_repository_or_has_no_commit_is_refused() {
    let world = LulaEnv::new();
    world.run(&["run", "--task", FIX]).exits(2).says("L0901");
    git(&world.work(), &["init", "--quiet"]);
    world.run(&["run", "--task", FIX]).exits(2).says("L0902");
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs, json!([]), "a refused task is no run");
}

#[test]
fn several_things_are_planned_first_where_a_person_wants_steps() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let plan = json!({"steps": ["Mend last in items.py.", "Add a test for it."]}).to_string();
    let test = "import unittest\n\nfrom items import last\n\n\nclass One(unittest.TestCase):\n    \
                def test_one(self):\n        self.assertEqual(last([7]), 7)\n";
    let does = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call(
            "write_file",
            json!({"path": "tests/test_one.py", "content": test}),
        )
        .then_call("submit", json!({"summary": "both done"}));
    let mut script = ModelScript::say(plan);
    script.turn.extend(does.turn.clone());
    let server = MockModelServer::start(script).unwrap();
    let task = "Fix the failing test of last. Add a test for a list of one.";
    let more = ["--lane", "deep"];
    let report = run_with(&world, &Models::strong(&server), task, &more)
        .exits(0)
        .json();
    assert_eq!(report["files"], json!(["items.py", "tests/test_one.py"]));
    let sent = |at: usize| String::from_utf8(server.arrived()[at].body.clone()).unwrap();
    let (planner, coder) = (sent(0), sent(1));
    assert!(
        planner.contains("def last(items)"),
        "it sees the project: {planner}"
    );
    assert!(coder.contains("1. Mend last in items.py."), "{coder}");
    assert!(coder.contains("It may be wrong"), "{coder}");

    // A model with tools plans while it works.
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(does).unwrap();
    run_with(&world, &Models::strong(&server), task, &[]).exits(0);
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_model_that_is_gone_is_replaced_by_the_next_one() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let mut refusing = ModelScript::default();
    for _ in 0..10 {
        refusing = refusing.then_fail(ScriptedFault::status(401));
    }
    let gone = MockModelServer::start(refusing).unwrap();
    let second = Models::strong(&server);
    let more = ["--model", &second];
    let report = run_with(&world, &Models::strong(&gone), FIX, &more)
        .exits(0)
        .json();
    assert_eq!(report["attempts"][0]["class"], "model_unavailable");
    assert_eq!(report["by"], second);

    let world = LulaEnv::new();
    Repo::buggy(&world);
    let report = run_with(&world, &Models::strong(&gone), FIX, &[])
        .exits(6)
        .json();
    assert!(
        report["summary"].as_str().unwrap().contains("401"),
        "{report}"
    );
}

#[test]
fn tests_that_fail_now_and_then_prove_nothing() {
    let world = LulaEnv::new();
    let flaky = "import os\nimport unittest\n\n\nclass Dice(unittest.TestCase):\n    def \
                 test_dice(self):\n        seen = os.path.exists('/tmp/seen')\n        \
                 open('/tmp/seen', 'w').close()\n        self.assertTrue(seen)\n";
    Repo::with(
        &world,
        &[
            ("a.py", "x = 1\n"),
            ("tests/__init__.py", ""),
            ("tests/test_a.py", flaky),
        ],
    );
    world
        .run(&["run", "--task", FIX])
        .exits(5)
        .says("a flaky test proves no change");
    assert!(Repo::of(&world).branches().is_empty());
}
