//! Agents and money: what each may spend, and a run that waits for more.

use serde_json::Value;

use super::{TASK, builds, module, plan, project, run, scripted, status};
use crate::support::{LulaEnv, Repo};

#[test]
fn a_budget_that_allows_no_plan_waits_for_more_and_asks_nobody() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &["--budget", "0.0001"])
        .exits(4)
        .json();
    assert_eq!(report["status"], "waiting", "{report}");
    assert!(server.arrived().is_empty());
    world.run(&["resume", "last", "--budget", "50"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn agents_that_nothing_is_left_for_wait_for_more_and_none_fails() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    // The plan takes the only question that may be asked.
    let report = run(&world, &server, &["--max-calls", "1"]).exits(4).json();
    assert_eq!(report["status"], "waiting", "{report}");
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.contains("--max-calls N"), "{summary}");
    assert_eq!(status(&report, "alpha"), "pending");
    assert_eq!(report["waiting"]["alpha"], "waits for its turn");
    assert_eq!(server.arrived().len(), 1);
    // One agent at a time can be paid now, and then the other.
    let report = world.run(&["resume", "last", "--max-calls", "2", "--json"]);
    let report = report.exits(4).json();
    let integrated = |report: &Value| {
        let jobs = report["plan"]["jobs"].as_object().unwrap();
        let done = jobs.values().filter(|job| job["status"] == "integrated");
        done.count()
    };
    assert_eq!(integrated(&report), 1, "{report}");
    assert!(Repo::of(&world).branches().is_empty());
    let report = world.run(&["resume", "last", "--max-calls", "3", "--json"]);
    let report = report.exits(0).json();
    assert_eq!(integrated(&report), 2, "{report}");
    assert_eq!(report["spent"]["model_calls"], 3);
    // Nothing that is verified is held up by a review that cannot be paid.
    let review = report["review"]["missing"].as_str().unwrap();
    assert!(review.contains("model_calls"), "{review}");
    assert_eq!(server.arrived().len(), 3);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn an_agent_that_spent_its_share_is_followed_by_one_that_may_spend_more() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &["--budget", "0.0001"])
        .exits(4)
        .json();
    // Enough for the plan, and too little for either agent.
    let summary = report["summary"].as_str().unwrap();
    let needed = summary.split('$').nth(1).unwrap();
    let needed: f64 = needed.split(' ').next().unwrap().parse().unwrap();
    let budget = format!("{:.4}", needed * 1.02);
    let report = world.run(&["resume", "last", "--budget", &budget, "--json"]);
    let report = report.exits(4).json();
    assert_eq!(report["status"], "waiting", "{report}");
    assert_eq!(server.arrived().len(), 1, "only the plan was asked for");
    assert!(Repo::of(&world).branches().is_empty());
    let report = world.run(&["resume", "last", "--budget", "50", "--json"]);
    let report = report.exits(0).json();
    assert_eq!(Repo::of(&world).branches().len(), 1);
    let jobs = report["plan"]["jobs"].as_object().unwrap();
    let failed = jobs.values().filter(|job| job["status"] == "failed");
    assert_eq!(failed.count(), 0, "{report}");
    assert_eq!(server.unused(), 0);
}
