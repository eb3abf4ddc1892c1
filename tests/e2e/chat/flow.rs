//! What is asked in the flow: approvals with what exactly would be done, answers to choose from, and what
//! is remembered.

use lula_models::script::{ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

use super::ChatTerminal;
use crate::support::{LulaEnv, Models, Repo, edit};

const RULES: &str = r#"
[[rule]]
id = "test.guarded"
paths = ["guarded/**"]
decision = "ask"
reason = "it is guarded"
"#;

fn calls(say: &str, calls: &[(&str, Value)]) -> ScriptTurn {
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

fn guarded(world: &LulaEnv) {
    let path = world.home().join(".config/lula/rules.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, RULES).unwrap();
}

fn write(text: &str) -> (&'static str, Value) {
    (
        "write_file",
        json!({"path": "guarded/a.txt", "content": format!("{text}\n")}),
    )
}

#[test]
fn an_approval_shows_exactly_what_is_done_and_is_remembered_as_a_rule_that_can_be_forgotten() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    guarded(&world);
    let server = Models::scripted(vec![
        calls("", &[write("first bytes")]),
        calls("Written.", &[]),
        calls("", &[write("second bytes")]),
        calls("Written again.", &[]),
        calls("", &[write("third bytes")]),
        calls("", &[write("other bytes")]),
        calls("I will not write it.", &[]),
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    terminal.say("write the guarded file");
    let seen = terminal.sees("Do exactly this?");
    assert!(seen.contains("it is guarded"), "{seen}");
    assert!(seen.contains("+first bytes"), "{seen}");
    assert_eq!(
        server.arrived().len(),
        1,
        "nothing is done before the answer"
    );
    terminal.press(&["a"]);
    let seen = terminal.turn(2);
    assert!(seen.contains("Written."), "{seen}");

    // The same file is not asked about again in this chat, and the rule is told.
    terminal.say("again");
    let seen = terminal.turn(3);
    assert!(
        seen.contains("» allow write_file guarded/a.txt (/rules)"),
        "{seen}"
    );
    terminal.say("/rules");
    terminal.sees("1) allow write_file guarded/a.txt");
    terminal.say("/rules forget 1");
    terminal.sees("forgotten:");

    // A no ends the turn: the person says what comes next.
    terminal.say("once more");
    terminal.wait("second question", |seen| seen.contains("+third bytes"));
    terminal.press(&["n"]);
    let seen = terminal.sees("refused; the model waits for you");
    assert!(!seen.contains("other bytes"), "{seen}");
    terminal.turn(6);
    terminal.say("!cat guarded/a.txt");
    let seen = terminal.turn(7);
    assert!(seen.trim_end().contains("  second bytes"), "{seen}");
    world.run(&["audit", "verify"]).exits(0);
}

#[test]
fn a_question_of_the_model_is_answered_by_a_key_or_in_words() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let ask = json!({"status": "needs_decision", "summary": "Raise or return nothing?",
        "options": ["raise IndexError", "return None"]});
    let server = Models::scripted(vec![
        calls("", &[("submit", ask.clone())]),
        calls("", &[("submit", ask)]),
        calls("", &[("edit_file", edit())]),
        calls("As you said.", &[]),
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model, "--say", "mend last"]);
    let seen = terminal.sees("Which?");
    assert!(seen.contains("2) return None"), "{seen}");
    terminal.press(&["2"]);
    terminal.wait("second question", |seen| {
        seen.matches("Which?").count() == 2
    });
    let told = String::from_utf8(server.arrived()[1].body.clone()).unwrap();
    assert!(told.contains("decided: return None"), "{told}");
    terminal.press(&["3"]);
    terminal.sees("your answer");
    terminal.say("raise a ValueError");
    terminal.sees("As you said.");
    let told = String::from_utf8(server.arrived()[2].body.clone()).unwrap();
    assert!(told.contains("says: raise a ValueError"), "{told}");
}

#[test]
fn without_a_model_a_chat_says_what_it_can_do_and_does_it() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    // Bare `lula`, in a repository on a terminal.
    let terminal = ChatTerminal::sized(&world, (80, 30), &[], &[]);
    let seen = terminal.turn(1);
    assert!(seen.contains("No model is configured"), "{seen}");
    for possible in ["/repair", "/test", "!COMMAND", "--model"] {
        assert!(seen.contains(possible), "{possible} is not in {seen}");
    }
    terminal.say("mend the bug");
    terminal.wait("hint", |seen| {
        seen.matches("No model is configured").count() == 2
    });
    terminal.say("/test");
    let seen = terminal.turn(3);
    assert!(seen.contains("1 pass, 1 fail"), "{seen}");
    terminal.say("/repair");
    let seen = terminal.turn(4);
    assert!(seen.contains("1 file +1 -1 changed"), "{seen}");
    terminal.say("/commit");
    terminal.sees("verified:");
    assert_eq!(repo.branches().len(), 1);
}
