//! Runs that an earlier version recorded: what it exported verifies, and what it stored is shown and
//! derived again. `logs/README.md` says how they came about.

use serde_json::{Value, json};

use crate::support::LulaEnv;

/// Each run by the file it was exported to.
const EXPORTED: &[(&str, &str, &[u8])] = &[
    ("repair", REPAIR, include_bytes!("logs/repair.lula")),
    ("model", MODEL, include_bytes!("logs/model.lula")),
    ("agents", AGENTS, include_bytes!("logs/agents.lula")),
    (
        "repositories",
        REPOSITORIES,
        include_bytes!("logs/repositories.lula"),
    ),
    ("best-of", BEST_OF, include_bytes!("logs/best-of.lula")),
];

/// Found by search.
const REPAIR: &str = "run_01m7rrt3tq75y9k4xtbqwe5dpv";
/// Mended by a model with tools.
const MODEL: &str = "run_01m7rrth67r196hkw1k7rsxk1b";
/// A plan that two agents carried out.
const AGENTS: &str = "run_01m7rrtk46vk9hd4rkb5cwd865";
/// A plan over two repositories.
const REPOSITORIES: &str = "run_01m7rrvhjkzh8q1ss2cz8xn46m";
/// The better of two candidates.
const BEST_OF: &str = "run_01m7rrvpn8cjnhm0dkd6fxs9y9";

/// A machine after an upgrade: the store of the earlier version, today's program.
fn upgraded() -> LulaEnv {
    let world = LulaEnv::new();
    let store = world.work().join("earlier.db");
    std::fs::write(store, include_bytes!("logs/runs.db")).unwrap();
    world.run(&["store", "restore", "earlier.db"]).exits(0);
    world
}

/// The JSON that a command prints of a run.
fn document_of(world: &LulaEnv, command: &str, run: &str) -> Value {
    world.run(&[command, run, "--json"]).exits(0).json()
}

#[test]
fn bundles_of_an_earlier_version_verify_without_any_store() {
    let world = LulaEnv::new();
    for (name, run, bytes) in EXPORTED {
        let file = format!("{name}.lula");
        std::fs::write(world.work().join(&file), bytes).unwrap();
        let found = world.run(&["verify", &file, "--json"]).exits(0).json();
        assert_eq!(found["run"], *run, "{name}");
        assert_eq!(found["seals"].as_object().unwrap().len(), 1, "{name}");
        assert_eq!(found["dropped"], 0, "{name}");
    }
}

#[test]
fn runs_of_an_earlier_version_and_of_its_agents_are_derived_again() {
    let world = upgraded();
    world.run(&["store", "check"]).exits(0).says("11 runs");
    let mut replayed = 0;
    for (name, run, _) in EXPORTED {
        let trace = document_of(&world, "trace", run);
        let agents = trace["agents"].as_array().cloned().unwrap_or_default();
        let agents = agents.iter().map(|agent| agent["run"].as_str().unwrap());
        for id in std::iter::once(*run).chain(agents) {
            let again = world.run(&["replay", id, "--verify", "--json"]);
            let again = again.json();
            assert_eq!(again["differences"], json!([]), "{name}");
            assert_eq!(again["dropped"], json!([]), "{name}");
            // What was asked of models and of agents is asked otherwise today.
            let older = again["older"].as_array().unwrap().len();
            let visits = usize::try_from(again["visits"].as_u64().unwrap()).unwrap();
            assert!(
                older < visits,
                "{name}: {older} of {visits} taken as recorded"
            );
            replayed += 1;
        }
    }
    assert_eq!(replayed, 11);
}

#[test]
fn runs_of_an_earlier_version_are_shown_in_todays_words() {
    let world = upgraded();
    let listed = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), EXPORTED.len());
    for (name, run, _) in EXPORTED {
        let shown = document_of(&world, "show", run);
        assert_eq!(shown["verdict"]["verdict"], "pass", "{name}");
        world.run(&["show", run]).exits(0).says("lula/");
    }
    world.run(&["show", AGENTS]).exits(0).says("merged");
    world.run(&["show", REPOSITORIES]).exits(0).says("client");
    world.run(&["show", BEST_OF]).exits(0).says("candidate-1");
    let logs = |run: &str| world.run(&["logs", run]).exits(0).stdout;
    let of_repair = logs(REPAIR);
    for act in ["run_tests", "take_change", "verify", "deliver"] {
        assert!(of_repair.contains(act), "{act}\n{of_repair}");
    }
    let of_agents = logs(AGENTS);
    for act in ["commit", "merge", "fill"] {
        assert!(of_agents.contains(act), "{act}\n{of_agents}");
    }
}
