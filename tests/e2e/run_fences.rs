//! Where a run has to stop or look twice: odd repositories, full and read-only disks, models that
//! only pretend

use std::process::Command;

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{
    CODE, FIX, LulaEnv, MENDED, Models, Ran, Repo, TESTS, git, listing, run_with,
};

#[test]
fn a_model_that_says_nothing_or_done_never_passes() {
    for words in [
        "",
        "done",
        "{\"status\": \"done\", \"tests\": \"all pass\"}",
    ] {
        for model in [Models::strong, Models::weak] {
            for more in [&[][..], &["--accept", "grep -q hello hello.txt"][..]] {
                let world = LulaEnv::new();
                Repo::buggy(&world);
                let mut script = ModelScript::default();
                for _ in 0..40 {
                    script = script.then_say(words);
                }
                let server = MockModelServer::start(script).unwrap();
                let flags = [more, &["--max-loops", "1"]].concat();
                let report = run_with(&world, &model(&server), FIX, &flags);
                assert_ne!(report.status, 0, "{words:?}: {}", report.stdout);
                let report = report.json();
                assert_ne!(report["verdict"]["verdict"], "pass");
                assert_eq!(report["delivered"], json!(null));
                assert!(Repo::of(&world).branches().is_empty());
            }
        }
    }
}

#[test]
fn a_model_that_submits_without_a_change_never_passes() {
    for task in [FIX, "make it faster"] {
        let world = LulaEnv::new();
        Repo::buggy(&world);
        let mut script = ModelScript::default();
        for _ in 0..10 {
            script = script.then_call("submit", json!({"summary": "all green"}));
        }
        let server = MockModelServer::start(script).unwrap();
        let report = run_with(
            &world,
            &Models::strong(&server),
            task,
            &["--max-loops", "1"],
        );
        assert_ne!(report.status, 0, "{}", report.stdout);
        assert!(Repo::of(&world).branches().is_empty());
    }
}

#[test]
fn work_that_was_not_committed_is_no_part_of_a_run_and_stays() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let work = world.work();
    // A person is in the middle of something that would break every test.
    std::fs::write(work.join("items.py"), "raise SystemExit\n").unwrap();
    std::fs::write(work.join("helper.py"), "x = 1\n").unwrap();
    std::fs::write(work.join("staged.py"), "y = 1\n").unwrap();
    git(&work, &["add", "staged.py"]);
    git(&work, &["stash", "push", "--quiet", "--", "staged.py"]);
    let before: Vec<_> = listing(&work)
        .into_iter()
        .filter(|(path, _)| !path.starts_with(work.join(".git")))
        .collect();
    let (status, stash) = (
        git(&work, &["status", "--porcelain"]),
        git(&work, &["stash", "list"]),
    );
    world
        .run(&["run", "--task", FIX])
        .exits(0)
        .says("not committed");
    let after: Vec<_> = listing(&work)
        .into_iter()
        .filter(|(path, _)| !path.starts_with(work.join(".git")))
        .collect();
    assert_eq!(after, before);
    assert_eq!(git(&work, &["status", "--porcelain"]), status);
    assert_eq!(git(&work, &["stash", "list"]), stash);
    let branch = &Repo::of(&world).branches()[0];
    let changed = git(&work, &["diff", "--name-only", "main", branch]);
    assert_eq!(changed, "items.py");
}

