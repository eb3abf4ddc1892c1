//! What git ignores is not reviewed: build output of a command in a sandbox is left aside.

use std::process::Command;

use crate::support::LulaEnv;

/// A repository that ignores `target` and logs, and tracks one log all the same.
fn repository() -> LulaEnv {
    let world = LulaEnv::new();
    std::fs::write(world.work().join(".gitignore"), "/target\n*.log\n").unwrap();
    std::fs::write(world.work().join("kept.log"), "one\n").unwrap();
    for arguments in [
        &["init", "-q"][..],
        &["add", "-f", "."],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "first",
        ],
    ] {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(world.work())
            .env("HOME", world.home())
            .status()
            .unwrap();
        assert!(done.success());
    }
    world
}

const BUILDS: &str = "mkdir -p target/deps src/__pycache__; touch target/deps/a target/b src/__pycache__/x.pyc; \
                      echo two >> kept.log; echo x > new.log; echo x > src/new.py";

#[test]
fn ignored_files_are_not_held_and_tracked_ones_are() {
    let world = repository();
    let ran = world.run(&["exec", "--", "sh", "-c", BUILDS]).exits(0);
    let ran = ran
        .says("3 changes wait for your review")
        .says("4 ignored files left aside: lula diff --all");
    assert!(!ran.stderr.contains("target"), "{}", ran.stderr);

    let document = world.run(&["diff", "--json"]).exits(0).json();
    let changes = document["changes"].as_array().unwrap().iter();
    let paths: Vec<_> = changes
        .map(|change| change["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["kept.log", "src", "src/new.py"]);
    assert_eq!(document["left_aside"], 4);
    let digest = document["digest"].as_str().unwrap();
    world
        .run(&["diff", "--stat"])
        .exits(0)
        .says("4 ignored files left aside");
    world
        .run(&["diff", "--stat", "--all"])
        .exits(0)
        .says("target/deps/a");
    // Who names a path means it.
    world
        .run(&["diff", "--stat", "new.log"])
        .exits(0)
        .says("new.log");

    world
        .run(&["commit", "--digest", digest])
        .exits(0)
        .says("committed 3 changes")
        .says("4 ignored files left aside");
    assert!(world.work().join("src/new.py").exists());
    for name in ["target", "new.log", "src/__pycache__"] {
        assert!(!world.work().join(name).exists(), "{name}");
    }
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed[0]["state"], "committed");
}

#[test]
fn they_are_taken_where_a_person_asks_for_them() {
    let world = repository();
    world.run(&["exec", "--", "sh", "-c", BUILDS]).exits(0);
    world.run(&["commit", "--path", "new.log"]).exits(0);
    assert!(world.work().join("new.log").exists());
    assert!(!world.work().join("target").exists());
    world.run(&["commit", "--all"]).exits(0);
    assert!(world.work().join("target/deps/a").exists());
}

#[test]
fn a_command_that_leaves_nothing_else_leaves_nothing() {
    let world = repository();
    world
        .run(&[
            "exec",
            "--",
            "sh",
            "-c",
            "mkdir target; touch target/a a.log",
        ])
        .exits(0)
        .says("2 ignored files left aside and not kept");
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed, serde_json::json!([]));
    assert!(!world.work().join("target").exists());
}

#[test]
fn what_a_command_writes_into_gitignore_hides_nothing() {
    let world = repository();
    world
        .run(&[
            "exec",
            "--",
            "sh",
            "-c",
            "echo '*' > .gitignore; echo x > evil.sh",
        ])
        .exits(0)
        .says("2 changes wait");
}

#[test]
fn without_a_repository_only_caches_of_python_are_left_aside() {
    let world = LulaEnv::new();
    std::fs::write(world.work().join(".gitignore"), "*.log\n").unwrap();
    let script = "mkdir __pycache__; touch __pycache__/a.pyc; touch x.log";
    world
        .run(&["exec", "--", "sh", "-c", script])
        .exits(0)
        .says("1 change waits")
        .says("1 ignored file left aside");
}
