//! Runs of several agents that are killed, put down or ended, and gone on with.

use serde_json::Value;

use super::{
    TASK, belongings, builds_after, line, module, plan, project, runs, scripted, status, told,
};
use crate::support::{
    LulaEnv, Models, Repo, always, begin, begin_heard, ended, interrupt, is_asleep, until,
};

/// Whether agents were begun.
fn are_awaited(logs: &[Value]) -> bool {
    let mut logs = logs.iter();
    logs.any(|line| line["event"] == "effect_intended" && line["name"] == "await_agent")
}

#[test]
fn agents_that_were_killed_with_their_run_go_on_where_they_were() {
    let world = LulaEnv::new();
    project(&world);
    let before = belongings(&world);
    // A question that the kill cut off is asked again.
    let slow = |id: &str| always(builds_after(id, &[runs("sleep 4")]));
    let server = scripted(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &[]),
                module("gamma", &["alpha"]),
            ],
        ),
        // What was integrated before is in the history that an agent is shown.
        slow("gamma"),
        slow("beta"),
        slow("alpha"),
    ]);
    let model = Models::strong(&server);
    let mut child = begin(&world, &line(&model, &[]));
    until(&world, are_awaited);
    child.kill().unwrap();
    child.wait().unwrap();
    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    for job in ["alpha", "beta", "gamma"] {
        assert_eq!(status(&report, job), "integrated");
    }
    assert_eq!(Repo::of(&world).branches().len(), 1);
    assert_eq!(belongings(&world), before);
    // One plan, one turn for each agent and one review: nothing was asked again but what the kill cut
    // off.
    assert!(server.arrived().len() <= 8, "{}", server.arrived().len());
}

#[test]
fn ctrl_c_puts_agents_down_and_resume_goes_on_with_all_of_them() {
    let world = LulaEnv::new();
    project(&world);
    let before = belongings(&world);
    let server = scripted(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &[]),
                module("gamma", &["alpha"]),
            ],
        ),
        builds_after("gamma", &[]),
        builds_after("alpha", &[runs("sleep 3.25")]),
        builds_after("beta", &[runs("sleep 3.25")]),
    ]);
    let model = Models::strong(&server);
    let child = begin_heard(&world, &line(&model, &[]));
    // Both agents are in the midst of what they do.
    until(&world, |logs| {
        are_awaited(logs) && server.arrived().len() == 3
    });
    interrupt(&child);
    let ran = ended(child).exits(5);
    ran.says("interrupted").says("lula resume run_");
    assert!(Repo::of(&world).branches().is_empty());
    // One agent alone is not gone on with: the run that leads it has to hear it.
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    let agent = shown["plan"]["jobs"]["alpha"]["run"].as_str().unwrap();
    world.run(&["resume", agent]).exits(2).says("part of run_");
    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    for job in ["alpha", "beta", "gamma"] {
        assert_eq!(status(&report, job), "integrated");
    }
    assert_eq!(Repo::of(&world).branches().len(), 1);
    assert_eq!(belongings(&world), before);
    assert_eq!(server.arrived().len(), 5, "nobody was asked twice");
    assert_eq!(told(&world, "alpha begins as").len(), 1);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn cancelling_a_run_ends_its_agents() {
    let world = LulaEnv::new();
    project(&world);
    let endless = |id: &str, seconds: u32| builds_after(id, &[runs(&format!("sleep {seconds}"))]);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        endless("alpha", 3611),
        endless("beta", 3612),
    ]);
    let model = Models::strong(&server);
    let mut child = begin(&world, &line(&model, &[]));
    until(&world, |_| is_asleep(3611) && is_asleep(3612));
    world.run(&["cancel", "last"]).exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!is_asleep(3611) && !is_asleep(3612));
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    for job in ["alpha", "beta"] {
        let run = shown["plan"]["jobs"][job]["run"].as_str().unwrap();
        let agent = world.run(&["show", run, "--json"]).exits(0).json();
        assert_eq!(agent["status"], "done", "{agent}");
        assert!(agent["summary"].as_str().unwrap().contains("cancelled"));
    }
    assert!(Repo::of(&world).branches().is_empty());
}
