//! `lula exec` holds changes back; `diff`, `commit`, `discard`, `undo` and `redo` decide about them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{LulaEnv, Ran, listing};

fn git(world: &LulaEnv, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(world.work())
        .env("HOME", world.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn shell(world: &LulaEnv, script: &str) -> Ran {
    world.run(&["exec", "--", "sh", "-c", script]).exits(0)
}

fn read(world: &LulaEnv, name: &str) -> String {
    std::fs::read_to_string(world.work().join(name)).unwrap()
}

#[test]
fn changes_wait_until_they_are_committed() {
    let world = LulaEnv::new();
    std::fs::write(world.work().join("a.txt"), "one\n").unwrap();
    let before = listing(&world.work());
    let ran = shell(
        &world,
        "echo two >> a.txt; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
    );
    assert!(
        ran.stderr.contains("4 changes wait for your review"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("continuous integration"),
        "{}",
        ran.stderr
    );
    assert_eq!(listing(&world.work()), before);

    let shown = world.run(&["diff", "a.txt"]).exits(0);
    assert_eq!(
        shown.stdout,
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n"
    );
    let document = world.run(&["diff", "--json"]).exits(0).json();
    assert_eq!(document["backend"]["kind"], "overlay");
    assert_eq!(document["changes"].as_array().unwrap().len(), 4);
    let digest = document["digest"].as_str().unwrap();

    world
        .run(&["commit", "--digest", digest])
        .exits(0)
        .says("committed 4 changes");
    assert_eq!(read(&world, "a.txt"), "one\ntwo\n");
    assert_eq!(read(&world, ".github/workflows/ci.yml"), "x\n");
    world.run(&["undo"]).exits(0).says("took back 4 changes");
    assert_eq!(listing(&world.work()), before);
    world.run(&["redo"]).exits(0);
    assert_eq!(read(&world, "a.txt"), "one\ntwo\n");
}

#[test]
fn a_command_that_changes_nothing_leaves_nothing() {
    let world = LulaEnv::new();
    let ran = shell(&world, "ls; touch gone; rm gone");
    assert_eq!(ran.stderr, "");
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed, serde_json::json!([]));
    world.run(&["diff"]).exits(2).says("error[L0402]");
    world
        .run(&["undo"])
        .exits(2)
        .says("there is nothing to undo");
}

#[test]
fn a_refused_command_leaves_nothing_either() {
    let world = LulaEnv::new();
    world.run(&["exec", "--", "no-such-program"]).exits(127);
    world
        .run(&["exec", "--tier", "microvm", "--", "true"])
        .exits(125);
    assert_eq!(
        world.run(&["workspaces", "--json"]).json(),
        serde_json::json!([])
    );
}

#[test]
fn a_part_is_taken_and_the_rest_discarded_and_brought_back() {
    let world = LulaEnv::new();
    shell(&world, "mkdir src; echo a > src/a; echo b > b");
    let inner = world.work().join("src");
    world.run(&["commit", "--path", "src"]).exits(0);
    assert!(inner.join("a").exists() && !world.work().join("b").exists());
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed[0]["state"], "pending");
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    world
        .run(&["discard"])
        .exits(0)
        .says("your files are as they were");
    world.run(&["commit"]).exits(2);
    world.run(&["commit", &id]).exits(2).says("was discarded");
    world
        .run(&["undo", &id[..20]])
        .exits(0)
        .says("waits for a decision again");
    world.run(&["commit", &id[..20]]).exits(0);
    assert_eq!(read(&world, "b"), "b\n");
    world.run(&["commit", "ws_0"]).exits(2);
}

#[test]
fn what_the_user_changed_meanwhile_is_never_overwritten() {
    let world = LulaEnv::new();
    std::fs::write(world.work().join("a.txt"), "one\n").unwrap();
    std::fs::write(world.work().join("b.txt"), "one\n").unwrap();
    shell(&world, "echo theirs > a.txt; echo theirs > b.txt");
    std::fs::write(world.work().join("a.txt"), "mine\n").unwrap();
    let before = listing(&world.work());
    world.run(&["diff", "--stat"]).exits(0).says("conflict");
    world.run(&["commit"]).exits(1).says("error[L0403]");
    assert_eq!(listing(&world.work()), before);
    world.run(&["commit", "--path", "b.txt"]).exits(0);
    assert_eq!(
        (read(&world, "a.txt"), read(&world, "b.txt")),
        ("mine\n".into(), "theirs\n".into())
    );
    std::fs::write(world.work().join("b.txt"), "went on\n").unwrap();
    world.run(&["undo"]).exits(1).says("error[L0403]");
    assert_eq!(read(&world, "b.txt"), "went on\n");
}

#[test]
fn git_internals_are_held_back_until_allowed() {
    let world = LulaEnv::new();
    git(&world, &["init", "-q", "."]);
    shell(
        &world,
        "echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config core.fsmonitor ./evil",
    );
    world.run(&["diff", "--stat"]).exits(0).says("git hook");
    world.run(&["commit"]).exits(3).says("error[L0405]");
    assert!(!world.work().join(".git/hooks/pre-commit").exists());
    assert!(!read(&world, ".git/config").contains("fsmonitor"));
    world.run(&["commit", "--allow-git"]).exits(0);
    assert!(world.work().join(".git/hooks/pre-commit").exists());
}

/// Everything git knows about a repository and its working tree.
fn git_state(world: &LulaEnv) -> (String, Vec<u8>, String, String) {
    (
        git(
            world,
            &["status", "--porcelain=v2", "--branch", "--ignored"],
        ),
        std::fs::read(world.work().join(".git/index")).unwrap(),
        git(world, &["for-each-ref"]),
        git(world, &["stash", "list"]),
    )
}

#[test]
fn uncommitted_staged_stashed_and_untracked_work_survives_everything() {
    let world = LulaEnv::new();
    let write = |name: &str, text: &str| std::fs::write(world.work().join(name), text).unwrap();
    git(&world, &["init", "-q", "-b", "main", "."]);
    for name in ["tracked", "staged", "stashed", "kept"] {
        write(name, "one\n");
    }
    write(".gitignore", "ignored\n");
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-qm", "one"]);
    write("stashed", "stash me\n");
    git(&world, &["stash", "-q"]);
    write("staged", "two\n");
    git(&world, &["add", "staged"]);
    write("tracked", "not staged\n");
    write("untracked", "mine\n");
    write("ignored", "mine too\n");
    let (state, files) = (git_state(&world), listing(&world.work()));

    let hostile = "git reset -q --hard; git clean -qfdx; git stash drop -q; git commit -q --allow-empty -m evil; echo x > new";
    shell(&world, hostile);
    assert_eq!(
        (git_state(&world), listing(&world.work())),
        (state.clone(), files.clone())
    );
    world.run(&["discard", "--now"]).exits(0);
    assert_eq!(
        (git_state(&world), listing(&world.work())),
        (state.clone(), files.clone())
    );

    shell(&world, hostile);
    world.run(&["commit"]).exits(0).says("held back: .git");
    assert!(!world.work().join("untracked").exists());
    world.run(&["undo"]).exits(0);
    assert_eq!((git_state(&world), listing(&world.work())), (state, files));
}

#[test]
fn a_patch_is_one_that_git_applies() {
    let world = LulaEnv::new();
    git(&world, &["init", "-q", "."]);
    std::fs::write(world.work().join("a b"), "one\ntwo").unwrap();
    std::fs::write(world.work().join("gone"), "x\n").unwrap();
    shell(
        &world,
        "printf 'one\\n2\\n' > 'a b'; rm gone; mkdir d; printf 'new' > d/new; chmod +x d/new; ln -s d link; printf t > \"$(printf 'tab\\there')\"",
    );
    let patch = world.run(&["diff", "-q"]).exits(0).stdout;
    let mut apply = Command::new("git")
        .args(["apply", "-"])
        .current_dir(world.work())
        .env("HOME", world.home())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut apply.stdin.take().unwrap(), patch.as_bytes()).unwrap();
    assert!(apply.wait().unwrap().success(), "{patch}");
    assert_eq!(read(&world, "a b"), "one\n2\n");
    assert_eq!(read(&world, "d/new"), "new");
    assert_eq!(
        std::fs::read_link(world.work().join("link")).unwrap(),
        Path::new("d")
    );
    assert!(!world.work().join("gone").exists());
    assert_eq!(read(&world, "tab\there"), "t");
}

