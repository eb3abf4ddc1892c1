//! What rules ask about in a run waits for people; what they forbid is told to the model.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Repo, edit, git, run_with};

/// Rules that ask, and one that forbids.
const RULES: &str = r#"
[[rule]]
id = "test.guarded"
paths = ["guarded/**"]
decision = "ask"
reason = "it is guarded"

[[rule]]
id = "test.never"
paths = ["never/**"]
decision = "deny"
reason = "nobody writes there"

[[rule]]
id = "test.deploy"
match = ["deploy"]
decision = "ask"
reason = "it deploys"
"#;

/// Lets `--approve auto` answer what is asked about in a workspace.
const BEFOREHAND: &str = "[approval]\nbeforehand = \"tree\"\n";

fn rules(world: &LulaEnv) {
    write_rules(world, RULES);
}

fn write_rules(world: &LulaEnv, text: &str) {
    let path = world.home().join(".config/lula/rules.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The one question that waits.
fn question(world: &LulaEnv) -> String {
    let waiting = world.run(&["approvals", "--json"]).exits(0).json();
    let [one] = &waiting.as_array().unwrap()[..] else {
        panic!("{waiting}");
    };
    one["id"].as_str().unwrap().to_owned()
}

/// A model that writes a guarded file, mends the bug, and is done.
fn guarded() -> ModelScript {
    ModelScript::default()
        .then_call(
            "write_file",
            json!({"path": "guarded/a.txt", "content": "approved bytes\n"}),
        )
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}))
}

/// The question about what leaves the workspace; one that was asked before may wait beside it.
fn delivery(world: &LulaEnv) -> String {
    let waiting = world.run(&["approvals", "--json"]).exits(0).json();
    let questions = waiting.as_array().unwrap();
    let mut ids = questions.iter().map(|one| one["id"].as_str().unwrap());
    let asks = |id: &&str| {
        let diff = world.run(&["diff", id]).exits(0);
        diff.stdout.contains("items.py")
    };
    ids.rfind(asks).unwrap().to_owned()
}

#[test]
fn what_a_rule_asks_about_waits_over_restarts_and_happens_as_it_was_shown() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let before = Repo::of(&world).untouched();
    let server = MockModelServer::start(guarded()).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(3)
        .json();
    assert_eq!(report["status"], "waiting", "{report}");
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("it is guarded"),
        "{report}"
    );
    // Both processes are gone; the question is not, and nothing was asked of the model meanwhile.
    assert_eq!(server.arrived().len(), 1);
    let id = question(&world);
    world.run(&["diff", &id]).exits(0).says("+approved bytes");
    // Going on without an answer changes nothing.
    world.run(&["resume", "last"]).exits(3).says(&id);
    assert_eq!(question(&world), id, "the same question");
    assert_eq!(server.arrived().len(), 1);
    world.run(&["approve", &id, "--yes"]).exits(0);
    // The delivery of a guarded file is asked about as well: commands write without asking.
    world.run(&["resume", "last"]).exits(3);
    let delivery = question(&world);
    assert_ne!(delivery, id);
    assert!(Repo::of(&world).branches().is_empty());
    assert_eq!(Repo::of(&world).untouched(), before);
    world.run(&["approve", &delivery, "--yes"]).exits(0);
    world.run(&["resume", "last"]).exits(0);
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    let text = git(&world.work(), &["show", &format!("{branch}:guarded/a.txt")]);
    assert_eq!(text, "approved bytes");
    world.run(&["replay", "last", "--verify"]).exits(0);
    world.run(&["audit", "verify"]).exits(0);
}

#[test]
fn a_file_that_changed_meanwhile_makes_an_approval_void() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let server = MockModelServer::start(guarded()).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(3);
    let id = question(&world);
    world.run(&["approve", &id, "--yes"]).exits(0);
    // Another process puts another file there before it is done.
    let state = world.home().join(".local/state/lula/workspaces");
    let workspace = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap();
    let layer = workspace.path().join("layer/upper/guarded");
    std::fs::create_dir_all(&layer).unwrap();
    std::fs::write(layer.join("a.txt"), "another text\n").unwrap();
    world.run(&["resume", "last"]).exits(3);
    let other = question(&world);
    assert_ne!(other, id, "people are asked about what would happen now");
    world.run(&["diff", &other]).exits(0).says("-another text");
}

