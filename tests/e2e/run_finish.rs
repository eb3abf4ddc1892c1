//! Commands that finish a change, and what the gate knows before anything is begun.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{FIX, LulaEnv, MENDED, Models, Repo, edit, git, logs, run_with};

/// A formatter: it takes the spaces around a minus away.
const FORMATTER: &str = "set -e\nsed -i 's/ - /-/' items.py\necho formatted\n";
/// A check that wants to know who changed the file.
const SIGNED: &str = "grep -q signed items.py && exit 0\necho 'items.py is not signed'\nexit 3\n";

fn project(world: &LulaEnv) {
    Repo::buggy_with(world, &[("fmt.sh", FORMATTER), ("signed.sh", SIGNED)]);
}

/// Rules about one program.
fn rules(world: &LulaEnv, decision: &str) {
    let path = world.home().join(".config/lula/rules.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!(
        "[[rule]]\nid = \"test.deploy\"\nmatch = [\"deploy\"]\ndecision = \"{decision}\"\n\
         reason = \"it deploys\"\n"
    );
    std::fs::write(path, text).unwrap();
}

fn delivered(world: &LulaEnv) -> String {
    let branches = Repo::of(world).branches();
    let [branch] = &branches[..] else {
        panic!("{branches:?}");
    };
    git(&world.work(), &["show", &format!("{branch}:items.py")])
}

/// The names of everything that was done or looked at, in order.
fn acts(world: &LulaEnv) -> Vec<String> {
    let lines = logs(world);
    let named = lines
        .iter()
        .filter(|line| !matches!(line["event"].as_str(), Some("node_entered" | "node_left")));
    named
        .filter_map(|line| line["name"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_change_is_formatted_before_it_is_judged_and_delivered() {
    let world = LulaEnv::new();
    project(&world);
    let server = Models::mending(1);
    let finish = ["--finish", "sh fmt.sh"];
    let report = run_with(&world, &Models::strong(&server), FIX, &finish)
        .exits(0)
        .json();
    assert_eq!(report["files"], json!(["items.py"]));
    assert!(delivered(&world).contains("len(items)-1"), "{report}");
    world
        .run(&["logs", "last"])
        .exits(0)
        .says("finished by \"sh fmt.sh\"");
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_change_of_the_search_is_formatted_too_as_the_configuration_says() {
    let world = LulaEnv::new();
    project(&world);
    world.user_config("[run]\nfinish = [\"sh fmt.sh\"]\n");
    world.run(&["run", FIX]).exits(0);
    assert!(delivered(&world).contains("-1]"), "{}", delivered(&world));
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_repository_cannot_name_commands_that_run() {
    let world = LulaEnv::new();
    project(&world);
    std::fs::write(
        world.work().join(".lula.toml"),
        "[run]\nfinish = [\"sh fmt.sh\"]\n",
    )
    .unwrap();
    let ran = world.run(&["run", FIX]).exits(0);
    ran.says("run.finish").says("is not applied");
    assert!(delivered(&world).contains("len(items) - 1"));
}

#[test]
fn a_change_that_cannot_be_finished_is_never_verified() {
    let world = LulaEnv::new();
    project(&world);
    let finish = ["run", FIX, "--json", "--finish", "sh signed.sh"];
    let report = world.run(&finish).exits(1).json();
    assert_eq!(report["attempts"][0]["class"], "finishing", "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.contains("sh signed.sh"), "{summary}");
    assert!(Repo::of(&world).branches().is_empty());
    assert!(!acts(&world).contains(&"verify".to_owned()));
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn the_next_attempt_is_told_what_the_finishing_command_said() {
    let world = LulaEnv::new();
    project(&world);
    // What was handed in is still there.
    let signed = format!("{MENDED}  # signed");
    let signed = json!({"path": "items.py", "search": MENDED, "replace": signed});
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}))
        .then_call("edit_file", signed)
        .then_call("submit", json!({"summary": "signed"}));
    let server = MockModelServer::start(script).unwrap();
    let finish = ["--finish", "sh signed.sh"];
    run_with(&world, &Models::strong(&server), FIX, &finish).exits(0);
    assert!(delivered(&world).contains("# signed"));
    let third = String::from_utf8(server.arrived()[2].body.clone()).unwrap();
    assert!(third.contains("items.py is not signed"), "{third}");
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn what_a_rule_forbids_ends_the_run_before_anything_is_begun() {
    for flag in ["--finish", "--accept", "--tests"] {
        let world = LulaEnv::new();
        project(&world);
        rules(&world, "deny");
        let server = Models::mending(1);
        let ran = run_with(&world, &Models::strong(&server), FIX, &[flag, "deploy all"]);
        let report = ran.exits(2).json();
        let summary = report["summary"].as_str().unwrap();
        for said in ["test.deploy", "it deploys", flag, "lula policy show"] {
            assert!(summary.contains(said), "{said} is not in {summary}");
        }
        assert!(server.arrived().is_empty(), "no model was asked");
        let acts = acts(&world);
        assert!(acts.contains(&"judge".to_owned()), "{acts:?}");
        for begun in ["run_tests", "survey", "exec", "ask"] {
            assert!(!acts.contains(&begun.to_owned()), "{acts:?}");
        }
        assert!(Repo::of(&world).branches().is_empty());
        world.run(&["replay", "last", "--verify"]).exits(0);
    }
}

#[test]
fn what_a_rule_will_ask_is_told_at_once_and_asked_when_its_turn_comes() {
    let world = LulaEnv::new();
    project(&world);
    rules(&world, "ask");
    let server = Models::mending(1);
    let finish = ["--finish", "sh fmt.sh && (deploy || true)"];
    run_with(&world, &Models::strong(&server), FIX, &finish).exits(3);
    world
        .run(&["logs", "last"])
        .exits(0)
        .says("will ask: \"sh fmt.sh && (deploy || true)\": it deploys");
    let waiting = world.run(&["approvals", "--json"]).exits(0).json();
    let id = waiting[0]["id"].as_str().unwrap().to_owned();
    world.run(&["approve", &id, "--yes"]).exits(0);
    world.run(&["resume", "last"]).exits(0);
    assert!(delivered(&world).contains("len(items)-1"));
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_budget_that_is_spent_is_waited_for_at_the_gate() {
    let world = LulaEnv::new();
    project(&world);
    let twice = "    return x * 2";
    let thrice = "    return x * 3";
    let change = |search: &str, replace: &str| json!({"path": "items.py", "search": search, "replace": replace});
    let script = ModelScript::default()
        .then_call("edit_file", change(twice, thrice))
        .then_call("submit", json!({"summary": "done"}))
        .then_call("edit_file", change(thrice, twice))
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let two = ["--max-calls", "2"];
    let report = run_with(&world, &Models::strong(&server), FIX, &two)
        .exits(4)
        .json();
    assert_eq!(report["status"], "waiting");
    let lines = logs(&world);
    let waits = lines.iter().rfind(|line| line["event"] == "suspended");
    assert_eq!(waits.unwrap()["node"], "policy_gate");
    world.run(&["replay", "last", "--verify"]).exits(0);
    world.run(&["resume", "last", "--max-calls", "9"]).exits(0);
    assert_eq!(server.arrived().len(), 5, "no question was asked twice");
    world.run(&["replay", "last", "--verify"]).exits(0);
}
