//! The command line at a server: the same commands with the same output as beside it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::RunningServer;
use super::approvals::key;
use crate::support::{FIX, LulaEnv, MENDED, Ran, Repo};

/// A person at another machine: a home of their own, and no repository.
struct Visitor {
    world: LulaEnv,
    url: String,
}

impl Visitor {
    fn of(server: &RunningServer) -> Self {
        Self {
            world: LulaEnv::new(),
            url: server.url(),
        }
    }

    fn lula(&self, arguments: &[&str]) -> Ran {
        let server = ["--server", &self.url];
        self.world.run(&[&server, arguments].concat())
    }
}

#[test]
fn a_run_of_a_server_is_begun_followed_looked_at_and_taken_back_as_one_of_this_machine() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let visitor = Visitor::of(&server);
    let done = visitor.lula(&["run", FIX]).exits(0);
    assert!(done.stderr.contains("verified:"), "{}", done.stderr);
    assert!(done.stdout.contains(MENDED), "{}", done.stdout);
    assert_eq!(repo.branches().len(), 1);
    // Word for word what is printed beside the server.
    for command in [
        &["runs", "--json"][..],
        &["runs"],
        &["show", "last", "--json"],
        &["show", "last", "--at", "3", "--json"],
        &["logs", "last", "--json"],
        &["logs", "last", "--follow"],
        &["trace", "last", "--json"],
        &["trace", "last"],
        &["diff", "last"],
        &["diff", "last", "--json"],
        &["approvals", "--json"],
    ] {
        let (there, here) = (visitor.lula(command), world.run(command));
        assert_eq!(
            (there.status, &there.stdout),
            (0, &here.stdout),
            "{command:?}\n{}",
            there.stderr
        );
    }
    let file = visitor.world.home().join("run.lula");
    let file = file.to_str().unwrap();
    visitor.lula(&["export", "last", "--output", file]).exits(0);
    visitor.world.run(&["verify", file]).exits(0);
    let fork = visitor
        .lula(&["fork", "last", "--at", "1", "--json"])
        .exits(0);
    let fork = fork.json()["run"].as_str().unwrap().to_owned();
    let shown = world.run(&["show", &fork, "--json"]).exits(0).json();
    assert_eq!(shown["status"], "interrupted");
    visitor
        .lula(&["cancel", &fork])
        .exits(0)
        .says("nothing was delivered");
    let run = visitor.lula(&["runs", "--json"]).json()[0]["run"].clone();
    let undone = visitor.lula(&["undo", run.as_str().unwrap(), "--json"]);
    assert!(undone.exits(0).json()["kept_as"].is_string());
    assert!(repo.branches().is_empty());
    // Nothing of it is here.
    assert_eq!(
        visitor.world.run(&["runs", "--json"]).exits(0).json(),
        json!([])
    );
}

#[test]
fn what_a_run_of_a_server_asks_is_answered_by_the_holder_of_a_key() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let ada = key(&world, "ada", &["--role", "operator"]);
    let ben = key(&world, "ben", &["--role", "approver"]);
    let server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let mut visitor = Visitor::of(&server);
    let refused = visitor.lula(&["runs"]).exits(2).says("L1011");
    assert!(
        refused.stderr.contains("no bearer token"),
        "{}",
        refused.stderr
    );
    visitor.world.user_config("[server]\nkey = \"file:key\"\n");
    let hold = |key: &str| {
        let path = visitor.world.work().join("key");
        std::fs::write(&path, key).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    };
    hold(&ada);
    let asked = visitor.lula(&["run", FIX, "--approve", "ask", "--json"]);
    let run = asked.exits(3).json()["run"].as_str().unwrap().to_owned();
    // Who begins a run does not approve it.
    let own = visitor.lula(&["approve", &run, "--yes"]).exits(2);
    assert!(own.stderr.contains("L1011"), "{}", own.stderr);
    hold(&ben);
    let questions = visitor.lula(&["approvals", "--json"]).exits(0).json();
    assert_eq!(questions[0]["run"], run.as_str());
    let id = questions[0]["id"].as_str().unwrap();
    visitor
        .lula(&["approvals", "show", id])
        .exits(0)
        .says(MENDED);
    assert!(repo.branches().is_empty());
    visitor
        .lula(&["approve", id, "--yes"])
        .exits(0)
        .says("approved");
    hold(&ada);
    visitor.lula(&["resume", &run]).exits(0).says("verified:");
    assert_eq!(repo.branches().len(), 1);
    visitor.url = format!("{}/", visitor.url);
    let all = visitor.lula(&["runs", "--json"]).exits(0);
    assert!(!all.stdout.contains(&ada) && !all.stderr.contains(&ada));
}

#[test]
fn what_a_server_cannot_do_is_said_before_anything_begins() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let visitor = Visitor::of(&server);
    for (line, said) in [
        (&["exec", "true"][..], "about this machine"),
        (&["doctor"], "about this machine"),
        (&["serve"], "about this machine"),
        (&["diff"], "about this machine"),
        (&["run", FIX, "--finish", "true"], "--finish"),
        (&["run", FIX, "--deliver", "worktree"], "--deliver worktree"),
        (&["run", FIX, "--max-time", "1s"], "--max-time"),
        (&["run", FIX, "--repo", "nonesuch"], "nonesuch"),
        (&["run", FIX, "--model", "nonesuch"], "nonesuch"),
        (&["show", "nonesuch"], "no run is called"),
        (
            &["show", "run_00000000000000000000000000"],
            "there is no run",
        ),
    ] {
        visitor.lula(line).exits(2).says(said);
    }
    let all: Value = server.get("/v1/runs").is(200).json();
    assert_eq!(all["runs"], json!([]));
    for (url, code) in [
        ("http://127.0.0.1:1", 6),
        ("http://example.org", 2),
        ("nonesuch", 2),
    ] {
        let ran = visitor.world.run(&["runs", "--server", url]).exits(code);
        assert!(ran.stderr.contains("server"), "{}", ran.stderr);
    }
    // A configured server is for runs; what is about this machine stays here.
    let set = [("LULA_SERVER_URL", visitor.url.as_str())];
    visitor.world.run_with(&set, &["config", "list"]).exits(0);
    assert_eq!(
        visitor
            .world
            .run_with(&set, &["runs", "--json"])
            .exits(0)
            .json(),
        json!([])
    );
    visitor.world.run_with(&set, &["exec", "--help"]).exits(0);
}
