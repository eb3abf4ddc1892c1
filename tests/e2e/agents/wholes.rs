//! What becomes of the whole: parts are delivered as parts, each task has its commit, and a model that
//! did not write it says what it doubts.

use serde_json::json;

use super::{
    SEVEN, TASK, asked, builds, module, own, plan, project, reviews, run, scripted, status, writes,
};
use crate::support::{LulaEnv, Models, Repo, does, git};

#[test]
fn what_came_together_is_delivered_as_a_part_where_one_task_failed() {
    let world = LulaEnv::new();
    project(&world);
    let gives_up = does(
        &own("alpha"),
        &[("submit", json!({"summary": "I cannot: it needs cli.py"}))],
    );
    let mut gamma = module("gamma", &["alpha"]);
    gamma["goal"] = json!("do the gamma thing\n\nAs alpha does it.");
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[]), gamma]),
        gives_up,
        builds("beta"),
        // The planner lets the failure stand, knowing what the agent said.
        plan("I cannot: it needs cli.py", &[]),
    ]);
    // What the whole has to do is not asked of a part.
    let more = ["--max-loops", "0", "--accept", "test -f gamma.py"];
    let report = run(&world, &server, &more).exits(5).json();
    assert_eq!(status(&report, "alpha"), "failed");
    assert_eq!(status(&report, "beta"), "integrated");
    assert_eq!(status(&report, "gamma"), "skipped");
    let missing = report["missing"].as_array().unwrap();
    let names: Vec<&str> = missing
        .iter()
        .map(|one| one["task"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["alpha", "gamma"]);
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.starts_with("a part: 1 of 3 tasks"), "{summary}");
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    let files = git(&world.work(), &["ls-tree", "-r", "--name-only", branch]);
    assert!(files.contains("beta.py") && !files.contains("alpha.py"));
    let message = git(&world.work(), &["log", "-1", "--format=%B", branch]);
    assert!(message.contains("Lula-Partial: alpha: "), "{message}");
    assert!(
        message.contains("Lula-Partial: gamma: it needs alpha"),
        "{message}"
    );
    // `lula resume` says what is missing and how to go on.
    let again = world.run(&["resume", "last"]).exits(5);
    let again = again.says("missing: alpha: do the alpha thing");
    let hint = format!("git switch {branch} && lula run 'do the alpha thing; do the gamma thing'");
    again.says(&hint);
    let shown = world.run(&["show", "last"]).exits(0).stdout;
    assert!(
        shown.contains("partial") && shown.contains("missing"),
        "{shown}"
    );
    world.run(&["replay", "last", "--verify"]).exits(0);
    assert_eq!(server.unused(), 0);
}

/// Two tasks, the second after the first.
fn two() -> lula_models::mock::MockModelServer {
    let says = |id: &str| {
        let submit = (
            "submit",
            json!({"summary": format!("It has a value for {id}.")}),
        );
        does(&own(id), &[writes(&format!("{id}.py"), SEVEN), submit])
    };
    let mut alpha = module("alpha", &[]);
    alpha["interfaces"] = json!("alpha.value() -> int");
    scripted(vec![
        plan(TASK, &[alpha, module("beta", &["alpha"])]),
        says("alpha"),
        says("beta"),
    ])
}

#[test]
fn each_task_has_a_commit_that_is_worth_reading() {
    let world = LulaEnv::new();
    project(&world);
    let server = two();
    let report = run(&world, &server, &[]).exits(0).json();
    let branch = report["delivered"]["branch"].as_str().unwrap();
    let log = |format: &str| {
        let range = format!("HEAD..{branch}");
        git(
            &world.work(),
            &["log", "--reverse", &format!("--format={format}"), &range],
        )
    };
    assert_eq!(log("%s"), "Do the alpha thing\nDo the beta thing");
    assert_eq!(log("%p").lines().count(), 2, "one after the other");
    let bodies = log("%b");
    assert!(bodies.contains("It has a value for alpha."), "{bodies}");
    assert!(bodies.contains("Lula-Task: beta"), "{bodies}");
    let tip = git(&world.work(), &["log", "-1", "--format=%B", branch]);
    assert!(
        tip.contains("Lula-Verdict: pass") && tip.contains("Lula-Audit: "),
        "{tip}"
    );
    // The second agent knew the whole: the task, its sibling, what was agreed on and what is done.
    let words = asked(&server);
    for part in [
        "<whole>\\nGrow the project\\n</whole>",
        "- alpha (merged) writes alpha.py: do the alpha thing",
        "alpha: alpha.value() -> int",
        "  alpha.py +2 -0\\n  | def value():",
        "- beta (pending) writes beta.py: do the beta thing",
    ] {
        assert!(words.contains(part), "{part}:\n{words}");
    }
    world.run(&["undo", "last"]).exits(0);
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn one_commit_for_all_is_a_choice() {
    let world = LulaEnv::new();
    project(&world);
    let report = run(&world, &two(), &["--squash"]).exits(0).json();
    let range = format!("HEAD..{}", report["delivered"]["branch"].as_str().unwrap());
    let log = git(&world.work(), &["log", "--format=%s", &range]);
    assert_eq!(log, TASK);
}

#[test]
fn what_the_review_of_the_whole_doubts_is_shown_and_changes_no_verdict() {
    let world = LulaEnv::new();
    project(&world);
    let turns = |doubts: &[&str]| {
        vec![
            plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
            builds("alpha"),
            builds("beta"),
            reviews(doubts),
        ]
    };
    let server = Models::scripted(turns(&["the documentation is missing"]));
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    let review = &report["review"];
    assert_eq!(review["doubts"], json!(["the documentation is missing"]));
    assert_eq!(review["wrote_part"], true, "there is only one model");
    let shown = world.run(&["show", "last"]).exits(0).stdout;
    assert!(shown.contains("the documentation is missing"), "{shown}");
    assert!(shown.contains("which wrote a part of it"), "{shown}");
    world
        .run(&["resume", "last"])
        .exits(0)
        .says("doubt: the documentation is missing");
    world.run(&["replay", "last", "--verify"]).exits(0);
}
