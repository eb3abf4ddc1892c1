//! Several agents on one task: plans, conflicts, scopes, reviews, crashes

use std::process::Stdio;

use lula_models::mock::MockServer;
use lula_models::script::{Script, ScriptedCall, Turn};
use serde_json::{Value, json};

use crate::cancelling::is_asleep;
use crate::lula::{Ran, World, listing};
use crate::run::{branches, git, repository, strong};
use crate::run_doors::{logs, until};

pub(crate) const TASK: &str = "Grow the project";

const RATES: &str = "def rate():\n    return 1\n";
const TESTS: &str = "\
import unittest

from rates import rate


class Rates(unittest.TestCase):
    def test_positive(self):
        self.assertGreater(rate(), 0)
";

pub(crate) fn project(world: &World) {
    repository(
        world,
        &[
            ("rates.py", RATES),
            ("tests/__init__.py", ""),
            ("tests/test_rates.py", TESTS),
        ],
    );
}

/// A task of a plan: its files are `NAME.py` and `tests/test_NAME.py`.
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

pub(crate) fn plan(when: &str, tasks: &[Value]) -> Turn {
    Turn {
        when: Some(when.to_owned()),
        say: Some(json!({"replaces": "", "tasks": tasks}).to_string()),
        ..Turn::default()
    }
}

/// An agent that does all of it in one turn.
pub(crate) fn agent(when: &str, calls: &[(&str, Value)]) -> Turn {
    let call = calls.iter().map(|(name, arguments)| ScriptedCall {
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    let submit = ScriptedCall {
        name: "submit".to_owned(),
        arguments: json!({"summary": "done"}),
    };
    let has_end = calls.iter().any(|(name, _)| *name == "submit");
    Turn {
        when: Some(when.to_owned()),
        call: call.chain((!has_end).then_some(submit)).collect(),
        ..Turn::default()
    }
}

pub(crate) fn writes(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

/// Takes a while, so that others are done before.
fn later() -> (&'static str, Value) {
    ("run", json!({"command": "sleep 4"}))
}

/// An agent that writes its module.
fn builds(id: &str) -> Turn {
    let goal = format!("do the {id} thing");
    let file = format!("{id}.py");
    agent(&goal, &[writes(&file, "def value():\n    return 7\n")])
}

pub(crate) fn script(turns: Vec<Turn>) -> MockServer {
    MockServer::start(Script { turn: turns }).unwrap()
}

fn run(world: &World, server: &MockServer, more: &[&str]) -> Ran {
    let model = strong(server);
    let fixed = [
        "run", "--json", "--task", TASK, "--model", &model, "--coder", "model",
    ];
    let usual: &[&str] = if more.is_empty() {
        &["--agents", "3"]
    } else {
        &[]
    };
    let fixed = [&fixed[..], usual].concat();
    world.run(&[&fixed[..], more].concat())
}

pub(crate) fn status<'a>(report: &'a Value, job: &str) -> &'a str {
    report["plan"]["jobs"][job]["status"]
        .as_str()
        .unwrap_or_else(|| panic!("{job}: {report}"))
}

/// What the model was asked so far, as text.
fn asked(server: &MockServer) -> String {
    let bodies = server.arrived();
    let texts = bodies
        .iter()
        .map(|arrived| String::from_utf8_lossy(&arrived.body).into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

/// Everything of the user's that a run must leave alone: files, index, and what is checked out.
type Belongings = (Vec<(std::path::PathBuf, Vec<u8>)>, Vec<u8>, String);

fn belongings(world: &World) -> Belongings {
    let work = world.work();
    let mut files = listing(&work);
    files.retain(|(path, _)| !path.starts_with(work.join(".git")));
    let index = std::fs::read(work.join(".git/index")).unwrap();
    (files, index, git(&work, &["rev-parse", "HEAD"]))
}

#[test]
fn two_tasks_are_done_by_two_agents_and_come_together_on_one_branch() {
    let world = World::new();
    project(&world);
    std::fs::write(world.work().join("notes.txt"), "mine\n").unwrap();
    let before = belongings(&world);
    let server = script(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "alpha"), "integrated");
    assert_eq!(status(&report, "beta"), "integrated");
    assert_eq!(belongings(&world), before);
    let made = branches(&world);
    assert_eq!(made.len(), 1, "{made:?}");
    for file in ["alpha.py", "beta.py"] {
        let spec = format!("{}:{file}", made[0]);
        assert!(git(&world.work(), &["show", &spec]).contains("return 7"));
    }
    let run = report["run"].as_str().unwrap();
    world.run(&["replay", run, "--verify"]).exits(0);
    let shown = world.run(&["show", run]).exits(0).stdout;
    assert!(
        shown.contains("alpha") && shown.contains("integrated"),
        "{shown}"
    );
    let trace = world.run(&["trace", run, "--json"]).exits(0).json();
    assert_eq!(trace["agents"].as_array().unwrap().len(), 2, "{trace}");
    let picture = world.work().with_file_name("lanes.svg");
    let file = picture.to_str().unwrap();
    world.run(&["trace", run, "--svg", file]).exits(0);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("<rect"));
    // Agents are no runs of their own in the list, and `last` is what a person began.
    let listed = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["run"], run);
    assert_eq!(server.unused(), 0);
}

