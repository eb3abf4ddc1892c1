//! Several agents on one task, through the door a person uses.

mod budgets;
mod conflicts;
mod files;
mod interruptions;
mod kills;
mod live;
mod plans;
mod proposals;
mod roles;
mod steering;
mod wholes;

use lula_models::mock::MockModelServer;
use lula_models::script::ScriptTurn;
use serde_json::{Value, json};

use crate::support::{Act, LulaEnv, Models, Ran, Repo, always, does, git, listing, logs};

pub(crate) const TASK: &str = "Grow the project";

const RATES: &str = "def rate():\n    return 1\n";
const TESTS: &str = "\
import unittest

from rates import rate


class Rates(unittest.TestCase):
    def test_positive(self):
        self.assertGreater(rate(), 0)
";

pub(crate) fn project(world: &LulaEnv) {
    project_with(world, &[]);
}

/// The same with more files.
fn project_with(world: &LulaEnv, more: &[(&str, &str)]) {
    let files = [
        ("rates.py", RATES),
        ("tests/__init__.py", ""),
        ("tests/test_rates.py", TESTS),
    ];
    Repo::with(world, &[&files, more].concat());
}

/// What stands in the words of an agent's own task and nowhere else: others are told its goal too.
pub(crate) fn own(id: &str) -> String {
    format!("The task:\ndo the {id} thing")
}

/// The same as it stands in the body of a request.
pub(crate) fn sent(id: &str) -> String {
    format!("The task:\\ndo the {id} thing")
}

/// The words by which a model is asked to compare the whole with the task.
const REVIEW: &str = "Compare this whole with its task";

/// What the model that compares the whole with the task says, where it has no doubt.
fn reviews(doubts: &[&str]) -> ScriptTurn {
    always(ScriptTurn {
        when: Some(REVIEW.to_owned()),
        say: Some(json!({"doubts": doubts}).to_string()),
        ..ScriptTurn::default()
    })
}

/// A server whose models answer with these turns, and find nothing to doubt in the end.
pub(crate) fn scripted(mut turns: Vec<ScriptTurn>) -> MockModelServer {
    turns.push(reviews(&[]));
    Models::scripted(turns)
}

/// A task of a plan.
fn task(id: &str, needs: &[&str], files: &[&str], done_when: &[&str], role: &str) -> Value {
    json!({"id": id, "goal": format!("do the {id} thing"), "needs": needs, "files": files,
        "done_when": done_when, "role": role})
}

/// A module on its own, done when it can be used.
fn module(id: &str, needs: &[&str]) -> Value {
    let file = format!("{id}.py");
    let check = format!("python3 -c 'import {id}; assert {id}.value() == 7'");
    task(id, needs, &[&file], &[&check], "coder")
}

pub(crate) fn plan(when: &str, tasks: &[Value]) -> ScriptTurn {
    ScriptTurn {
        when: Some(when.to_owned()),
        say: Some(json!({"replaces": "", "tasks": tasks}).to_string()),
        ..ScriptTurn::default()
    }
}

pub(crate) fn writes(path: &str, content: &str) -> Act {
    ("write_file", json!({"path": path, "content": content}))
}

fn runs(command: &str) -> Act {
    ("run", json!({"command": command}))
}

/// What a module holds.
const SEVEN: &str = "def value():\n    return 7\n";

/// An agent that writes its module.
fn builds(id: &str) -> ScriptTurn {
    builds_after(id, &[])
}

/// An agent that writes its module after it did something else.
fn builds_after(id: &str, before: &[Act]) -> ScriptTurn {
    let mut acts = before.to_vec();
    acts.push(writes(&format!("{id}.py"), SEVEN));
    does(&own(id), &acts)
}

/// How a run of several agents is begun, three where nothing else is said.
fn line<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", "--task", TASK, "--model", model, "--coder", "model"];
    let usual: &[&str] = if more.contains(&"--agents") {
        &[]
    } else {
        &["--agents", "3"]
    };
    [&fixed[..], usual, more].concat()
}

fn run(world: &LulaEnv, server: &MockModelServer, more: &[&str]) -> Ran {
    let model = Models::strong(server);
    let more = [&["--json"], more].concat();
    world.run(&line(&model, &more))
}

pub(crate) fn status<'a>(report: &'a Value, job: &str) -> &'a str {
    report["plan"]["jobs"][job]["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{job}: {report}"))
}

/// What the model was asked so far, as text.
fn asked(server: &MockModelServer) -> String {
    let bodies = server.arrived();
    let texts = bodies
        .iter()
        .map(|arrived| String::from_utf8_lossy(&arrived.body).into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

/// What the log of the last run says that holds these words.
fn told(world: &LulaEnv, words: &str) -> Vec<String> {
    logs(world)
        .iter()
        .filter_map(|line| Some(line["text"].as_str()?.to_owned()))
        .filter(|text| text.contains(words))
        .collect()
}

/// A file of what was delivered.
fn delivered(world: &LulaEnv, file: &str) -> String {
    let [branch] = &Repo::of(world).branches()[..] else {
        panic!("{:?}", Repo::of(world).branches());
    };
    git(&world.work(), &["show", &format!("{branch}:{file}")])
}

/// Everything of the user's that a run must leave alone: files, index, and what is checked out.
type Belongings = (Vec<(std::path::PathBuf, Vec<u8>)>, Vec<u8>, String);

fn belongings(world: &LulaEnv) -> Belongings {
    let work = world.work();
    let mut files = listing(&work);
    files.retain(|(path, _)| !path.starts_with(work.join(".git")));
    let index = std::fs::read(work.join(".git/index")).unwrap();
    (files, index, git(&work, &["rev-parse", "HEAD"]))
}