#[test]
fn what_people_reject_goes_back_to_planning_and_the_second_no_ends_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let write = json!({"path": "guarded/a.txt", "content": "x\n"});
    let script = ModelScript::default()
        .then_call("write_file", write.clone())
        .then_call("write_file", write);
    let server = MockModelServer::start(script).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(3);
    world.run(&["reject", &question(&world), "--yes"]).exits(0);
    world.run(&["resume", "last"]).exits(3);
    // The model was told, which plans while it works.
    let asked = String::from_utf8(server.arrived()[1].body.clone()).unwrap();
    assert!(asked.contains("the act was rejected"), "{asked}");
    world.run(&["reject", &question(&world), "--yes"]).exits(0);
    let report = world.run(&["resume", "last", "--json"]).exits(1).json();
    assert_eq!(report["attempts"][0]["class"], "approval_rejected");
    assert!(
        report["summary"]
            .as_str()
            .unwrap()
            .contains("refused twice"),
        "{report}"
    );
    assert!(Repo::of(&world).branches().is_empty());
}

#[test]
fn what_a_rule_forbids_is_told_to_the_model_which_may_go_on() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let script = ModelScript::default()
        .then_call(
            "write_file",
            json!({"path": "never/a.txt", "content": "x\n"}),
        )
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["files"], json!(["items.py"]));
    let second = String::from_utf8(server.arrived()[1].body.clone()).unwrap();
    assert!(second.contains("nobody writes there"), "{second}");
}

#[test]
fn a_command_that_a_rule_asks_about_runs_once_after_the_answer() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call(
            "run",
            json!({"command": "echo once >> count.txt; deploy || true"}),
        )
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(3);
    world.run(&["approve", &question(&world), "--yes"]).exits(0);
    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    assert_eq!(report["files"], json!(["count.txt", "items.py"]));
    let branch = report["delivered"]["branch"].as_str().unwrap();
    let text = git(&world.work(), &["show", &format!("{branch}:count.txt")]);
    assert_eq!(text, "once");
}

#[test]
fn agreeing_beforehand_answers_only_what_the_rules_file_leaves_to_it() {
    // The rules do not say so: they ask, whatever the command line says.
    let world = LulaEnv::new();
    Repo::buggy(&world);
    rules(&world);
    let server = MockModelServer::start(guarded()).unwrap();
    run_with(
        &world,
        &Models::strong(&server),
        FIX,
        &["--approve", "auto"],
    )
    .exits(3);
    assert_eq!(server.arrived().len(), 1);
    // Nor does it matter what they say where no person agreed.
    let world = LulaEnv::new();
    Repo::buggy(&world);
    write_rules(&world, &format!("{BEFOREHAND}{RULES}"));
    let server = MockModelServer::start(guarded()).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(3);
    assert_eq!(server.arrived().len(), 1);
    let auto = ["resume", "last", "--json", "--approve", "auto"];
    let report = world.run(&auto).exits(3).json();
    // The file was written and the run went on to the delivery, which leaves the workspace.
    assert_eq!(server.arrived().len(), 3, "{report}");
    assert_eq!(report["files"], json!(["guarded/a.txt", "items.py"]));
    assert!(Repo::of(&world).branches().is_empty());
    let shown = world.run(&["audit", "show", "--json"]).exits(0).json();
    let agreed = |entry: &&Value| entry["decision"]["verdict"] == "beforehand";
    let [one] = &shown
        .as_array()
        .unwrap()
        .iter()
        .filter(agreed)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{shown}");
    };
    assert_eq!(one["about"], "guarded/a.txt", "{one}");
    world.run(&["approve", &delivery(&world), "--yes"]).exits(0);
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn a_command_agreed_to_beforehand_runs_without_a_question() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    write_rules(&world, &format!("{BEFOREHAND}{RULES}"));
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_call(
            "run",
            json!({"command": "echo once >> count.txt; deploy || true"}),
        )
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(
        &world,
        &Models::strong(&server),
        FIX,
        &["--approve", "auto"],
    )
    .exits(0)
    .json();
    assert_eq!(report["files"], json!(["count.txt", "items.py"]));
}