#[test]
fn tiers_without_an_overlay_work_on_a_copy_and_say_so() {
    let world = LulaEnv::new();
    std::fs::write(world.work().join("a.txt"), "one\n").unwrap();
    std::fs::create_dir(world.work().join("sub")).unwrap();
    git(&world, &["init", "-q", "."]);
    let mut command = world.command(&[
        "exec",
        "--tier",
        "landlock",
        "--",
        "sh",
        "-c",
        "echo two > ../a.txt",
    ]);
    command.current_dir(world.work().join("sub"));
    let ran = Ran::from(command.output().unwrap()).exits(0);
    assert!(
        ran.stderr.contains("in a copy because the tier `landlock`"),
        "{}",
        ran.stderr
    );
    assert_eq!(read(&world, "a.txt"), "one\n");
    world.run(&["commit"]).exits(0);
    assert_eq!(read(&world, "a.txt"), "two\n");
}

#[test]
fn a_document_tells_what_waits() {
    let world = LulaEnv::new();
    let document = world
        .run(&["exec", "--json", "--", "sh", "-c", "echo x > new"])
        .exits(0)
        .json();
    assert_eq!(document["held"]["changes"][0]["path"], "new");
    assert_eq!(document["receipt"]["workspace"], "overlay");
    let id = document["held"]["workspace"].as_str().unwrap();
    let committed = world.run(&["commit", id, "--json"]).exits(0).json();
    assert_eq!(committed["committed"], serde_json::json!(["new"]));
}

