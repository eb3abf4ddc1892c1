//! Agents that want the plan changed they are part of.

use serde_json::{Value, json};

use super::{
    SEVEN, TASK, asked, builds, delivered, module, own, plan, project, run, scripted, status, task,
    told, writes,
};
use crate::support::{LulaEnv, Repo, acts, does};

#[test]
fn an_agent_proposes_another_plan_and_is_told_why_not_or_sees_it_done() {
    let world = LulaEnv::new();
    project(&world);
    let says = |when: &str, wish: Value| acts(when, &[("propose", wish)]);
    let halves = [module("first", &[]), module("second", &[])];
    // What takes its place may write what it may.
    let mut gamma = module("gamma", &["beta"]);
    gamma["files"] = json!(["gamma.py", "first.py", "second.py"]);
    let server = scripted(vec![
        plan(
            TASK,
            &[module("alpha", &[]), module("beta", &["alpha"]), gamma],
        ),
        // What it is told leads it on, from one proposal to the next.
        says("wait for each other", json!({"cancel": ["alpha"]})),
        says(
            "has begun",
            json!({"replace": {"task": "gamma", "with": halves}}),
        ),
        does("Accepted.", &[writes("alpha.py", SEVEN)]),
        builds("second"),
        builds("first"),
        builds("beta"),
        says(
            &own("alpha"),
            json!({"need": [{"task": "beta", "needs": "gamma"}]}),
        ),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    for job in ["alpha", "beta", "first", "second"] {
        assert_eq!(status(&report, job), "integrated", "{job}");
    }
    assert_eq!(status(&report, "gamma"), "superseded");
    assert_eq!(report["plan"]["version"], 2);
    let needs = &report["plan"]["jobs"]["first"]["job"]["deps"];
    assert_eq!(*needs, json!(["beta"]), "what it replaced needed that");
    let told = told(&world, "alpha wants another plan");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("Refused") && told[1].contains("Refused"));
    assert!(told[2].contains("Accepted"), "{told:?}");
    // It is told what changed, and not all of the plan again.
    let words = asked(&server);
    let answer = words.split("Accepted.").nth(1).unwrap();
    let answer = answer.split('"').next().unwrap();
    assert!(answer.contains("gamma is superseded now"), "{answer}");
    assert!(answer.contains("new: first (coder"), "{answer}");
    assert!(!answer.contains("beta (coder"), "{answer}");
    assert!(delivered(&world, "second.py").contains("return 7"));
    world.run(&["replay", "last", "--verify"]).exits(0);
    assert_eq!(server.unused(), 0);
}

#[test]
fn an_agent_hands_on_its_authority_and_makes_none() {
    let world = LulaEnv::new();
    project(&world);
    let says = |when: &str, wish: Value| acts(when, &[("propose", wish)]);
    // Another agent is to write what it may not write itself.
    let elsewhere = task("elsewhere", &[], &["rates.py"], &["false"], "coder");
    let anywhere = task("anywhere", &[], &[], &["false"], "coder");
    let instead = task("instead", &[], &["rates.py"], &["false"], "coder");
    let mut alpha = module("alpha", &[]);
    alpha["files"] = json!(["alpha.py", "more.py"]);
    let server = scripted(vec![
        plan(TASK, &[alpha, module("beta", &["alpha"])]),
        says("elsewhere would be given", json!({"add": [anywhere]})),
        says(
            "anywhere would be given",
            json!({"replace": {"task": "beta", "with": [instead]}}),
        ),
        says(
            "instead would be given",
            json!({"add": [module("more", &[])]}),
        ),
        does("Accepted.", &[writes("alpha.py", SEVEN)]),
        builds("more"),
        builds("beta"),
        says(&own("alpha"), json!({"add": [elsewhere]})),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    for job in ["alpha", "beta", "more"] {
        assert_eq!(status(&report, job), "integrated", "{job}");
    }
    let jobs = report["plan"]["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), 3, "{jobs:?}");
    let told = told(&world, "alpha wants another plan");
    assert_eq!(told.len(), 4, "{told:?}");
    for (said, why) in told.iter().zip([
        "elsewhere would be given the files rates.py, which alpha does not have",
        "anywhere would be given the files **, which alpha does not have",
        "instead would be given the files rates.py, which beta does not have",
        "Accepted",
    ]) {
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(Repo::of(&world).branches().len(), 1);
    assert_eq!(server.unused(), 0);
}
