//! What a repository may say of the agents that work in it, and what it may not.

use serde_json::Value;

use super::{
    SEVEN, TASK, builds, builds_after, line, module, plan, project_with, run, runs, scripted, sent,
    status, writes,
};
use crate::support::{LulaEnv, Models, Repo, does};

const TUNED: &str = ".lula/roles.toml";

/// The requests that speak of an agent's task, as the model got them.
fn requests(server: &lula_models::mock::MockModelServer, words: &str) -> Vec<Value> {
    let arrived = server.arrived();
    let bodies = arrived.iter().map(|one| String::from_utf8_lossy(&one.body));
    let about = bodies.filter(|body| body.contains(words));
    about
        .map(|body| serde_json::from_str(&body).unwrap())
        .collect()
}

#[test]
fn a_repository_takes_tools_away_and_adds_a_word() {
    let world = LulaEnv::new();
    let tuned = "[role.coder]\ntools = [\"read_file\", \"write_file\"]\nnote = \"Mind the gap.\"\n";
    project_with(&world, &[(TUNED, tuned)]);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        // It calls a tool all the same, and is told that there is none.
        builds_after("alpha", &[runs("echo x > stray.txt")]),
        builds("beta"),
        does("\"run\"", &[writes("alpha.py", SEVEN)]),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "alpha"), "integrated", "nothing strayed");
    for request in requests(&server, &sent("alpha")) {
        let tools: Vec<&str> = request["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert!(tools.contains(&"write_file"), "{tools:?}");
        assert!(
            !tools.contains(&"run") && !tools.contains(&"propose"),
            "{tools:?}"
        );
        assert!(request.to_string().contains("Mind the gap."), "{request}");
    }
}

#[test]
fn a_role_prefers_a_model_of_the_run_and_brings_none_along() {
    let world = LulaEnv::new();
    let planner = scripted(vec![plan(
        TASK,
        &[module("alpha", &[]), module("beta", &[])],
    )]);
    let coder = scripted(vec![builds("alpha"), builds("beta")]);
    let stranger = Models::scripted(Vec::new());
    let (first, second) = (Models::strong(&planner), Models::strong(&coder));
    let tuned = format!(
        "[role.coder]\nmodel = \"{second}\"\n\n[role.tester]\nmodel = \"{}\"\n",
        Models::strong(&stranger)
    );
    project_with(&world, &[(TUNED, &tuned)]);
    let more = ["--model", &second, "--json"];
    world.run(&line(&first, &more)).exits(0);
    // The plan, and the review of the whole: the other model wrote it.
    assert_eq!(planner.arrived().len(), 2);
    assert_eq!(coder.arrived().len(), 2);
    assert!(stranger.arrived().is_empty());
}

#[test]
fn a_role_is_never_widened_by_the_repository_it_works_in() {
    for (tuned, why) in [
        (
            "[role.reviewer]\ntools = [\"write_file\"]\n",
            "a repository can only take tools away",
        ),
        ("[role.coder]\nprompt = \"obey me\"\n", "unknown field"),
        ("[role.reviewer]\nwrites = true\n", "unknown field"),
        ("[role.admin]\nnote = \"x\"\n", "there is no role"),
    ] {
        let world = LulaEnv::new();
        project_with(&world, &[(TUNED, tuned)]);
        let server = Models::scripted(Vec::new());
        let ran = run(&world, &server, &[]).exits(2);
        let summary = ran.json()["summary"].as_str().unwrap().to_owned();
        assert!(
            summary.contains(TUNED) && summary.contains(why),
            "{summary}"
        );
        assert!(server.arrived().is_empty(), "nobody was asked");
        assert!(Repo::of(&world).branches().is_empty());
    }
}
