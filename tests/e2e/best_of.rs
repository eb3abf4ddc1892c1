//! `lula run --best-of N`: several candidates for one task, the best is taken

use lula_models::mock::MockModelServer;
use serde_json::{Value, json};

use crate::support::{
    Act, FIX, LulaEnv, MENDED, Models, Ran, Repo, always, begin, does, edit, git, logs, until,
};

/// A model that does all of this in one turn, as often as it is asked.
fn model(calls: &[Act]) -> MockModelServer {
    Models::scripted(vec![always(does("The task:", calls))])
}

fn right() -> MockModelServer {
    model(&[("edit_file", edit())])
}

fn wrong() -> MockModelServer {
    let edit = json!({"path": "items.py", "search": "    return items[len(items)]",
        "replace": "    return items[0]"});
    model(&[("edit_file", edit)])
}

fn line(servers: &[&MockModelServer]) -> Vec<String> {
    let count = servers.len().to_string();
    let fixed = [
        "run",
        "--json",
        "--task",
        FIX,
        "--max-loops",
        "0",
        "--best-of",
        &count,
    ];
    let models = servers.iter().map(|server| Models::strong(server));
    let mut line: Vec<String> = fixed.map(str::to_owned).to_vec();
    line.extend(models.flat_map(|model| ["--model".to_owned(), model]));
    line
}

fn run(world: &LulaEnv, servers: &[&MockModelServer]) -> Ran {
    let line = line(servers);
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    world.run(&words)
}

fn standings(report: &Value) -> Vec<&str> {
    let candidates = report["best_of"]["candidates"].as_array().unwrap();
    let standing = |one: &'static str| move |value: &'_ Value| value[one].as_str().is_some();
    assert!(candidates.iter().all(standing("model")), "{report}");
    candidates
        .iter()
        .map(|one| one["standing"].as_str().unwrap())
        .collect()
}

#[test]
fn of_three_candidates_the_one_that_passes_is_delivered() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let before = git(&world.work(), &["rev-parse", "HEAD"]);
    let (bad, good, worse) = (wrong(), right(), wrong());
    let report = run(&world, &[&bad, &good, &worse]).exits(0).json();
    let best = &report["best_of"];
    assert_eq!(best["chosen"], "candidate-2", "{best:#}");
    assert!(
        best["because"].as_str().unwrap().contains("tests show"),
        "{best:#}"
    );
    let standings = standings(&report);
    assert_eq!(standings[1], "proven", "{standings:?}");
    assert!(
        standings
            .iter()
            .all(|word| ["proven", "unproven", "dismissed"].contains(word)),
        "{standings:?}"
    );
    // Different models, each asked once.
    for server in [&bad, &good, &worse] {
        assert!(server.arrived().len() <= 1, "{:?}", server.arrived());
    }
    let made = Repo::of(&world).branches();
    assert_eq!(made.len(), 1, "{made:?}");
    let code = git(&world.work(), &["show", &format!("{}:items.py", made[0])]);
    assert!(code.contains(MENDED), "{code}");
    assert_eq!(git(&world.work(), &["rev-parse", "HEAD"]), before);
    let run = report["run"].as_str().unwrap();
    world.run(&["replay", run, "--verify"]).exits(0);
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(shown.contains("candidate-2 was taken"), "{shown}");
    let trace = world.run(&["trace", run, "--json"]).exits(0).json();
    assert_eq!(trace["agents"].as_array().unwrap().len(), 3, "{trace}");
    let told = world.run(&["trace", run]).exits(0).stdout;
    assert!(told.contains("candidate-2 was taken"), "{told}");
    let listed = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn where_no_candidate_passes_nothing_is_delivered_and_the_run_says_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let breaks = json!({"path": "items.py", "search": "    return x * 2",
        "replace": "    return x * 3"});
    let servers = [0, 1].map(|_| model(&[("edit_file", breaks.clone())]));
    let report = run(&world, &[&servers[0], &servers[1]]).exits(1).json();
    assert_eq!(report["best_of"]["chosen"], Value::Null);
    assert_eq!(standings(&report), ["failed", "failed"]);
    let summary = report["summary"].as_str().unwrap();
    assert!(
        summary.contains("none of 2 candidates") && summary.contains("no longer do"),
        "{summary}"
    );
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn the_second_to_finish_wins_where_the_first_does_not_pass_its_tests() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    // Small, quick, and right for the one list that the test knows.
    let quick = model(&[(
        "edit_file",
        json!({"path": "items.py", "search": "    return items[len(items)]",
            "replace": "    return items[2]"}),
    )]);
    let more = "import unittest\n\nfrom items import last\n\n\nclass More(unittest.TestCase):\n    \
                def test_one(self):\n        self.assertEqual(last([7]), 7)\n";
    let thorough = model(&[
        ("run", json!({"command": "sleep 1"})),
        ("edit_file", edit()),
        (
            "write_file",
            json!({"path": "tests/test_more.py", "content": more}),
        ),
    ]);
    let report = run(&world, &[&quick, &thorough]).exits(0).json();
    let best = &report["best_of"];
    assert_eq!(standings(&report), ["proven", "proven"], "both finish");
    assert_eq!(best["chosen"], "candidate-2", "{best:#}");
    let because = best["because"].as_str().unwrap();
    assert!(because.contains("test_one"), "{because}");
    assert_eq!(best["candidates"][0]["others_tests"]["passed"], 0);
    assert_eq!(best["candidates"][0]["others_tests"]["of"], 1);
    let run = report["run"].as_str().unwrap();
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(
        shown.contains("0 of 1 tests of others") && shown.contains("candidate-2 was taken"),
        "{shown}"
    );
    world.run(&["replay", run, "--verify"]).exits(0);
}

