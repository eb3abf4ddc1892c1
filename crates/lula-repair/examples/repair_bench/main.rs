//! Has `lula repair` mend the seeded bugs, as a user would, and reports what it mended, as tables
//! and as JSON.
//!
//!     cargo run --release -p lula-repair --example repair_bench -- --lula PROGRAM [FILTER] [--budget SECONDS] [--json FILE] [--held-out|--practice]
//!
//! `--rate` measures validations per minute instead; `--verify` shows whether the bugs are sound.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used
)]

#[path = "../../tests/support/corpus.rs"]
mod corpus;
mod door;
mod rate;
mod tally;
#[path = "../../tests/support/unsandboxed.rs"]
mod unsandboxed;

use std::path::Path;
use std::time::Duration;

use corpus::{Bug, Project, Set, projects};
use door::Door;
use lula_repair::{TestSelection, run_tests};
use tally::{Row, Tally};
use unsandboxed::UnsandboxedGround;

/// What was asked for.
struct BenchOptions {
    filter: String,
    door: Door,
    budget: Duration,
    json: Option<String>,
    set: Set,
    work: BenchMode,
}

enum BenchMode {
    Repair,
    Rate,
    Verify,
}

fn wanted() -> BenchOptions {
    let mut wanted = BenchOptions {
        filter: String::new(),
        door: Door::new("lula"),
        budget: Duration::from_mins(1),
        json: None,
        set: Set::Known,
        work: BenchMode::Repair,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--budget" => {
                let seconds = arguments.next().and_then(|text| text.parse().ok());
                wanted.budget = Duration::from_secs(seconds.expect("--budget takes seconds"));
            }
            "--lula" => wanted.door = Door::new(arguments.next().expect("--lula takes a program")),
            "--json" => wanted.json = arguments.next(),
            "--held-out" => wanted.set = Set::HeldOut,
            "--practice" => wanted.set = Set::Practice,
            "--verify" => wanted.work = BenchMode::Verify,
            "--rate" => wanted.work = BenchMode::Rate,
            _ => wanted.filter = argument,
        }
    }
    wanted
}

fn main() {
    let wanted = wanted();
    if matches!(wanted.work, BenchMode::Rate) {
        let rate = rate::measure(&wanted.door);
        println!("{rate}");
        write(
            wanted.json.as_deref(),
            &serde_json::to_string_pretty(&rate).unwrap(),
        );
        return;
    }
    let mut rows = Vec::new();
    if matches!(wanted.work, BenchMode::Repair) {
        println!("{}", Row::HEADING);
    }
    for project in projects(wanted.set) {
        for bug in &project.bugs {
            if !format!("{}/{}", project.name, bug.id).contains(&wanted.filter) {
                continue;
            }
            if matches!(wanted.work, BenchMode::Verify) {
                verify(&project, bug);
                continue;
            }
            let row = attempt(&wanted.door, &project, bug, wanted.budget);
            println!("{row}");
            rows.push(row);
        }
    }
    if matches!(wanted.work, BenchMode::Repair) {
        let tally = Tally::of(rows);
        println!("\n{tally}");
        write(
            wanted.json.as_deref(),
            &serde_json::to_string_pretty(&tally).unwrap(),
        );
    }
}

fn write(path: Option<&str>, text: &str) {
    if let Some(path) = path {
        std::fs::write(path, text).expect("a file that can be written");
    }
}

/// What fails of a project's tests; nothing where they cannot be run.
fn failing(folder: &Path) -> Option<Vec<String>> {
    let ground = UnsandboxedGround::new(folder);
    let report = run_tests(&ground, &TestSelection::default(), Duration::from_mins(1)).ok()?;
    Some(report.failing().map(|test| test.id.clone()).collect())
}

/// A bug that no visible test shows, or that hidden tests miss, measures nothing.
fn verify(project: &Project, bug: &Bug) {
    let seeded = project.seeded(bug);
    let failing = |folder: &Path| failing(folder).expect("tests that run");
    let shown = failing(seeded.path());
    project.reveal(seeded.path());
    let hidden = failing(seeded.path());
    let sound = project.sound();
    project.reveal(sound.path());
    let wrong = failing(sound.path());
    let verdict = if shown.is_empty() {
        "NOT SHOWN by visible tests"
    } else if hidden.len() <= shown.len() {
        "NOT SHOWN by hidden tests"
    } else if !wrong.is_empty() {
        "reference FAILS"
    } else {
        "fine"
    };
    println!(
        "{}/{}: {verdict} ({} visible, {} hidden; {wrong:?})",
        project.name,
        bug.id,
        shown.len(),
        hidden.len().saturating_sub(shown.len())
    );
}

fn attempt(door: &Door, project: &Project, bug: &Bug, budget: Duration) -> Row {
    let seeded = project.seeded(bug);
    let answer = door.repair(seeded.path(), budget, &[]);
    let mut row = Row {
        language: project.language().to_owned(),
        project: project.name.clone(),
        bug: bug.id.clone(),
        seconds: answer.seconds,
        ..Row::default()
    };
    let report = match answer.report {
        Ok(report) => report,
        Err(said) => {
            row.note = said;
            return row;
        }
    };
    row.tried = report.effort.tried;
    row.search_seconds = Duration::from_millis(report.effort.search_ms).as_secs_f64();
    row.note = format!("{:?} of {}", report.outcome, report.effort.proposed);
    if let Some(patch) = report.patches.first() {
        row.plausible = true;
        row.note = format!("{:?}", patch.family);
        for file in &patch.files {
            std::fs::write(seeded.path().join(&file.path), &file.text)
                .expect("a patch that can be written");
        }
        project.reveal(seeded.path());
        row.correct = failing(seeded.path()).is_some_and(|failing| failing.is_empty());
        if !row.correct || std::env::var_os("SHOW").is_some() {
            eprintln!("{}/{}: {}\n{}", project.name, bug.id, bug.about, patch.diff);
        }
    }
    row
}
