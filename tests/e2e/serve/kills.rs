//! Servers that end, gently and otherwise: what was begun is finished, once.

use serde_json::json;

use super::RunningServer;
use crate::support::{FIX, LulaEnv, Repo, kill_child, wait_until};

#[test]
fn a_run_outlives_the_server_that_began_it() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let mut server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    assert!(kill_child(&mut server.child));
    drop(server);
    let server = RunningServer::start(&world, &[]);
    let question = server.question(&run);
    assert_eq!(question["run"], json!(run));
    let mut server = server;
    // Killed as soon as the answer is taken: the next one goes on with what was answered.
    server.answer(&question, "approve").is(200);
    assert!(kill_child(&mut server.child));
    drop(server);
    let server = RunningServer::start(&world, &[]);
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);
    world.run(&["replay", &run, "--verify"]).exits(0);
}

#[test]
fn a_server_that_is_asked_to_end_puts_its_runs_down_and_the_next_one_goes_on() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX}));
    wait_until("the run is under way", || {
        server.get(&format!("/v1/runs/{run}")).json()["events"].as_u64() > Some(3)
    });
    server.end().exits(0);
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    // Put down, or faster than the request to end.
    assert_ne!(runs[0]["standing"], "running", "{runs}");
    let server = RunningServer::start(&world, &[]);
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);
}