#[test]
fn one_model_tries_with_different_temperatures() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = wrong();
    let model = Models::strong(&server);
    let line = [
        "run",
        "--json",
        "--task",
        FIX,
        "--max-loops",
        "0",
        "--best-of",
        "3",
        "--model",
        &model,
    ];
    let report = world.run(&line).exits(5).json();
    let warmth: Vec<u64> = report["best_of"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["temperature_percent"].as_u64().unwrap())
        .collect();
    assert_eq!(warmth, [0, 70, 30]);
    let mut asked: Vec<String> = server
        .arrived()
        .iter()
        .map(|arrived| {
            let body: Value = serde_json::from_slice(&arrived.body).unwrap();
            body["temperature"].to_string()
        })
        .collect();
    asked.sort();
    assert_eq!(asked, ["0", "0.3", "0.7"]);
}

#[test]
fn candidates_that_were_killed_with_their_run_go_on_where_they_were() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let sleepy = || {
        model(&[
            ("run", json!({"command": "sleep 4"})),
            ("edit_file", edit()),
        ])
    };
    let (bad, good) = (wrong(), sleepy());
    let line = line(&[&bad, &good]);
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut child = begin(&world, &words);
    until(&world, |logs| {
        logs.iter()
            .any(|line| line["event"] == "effect_intended" && line["name"] == "await_agent")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    assert_eq!(report["best_of"]["chosen"], "candidate-2");
    assert_eq!(Repo::of(&world).branches().len(), 1);
    // One question for each; at most what the kill cut off is asked again.
    for server in [&bad, &good] {
        assert!(server.arrived().len() <= 2, "{}", server.arrived().len());
    }
    let taken = logs(&world)
        .iter()
        .filter(|line| {
            line["text"]
                .as_str()
                .is_some_and(|text| text.contains("was taken"))
        })
        .count();
    assert_eq!(taken, 1);
}

#[test]
fn candidates_need_a_model_and_share_no_plan() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world
        .run(&["run", "--task", FIX, "--best-of", "3"])
        .exits(2)
        .says("written by models");
    world
        .run(&["run", "--task", FIX, "--best-of", "1"])
        .exits(2)
        .says("2..=5");
    world
        .run(&["run", "--task", FIX, "--best-of", "2", "--agents", "2"])
        .exits(2)
        .says("--agents");
}
