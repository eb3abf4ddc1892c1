//! `lula try`

use std::path::Path;

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{LulaEnv, Models, git, listing};

#[test]
fn the_whole_story_is_told_without_a_key() {
    let world = LulaEnv::new();
    let ran = world.run(&["try"]).exits(0);
    ran.says("12 tests: 10 pass, 2 fail")
        .says("tests.test_rates.BaseRate.test_weight_on_the_edge_of_a_band")
        .says("AssertionError: 590 != 390")
        .says("+        if grams <= heaviest:")
        .says("Approved")
        .says("Put on the branch lula/")
        .says("Lula-Verdict: pass")
        .says("derived again, 0 come out otherwise")
        .says("Undone again")
        .says("lula run 'fix")
        .says("lula models use")
        .says("lula trace");
    // A run like any other, on record.
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["verdict"]["verdict"], "pass");
    assert_eq!(shown["by"], "repairer");
    world.run(&["replay", "last", "--verify"]).exits(0);
    world.run(&["trace", "last"]).exits(0).says("search_patch");
    world.run(&["logs", "last"]).exits(0).says("approved");
}

#[test]
fn the_story_is_told_to_machines() {
    let story = LulaEnv::new().run(&["try", "--json"]).exits(0).json();
    assert_eq!(story["run"]["exit"], "verified");
    assert_eq!(story["failed"].as_array().unwrap().len(), 2);
    assert!(story["approved"].as_str().unwrap().starts_with("b3:"));
    assert_eq!(story["audit"]["differences"], 0);
    assert!(story["audit"]["named_by_commit"].is_number());
    assert_eq!(
        story["undone"]["branch"],
        story["run"]["delivered"]["branch"]
    );
    assert_eq!(story["repository"], serde_json::Value::Null);
}

#[test]
fn a_model_in_use_does_the_work() {
    let world = LulaEnv::new();
    let edit = json!({"path": "parcel/rates.py", "search": "        if grams < heaviest:",
        "replace": "        if grams <= heaviest:"});
    let script = ModelScript::default()
        .then_call("edit_file", edit)
        .then_call("submit", json!({"summary": "the edge belongs to the band"}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let story = world
        .run(&["try", "--json", "--models-use", &model])
        .exits(0)
        .json();
    assert_eq!(story["run"]["by"], model);
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_model_that_does_not_manage_is_said_so_and_the_search_does_it() {
    let world = LulaEnv::new();
    let mut script = ModelScript::default();
    for _ in 0..20 {
        script = script.then_say("It cannot be done.");
    }
    let server = MockModelServer::start(script).unwrap();
    let ran = world
        .run(&["try", "--models-use", &Models::strong(&server)])
        .exits(0);
    ran.says("failed:").says("the built-in search");
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 2);
}

#[test]
fn nothing_is_left_behind_but_the_record_unless_it_is_kept() {
    let world = LulaEnv::new();
    let temporary = world.work().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    world.run_with(&variables, &["try"]).exits(0);
    assert_eq!(listing(&temporary), []);

    let story = world
        .run_with(&variables, &["try", "--keep", "--json"])
        .exits(0)
        .json();
    let kept = Path::new(story["repository"].as_str().unwrap());
    assert!(kept.join("parcel/rates.py").is_file());
    assert_eq!(
        git(kept, &["status", "--porcelain"]),
        "",
        "the checkout was not touched"
    );
    assert_eq!(git(kept, &["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn a_floor_that_cannot_be_met_refuses_to_run() {
    let ran = LulaEnv::new()
        .run(&["try", "--sandbox-min-tier", "microvm"])
        .exits(6);
    ran.says("microvm");
}
