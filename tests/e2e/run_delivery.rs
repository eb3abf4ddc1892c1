//! What becomes of a change: branch, checkout, patch, nothing

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{
    CODE, FIX, LulaEnv, MENDED, Models, Repo, edit, git, listing, logs, run_with,
};

fn mended() -> String {
    CODE.replace("    return items[len(items)]", MENDED)
}

#[test]
fn the_checkout_is_changed_where_it_is_as_committed_and_put_back() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let work = world.work();
    std::fs::write(work.join("notes.txt"), "mine\n").unwrap();
    std::fs::write(work.join("tests/__init__.py"), "# not committed\n").unwrap();
    let index = std::fs::read(work.join(".git/index")).unwrap();
    let server = Models::mending(1);
    let into = ["--deliver", "worktree"];
    let report = run_with(&world, &Models::strong(&server), FIX, &into)
        .exits(0)
        .json();
    let here = work.canonicalize().unwrap();
    assert_eq!(report["delivered"]["directory"], json!(here));
    let text = || std::fs::read_to_string(work.join("items.py")).unwrap();
    assert_eq!(text(), mended());
    assert_eq!(
        std::fs::read_to_string(work.join("tests/__init__.py")).unwrap(),
        "# not committed\n"
    );
    assert_eq!(std::fs::read(work.join(".git/index")).unwrap(), index);
    assert!(Repo::of(&world).branches().is_empty());
    assert_eq!(git(&work, &["status", "--porcelain"]).lines().count(), 3);
    // Where a person went on from there it is theirs.
    std::fs::write(work.join("items.py"), mended() + "\n# more\n").unwrap();
    world.run(&["undo", "last"]).exits(1);
    assert_eq!(text(), mended() + "\n# more\n");
    std::fs::write(work.join("items.py"), mended()).unwrap();
    world.run(&["undo", "last"]).exits(0).says("items.py");
    assert_eq!(text(), CODE);
}

#[test]
fn a_checkout_that_was_changed_there_stays_as_it_is() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let work = world.work();
    let own = CODE.replace("x * 2", "x + x");
    std::fs::write(work.join("items.py"), &own).unwrap();
    let server = Models::mending(1);
    run_with(
        &world,
        &Models::strong(&server),
        FIX,
        &["--deliver", "worktree"],
    )
    .exits(1)
    .says("items.py")
    .says("nothing in it was changed");
    assert_eq!(std::fs::read_to_string(work.join("items.py")).unwrap(), own);
    // The change is not lost.
    let diff = world.run(&["diff", "last"]).exits(0).stdout;
    std::fs::write(work.join("items.py"), CODE).unwrap();
    std::fs::write(world.home().join("fix.patch"), diff).unwrap();
    let patch = world.home().join("fix.patch");
    git(&work, &["apply", patch.to_str().unwrap()]);
    assert_eq!(
        std::fs::read_to_string(work.join("items.py")).unwrap(),
        mended()
    );
}

#[test]
fn nothing_is_delivered_where_nothing_is_wanted() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    let nowhere = ["--deliver", "none"];
    let report = run_with(&world, &Models::strong(&server), FIX, &nowhere)
        .exits(0)
        .json();
    assert_eq!(report["delivered"], json!(null));
    assert!(Repo::of(&world).branches().is_empty());
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
    world
        .run(&["undo", "last"])
        .exits(1)
        .says("delivered nothing");
}

#[test]
fn a_commit_names_the_record_it_came_from() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    let format = "--format=%(trailers:key=Lula-Audit,valueonly)";
    let named = git(&world.work(), &["log", "-1", format, branch]);
    let logs = logs(&world);
    let at = logs.iter().position(|line| line["hash"] == named.as_str());
    let at = at.unwrap_or_else(|| panic!("{named} is not in the log"));
    let verdict = logs
        .iter()
        .position(|line| line["name"] == "verifier" && line["event"] == "node_left");
    assert!(at >= verdict.unwrap(), "it covers the verdict");
}

#[test]
fn a_patch_can_be_had_instead_of_a_branch() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let ran = world
        .run(&["run", "-q", "--task", FIX, "--deliver", "patch"])
        .exits(0);
    assert!(Repo::of(&world).branches().is_empty());
    let file = world.work().join("fix.patch");
    std::fs::write(&file, ran.stdout).unwrap();
    git(&world.work(), &["apply", "fix.patch"]);
    let text = std::fs::read_to_string(world.work().join("items.py")).unwrap();
    assert!(text.contains(MENDED));
}

#[test]
fn a_delivery_can_be_taken_back_until_somebody_builds_on_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world.run(&["run", "--task", FIX]).exits(0);
    let branch = Repo::of(&world).branches()[0].clone();
    let work = world.work();
    git(&work, &["checkout", "--quiet", &branch]);
    world.run(&["undo", "last"]).exits(1).says("checked out");
    git(
        &work,
        &["commit", "--quiet", "--allow-empty", "--message=mine"],
    );
    git(&work, &["checkout", "--quiet", "main"]);
    world.run(&["undo", "last"]).exits(1).says("has moved");
    assert_eq!(Repo::of(&world).branches(), std::slice::from_ref(&branch));

    git(
        &work,
        &["branch", "--force", &branch, &format!("{branch}^")],
    );
    world.run(&["undo", "last"]).exits(0).says("brings it back");
    assert!(Repo::of(&world).branches().is_empty());
    let kept = git(
        &work,
        &["for-each-ref", "--format=%(refname)", "refs/lula/undone"],
    );
    git(&work, &["branch", &branch, &kept]);
    assert_eq!(Repo::of(&world).branches(), [branch]);
}

#[test]
fn what_commands_leave_behind_is_no_part_of_the_change() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mess = "git init -q . ; git init -q inner ; echo x > inner/x ; mkdir -p __pycache__ ; echo y > \
                __pycache__/y.pyc ; ln -s /etc/passwd link ; true";
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("run", json!({"command": mess}))
        .then_call("run", json!({"command": "rm link"}))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["files"], json!(["items.py"]));
    // The space is given back when the run is over.
    let checkouts = world.home().join(".local/state/lula/checkouts");
    let names: Vec<_> = listing(&checkouts)
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["origin.json"]);
    let layers = world.home().join(".local/state/lula/workspaces");
    assert!(listing(&layers).is_empty());
}