#[test]
fn a_budget_that_allows_no_plan_waits_for_more_and_asks_nobody() {
    let world = World::new();
    project(&world);
    let server = script(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &["--agents", "3", "--budget", "0.0001"])
        .exits(4)
        .json();
    assert_eq!(report["status"], "waiting", "{report}");
    assert!(server.arrived().is_empty());
    world.run(&["resume", "last", "--budget", "50"]).exits(0);
    assert_eq!(branches(&world).len(), 1);
}

#[test]
fn a_plan_can_be_seen_before_anything_is_begun() {
    let world = World::new();
    project(&world);
    let server = script(vec![plan(
        TASK,
        &[module("alpha", &[]), module("beta", &["alpha"])],
    )]);
    let model = strong(&server);
    let line = [
        "run",
        "--task",
        TASK,
        "--model",
        &model,
        "--agents",
        "2",
        "--plan-only",
    ];
    let ran = world.run(&line).exits(0);
    assert!(ran.stdout.contains("after alpha"), "{}", ran.stdout);
    assert!(ran.stdout.contains("beta.py"), "{}", ran.stdout);
    assert!(branches(&world).is_empty());
    assert_eq!(server.arrived().len(), 1);
    world
        .run(&["run", "--task", TASK, "--plan-only"])
        .exits(2)
        .says("--agents");
    world
        .run(&["run", "--task", TASK, "--agents", "2"])
        .exits(2)
        .says("a plan needs a model");
}

#[test]
fn a_plan_that_goes_round_in_circles_is_refused_with_the_way_round() {
    let world = World::new();
    project(&world);
    let server = script(vec![
        plan(
            TASK,
            &[module("alpha", &["beta"]), module("beta", &["alpha"])],
        ),
        plan(
            "wait for each other",
            &[module("alpha", &[]), module("beta", &["alpha"])],
        ),
        builds("alpha"),
        builds("beta"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "beta"), "integrated");
    let told = logs(&world).iter().any(|line| {
        let text = line["text"].as_str().unwrap_or_default();
        text.contains("was refused") && text.contains("wait for each other")
    });
    assert!(told, "{:#?}", logs(&world));
}

#[test]
fn what_an_agent_writes_outside_its_scope_never_arrives() {
    let world = World::new();
    project(&world);
    let sneaky = agent(
        "do the alpha thing",
        &[
            // Refused at once.
            writes("rates.py", "def rate():\n    return 2\n"),
            writes("alpha.py", "def value():\n    return 7\n"),
            // Seen afterwards.
            ("run", json!({"command": "echo x > stray.txt"})),
        ],
    );
    let server = script(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        sneaky,
        builds("beta"),
        // Whoever planned it lets the failure stand.
        plan("The task alpha failed", &[]),
    ]);
    let report = run(&world, &server, &[]).exits(1).json();
    assert_eq!(status(&report, "alpha"), "failed");
    assert_eq!(status(&report, "beta"), "integrated");
    let reason = &report["plan"]["jobs"]["alpha"]["reason"];
    assert_eq!(reason["why"], "scope_violation", "{reason}");
    assert_eq!(reason["files"], json!(["stray.txt"]));
    assert!(branches(&world).is_empty(), "a part is not the whole");
    assert!(asked(&server).contains("stray.txt"), "the planner is told");
}

