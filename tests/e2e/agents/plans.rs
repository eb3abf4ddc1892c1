//! Plans: made, refused, carried out, and what becomes of tasks that fail.

use lula_models::script::ScriptTurn;
use serde_json::json;

use super::{
    TASK, asked, belongings, builds, module, own, plan, project, run, scripted, status, task, told,
    writes,
};
use crate::support::{LulaEnv, Models, Repo, acts, does, git};

#[test]
fn two_tasks_are_done_by_two_agents_and_come_together_on_one_branch() {
    let world = LulaEnv::new();
    project(&world);
    std::fs::write(world.work().join("notes.txt"), "mine\n").unwrap();
    let before = belongings(&world);
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "alpha"), "integrated");
    assert_eq!(status(&report, "beta"), "integrated");
    assert_eq!(belongings(&world), before);
    let made = Repo::of(&world).branches();
    assert_eq!(made.len(), 1, "{made:?}");
    for file in ["alpha.py", "beta.py"] {
        let spec = format!("{}:{file}", made[0]);
        assert!(git(&world.work(), &["show", &spec]).contains("return 7"));
    }
    let run = report["run"].as_str().unwrap();
    world.run(&["replay", run, "--verify"]).exits(0);
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(
        shown.contains("alpha") && shown.contains("merged"),
        "{shown}"
    );
    let trace = world.run(&["trace", run, "--json"]).exits(0).json();
    assert_eq!(trace["agents"].as_array().unwrap().len(), 2, "{trace}");
    let picture = world.work().with_file_name("lanes.svg");
    let file = picture.to_str().unwrap();
    world.run(&["trace", run, "--svg", file]).exits(0);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("<rect"));
    // Agents are no runs of their own in the list, and `last` is what a person began.
    let listed = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["run"], run);
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_plan_can_be_seen_before_anything_is_begun() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![plan(
        TASK,
        &[module("alpha", &[]), module("beta", &["alpha"])],
    )]);
    let model = Models::strong(&server);
    let line = [
        "run",
        "--task",
        TASK,
        "--model",
        &model,
        "--agents",
        "2",
        "--plan-only",
    ];
    let ran = world.run(&line).exits(0);
    assert!(ran.stdout.contains("after alpha"), "{}", ran.stdout);
    assert!(ran.stdout.contains("beta.py"), "{}", ran.stdout);
    assert!(Repo::of(&world).branches().is_empty());
    assert_eq!(server.arrived().len(), 1);
    world
        .run(&["run", "--task", TASK, "--plan-only"])
        .exits(2)
        .says("--agents");
    world
        .run(&["run", "--task", TASK, "--agents", "2"])
        .exits(2)
        .says("a plan needs a model");
}

#[test]
fn a_plan_that_goes_round_in_circles_is_refused_with_the_way_round() {
    let world = LulaEnv::new();
    project(&world);
    let server = scripted(vec![
        plan(
            TASK,
            &[module("alpha", &["beta"]), module("beta", &["alpha"])],
        ),
        plan(
            "wait for each other",
            &[module("alpha", &[]), module("beta", &["alpha"])],
        ),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "beta"), "integrated");
    let told = told(&world, "was refused");
    assert!(told[0].contains("wait for each other"), "{told:?}");
}

#[test]
fn a_reviewer_that_rejects_sends_the_plan_back() {
    let world = LulaEnv::new();
    project(&world);
    let review = |id: &str, needs: &[&str]| task(id, needs, &[], &[], "reviewer");
    let says = |id: &str, approve: bool, summary: &str| {
        let submit = json!({"approve": approve, "summary": summary});
        does(&own(id), &[("submit", submit)])
    };
    let better = json!({"replaces": "review", "tasks": [
        task("mend", &[], &["alpha.py"],
            &["python3 -c 'import alpha; assert alpha.value.__doc__'"], "coder"),
        review("again", &["mend"]),
    ]});
    let mend = does(
        &own("mend"),
        &[writes(
            "alpha.py",
            "def value():\n    \"\"\"Seven.\"\"\"\n    return 7\n",
        )],
    );
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), review("review", &["alpha"])]),
        builds("alpha"),
        says("review", false, "value has no documentation"),
        ScriptTurn {
            when: Some("value has no documentation".to_owned()),
            say: Some(better.to_string()),
            ..ScriptTurn::default()
        },
        mend,
        says("again", true, "good"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "review"), "superseded");
    assert_eq!(status(&report, "again"), "integrated");
    assert_eq!(report["plan"]["version"], 2);
    let spec = format!("{}:alpha.py", Repo::of(&world).branches()[0]);
    assert!(git(&world.work(), &["show", &spec]).contains("Seven."));
}

