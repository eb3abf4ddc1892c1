//! The doors of a run: lanes, questions, the background, steering, cancelling, logs

use std::process::Child;
use std::time::Duration;

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptedFault};
use serde_json::{Value, json};

use crate::support::{
    FIX, LulaEnv, Models, Repo, begin_heard, edit, ended, interrupt, logs, run_with, until,
};

/// A model that looks slow: the command it runs takes a while.
fn slow() -> ModelScript {
    ModelScript::default()
        .then_call("run", json!({"command": "sleep 3"}))
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}))
}

/// Starts a run in another process.
fn spawn(world: &LulaEnv, model: &str) -> Child {
    let line = ["run", "--task", FIX, "--model", model, "--coder", "model"];
    begin_heard(world, &line)
}

fn has(logs: &[Value], event: &str, name: &str) -> bool {
    logs.iter()
        .any(|line| line["event"] == event && line["name"] == name)
}

#[test]
fn a_lane_can_be_chosen() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let plan = json!({"steps": ["Mend last."]}).to_string();
    let script = ModelScript::say(plan)
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &["--lane", "deep"]).exits(0);
    assert!(has(&logs(&world), "node_left", "planner"));

    let several = "Fix the failing test of last. Add a test for a list of one.";
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    run_with(
        &world,
        &Models::strong(&server),
        several,
        &["--lane", "interactive"],
    )
    .exits(0);
    assert!(!has(&logs(&world), "node_left", "planner"));

    let runs = world
        .run(&["runs", "--json"])
        .json()
        .as_array()
        .unwrap()
        .len();
    world
        .run(&["run", "--task", FIX, "--lane", "deep"])
        .exits(2)
        .says("a plan needs a model");
    world.run(&["run", "--task", "  "]).exits(2).says("empty");
    let now = world.run(&["runs", "--json"]).json();
    assert_eq!(
        now.as_array().unwrap().len(),
        runs,
        "a refused task is no run"
    );
}

#[test]
fn a_question_waits_for_its_answer_and_is_bound_to_the_change() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    let ask = ["--approve", "ask"];
    let report = run_with(&world, &Models::strong(&server), FIX, &ask)
        .exits(3)
        .json();
    assert_eq!(report["status"], "waiting");
    assert!(
        Repo::of(&world).branches().is_empty(),
        "nothing before the answer"
    );
    let shown = world.run(&["diff", "last"]).exits(0);
    assert_eq!(shown.stdout, report["diff"].as_str().unwrap());
    // Without a terminal no person can have looked.
    world.run(&["approve", "last"]).exits(2).says("--yes");
    // Going on without an answer waits again.
    world.run(&["resume", "last"]).exits(3);
    world
        .run(&["approve", "last", "--yes"])
        .exits(0)
        .says("approved");
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
    world.run(&["replay", "last", "--verify"]).exits(0);
    world
        .run(&["approve", "last", "--yes"])
        .exits(2)
        .says("asks nothing");
}

#[test]
fn a_no_delivers_nothing_and_a_yes_beforehand_is_on_record() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(2);
    let (model, ask) = (Models::strong(&server), ["--approve", "ask"]);
    run_with(&world, &model, FIX, &ask).exits(3);
    let waiting = world.run(&["approvals", "--json"]).exits(0).json();
    let question = waiting[0]["id"].as_str().unwrap();
    world
        .run(&["approvals", "show", question])
        .exits(0)
        .says("items[len(items) - 1]");
    world.run(&["reject", question, "--yes"]).exits(0);
    world
        .run(&["resume", "last"])
        .exits(1)
        .says("not delivered");
    assert!(Repo::of(&world).branches().is_empty());

    run_with(&world, &model, FIX, &ask).exits(3);
    world
        .run(&["resume", "last", "--approve", "auto"])
        .exits(0)
        .says("approved beforehand");
    assert_eq!(Repo::of(&world).branches().len(), 1);
    let logs = logs(&world);
    assert!(has(&logs, "voted", "vote"), "{logs:#?}");
}