#[test]
fn a_reviewer_that_rejects_sends_the_plan_back() {
    let world = World::new();
    project(&world);
    let review = |id: &str, needs: &[&str]| task(id, needs, &[], &[], "reviewer");
    let says = |id: &str, approve: bool, summary: &str| {
        let submit = json!({"approve": approve, "summary": summary});
        agent(&format!("do the {id} thing"), &[("submit", submit)])
    };
    let better = json!({"replaces": "review", "tasks": [
        task("mend", &[], &["alpha.py"],
            &["python3 -c 'import alpha; assert alpha.value.__doc__'"], "coder"),
        review("again", &["mend"]),
    ]});
    let mend = agent(
        "do the mend thing",
        &[writes(
            "alpha.py",
            "def value():\n    \"\"\"Seven.\"\"\"\n    return 7\n",
        )],
    );
    let server = script(vec![
        plan(TASK, &[module("alpha", &[]), review("review", &["alpha"])]),
        builds("alpha"),
        says("review", false, "value has no documentation"),
        Turn {
            when: Some("value has no documentation".to_owned()),
            say: Some(better.to_string()),
            ..Turn::default()
        },
        mend,
        says("again", true, "good"),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    assert_eq!(status(&report, "review"), "superseded");
    assert_eq!(status(&report, "again"), "integrated");
    assert_eq!(report["plan"]["version"], 2);
    let spec = format!("{}:alpha.py", branches(&world)[0]);
    assert!(git(&world.work(), &["show", &spec]).contains("Seven."));
}

#[test]
fn a_conflict_of_places_and_one_of_meanings_are_resolved() {
    let world = World::new();
    project(&world);
    // The name is a file for one and a directory for the other.
    let file = task("file", &[], &["store"], &["test -f store"], "coder");
    let other = task(
        "folder",
        &[],
        &["store/a.txt", "shop/a.txt"],
        &["test -f store/a.txt || test -f shop/a.txt"],
        "coder",
    );
    let rates = task(
        "rates",
        &[],
        &["rates.py", "tests/test_rates.py"],
        &["python3 -c 'import rates; assert rates.rate() == 2'"],
        "coder",
    );
    let bill = task(
        "bill",
        &[],
        &["bill.py", "tests/test_bill.py"],
        &["python3 -c 'import bill; assert bill.total(3) > 0'"],
        "coder",
    );
    let bill_test = |total: u32| {
        format!(
            "import unittest\n\nfrom bill import total\n\n\nclass Bill(unittest.TestCase):\n    \
             def test_total(self):\n        self.assertEqual(total(3), {total})\n"
        )
    };
    let code = "from rates import rate\n\n\ndef total(n):\n    return n * rate()\n";
    let server = script(vec![
        plan(TASK, &[file, other, rates, bill]),
        agent("do the file thing", &[writes("store", "one\n")]),
        // With what did not fit before its eyes.
        Turn {
            call: vec![
                ScriptedCall {
                    name: "run".to_owned(),
                    arguments: json!({"command":
                        "for f in store*; do mv \"$f\" /tmp/; done; printf 'one\\n' > store; mkdir -p shop; echo a > shop/a.txt"}),
                },
                ScriptedCall {
                    name: "submit".to_owned(),
                    arguments: json!({"summary": "done"}),
                },
            ],
            when: Some("both sides changed".to_owned()),
            ..Turn::default()
        },
        agent(
            "do the folder thing",
            &[later(), writes("store/a.txt", "a\n")],
        ),
        agent(
            "do the rates thing",
            &[writes("rates.py", "def rate():\n    return 2\n")],
        ),
        agent(
            "it merges, and then",
            &[
                writes("bill.py", code),
                writes("tests/test_bill.py", &bill_test(6)),
            ],
        ),
        agent(
            "do the bill thing",
            &[
                later(),
                writes("bill.py", code),
                writes("tests/test_bill.py", &bill_test(3)),
            ],
        ),
    ]);
    let report = run(&world, &server, &["--agents", "4"]).exits(0).json();
    let told: Vec<String> = logs(&world)
        .iter()
        .filter_map(|line| Some(line["text"].as_str()?.to_owned()))
        .filter(|text| text.contains("does not fit"))
        .collect();
    assert_eq!(told.len(), 2, "{told:?}\n{report}");
    let spec = |file: &str| format!("{}:{file}", branches(&world)[0]);
    let test = git(&world.work(), &["show", &spec("tests/test_bill.py")]);
    assert!(test.contains("total(3), 6"), "{test}");
    assert_eq!(git(&world.work(), &["show", &spec("store")]), "one");
    assert_eq!(git(&world.work(), &["show", &spec("shop/a.txt")]), "a");
}

#[test]
fn agents_that_were_killed_with_their_run_go_on_where_they_were() {
    let world = World::new();
    project(&world);
    let before = belongings(&world);
    let slow = |id: &str| {
        let file = format!("{id}.py");
        let turn = agent(
            &format!("do the {id} thing"),
            &[later(), writes(&file, "def value():\n    return 7\n")],
        );
        // A question that the kill cut off is asked again.
        Turn {
            times: Some(0),
            ..turn
        }
    };
    let server = script(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &[]),
                module("gamma", &["alpha"]),
            ],
        ),
        // What was integrated before is in the history that an agent is shown.
        slow("gamma"),
        slow("beta"),
        slow("alpha"),
    ]);
    let model = strong(&server);
    let line = [
        "run", "--task", TASK, "--model", &model, "--coder", "model", "--agents", "3",
    ];
    let mut child = world
        .command(&line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(&world, |logs| {
        logs.iter()
            .any(|line| line["event"] == "effect_intended" && line["name"] == "await_agent")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    for job in ["alpha", "beta", "gamma"] {
        assert_eq!(status(&report, job), "integrated");
    }
    assert_eq!(branches(&world).len(), 1);
    assert_eq!(belongings(&world), before);
    // One plan and one turn for each agent: nothing was asked again but what the kill cut off.
    assert!(server.arrived().len() <= 7, "{}", server.arrived().len());
}

#[test]
fn an_agent_proposes_another_plan_and_is_told_why_not_or_sees_it_done() {
    let world = World::new();
    project(&world);
    let says = |when: &str, wish: Value| {
        let call = vec![ScriptedCall {
            name: "propose".to_owned(),
            arguments: wish,
        }];
        Turn {
            when: Some(when.to_owned()),
            call,
            ..Turn::default()
        }
    };
    let halves = [module("first", &[]), module("second", &[])];
    let server = script(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &["alpha"]),
                module("gamma", &["beta"]),
            ],
        ),
        // What it is told leads it on, from one proposal to the next.
        says("wait for each other", json!({"cancel": ["alpha"]})),
        says(
            "has begun",
            json!({"replace": {"task": "gamma", "with": halves}}),
        ),
        agent(
            "Accepted. The plan is now",
            &[writes("alpha.py", "def value():\n    return 7\n")],
        ),
        builds("second"),
        builds("first"),
        builds("beta"),
        says(
            "do the alpha thing",
            json!({"need": [{"task": "beta", "needs": "gamma"}]}),
        ),
    ]);
    let report = run(&world, &server, &[]).exits(0).json();
    for job in ["alpha", "beta", "first", "second"] {
        assert_eq!(status(&report, job), "integrated", "{job}");
    }
    assert_eq!(status(&report, "gamma"), "superseded");
    assert_eq!(report["plan"]["version"], 2);
    let needs = &report["plan"]["jobs"]["first"]["job"]["deps"];
    assert_eq!(*needs, json!(["beta"]), "what it replaced needed that");
    let told: Vec<String> = logs(&world)
        .iter()
        .filter_map(|line| Some(line["text"].as_str()?.to_owned()))
        .filter(|text| text.contains("alpha wants another plan"))
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("Refused") && told[1].contains("Refused"));
    assert!(told[2].contains("Accepted"), "{told:?}");
    let spec = format!("{}:second.py", branches(&world)[0]);
    assert!(git(&world.work(), &["show", &spec]).contains("return 7"));
    world.run(&["replay", "last", "--verify"]).exits(0);
    assert_eq!(server.unused(), 0);
}

