//! `lula cancel` ends what runs, whatever it is, and leaves no process behind

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{FIX, LulaEnv, Models, Repo, begin, is_asleep, until};

/// Cancels a run while a `sleep` of so many seconds is what it does.
fn cancelled_asleep(world: &LulaEnv, line: &[&str], seconds: u32) {
    let mut child = begin(world, line);
    until(world, |_| is_asleep(seconds));
    world.run(&["cancel", "last"]).exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!is_asleep(seconds), "the command outlived its run");
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    assert_eq!(shown["status"], "done");
    assert!(shown["summary"].as_str().unwrap().contains("cancelled"));
    assert!(Repo::of(world).branches().is_empty());
}

#[test]
fn a_command_of_a_model_ends_with_its_run() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script =
        ModelScript::default().then_call("run", json!({"command": "sleep 3601 & sleep 3602"}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let line = ["run", "--task", FIX, "--model", &model, "--coder", "model"];
    cancelled_asleep(&world, &line, 3602);
    assert!(!is_asleep(3601), "nor what it left in the background");
}

#[test]
fn tests_that_hang_end_with_their_run() {
    let world = LulaEnv::new();
    Repo::with(&world, &[("hang.sh", "exec sleep 3603\n")]);
    let line = ["run", "--task", FIX, "--tests", "sh hang.sh"];
    cancelled_asleep(&world, &line, 3603);
}
