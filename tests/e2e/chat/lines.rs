//! `lula chat --json`: a program holds the conversation.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::story::turn;
use crate::support::{LulaEnv, Models, Repo, edit};

struct LineProgram {
    process: Child,
    orders: Option<ChildStdin>,
    news: BufReader<ChildStdout>,
}

impl LineProgram {
    fn begin(world: &LulaEnv, arguments: &[&str]) -> Self {
        let mut command = world.command(&[&["chat", "--json"], arguments].concat());
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: process.stdin.take(),
            news: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    fn order(&mut self, order: &Value) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Everything up to the next news of that kind, which is the last.
    fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                self.news.read_line(&mut line).unwrap() > 0,
                "no {kind}: {all:?}"
            );
            let news: Value = serde_json::from_str(&line).unwrap();
            let is_last = news["news"] == kind;
            all.push(news);
            if is_last {
                return all;
            }
        }
    }

    fn ends(mut self) -> i32 {
        drop(self.orders.take());
        self.process.wait().unwrap().code().unwrap()
    }
}

#[test]
fn a_program_holds_a_conversation_line_by_line() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = Models::scripted(vec![
        turn("I mend it.", &[("edit_file", edit())]),
        turn("Mended.", &[]),
    ]);
    let model = Models::strong(&server);
    let mut program = LineProgram::begin(&world, &["--model", &model]);
    let first = program.until("waiting");
    assert_eq!(first[0]["wait"]["waits_for"], "your_turn");
    program.order(&json!({"do": "dance"}));
    program.until("refused");
    program.order(&json!({"do": "say", "text": "mend last"}));
    let news = program.until("waiting");
    let words: String = news
        .iter()
        .filter_map(|one| one["text"].as_str().filter(|_| one["news"] == "words"))
        .collect();
    assert_eq!(words, "I mend it.Mended.");
    let last = news.last().unwrap();
    assert_eq!(last["words"], "Mended.", "{last}");
    assert_eq!(last["turn"]["end"], "answered");
    program.order(&json!({"do": "change"}));
    let change = program.until("change").pop().unwrap();
    assert_eq!(change["files"], json!(["items.py"]));
    program.order(&json!({"do": "choose", "choice": "run", "note": "echo hello"}));
    let ran = program.until("waiting").pop().unwrap();
    assert!(ran["shown"].as_str().unwrap().contains("hello"), "{ran}");
    program.order(&json!({"do": "choose", "choice": "commit"}));
    let over = program.until("waiting").pop().unwrap();
    assert_eq!(over["wait"]["waits_for"], "over", "{over}");
    assert_eq!(over["report"]["verdict"]["verdict"], "pass", "{over}");
    assert_eq!(program.ends(), 0);
    assert_eq!(repo.branches().len(), 1);
}
