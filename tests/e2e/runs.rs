//! What is kept of runs: listing, showing, replaying, forking, bundles and the store

use serde_json::json;

use crate::support::{LulaEnv, Repo};

const FIX: &str = "fix the failing tests";

fn done() -> LulaEnv {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world.run(&["run", "--task", FIX]).exits(0);
    world
}

#[test]
fn a_run_is_listed_shown_at_any_point_and_derived_again() {
    let world = done();
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs[0]["status"], "done");
    assert_eq!(runs[0]["task"], FIX);
    let id = runs[0]["run"].as_str().unwrap();
    let now = world.run(&["show", id, "--json"]).exits(0).json();
    assert_eq!(now["verdict"]["verdict"], "pass");
    let then = world
        .run(&["show", "last", "--at", "2", "--json"])
        .exits(0)
        .json();
    assert_eq!(then["at"], 2);
    assert_eq!(then["verdict"], json!(null));
    let replayed = world
        .run(&["replay", "last", "--verify", "--json"])
        .exits(0)
        .json();
    assert_eq!(replayed["state_digest"], now["state_digest"]);
    assert_eq!(replayed["differences"], json!([]));
    world.run(&["show", "nonesuch"]).exits(2).says("L0603");
}

#[test]
fn a_fork_goes_on_otherwise_in_a_workspace_of_its_own() {
    let world = done();
    world
        .run(&["fork", "last", "--at", "3"])
        .exits(2)
        .says("nearest place");
    let line = [
        "fork",
        "last",
        "--at",
        "6",
        "--set",
        "task=make the broken tests pass",
        "--json",
    ];
    let fork = world.run(&line).exits(0).json();
    let id = fork["run"].as_str().unwrap();
    let report = world.run(&["resume", id, "--json"]).exits(0).json();
    assert_eq!(report["task"], "make the broken tests pass");
    assert_eq!(report["verdict"]["verdict"], "pass");
    world.run(&["replay", id, "--verify"]).exits(0);
    assert_eq!(
        world
            .run(&["runs", "--json"])
            .exits(0)
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_bundle_proves_itself_and_a_changed_one_shows_where() {
    let world = done();
    world.run(&["export", "last", "-o", "run.lula"]).exits(0);
    let found = world.run(&["verify", "run.lula", "--json"]).exits(0).json();
    assert_eq!(found["seals"].as_object().unwrap().len(), 1);
    let file = world.work().join("run.lula");
    let bytes = std::fs::read(&file).unwrap();
    for place in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 9] {
        let mut changed = bytes.clone();
        changed[place] ^= 0x40;
        std::fs::write(&file, changed).unwrap();
        world.run(&["verify", "run.lula"]).exits(1).says("L0602");
    }
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    world.run(&["verify", "run.lula"]).exits(1).says("L0602");
}

#[test]
fn a_store_is_checked_backed_up_brought_back_and_moved() {
    let world = done();
    world.run(&["store", "check"]).exits(0).says("1 runs");
    world.run(&["store", "backup", "backup.db"]).exits(0);
    world
        .run(&["store", "backup", "backup.db"])
        .exits(2)
        .says("exists already");
    let state = world.home().join(".local/state/lula");
    std::fs::remove_file(state.join("runs/runs.db")).unwrap();
    assert_eq!(world.run(&["runs", "--json"]).exits(0).json(), json!([]));
    world.run(&["store", "restore", "backup.db"]).exits(0);
    world.run(&["replay", "last", "--verify"]).exits(0);
    let from = format!("sqlite:{}", state.join("runs/runs.db").display());
    let line = [
        "store",
        "migrate",
        "--from",
        &from,
        "--to",
        "sqlite:other.db",
        "--json",
    ];
    assert_eq!(world.run(&line).exits(0).json()["runs"], 1);
    let other = [("LULA_STORE_URL", "sqlite:other.db")];
    let runs = world.run_with(&other, &["runs", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
}

#[test]
fn a_password_in_the_stores_address_is_refused_and_not_repeated() {
    let world = LulaEnv::new();
    let url = [("LULA_STORE_URL", "postgres://ada:hunter22@127.0.0.1:1/lula")];
    let ran = world.run_with(&url, &["runs"]).exits(6).says("env:NAME");
    assert!(!ran.stderr.contains("hunter22"), "{}", ran.stderr);
}
