//! What agents may write: strays are put back, files can be asked for, and two may share one.

use serde_json::json;

use super::{
    SEVEN, TASK, asked, builds, delivered, module, own, plan, project, project_with, run, runs,
    scripted, status, told, writes,
};
use crate::support::{LulaEnv, acts, after, does, logs};

#[test]
fn what_a_command_writes_outside_the_scope_is_put_back_and_told() {
    let world = LulaEnv::new();
    project(&world);
    let strays = "sed -i s/1/2/ rates.py; mkdir -p gen/deep; echo x > gen/deep/stray.txt; \
                  mv tests/test_rates.py tests/moved.py";
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        acts(&own("alpha"), &[runs(strays)]),
        acts("put back as they were", &[runs("ls; cat rates.py")]),
        does("return 1", &[writes("alpha.py", SEVEN)]),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "alpha"), "integrated");
    assert!(delivered(&world, "rates.py").contains("return 1"));
    let names = "gen/deep/stray.txt, rates.py, tests/moved.py, tests/test_rates.py]";
    assert!(asked(&server).contains(names), "{}", asked(&server));
    assert_eq!(report["files"], json!(["alpha.py", "beta.py"]));
    assert_eq!(server.unused(), 0);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn an_agent_that_needs_another_file_asks_for_it_and_gets_it_where_no_other_is_at_it() {
    let world = LulaEnv::new();
    project(&world);
    let wants = |file: &str| ("propose", json!({"want_files": [file]}));
    let three = "def rate():\n    return 3\n";
    let server = scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        // Not its own: refused at once, and asked for.
        acts(
            &own("alpha"),
            &[writes("rates.py", three), wants("beta.py")],
        ),
        acts("beta.py may be written by beta", &[wants("rates.py")]),
        does(
            "alpha may write [alpha.py, rates.py] now",
            &[writes("rates.py", three), writes("alpha.py", SEVEN)],
        ),
        after("beta.py may be written by beta", builds("beta")),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert!(delivered(&world, "rates.py").contains("return 3"));
    let scope = &report["plan"]["jobs"]["alpha"]["job"]["scope"];
    assert_eq!(*scope, json!(["alpha.py", "rates.py"]));
    assert!(asked(&server).contains("the agent said it would not write there"));
    assert_eq!(server.unused(), 0);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn two_tasks_that_name_the_same_file_are_worked_on_at_once() {
    let world = LulaEnv::new();
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    project_with(&world, &[("log.txt", lines)]);
    let shares = |id: &str| {
        let mut module = module(id, &[]);
        module["files"] = json!([format!("{id}.py"), "log.txt"]);
        module
    };
    let edits = |id: &str, line: u32| {
        let edit = runs(&format!("sed -i '{line}s/.*/{id}/' log.txt"));
        does(&own(id), &[edit, writes(&format!("{id}.py"), SEVEN)])
    };
    let server = scripted(vec![
        plan(TASK, &[shares("alpha"), shares("beta")]),
        edits("alpha", 1),
        edits("beta", 9),
    ]);
    run(&world, &server, &[]).exits(0);
    let log = delivered(&world, "log.txt");
    assert!(log.starts_with("alpha") && log.ends_with("beta"), "{log}");
    // Both had begun before either was merged.
    assert_eq!(told(&world, "begins as").len(), 1, "in one step");
    let first = logs(&world)
        .iter()
        .filter_map(|line| Some(line["text"].as_str()?.to_owned()))
        .find(|text| text.contains("begins as"))
        .unwrap();
    assert!(first.contains("alpha") && first.contains("beta"), "{first}");
}
