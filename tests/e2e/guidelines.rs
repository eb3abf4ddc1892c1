//! `lula guidelines`: what is caught, how a run is rated, and when a person is asked

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Repo};

fn labels(world: &LulaEnv) -> Value {
    let listed = world.run(&["guidelines", "list", "--json"]).exits(0);
    listed.json()["labels"].clone()
}

#[test]
fn a_force_push_is_caught_however_it_is_spelled_and_a_text_is_not() {
    let world = LulaEnv::new();
    let explain = |words: &[&str]| {
        let arguments = [&["guidelines", "explain", "--json", "--"][..], words].concat();
        world.run(&arguments)
    };
    for words in [
        &["git", "push", "-f"][..],
        &["git", "-C", "x", "push", "--forc"],
        &["git", "-c", "alias.p=push -f", "p"],
        &["sh", "-c", "env A=1 git push origin +main"],
    ] {
        assert_eq!(
            explain(words).exits(1).json()["rule"],
            "git.force-push",
            "{words:?}"
        );
    }
    explain(&["git", "commit", "-m", "explain git push --force"]).exits(0);
    explain(&["grep", "-rn", "git push -f", "docs"]).exits(0);
    let list = world.run(&["guidelines", "list"]).exits(0).stdout;
    assert!(
        list.contains("git.force-push") && list.contains("no-disabled-tests"),
        "{list}"
    );
    world
        .run(&["guidelines", "test"])
        .exits(0)
        .says("every example of built-in holds");
}

#[test]
fn a_run_is_rated_and_what_people_do_with_it_is_learned() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    // No change has been judged yet, so the operator is asked.
    let ran = world.run(&["run", "--json", "--task", FIX, "--approve", "unsure"]);
    let report = ran.exits(3).json();
    let run = report["run"].as_str().unwrap();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(report["confidence"]["labels"], 0);
    assert!(
        report["confidence"]["permille"].as_u64() > Some(500),
        "{report}"
    );
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("too few changes were judged"),
        "{report}"
    );
    assert!(Repo::of(&world).branches().is_empty());
    // A number that nothing calibrates is told where it is asked for, and nowhere else.
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(!shown.contains("confidence"), "{shown}");
    let explained = world.run(&["guidelines", "explain", run]).exits(0).stdout;
    assert!(
        explained.contains("uncalibrated: 0 of 50 labels"),
        "{explained}"
    );
    assert!(explained.contains("needs-the-change"), "{explained}");

    world.run(&["approve", run, "--yes"]).exits(0);
    world.run(&["resume", run]).exits(0);
    world.run(&["replay", run, "--verify"]).exits(0);
    let known = labels(&world);
    assert_eq!(
        (&known["known"], &known["approved"]),
        (&json!(1), &json!(1)),
        "{known}"
    );
    assert_eq!(known["calibrated"], false);
    // Taken back, it was not good after all.
    world.run(&["undo", run]).exits(0);
    let known = labels(&world);
    assert_eq!(
        (&known["approved"], &known["undone"]),
        (&json!(0), &json!(1)),
        "{known}"
    );

    // The next run knows of it.
    let next = world.run(&["run", "--json", "--task", FIX]).exits(0).json();
    assert_eq!(next["confidence"]["labels"], 1, "{next}");
}

#[test]
fn a_required_guideline_that_is_broken_asks_and_a_judge_is_not_the_author() {
    let world = LulaEnv::new();
    let own = "require = [\"no-debug-output\"]\n";
    Repo::buggy_with(&world, &[(".lula-guidelines.toml", own)]);
    let noisy = json!({"path": "items.py", "search": "    return items[len(items)]",
        "replace": "    print(items)\n    return items[len(items) - 1]"});
    let script = ModelScript::default()
        .then_call("edit_file", noisy)
        .then_call("submit", json!({"summary": "done"}));
    let author = MockModelServer::start(script).unwrap();
    let verdict = json!({"ratings": [
        {"id": "does-the-task", "score": 2, "why": "yes"},
        {"id": "no-side-effects", "score": -2, "why": "it prints"},
    ]});
    let judge = MockModelServer::start(ModelScript::say(verdict.to_string())).unwrap();
    let named = Models::weak(&judge);
    let author_name = Models::strong(&author);
    let ran = world.run(&[
        "run",
        "--json",
        "--task",
        FIX,
        "--coder",
        "model",
        "--model",
        &author_name,
        "--judge",
        &author_name,
        "--judge",
        &named,
    ]);
    let report = ran.exits(3).json();
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("no-debug-output"),
        "{report}"
    );
    assert_eq!(report["verdict"]["verdict"], "pass", "{report}");
    let scores: Vec<&Value> = report["ratings"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rating| rating["scores"].as_array().unwrap())
        .collect();
    let by = |name: &str| scores.iter().filter(|one| one["by"] == name).count();
    assert_eq!(by(&author_name), 0, "nobody judges their own change");
    if report["confidence"]["second_look"] == true {
        assert!(by(&named) > 0, "{report}");
    }
    assert!(Repo::of(&world).branches().is_empty());
    let run = report["run"].as_str().unwrap();
    world.run(&["reject", run, "--yes"]).exits(0);
    world.run(&["resume", run]).exits(1);
    assert_eq!(labels(&world)["rejected"], 1);
}

#[test]
fn a_repository_cannot_loosen_and_a_wrong_file_begins_nothing() {
    let world = LulaEnv::new();
    Repo::buggy_with(
        &world,
        &[(".lula-guidelines.toml", "off = [\"few-files\"]\n")],
    );
    let said = world.run(&["run", "--task", FIX]).exits(2).stderr;
    assert!(said.contains("cannot switch guidelines off"), "{said}");
    assert!(Repo::of(&world).branches().is_empty());
}
