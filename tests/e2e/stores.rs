//! Runs kept in real servers: everything a person does with them, and how the server is spoken to

use serde_json::json;

use crate::support::{LulaEnv, Ran, Repo};

const FIX: &str = "fix the failing tests";

fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `cargo xtask test`, which starts the servers")
    })
}

/// A person whose runs are kept in a server.
struct Person {
    world: LulaEnv,
    variables: Vec<(&'static str, String)>,
}

impl Person {
    fn keeping_runs_at(url: String, ca: Option<String>) -> Self {
        let mut variables = vec![
            ("LULA_STORE_URL", url),
            // The Redis for tests writes once a second.
            ("LULA_STORE_DURABILITY", "process-crash".to_owned()),
        ];
        variables.extend(ca.map(|ca| ("LULA_STORE_CA", ca)));
        Self {
            world: LulaEnv::new(),
            variables,
        }
    }

    fn does(&self, arguments: &[&str]) -> Ran {
        let variables: Vec<_> = self
            .variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.world.run_with(&variables, arguments)
    }
}

/// From the first run to another store, through every door.
fn everything(person: &Person) {
    Repo::buggy(&person.world);
    let report = person
        .does(&["run", "--task", FIX, "--json"])
        .exits(0)
        .json();
    let id = report["run"].as_str().unwrap();
    let state = person.world.home().join(".local/state/lula");
    assert!(!state.join("runs.db").exists(), "it is kept elsewhere");

    let runs = person.does(&["runs", "--json"]).exits(0).json();
    let listed = runs.as_array().unwrap().iter().find(|run| run["run"] == id);
    assert_eq!(listed.unwrap()["status"], "done");
    let now = person.does(&["show", id, "--json"]).exits(0).json();
    assert_eq!(now["verdict"]["verdict"], "pass");
    let then = person
        .does(&["show", id, "--at", "2", "--json"])
        .exits(0)
        .json();
    assert_eq!(then["verdict"], json!(null));
    let replayed = person
        .does(&["replay", id, "--verify", "--json"])
        .exits(0)
        .json();
    assert_eq!(replayed["state_digest"], now["state_digest"]);

    let setting = "task=make the broken tests pass";
    let fork = person
        .does(&["fork", id, "--at", "6", "--set", setting, "--json"])
        .exits(0)
        .json();
    let fork = fork["run"].as_str().unwrap();
    let resumed = person.does(&["resume", fork, "--json"]).exits(0).json();
    assert_eq!(resumed["verdict"]["verdict"], "pass");

    person.does(&["export", id, "-o", "run.lula"]).exits(0);
    // Anywhere, with no store at all.
    let verified = person.world.run(&["verify", "run.lula", "--json"]).exits(0);
    assert_eq!(verified.json()["run"], id);

    person.does(&["store", "check"]).exits(0).says("are whole");
    let url = &person.variables[0].1;
    person
        .does(&["store", "migrate", "--from", url, "--to", "sqlite:moved.db"])
        .exits(0);
    let moved = [("LULA_STORE_URL", "sqlite:moved.db")];
    person
        .world
        .run_with(&moved, &["replay", id, "--verify"])
        .exits(0);
}

#[test]
fn a_run_lives_in_postgres() {
    everything(&Person::keeping_runs_at(
        told("LULA_TEST_POSTGRES_URL"),
        None,
    ));
}

#[test]
fn a_run_lives_in_redis_behind_tls() {
    everything(&Person::keeping_runs_at(
        told("LULA_TEST_REDIS_TLS_URL"),
        Some(told("LULA_TEST_REDIS_CA")),
    ));
}

#[test]
fn a_postgres_that_cannot_prove_itself_is_not_spoken_to() {
    let url = format!("{}?sslmode=verify-full", told("LULA_TEST_POSTGRES_URL"));
    let unknown = Person::keeping_runs_at(url.clone(), None);
    unknown.does(&["runs"]).exits(6).says("L0601");
    let known = Person::keeping_runs_at(url, Some(told("LULA_TEST_POSTGRES_CA")));
    known.does(&["runs"]).exits(0);
}

#[test]
fn a_password_is_not_sent_in_clear_and_not_repeated() {
    for (url, other) in [
        ("redis://:hunter22@192.0.2.1:6379/0", "rediss://"),
        (
            "postgres://ada:hunter22@192.0.2.1/lula?sslmode=disable",
            "verify-full",
        ),
    ] {
        let world = LulaEnv::new();
        let secret = [("LULA_STORE_URL", "env:STORE"), ("STORE", url)];
        let ran = world.run_with(&secret, &["runs"]).exits(6).says(other);
        assert!(!ran.stderr.contains("hunter22"), "{}", ran.stderr);
    }
}

#[test]
fn a_redis_that_forgets_is_refused_with_what_to_set() {
    let url = told("LULA_TEST_REDIS_URL");
    let world = LulaEnv::new();
    let strict = [("LULA_STORE_URL", url.as_str())];
    let refused = world.run_with(&strict, &["runs"]).exits(6);
    refused.says("store.durability");
    let accepted = [strict[0], ("LULA_STORE_ACCEPT_LOSS", "yes")];
    world.run_with(&accepted, &["runs"]).exits(0);
}

#[test]
fn old_runs_give_up_what_they_were_told_and_say_so() {
    let world = LulaEnv::new();
    // Enough tests that what the verifier is told does not fit into an event.
    let many: Vec<String> = (0..150)
        .map(|n| format!("    def test_that_number_{n}_is_what_it_was_yesterday(self): pass\n"))
        .collect();
    let many = format!(
        "import unittest\n\nclass Many(unittest.TestCase):\n{}",
        many.concat()
    );
    Repo::buggy_with(&world, &[("tests/test_many.py", &many)]);
    world.run(&["run", "--task", FIX]).exits(0);
    let before = world.run(&["show", "last", "--json"]).exits(0).json();
    let kept = world.run(&["store", "compact", "--json"]).exits(0).json();
    assert_eq!(kept["runs"], 0, "no run is thirty days old");
    world
        .run(&["store", "compact", "--older-than", "soon"])
        .exits(2);

    std::thread::sleep(std::time::Duration::from_millis(20));
    let dropped = world
        .run(&["store", "compact", "--older-than", "0s", "--json"])
        .exits(0)
        .json();
    assert_eq!(dropped["runs"], 1);
    let blobs = dropped["blobs"].as_u64().unwrap();
    assert!(blobs > 0, "the run was told nothing large: {dropped}");
    assert_eq!(
        world.run(&["show", "last", "--json"]).exits(0).json(),
        before
    );
    let replayed = world.run(&["replay", "last", "--verify"]).exits(5);
    replayed.says("lula store compact");
    world
        .run(&["store", "check"])
        .exits(0)
        .says("dropped by `lula store compact`");
    world.run(&["export", "last", "-o", "run.lula"]).exits(0);
    let verified = world.run(&["verify", "run.lula", "--json"]).exits(0).json();
    assert_eq!(verified["dropped"], blobs);
    let again = world
        .run(&["store", "compact", "--older-than", "0s", "--json"])
        .exits(0)
        .json();
    assert_eq!(again["blobs"], 0, "once is enough");
}
