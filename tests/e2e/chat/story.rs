//! A whole conversation: several turns on one change, kept over the end of the program, and delivered.

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

use super::ChatTerminal;
use crate::support::{LulaEnv, Models, Repo, edit, git, strike, wait_until};

pub(super) fn turn(say: &str, calls: &[(&str, Value)]) -> ScriptTurn {
    ScriptTurn {
        say: Some(say.to_owned()),
        call: calls
            .iter()
            .map(|(name, arguments)| ScriptedCall {
                name: (*name).to_owned(),
                arguments: arguments.clone(),
            })
            .collect(),
        ..ScriptTurn::default()
    }
}

/// What a request asked of the model, as text.
fn asked(server: &MockModelServer, number: usize) -> String {
    let arrived = server.arrived();
    String::from_utf8_lossy(&arrived[number].body).into_owned()
}

#[test]
fn several_turns_change_one_workspace_survive_a_kill_and_are_delivered() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let before = repo.untouched();
    let docstring = json!({"path": "items.py", "search": "def last(items):",
        "replace": "def last(items):\n    \"\"\"The last one.\"\"\""});
    let server = Models::scripted(vec![
        turn("I look.", &[("read_file", json!({"path": "items.py"}))]),
        turn("It reads past the end.", &[("edit_file", edit())]),
        turn("Mended: **one** line.", &[]),
        turn("", &[("edit_file", docstring)]),
        turn("Documented.", &[]),
        turn("Nothing else is open.", &[]),
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    terminal.say("why does test_last fail? mend it");
    let seen = terminal.turn(2);
    assert!(seen.contains("read items.py"), "{seen}");
    assert!(seen.contains("edited items.py"), "{seen}");
    assert!(seen.contains("Mended: one line."), "{seen}");
    assert!(seen.contains("1 file +1 -1 changed"), "{seen}");

    // A command of the person is context, and what it prints cannot act on the terminal.
    terminal.say("!printf 'a\\033[2Jb\\342\\200\\256c\\n'; cat items.py | head -2");
    let seen = terminal.turn(3);
    assert!(seen.contains("len(items) - 1"), "{seen}");
    assert!(
        seen.contains("why does test_last fail?"),
        "the screen was not cleared: {seen}"
    );
    assert!(!seen.contains('\u{202e}'), "{seen}");

    terminal.say("and document it");
    let seen = terminal.turn(4);
    assert!(seen.contains("1 file +2 -1 changed"), "{seen}");
    let told = asked(&server, 3);
    for earlier in [
        "test_last fail",
        "Mended",
        "len(items) - 1",
        "and document it",
    ] {
        assert!(told.contains(earlier), "{earlier} is not in {told}");
    }

    // Taken back and brought back, one change at a time.
    terminal.say("/undo");
    terminal.turn(5);
    terminal.say("/diff");
    let seen = terminal.turn(6);
    let last = seen.rsplit("› /diff").next().unwrap().to_owned();
    assert!(
        last.contains("len(items) - 1") && !last.contains("The last one"),
        "{last}"
    );
    terminal.say("/redo");
    terminal.turn(7);

    // Both processes are killed; nothing that was said is lost, and the repository is as it was.
    assert!(strike(terminal.process()));
    terminal.sees("[left with 137]");
    drop(terminal);
    assert_eq!(repo.untouched(), before);
    wait_until("the driver puts the run down", || {
        let runs = world.run(&["runs", "--json"]).exits(0).json();
        runs[0]["status"] != "running"
    });
    let terminal = ChatTerminal::begin(&world, &["last", "--model", &model]);
    let seen = terminal.turn(1);
    assert!(seen.contains("test_last fail"), "{seen}");
    assert!(seen.contains("Documented."), "{seen}");
    terminal.say("is anything open?");
    let seen = terminal.turn(2);
    assert!(seen.contains("Nothing else is open."), "{seen}");
    let told = asked(&server, 5);
    assert!(
        told.contains("Documented.") && told.contains("brought them back"),
        "{told}"
    );

    terminal.say("/commit");
    let seen = terminal.sees("verified:");
    assert!(
        seen.contains("now passing: tests.test_items.Items.test_last"),
        "{seen}"
    );
    terminal.turn(3);
    let [branch] = &repo.branches()[..] else {
        panic!("{:?}", repo.branches());
    };
    let text = git(&world.work(), &["show", &format!("{branch}:items.py")]);
    assert!(
        text.contains("The last one") && text.contains("len(items) - 1"),
        "{text}"
    );
    assert_eq!(repo.untouched(), before);
    terminal.press(&["C-d"]);
    terminal.sees("[left with 0]");

    // A chat is a run.
    world.run(&["replay", "last", "--verify"]).exits(0);
    world.run(&["show", "last"]).exits(0).says("now passing");
    world.run(&["trace", "last"]).exits(0).says("chat");
    let bundle = world.work().join("chat.lula");
    let bundle = bundle.to_str().unwrap();
    world.run(&["export", "last", "-o", bundle]).exits(0);
    world.run(&["verify", bundle]).exits(0);
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_chat_that_is_left_can_be_answered_forked_and_discarded_from_outside() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = Models::scripted(vec![
        turn("", &[("edit_file", edit())]),
        turn("Mended.", &[]),
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model, "--say", "mend last"]);
    terminal.turn(2);
    terminal.say("/leave");
    terminal.sees("[left with 0]");
    // It waits as a run does that asks something.
    world
        .run(&["show", "last"])
        .exits(0)
        .says("it is your turn");
    let logs = world.run(&["logs", "last", "--json"]).exits(0).stdout;
    let ends = logs
        .lines()
        .filter(|line| line.contains("\"node_left\""))
        .count();
    assert!(ends >= 5, "{logs}");
    let last = logs
        .lines()
        .rfind(|line| line.contains("\"node_left\""))
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .unwrap();
    let at = (last["seq"].as_u64().unwrap() + 1).to_string();
    let fork = world.run(&["fork", "last", "--at", &at]).exits(0).stdout;
    assert!(fork.starts_with("run_"), "{fork}");
    let report = world.run(&["resume", "last", "--json"]).exits(3).json();
    assert_eq!(
        report["run"],
        fork.trim(),
        "the fork waits for its person as well"
    );
    let run = world.run(&["runs", "--json"]).exits(0).json();
    let first = run
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["run"] != fork.trim())
        .unwrap()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    world
        .run(&["resume", &first, "--answer", "commit"])
        .exits(0)
        .says("now passing");
    assert_eq!(repo.branches().len(), 1);
    world.run(&["cancel", fork.trim()]).exits(0);
    world
        .run(&["chat", "last"])
        .exits(2)
        .says("needs a terminal");
}

#[test]
fn a_change_that_proves_nothing_comes_back_to_the_person_with_the_reason() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let wrong = json!({"path": "items.py", "search": "return x * 2", "replace": "return x * 3"});
    let right = json!({"path": "items.py", "search": "return x * 3", "replace": "return x * 2"});
    let server = MockModelServer::start(ModelScript {
        turn: vec![
            turn("", &[("edit_file", wrong)]),
            turn("Tripled.", &[]),
            turn("", &[("edit_file", right), ("edit_file", edit())]),
            turn("As it was, and last is mended.", &[]),
        ],
    })
    .unwrap();
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    terminal.say("triple instead");
    terminal.turn(2);
    terminal.say("/commit");
    let seen = terminal.turn(3);
    assert!(seen.contains("test_double"), "{seen}");
    assert!(
        repo.branches().is_empty(),
        "nothing that breaks a test is delivered"
    );
    terminal.say("take that back and mend last");
    terminal.turn(4);
    assert!(
        asked(&server, 2).contains("test_double"),
        "the model is told why"
    );
    terminal.say("/commit");
    terminal.sees("verified:");
    assert_eq!(repo.branches().len(), 1);
}
