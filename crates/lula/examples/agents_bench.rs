//! How long a plan takes with six agents at once and with one after the other: `cargo xtask bench
//! agents`. The same plan, the same answers and the same latencies; only `--agents` differs.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark says no by panicking and prints what it is run for"
)]
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

const TASKS: usize = 6;
const TASK: &str = "Grow the project";
/// Questions for each task: one that looks, one that writes.
const TURNS: usize = 2;

fn git(tree: &Path, words: &[&str]) {
    let done = Command::new("git")
        .current_dir(tree)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@localhost"])
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "git {words:?}");
}

/// A project with a test, and a note for each task.
fn project(tree: &Path) {
    let test = "import unittest\n\n\nclass Base(unittest.TestCase):\n    def test_base(self):\n        \
                self.assertTrue(True)\n";
    std::fs::create_dir_all(tree.join("tests")).unwrap();
    std::fs::write(tree.join("tests/__init__.py"), "").unwrap();
    std::fs::write(tree.join("tests/test_base.py"), test).unwrap();
    for task in 1..=TASKS {
        let note = format!("this is note {task}\n");
        std::fs::write(tree.join(format!("note{task}.txt")), note).unwrap();
    }
    git(tree, &["init", "--quiet", "--initial-branch=main"]);
    git(tree, &["add", "--all"]);
    git(tree, &["commit", "--quiet", "--message=one"]);
}

fn turn(when: &str, wait_ms: u64) -> ScriptTurn {
    ScriptTurn {
        when: Some(when.to_owned()),
        times: Some(0),
        wait_ms,
        ..ScriptTurn::default()
    }
}

fn call(name: &str, arguments: Value) -> ScriptedCall {
    ScriptedCall {
        name: name.to_owned(),
        arguments,
    }
}

fn script(wait_ms: u64) -> ModelScript {
    let tasks: Vec<Value> = (1..=TASKS)
        .map(|task| {
            json!({"id": format!("task{task}"), "goal": format!("do thing {task} of six"),
                "needs": [], "files": [format!("part{task}.py")], "role": "coder",
                "done_when": [format!("python3 -c 'import part{task}'")]})
        })
        .collect();
    let mut turns = vec![ScriptTurn {
        say: Some(json!({"replaces": "", "tasks": tasks}).to_string()),
        ..turn(TASK, wait_ms)
    }];
    // The last first: an agent is shown the goals of those that were integrated before it.
    for task in (1..=TASKS).rev() {
        turns.push(ScriptTurn {
            call: vec![call(
                "read_file",
                json!({"path": format!("note{task}.txt")}),
            )],
            ..turn(&format!("do thing {task} of six"), wait_ms)
        });
        let content = format!("def part():\n    return {task}\n");
        let path = format!("part{task}.py");
        turns.push(ScriptTurn {
            call: vec![
                call("write_file", json!({"path": path, "content": content})),
                call("submit", json!({"summary": "done"})),
            ],
            ..turn(&format!("this is note {task}"), wait_ms)
        });
    }
    ModelScript { turn: turns }
}

/// Runs the plan with so many agents at once, in a place of its own.
fn measure(lula: &str, agents: usize, wait_ms: u64) -> Duration {
    let place = tempfile::tempdir().unwrap();
    let (tree, home) = (place.path().join("tree"), place.path().join("home"));
    std::fs::create_dir(&home).unwrap();
    project(&tree);
    let server = MockModelServer::start(script(wait_ms)).unwrap();
    let model = format!("anthropic@{}/v1/strong", server.url());
    let begun = Instant::now();
    let ran = Command::new(lula)
        .current_dir(&tree)
        .env("HOME", &home)
        .env("XDG_STATE_HOME", home.join("state"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .args(["run", "--json", "--task", TASK, "--coder", "model"])
        .args(["--model", &model, "--agents", &agents.to_string()])
        .output()
        .unwrap();
    let took = begun.elapsed();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}");
    let report: Value = serde_json::from_str(&said).unwrap();
    let jobs = report["plan"]["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), TASKS);
    assert!(
        jobs.values().all(|job| job["status"] == "integrated"),
        "{said}"
    );
    // Nothing had to be asked twice: both did the same work.
    assert_eq!(server.arrived().len(), 1 + TASKS * TURNS);
    took
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [lula, wait_ms, rounds, rest @ ..] = words.as_slice() else {
        println!("usage: agents_bench LULA LATENCY_MS ROUNDS [--json]");
        return;
    };
    let wait_ms: u64 = wait_ms.parse().unwrap();
    let rounds: usize = rounds.parse::<usize>().unwrap().max(1);
    let (mut together, mut in_turn) = (Vec::new(), Vec::new());
    // One after the other in each round: what else the machine does meets both.
    for _ in 0..rounds {
        together.push(measure(lula, TASKS, wait_ms));
        in_turn.push(measure(lula, 1, wait_ms));
    }
    let (together, in_turn) = (median(together), median(in_turn));
    let ratio = in_turn / together;
    if rest.iter().any(|word| word == "--json") {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        println!(
            "{}",
            json!({"tasks": TASKS, "questions": 1 + TASKS * TURNS, "latency_ms": wait_ms,
                "rounds": rounds, "cores": cores, "six_agents_s": together,
                "one_agent_s": in_turn, "ratio": ratio})
        );
        return;
    }
    println!("| {TASKS} tasks, {wait_ms} ms for each answer | median of {rounds} |\n|---|---|");
    println!("| six agents at once | {together:.1} s |");
    println!("| one after the other | {in_turn:.1} s |");
    println!("| ratio | {ratio:.2} |");
}