#[test]
fn a_folder_of_a_monorepo_is_worked_on_from_inside() {
    let world = LulaEnv::new();
    Repo::with(
        &world,
        &[
            ("services/shop/items.py", CODE),
            ("services/shop/tests/__init__.py", ""),
            ("services/shop/tests/test_items.py", TESTS),
            ("services/web/README", "something else\n"),
        ],
    );
    let folder = world.work().join("services/shop");
    let mut command = world.command(&["run", "--json", "--task", FIX]);
    let ran = Ran::from(command.current_dir(&folder).output().unwrap());
    let report = ran.exits(0).json();
    assert_eq!(report["files"], json!(["services/shop/items.py"]));
    let branch = &Repo::of(&world).branches()[0];
    let text = git(
        &world.work(),
        &["show", &format!("{branch}:services/shop/items.py")],
    );
    assert!(text.contains(MENDED), "{text}");
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

#[test]
fn a_folder_with_tests_of_its_own_is_judged_by_them() {
    let world = LulaEnv::new();
    Repo::with(
        &world,
        &[
            ("README", "many things\n"),
            ("tools/greet/Makefile", "test:\n\tgrep -q hello words.txt\n"),
            ("tools/greet/words.txt", "hullo\n"),
        ],
    );
    let edit = json!({"path": "tools/greet/words.txt", "search": "hullo", "replace": "hello"});
    let script = ModelScript::default()
        .then_call("edit_file", edit)
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let folder = world.work().join("tools/greet");
    let accept = ["--accept", "test -f words.txt"];
    let line = ["run", "--json", "--task", FIX, "--model", &model];
    let mut command = world.command(&[&line[..], &accept].concat());
    let ran = Ran::from(command.current_dir(&folder).output().unwrap());
    let report = ran.exits(0).json();
    assert_eq!(report["files"], json!(["tools/greet/words.txt"]));
}

/// Runs the binary where its state directory is a file system of its own.
fn with_state_on(world: &LulaEnv, options: &str, arguments: &[&str]) -> Ran {
    let state = world.home().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let script =
        format!("mount -t tmpfs -o {options} none \"$LULA_STATE_DIR\" && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    // Only root may mount; any other user is root of a namespace of their own.
    if !is_root() {
        command.arg("--map-root-user");
    }
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .arg(env!("CARGO_BIN_EXE_lula"))
        .args(arguments)
        .current_dir(world.work())
        .env_clear()
        .env("HOME", world.home())
        .env("LULA_STATE_DIR", &state)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(std::process::Stdio::null());
    Ran::from(command.output().unwrap())
}

#[test]
fn a_disk_that_is_full_or_read_only_ends_a_run_with_its_reason() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let before = listing(&world.work());
    // The model mends it every time: what stands in the way is the disk.
    let server = Models::mending(6);
    let model = Models::strong(&server);
    let line = ["run", "--task", FIX, "--model", &model, "--coder", "model"];
    with_state_on(&world, "size=64m", &line).exits(0);
    git(
        &world.work(),
        &["branch", "-D", &Repo::of(&world).branches()[0].clone()],
    );

    let ran = with_state_on(&world, "ro", &line);
    assert_eq!(ran.status, 6, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("Read-only file system"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("error[L"), "{}", ran.stderr);
    assert!(Repo::of(&world).branches().is_empty());

    // From a disk on which nothing fits to one on which almost everything does.
    for kilobytes in [4, 64, 160, 400] {
        let size = format!("size={kilobytes}k");
        let ran = with_state_on(&world, &size, &line);
        let said = format!("{size}: {}{}", ran.stdout, ran.stderr);
        assert!(!said.contains("panicked"), "{said}");
        if ran.status == 0 {
            // It fitted after all; then it is all there.
            git(
                &world.work(),
                &["branch", "-D", &Repo::of(&world).branches()[0].clone()],
            );
            continue;
        }
        assert!([1, 6].contains(&ran.status), "{said}");
        assert!(said.contains("full") || said.contains("No space"), "{said}");
        // A full disk is not an internal error.
        assert!(!said.contains("L0000"), "{said}");
        assert!(Repo::of(&world).branches().is_empty(), "{said}");
    }
    let outside = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        let git = world.work().join(".git");
        let mut files = files;
        files.retain(|(path, _)| !path.starts_with(&git));
        files
    };
    assert_eq!(outside(listing(&world.work())), outside(before));
}