#[test]
fn fail_fast_begins_nothing_after_the_first_failure() {
    let world = World::new();
    project(&world);
    // It says that it is done and has done nothing.
    let idle = || agent("do the alpha thing", &[]);
    let server = script(vec![
        plan(
            TASK,
            &[
                module("alpha", &[]),
                module("beta", &[]),
                module("gamma", &["alpha"]),
            ],
        ),
        idle(),
    ]);
    let more = ["--agents", "1", "--fail-fast", "--max-loops", "0"];
    let report = run(&world, &server, &more).exits(1).json();
    assert_eq!(status(&report, "alpha"), "failed");
    assert_eq!(status(&report, "beta"), "skipped");
    assert_eq!(status(&report, "gamma"), "skipped");
    let why = &report["plan"]["jobs"]["beta"]["reason"]["why"];
    assert_eq!(why, "fail_fast");
    // Nobody was asked to mend the plan, and nobody began.
    assert_eq!(server.arrived().len(), 2);
    assert!(branches(&world).is_empty());
}

#[test]
fn cancelling_a_run_ends_its_agents() {
    let world = World::new();
    project(&world);
    let endless = |id: &str, seconds: u32| {
        let goal = format!("do the {id} thing");
        let command = format!("sleep {seconds}");
        agent(&goal, &[("run", json!({"command": command}))])
    };
    let server = script(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &[])]),
        endless("alpha", 3611),
        endless("beta", 3612),
    ]);
    let model = strong(&server);
    let line = [
        "run", "--task", TASK, "--model", &model, "--coder", "model", "--agents", "2",
    ];
    let mut child = world
        .command(&line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(&world, |_| is_asleep(3611) && is_asleep(3612));
    world.run(&["cancel", "last"]).exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!is_asleep(3611) && !is_asleep(3612));
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    for job in ["alpha", "beta"] {
        let run = shown["plan"]["jobs"][job]["run"].as_str().unwrap();
        let agent = world.run(&["show", run, "--json"]).exits(0).json();
        assert_eq!(agent["status"], "done", "{agent}");
        assert!(agent["summary"].as_str().unwrap().contains("cancelled"));
    }
    assert!(branches(&world).is_empty());
}
