//! `lula heal`: what breaks is mended once, and what is green is not spoken of

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{CODE, LulaEnv, MENDED, Repo, TESTS, git};

const GOOD: &str = "\
def last(items):
    return items[len(items) - 1]


def double(x):
    return x * 2
";

fn healthy(world: &LulaEnv) {
    let files = [
        ("items.py", GOOD),
        ("tests/__init__.py", ""),
        ("tests/test_items.py", TESTS),
    ];
    Repo::with(world, &files);
}

fn commit(world: &LulaEnv, path: &str, text: &str) {
    std::fs::write(world.work().join(path), text).unwrap();
    git(&world.work(), &["add", "--all"]);
    git(&world.work(), &["commit", "--quiet", "--message=more"]);
}

fn heal(world: &LulaEnv, more: &[&str], status: i32) -> Value {
    let arguments = [&["heal", "--json"][..], more].concat();
    world.run(&arguments).exits(status).json()
}

fn runs(world: &LulaEnv) -> usize {
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    runs.as_array().unwrap().len()
}

fn history(world: &LulaEnv) -> Value {
    let history = world.run(&["heal", "--history", "--json"]).exits(0).json();
    history["episodes"].clone()
}

#[test]
fn two_breakages_are_two_runs_the_same_one_is_one_and_green_is_quiet() {
    let world = LulaEnv::new();
    healthy(&world);
    let quiet = world.run(&["heal"]).exits(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(runs(&world), 0);

    // The first breakage is mended on a branch; the checkout stays as it is.
    commit(&world, "items.py", CODE);
    let first = heal(&world, &[], 0);
    assert_eq!(first["health"], "broken", "{first}");
    assert_eq!(first["act"], "begin");
    let outcome = &first["episode"]["outcome"];
    assert_eq!(outcome["exit"], "verified");
    let branch = outcome["branch"].as_str().unwrap().to_owned();
    assert_eq!(Repo::of(&world).branches(), std::slice::from_ref(&branch));
    let mended = git(&world.work(), &["show", &format!("{branch}:items.py")]);
    assert!(mended.contains(MENDED), "{mended}");
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");

    // The same breakage in another commit, seen by another process: nothing is begun.
    commit(&world, "notes.txt", "more\n");
    let again = heal(&world, &[], 0);
    assert_eq!(again["act"], "known", "{again}");
    assert_eq!(again["episode"]["seen"], 2);
    assert_eq!(runs(&world), 1);
    let said = world.run(&["heal"]).exits(0).stdout;
    assert!(said.contains(&format!("merge {branch}")), "{said}");

    // Merged and green again, without a word.
    git(&world.work(), &["merge", "--quiet", "--no-edit", &branch]);
    let quiet = world.run(&["heal"]).exits(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));

    // Another breakage is another run.
    commit(&world, "items.py", &GOOD.replace("x * 2", "x * 3"));
    let second = heal(&world, &[], 0);
    assert_eq!(second["act"], "begin", "{second}");
    assert_ne!(second["fingerprint"], first["fingerprint"]);
    assert_eq!(runs(&world), 2);
    let episodes = history(&world);
    assert_eq!(episodes.as_array().unwrap().len(), 2, "{episodes}");
    assert!(episodes[0]["gone_ms"].is_u64());
    assert_eq!(episodes[1]["gone_ms"], json!(null));
    let shown = world.run(&["heal", "--history"]).exits(0).stdout;
    assert!(shown.contains("test_double"), "{shown}");
}

#[test]
fn what_cannot_be_mended_is_tried_once_and_said_to_be_broken() {
    let world = LulaEnv::new();
    // Nothing that search could find makes this pass.
    let files = [
        ("shop.py", "def name():\n    return 'shop'\n"),
        (
            "test_shop.py",
            "import unittest\nfrom shop import name\n\n\nclass Shop(unittest.TestCase):\n    def \
             test_name(self):\n        self.assertEqual(name(), 'a name that nobody could guess')\n",
        ),
    ];
    Repo::with(&world, &files);
    let first = heal(&world, &["--search", "3s"], 1);
    assert_eq!(first["act"], "begin", "{first}");
    let again = heal(&world, &[], 1);
    assert_eq!(again["act"], "known", "{again}");
    assert_eq!(runs(&world), 1);
    assert!(Repo::of(&world).branches().is_empty());
    // Unless it is asked for, within the limit.
    let limited = heal(&world, &["--again", "--max-per-hour", "1"], 4);
    assert_eq!(limited["act"], "too_many", "{limited}");
    assert_eq!(runs(&world), 1);
    heal(&world, &["--again", "--search", "3s"], 1);
    assert_eq!(runs(&world), 2);
}

#[test]
fn a_command_is_watched_like_tests_and_its_failures_are_told_apart() {
    let world = LulaEnv::new();
    Repo::with(
        &world,
        &[
            ("status", "error: no colour\n"),
            ("ci.sh", "cat status; test ! -s status\n"),
        ],
    );
    let cmd = ["--cmd", "sh ci.sh", "--search", "2s"];
    let first = heal(&world, &cmd, 1);
    assert_eq!(first["health"], "broken", "{first}");
    commit(&world, "status", "error: no sound\n");
    let second = heal(&world, &cmd, 1);
    assert_ne!(first["fingerprint"], second["fingerprint"]);
    assert_eq!(heal(&world, &cmd, 1)["act"], "known");
    commit(&world, "status", "");
    assert_eq!(heal(&world, &cmd, 0)["health"], "green");
    assert_eq!(runs(&world), 2);
}

#[test]
fn a_history_that_cannot_be_read_begins_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let directory = world.home().join(".local/state/lula/runs/heal");
    std::fs::create_dir_all(&directory).unwrap();
    heal(&world, &[], 0);
    let file = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "json"))
        .unwrap();
    std::fs::write(&file, "{").unwrap();
    let said = world.run(&["heal"]).exits(6).stderr;
    assert!(said.contains("history"), "{said}");
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_watcher_mends_the_next_commit_and_ends_when_it_is_told() {
    let world = LulaEnv::new();
    healthy(&world);
    let mut watcher = world
        .command(&["heal", "--watch", "--interval", "200ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["health"], "green");
    commit(&world, "items.py", CODE);
    let mended = next();
    assert_eq!(mended["act"], "begin", "{mended}");
    assert_eq!(mended["exit"], "verified");
    let pid = watcher.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(told.success());
    assert_eq!(watcher.wait().unwrap().code(), Some(0));
    assert_eq!(Repo::of(&world).branches().len(), 1);
    // What it knew is known to the next one.
    assert_eq!(heal(&world, &[], 0)["act"], "known");
}

#[test]
fn a_killed_healer_goes_on_with_the_run_it_began() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut healer = world
        .command(&["heal", "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(healer.stderr.take().unwrap()).lines();
    let begun = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("run run_"));
    healer.kill().unwrap();
    healer.wait().unwrap();
    let run = begun.unwrap().split_once(' ').unwrap().1.to_owned();
    assert_eq!(history(&world)[0]["run"], run.as_str());
    let ended = heal(&world, &[], 0);
    assert_eq!(
        (&ended["act"], &ended["run"]),
        (&json!("go_on"), &json!(run))
    );
    assert_eq!(runs(&world), 1);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}