#[test]
fn a_run_works_in_the_background_and_is_followed_from_elsewhere() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    let begun = run_with(&world, &Models::strong(&server), FIX, &["--detach"]);
    let begun = begun.exits(0).json();
    let run = begun["run"].as_str().unwrap();
    let followed = world.run(&["logs", "-f", run]).exits(0);
    assert!(followed.stdout.contains("verifier"), "{}", followed.stdout);
    assert!(followed.stdout.contains("verified"), "{}", followed.stdout);
    let shown = world.run(&["show", run, "--json"]).exits(0).json();
    assert_eq!(shown["verdict"]["verdict"], "pass");
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn a_run_in_the_background_is_taken_up_before_it_is_told_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(slow()).unwrap();
    let begun = run_with(&world, &Models::strong(&server), FIX, &["--detach"]);
    let run = begun.exits(0).json()["run"].as_str().unwrap().to_owned();
    let shown = world.run(&["show", &run, "--json"]).exits(0).json();
    assert_eq!(shown["status"], "running", "{shown}");
    let note = "leave the signature alone";
    world.run(&["steer", &run, note]).exits(0).says("next turn");
    let followed = world.run(&["logs", "-f", &run]).exits(0);
    assert!(
        !followed.stderr.contains("no process"),
        "{}",
        followed.stderr
    );
    let shown = world.run(&["show", &run, "--json"]).exits(0).json();
    assert_eq!(shown["state"]["notes"], json!([note]));
}

#[test]
fn what_keeps_a_runner_from_starting_is_said_once_with_what_to_do() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let floor = ["--sandbox-min-tier", "microvm"];
    for more in [&[][..], &["--detach"]] {
        let line = [&["run", "--task", FIX][..], &floor, more].concat();
        let ran = world.run(&line).exits(6);
        assert_eq!(ran.stderr.matches("error[").count(), 1, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("help:").count(), 1, "{}", ran.stderr);
        let ran = ran
            .says("error[L0301]")
            .says("no tier at or above `microvm`");
        if !more.is_empty() {
            ran.says("no driver works on it").says("lula resume run_");
        }
    }
    let rules = world.home().join("rules.toml");
    std::fs::write(&rules, "[[rule]]\nnonsense = 1\n").unwrap();
    let line = [
        "run",
        "--task",
        FIX,
        "--policy-rules",
        rules.to_str().unwrap(),
    ];
    let ran = world.run(&line).exits(6);
    assert_eq!(ran.stderr.matches("error[").count(), 1, "{}", ran.stderr);
    ran.says("error[L0501]")
        .says("rules.toml:2")
        .says("lula policy test");
}

#[test]
fn a_note_reaches_the_next_turn_of_a_run_in_another_process() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(slow()).unwrap();
    let child = spawn(&world, &Models::strong(&server));
    until(&world, |logs| has(logs, "effect_intended", "exec"));
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["status"], "running", "{shown}");
    world
        .run(&["show", "last"])
        .exits(0)
        .says("being worked on");
    let note = "leave the signature alone";
    world
        .run(&["steer", "last", note])
        .exits(0)
        .says("next turn");
    ended(child).exits(0);
    let body = |at: usize| String::from_utf8(server.arrived()[at].body.clone()).unwrap();
    assert!(!body(0).contains(note));
    assert!(body(1).contains(note), "{}", body(1));
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["state"]["notes"], json!([note]));
    world.run(&["replay", "last", "--verify"]).exits(0);
    world
        .run(&["steer", "last", "more"])
        .exits(1)
        .says("is over");
    world.run(&["steer", "last", " "]).exits(2).says("empty");
    world
        .run(&["steer", "last", &"x".repeat(5000)])
        .exits(2)
        .says("longer");
    world
        .run(&["steer", "nonesuch", "x"])
        .exits(2)
        .says("L0603");
}

#[test]
fn a_weak_model_and_later_attempts_hear_a_note_too() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let block = |by: &str| {
        format!(
            "items.py\n<<<<<<< SEARCH\n    return items[len(items)]\n=======\n    return \
             {by}\n>>>>>>> REPLACE\n"
        )
    };
    let script = ModelScript::say(block("items[0]")).then_say(block("items[-1]"));
    let server = MockModelServer::start(script).unwrap();
    // A budget of nothing: the run waits before its first call.
    let model = Models::weak(&server);
    run_with(&world, &model, FIX, &["--max-calls", "0"]).exits(4);
    world
        .run(&["steer", "last", "mind negative indices"])
        .exits(0);
    world.run(&["resume", "last", "--max-calls", "9"]).exits(0);
    for request in server.arrived() {
        let body = String::from_utf8(request.body).unwrap();
        assert!(body.contains("mind negative indices"), "{body}");
    }
    assert_eq!(server.arrived().len(), 2);
}

