//! What a person says while agents work: it reaches those at work and those that come later.

use serde_json::json;

use super::{SEVEN, TASK, line, module, own, plan, project, runs, scripted, sent, writes};
use crate::support::{LulaEnv, Models, acts, begin, does, wait_until};

#[test]
fn a_note_reaches_agents_at_work_and_later_ones_or_those_of_one_task() {
    let world = LulaEnv::new();
    project(&world);
    let writing = |id: &str, more: &str| {
        let mut task = module(id, &[]);
        task["files"] = json!([format!("{id}.py"), more]);
        task
    };
    let server = scripted(vec![
        plan(
            TASK,
            &[
                writing("alpha", "rates.py"),
                module("beta", &["alpha"]),
                writing("gamma", "rates.*"),
            ],
        ),
        // There is time to say something.
        acts(&own("alpha"), &[runs("sleep 8")]),
        does("mind the gap", &[writes("alpha.py", SEVEN)]),
        does(&own("beta"), &[writes("beta.py", SEVEN)]),
        does(&own("gamma"), &[writes("gamma.py", SEVEN)]),
    ]);
    let model = Models::strong(&server);
    let mut child = begin(&world, &line(&model, &[]));
    let bodies = || -> Vec<String> {
        let arrived = server.arrived();
        let bodies = arrived.iter().map(|one| String::from_utf8_lossy(&one.body));
        bodies.map(std::borrow::Cow::into_owned).collect()
    };
    wait_until("alpha is at work", || {
        bodies().iter().any(|body| body.contains(&sent("alpha")))
    });
    world
        .run(&["steer", "last", "--task", "nobody", "x"])
        .exits(2)
        .says("alpha, beta, gamma");
    // Why the others do not work yet is shown.
    let waits = world.run(&["show", "last", "--json"]).exits(0).json();
    let reasons = json!({"beta": "waits for alpha",
        "gamma": "waits for alpha, which may write rates.* too"});
    assert_eq!(waits["waiting"], reasons);
    world
        .run(&["show", "last"])
        .exits(0)
        .says("waits for alpha");
    let heard = world.run(&["steer", "last", "mind the gap", "--json"]);
    let heard = heard.exits(0).json();
    assert_eq!(heard["agents"], json!(["alpha"]), "{heard}");
    world
        .run(&["steer", "last", "--task", "beta", "two spaces"])
        .exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let arrived = bodies();
    let of = |id: &str| {
        let own = arrived.iter().filter(|body| body.contains(&sent(id)));
        own.cloned().collect::<Vec<String>>()
    };
    let (alpha, beta) = (of("alpha"), of("beta"));
    assert!(alpha[1].contains("mind the gap"), "in its next turn");
    assert!(alpha.iter().all(|body| !body.contains("two spaces")));
    assert!(beta[0].contains("mind the gap") && beta[0].contains("two spaces"));
    assert!(!beta[0].contains("@beta"), "{}", beta[0]);
    let shown = world.run(&["show", "last"]).exits(0).stdout;
    assert!(shown.contains("mind the gap"), "{shown}");
    world.run(&["replay", "last", "--verify"]).exits(0);
    assert_eq!(server.unused(), 0);
    world
        .run(&["steer", "last", "too late"])
        .exits(1)
        .says("is over");
}
