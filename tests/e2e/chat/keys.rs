//! Keys, pastes and sizes: what a person does with a terminal.

use lula_models::script::{ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

use super::ChatTerminal;
use crate::support::{LulaEnv, Models, Repo, always, edit, wait_until};

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

fn body(server: &lula_models::mock::MockModelServer, number: usize) -> String {
    String::from_utf8(server.arrived()[number].body.clone()).unwrap()
}

#[test]
fn escape_stops_the_step_and_keeps_the_work_and_twice_ends_the_turn() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let slow = |name: &str| json!({"command": format!("echo begun > {name}; sleep 300")});
    let server = Models::scripted(vec![
        calls("", &[("edit_file", edit()), ("run", slow("one"))]),
        calls("Shall I go on?", &[]),
        calls("", &[("run", slow("two"))]),
        // Where the step ends before the second Esc comes, the model is asked, and the answer not waited for.
        ScriptTurn {
            wait_ms: 20_000,
            ..always(calls("Never shown.", &[]))
        },
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model, "--say", "mend last"]);
    terminal.sees("runs echo begun > one");
    // A note that is typed meanwhile is heard with the next step.
    terminal.say("mind the empty list");
    terminal.sees("» mind the empty list");
    terminal.press(&["Escape"]);
    let seen = terminal.turn(2);
    assert!(seen.contains("stopped"), "{seen}");
    assert!(seen.contains("Shall I go on?"), "{seen}");
    let told = body(&server, 1);
    assert!(
        told.contains("the person you work for stopped this"),
        "{told}"
    );
    assert!(told.contains("mind the empty list"), "{told}");

    terminal.say("yes");
    terminal.sees("runs echo begun > two");
    terminal.press(&["Escape"]);
    terminal.sees("Esc again ends the turn");
    terminal.press(&["Escape"]);
    let seen = terminal.turn(3);
    assert!(seen.contains("stopped; what was done is kept"), "{seen}");
    assert!(!seen.contains("Never shown."), "{seen}");
    // What was done before each stop is there.
    terminal.say("!cat one two; tail -n 4 items.py; grep -c 'items) - 1' items.py");
    let seen = terminal.turn(4);
    assert_eq!(seen.matches("\n  begun").count(), 2, "{seen}");
    terminal.say("/leave");
    terminal.sees("[left with 0]");
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn a_paste_of_a_thousand_lines_is_one_word_in_the_line_and_whole_for_the_model() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::scripted(vec![calls("A long log.", &[])]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    let lines: Vec<String> = (0..1000).map(|line| format!("log line {line}\n")).collect();
    let text = lines.concat();
    terminal.paste(&text);
    let seen = terminal.sees("[pasted 1000 lines #1]");
    assert!(!seen.contains("log line 500"), "{seen}");
    terminal.say(" what is this?");
    terminal.sees("A long log.");
    let told = body(&server, 0);
    assert!(told.contains("log line 0\\nlog line 1\\n"), "{told}");
    assert!(
        told.contains("log line 999") && told.contains("what is this?"),
        "{told}"
    );
}

#[test]
fn hostile_words_of_a_model_are_shown_and_never_sent() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let hostile =
        "Look:\u{1b}[2J\u{1b}]0;owned\u{7} \u{1b}[?1049h \u{202e}gnp.exe\r\nnext \u{9b}31m line";
    let server = Models::scripted(vec![calls(hostile, &[])]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    terminal.say("say something");
    let seen = terminal.turn(2);
    assert!(seen.contains("lula work"), "nothing was cleared: {seen}");
    assert!(seen.contains("Look:\\u{1b}[2J"), "{seen}");
    assert!(seen.contains("\\u{202e}gnp.exe"), "{seen}");
    assert!(!seen.contains('\u{202e}'), "{seen}");
}

#[test]
fn a_screen_of_eighty_columns_a_narrow_one_and_one_without_colours() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let long = "The function reads one past the end of the list, which raises an IndexError for every \
                list, and that is what the test shows.";
    let server = Models::scripted(vec![
        calls(long, &[("edit_file", edit())]),
        calls(
            "## Done\n\n- `last` is mended\n\n```python\nreturn items[-1]\n```",
            &[],
        ),
        calls("Narrow now.", &[]),
    ]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::sized(
        &world,
        (80, 30),
        &[("NO_COLOR", "1")],
        &["chat", "--model", &model],
    );
    terminal.turn(1);
    terminal.say("mend last");
    terminal.turn(2);
    let screen = terminal.screen().replace(&model, "MODEL");
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{screen}");
    let from = rows
        .iter()
        .position(|row| row.starts_with("› mend last"))
        .unwrap();
    let shown: Vec<&str> = rows[from + 1..]
        .iter()
        .copied()
        .filter(|row| !row.is_empty())
        .collect();
    assert_eq!(
        shown[..shown.len() - 1],
        [
            "The function reads one past the end of the list, which raises an IndexError for",
            "every list, and that is what the test shows.",
            "  ✓ edited items.py",
            "Done",
            "• last is mended",
            "  │ return items[-1]",
            "1 file +1 -1 changed · /diff · /test · /commit · /undo",
        ],
        "{screen}"
    );
    assert!(
        !terminal.coloured().contains("\u{1b}[3"),
        "{}",
        terminal.coloured()
    );
    terminal.resize(50, 20);
    terminal.say("and now?");
    terminal.sees("Narrow now.");
    let screen = terminal.screen();
    assert!(
        screen.lines().all(|row| row.chars().count() <= 50),
        "{screen}"
    );
}

#[test]
fn words_are_shown_as_they_come_and_keys_are_taken_while_they_do() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    // A long answer, and one that comes only when the note has.
    let flood = "0123456789 abcdefghij\n".repeat(20_000);
    let server = Models::scripted(vec![calls(&flood, &[]), calls("Heard.", &[])]);
    let model = Models::strong(&server);
    let terminal = ChatTerminal::begin(&world, &["--model", &model]);
    terminal.turn(1);
    terminal.say("flood");
    terminal.sees("0123456789");
    for word in ["are", "you", "there"] {
        terminal.say(word);
    }
    wait_until("the words arrive", || server.arrived().len() == 2);
    let told = body(&server, 1);
    for word in ["are", "you", "there"] {
        assert!(told.contains(word), "{word} is lost");
    }
    terminal.sees("Heard.");
}