#[test]
fn ctrl_c_once_finishes_the_step_and_the_run_goes_on_without_repeating_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(slow()).unwrap();
    let child = spawn(&world, &Models::strong(&server));
    until(&world, |logs| has(logs, "effect_intended", "exec"));
    interrupt(&child);
    ended(child)
        .exits(5)
        .says("stopping after the step under way")
        .says("lula resume run_");
    let logs_then = logs(&world);
    assert!(has(&logs_then, "effect_settled", "exec"), "{logs_then:#?}");
    world.run(&["resume", "last"]).exits(0);
    let retried = |line: &Value| line["event"] == "effect_retried";
    assert!(!logs(&world).iter().any(retried), "nothing was lost");
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn ctrl_c_twice_stops_at_once_and_nothing_is_lost() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_fail(ScriptedFault::stall_after(0))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let child = spawn(&world, &Models::strong(&server));
    until(&world, |logs| {
        let asked = |line: &&Value| line["event"] == "effect_intended" && line["name"] == "ask";
        logs.iter().filter(asked).count() == 2
    });
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    ended(child).exits(5).says("at once");
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn cancelling_ends_a_run_in_another_process_and_one_that_waits() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default().then_fail(ScriptedFault::stall_after(0));
    let server = MockModelServer::start(script).unwrap();
    let child = spawn(&world, &Models::strong(&server));
    until(&world, |logs| has(logs, "effect_intended", "ask"));
    world
        .run(&["cancel", "last", "--reason", "not today"])
        .exits(0)
        .says("not today");
    ended(child).exits(1).says("cancelled by");
    world.run(&["resume", "last"]).exits(1);
    world.run(&["cancel", "last"]).exits(1).says("is over");

    let server = Models::mending(1);
    run_with(&world, &Models::strong(&server), FIX, &["--approve", "ask"]).exits(3);
    let report = world.run(&["cancel", "last", "--json"]).exits(0).json();
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("no longer wanted"),
        "{report}"
    );
    assert!(Repo::of(&world).branches().is_empty());
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs[1]["status"], "done");
    world.run(&["replay", "last", "--verify"]).exits(0);
    world.run(&["cancel", "nonesuch"]).exits(2).says("L0603");
}

#[test]
fn a_run_is_named_by_its_id_the_end_of_it_or_last() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    let id = runs[0]["run"].as_str().unwrap().to_owned();
    let end = &id[id.len() - 10..];
    for name in [id.as_str(), end, "last"] {
        for command in ["show", "logs", "diff", "trace"] {
            let ran = world.run(&[command, name]).exits(0);
            assert!(!ran.stdout.is_empty(), "{command} {name}");
        }
        world.run(&["show", name, "--json"]).exits(0).json();
        let diff = world.run(&["diff", name, "--json"]).exits(0).json();
        assert_eq!(diff["files"], json!(["items.py"]));
    }
    let table = world.run(&["runs"]).exits(0);
    assert!(table.stdout.contains(end) && table.stdout.contains("verified"));
    for command in ["show", "logs", "trace", "resume", "cancel"] {
        world.run(&[command, "nonesuch"]).exits(2).says("L0603");
    }
    world.run(&["undo", end]).exits(0);
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn the_log_is_told_line_by_line_with_its_chain() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    let model = Models::strong(&server);
    run_with(&world, &model, FIX, &[]).exits(0);
    let logs = logs(&world);
    for (at, line) in logs.iter().enumerate() {
        assert_eq!(line["seq"], at);
        assert!(line["hash"].as_str().unwrap().starts_with("b3:"));
    }
    assert_eq!(logs[0]["event"], "run_started");
    let step = |name: &str| {
        let left = |line: &&Value| line["event"] == "node_left" && line["name"] == name;
        let found = logs.iter().find(left).unwrap_or_else(|| panic!("{name}"));
        found["text"].as_str().unwrap().to_owned()
    };
    assert!(step("context_builder").contains("1 pass, 1 fail"));
    assert!(step("coder").starts_with(&model), "{}", step("coder"));
    assert!(step("executor").contains("1 file, +1 -1"));
    assert!(step("verifier").starts_with("pass: "));
    assert!(step("reporter").starts_with("lula/"));
}