#[test]
fn waiting_changes_are_never_removed_to_make_room() {
    let world = LulaEnv::new();
    let big = "head -c 3000000 /dev/urandom > big";
    shell(&world, big);
    let most = ["--workspace-max-bytes", "2MiB"];
    let run = |arguments: &[&str]| world.run(&[&most[..], arguments].concat());
    run(&["exec", "--", "sh", "-c", big])
        .exits(6)
        .says("error[L0406]");
    run(&["commit"]).exits(0);
    // Decided, it makes room.
    run(&["exec", "--", "sh", "-c", "echo x > small"]).exits(0);
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn work_goes_on_where_changes_wait() {
    let world = LulaEnv::new();
    shell(&world, "echo one > a");
    let ran = world
        .run(&[
            "exec",
            "--on",
            "last",
            "--",
            "sh",
            "-c",
            "cat a; echo two >> a",
        ])
        .exits(0);
    assert_eq!(ran.stdout, "one\n");
    let listed = world.run(&["workspaces", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    world.run(&["commit"]).exits(0);
    assert_eq!(read(&world, "a"), "one\ntwo\n");
    let id = listed[0]["id"].as_str().unwrap();
    world
        .run(&["exec", "--on", id, "--", "sh", "-c", "echo three >> a"])
        .exits(0);
    world.run(&["commit", id]).exits(0);
    assert_eq!(read(&world, "a"), "one\ntwo\nthree\n");
    world.run(&["undo"]).exits(0);
    world.run(&["undo"]).exits(0);
    assert!(!world.work().join("a").exists());
    world
        .run(&["exec", "--on", "last", "--write", "direct", "--", "true"])
        .exits(2);
}

#[test]
fn a_secret_is_pointed_out_and_not_committed_unless_allowed() {
    let world = LulaEnv::new();
    let key = "AKIAIOSFODNN7REALKEY";
    let ran = shell(
        &world,
        &format!("echo fine > a.txt; echo 'aws_key = \"{key}\"' > settings.py"),
    );
    assert!(ran.stderr.contains("adds a secret"), "{}", ran.stderr);
    let before = listing(&world.work());
    let refused = world.run(&["commit"]).exits(3);
    assert!(refused.stderr.contains("settings.py"), "{}", refused.stderr);
    assert_eq!(listing(&world.work()), before);

    world.run(&["commit", "--path", "a.txt"]).exits(0);
    assert_eq!(read(&world, "a.txt"), "fine\n");
    world.run(&["commit", "--allow-secrets"]).exits(0);
    assert!(read(&world, "settings.py").contains(key));
}