#[test]
fn fail_fast_begins_nothing_after_the_first_failure() {
    let world = LulaEnv::new();
    project(&world);
    // It says that it is done and has done nothing.
    let idle = || does(&own("alpha"), &[]);
    let server = scripted(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &[]),
                module("gamma", &["alpha"]),
            ],
        ),
        idle(),
    ]);
    let more = ["--agents", "1", "--fail-fast", "--max-loops", "0"];
    let report = run(&world, &server, &more).exits(1).json();
    assert_eq!(status(&report, "alpha"), "failed");
    assert_eq!(status(&report, "beta"), "skipped");
    assert_eq!(status(&report, "gamma"), "skipped");
    let why = &report["plan"]["jobs"]["beta"]["reason"]["why"];
    assert_eq!(why, "fail_fast");
    // No model was asked to mend the plan, and no agent began.
    assert_eq!(server.arrived().len(), 2);
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn a_plan_is_told_at_once_what_is_odd_about_it_and_has_its_way_the_second_time() {
    let world = LulaEnv::new();
    project(&world);
    let odd = task(
        "beta",
        &[],
        &["lib/**", "test_rates.py", "beta.py"],
        &["test -f rates.py"],
        "coder",
    );
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &["nobody"]), odd.clone()]),
        // One fault of the plan itself comes before what is only odd.
        plan(
            "there is no task nobody",
            &[module("alpha", &[]), odd.clone()],
        ),
        plan("no file matches lib/**", &[module("alpha", &[]), odd]),
        builds("alpha"),
        builds("beta"),
        plan("The task beta failed", &[]),
    ]);
    let report = run(&world, &server, &["--max-loops", "0"]).exits(5).json();
    let told = told(&world, "was refused");
    assert_eq!(told.concat().matches("was refused").count(), 2, "{told:?}");
    for part in [
        "no file matches lib/**",
        "there is no test_rates.py, but tests/test_rates.py",
        "\"test -f rates.py\" succeeds already",
    ] {
        assert!(
            asked(&server).contains(&part.replace('"', "\\\"")),
            "{part}: {told:?}"
        );
    }
    assert_eq!(status(&report, "alpha"), "integrated");
    // A command that shows nothing makes no task done.
    assert_eq!(status(&report, "beta"), "failed");
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_planner_looks_before_it_cuts() {
    let world = LulaEnv::new();
    project(&world);
    let tasks = json!({"replaces": "", "tasks": [module("alpha", &[]), module("beta", &[])]});
    let server = scripted(vec![
        acts(
            TASK,
            &[("search", json!({"pattern": "rate", "literal": true}))],
        ),
        acts("def rate():", &[("plan", tasks)]),
        builds("alpha"),
        builds("beta"),
    ]);
    run(&world, &server, &[]).exits(0);
    let words = asked(&server);
    assert!(words.contains("At most 3 agents work at once"), "{words}");
    assert!(words.contains("coder (writes)") && words.contains("reviewer (only looks)"));
    assert_eq!(server.unused(), 0);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_task_without_commands_is_judged_by_the_tests() {
    let world = LulaEnv::new();
    project(&world);
    let free = task("alpha", &[], &["alpha.py"], &[], "coder");
    let server = scripted(vec![
        plan(TASK, &[free, module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "alpha"), "integrated");
}
