//! `lula lessons`: what a failed attempt showed reaches the next run, fenced, and no other repository

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, MENDED, Models, Repo, edit, git, run_with};

fn lessons(world: &LulaEnv, more: &[&str]) -> Vec<Value> {
    let arguments = [&["lessons", "list", "--json"][..], more].concat();
    let listed = world.run(&arguments).exits(0).json();
    listed.as_array().unwrap().clone()
}

/// A model that tries something wrong first.
fn stumbling() -> ModelScript {
    let wrong = json!({"path": "items.py", "search": "    return items[len(items)]",
        "replace": "    return items[0]"});
    let right = json!({"path": "items.py", "search": "    return items[0]", "replace": MENDED});
    ModelScript::default()
        .then_call("edit_file", wrong)
        .then_call("submit", json!({"summary": "done"}))
        .then_call("edit_file", right)
        .then_call("submit", json!({"summary": "done"}))
}

#[test]
fn a_failed_attempt_is_a_lesson_for_the_next_run_of_the_same_repository() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    assert!(lessons(&world, &[]).is_empty());
    let first = MockModelServer::start(stumbling()).unwrap();
    run_with(&world, &Models::strong(&first), FIX, &[]).exits(0);
    let known = lessons(&world, &[]);
    let [lesson] = &known[..] else {
        panic!("{known:?}");
    };
    let id = lesson["id"].as_str().unwrap();
    assert!(
        lesson["text"]
            .as_str()
            .unwrap()
            .contains("failing tests still fail"),
        "{lesson}"
    );
    assert_eq!(lesson["uses"], 0);
    // The event that is named says so.
    let run = lesson["evidence"][0]["run"].as_str().unwrap();
    let event = lesson["evidence"][0]["event"].as_u64().unwrap();
    let log = world.run(&["logs", run, "--json"]).exits(0).stdout;
    let told: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = told.iter().find(|one| one["seq"] == event).unwrap();
    assert!(told.to_string().contains("tests fail"), "{told}");

    // The next run sees it between marks, or does without it to see whether it helps.
    let mending = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let second = MockModelServer::start(mending).unwrap();
    let report = run_with(&world, &Models::strong(&second), FIX, &[])
        .exits(0)
        .json();
    let run = report["run"].as_str().unwrap();
    let state = world.run(&["show", run, "--json"]).exits(0).json()["state"].clone();
    let view = &state["task"]["lessons"];
    assert_eq!(view["lessons"][0]["id"], id, "{view}");
    assert_eq!(view["digest"].as_str().unwrap().len(), 32);
    let held_back = view["lessons"][0]["held_back"] == true;
    let key = if held_back { "held_back" } else { "shown" };
    assert_eq!(state["recalled"][key], json!([id]), "{state}");
    let asked = String::from_utf8(second.arrived()[0].body.clone()).unwrap();
    assert_eq!(asked.contains("<notes>"), !held_back, "{asked}");
    world.run(&["replay", run, "--verify"]).exits(0);
    let after = &lessons(&world, &[])[0];
    let counted = if held_back { "held_back" } else { "uses" };
    assert_eq!(after[counted], 1, "{after}");

    // Another repository knows nothing of it.
    let other = world.home().join("other");
    std::fs::create_dir(&other).unwrap();
    git(&other, &["init", "--quiet"]);
    std::fs::write(other.join("a"), "a").unwrap();
    git(&other, &["add", "--all"]);
    git(&other, &["commit", "--quiet", "--message=one"]);
    assert!(lessons(&world, &["--repo", other.to_str().unwrap()]).is_empty());

    let shown = world.run(&["lessons", "show", &id[..6]]).exits(0).stdout;
    assert!(shown.contains(&format!("event {event}")), "{shown}");
    world.run(&["lessons", "forget", id]).exits(0);
    assert!(lessons(&world, &[]).is_empty());
    world
        .run(&["lessons", "show", id])
        .exits(2)
        .says("there is no lesson");
}
