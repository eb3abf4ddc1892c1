//! Runs the repairer on the seeded bugs and reports what it mended, as a table and as JSON.
//!
//!     cargo run --release -p lula-repair --example bench -- [FILTER] [--budget SECONDS] [--json FILE] [--check]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used
)]

#[path = "../tests/support/corpus.rs"]
mod corpus;
#[path = "../tests/support/unsandboxed.rs"]
mod unsandboxed;

use std::time::{Duration, Instant};

use corpus::{Bug, Project, projects};
use lula_repair::{RepairTask, repair, run_tests};
use serde::Serialize;
use unsandboxed::UnsandboxedGround;

#[derive(Debug, Serialize)]
struct Row {
    project: String,
    bug: String,
    plausible: bool,
    correct: bool,
    seconds: f64,
    tried: usize,
    per_second: f64,
    family: String,
    note: String,
}

#[derive(Debug, Serialize)]
struct Summary {
    bugs: usize,
    plausible: usize,
    correct: usize,
    plausible_share: f64,
    correct_share: f64,
    median_seconds: f64,
    rows: Vec<Row>,
}

fn main() {
    let mut filter = String::new();
    let (mut budget, mut json, mut check) = (Duration::from_secs(60), None, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--budget" => {
                budget = Duration::from_secs(
                    arguments
                        .next()
                        .and_then(|text| text.parse().ok())
                        .expect("--budget takes seconds"),
                )
            }
            "--json" => json = arguments.next(),
            "--check" => check = true,
            _ => filter = argument,
        }
    }
    let mut rows = Vec::new();
    println!(
        "| project | bug | plausible | correct | seconds | tried | per second | patch |\n|---|---|---|---|---|---|---|---|"
    );
    for project in projects() {
        for bug in &project.bugs {
            if !format!("{}/{}", project.name, bug.id).contains(&filter) {
                continue;
            }
            if check {
                verify(&project, bug);
                continue;
            }
            let row = attempt(&project, bug, budget);
            let mark = |done: bool| if done { "yes" } else { "no" };
            println!(
                "| {} | {} | {} | {} | {:.1} | {} | {:.0} | {} |",
                row.project,
                row.bug,
                mark(row.plausible),
                mark(row.correct),
                row.seconds,
                row.tried,
                row.per_second,
                if row.plausible {
                    &row.family
                } else {
                    &row.note
                }
            );
            rows.push(row);
        }
    }
    if !check {
        summarise(rows, json);
    }
}

/// A bug that no visible test shows, or that hidden tests miss, measures nothing.
fn verify(project: &Project, bug: &Bug) {
    let failing = |folder: &std::path::Path| {
        let report = run_tests(
            &UnsandboxedGround::new(folder),
            None,
            Duration::from_secs(60),
        )
        .expect("tests that run");
        report
            .failing()
            .map(|test| test.id.clone())
            .collect::<Vec<_>>()
    };
    let seeded = project.seeded(bug);
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
        hidden.len() - shown.len()
    );
}

fn attempt(project: &Project, bug: &Bug, budget: Duration) -> Row {
    let seeded = project.seeded(bug);
    let started = Instant::now();
    let task = RepairTask {
        budget,
        ..RepairTask::default()
    };
    let mut row = Row {
        project: project.name.clone(),
        bug: bug.id.clone(),
        plausible: false,
        correct: false,
        seconds: 0.0,
        tried: 0,
        per_second: 0.0,
        family: String::new(),
        note: String::new(),
    };
    match repair(&UnsandboxedGround::new(seeded.path()), &task, &|_| ()) {
        Ok(report) => {
            row.tried = report.effort.tried;
            row.per_second = report.effort.per_second();
            row.note = format!("{:?} of {}", report.outcome, report.effort.proposed);
            if let Some(patch) = report.patches.first() {
                row.plausible = true;
                row.family = format!("{:?}", patch.family);
                for file in &patch.files {
                    std::fs::write(seeded.path().join(&file.path), &file.text)
                        .expect("a patch that can be written");
                }
                row.seconds = started.elapsed().as_secs_f64();
                project.reveal(seeded.path());
                let hidden = run_tests(
                    &UnsandboxedGround::new(seeded.path()),
                    None,
                    Duration::from_secs(60),
                );
                row.correct = hidden.is_ok_and(|report| report.failing().next().is_none());
                if !row.correct || std::env::var_os("SHOW").is_some() {
                    eprintln!("{}/{}: {}\n{}", project.name, bug.id, bug.about, patch.diff);
                }
            }
        }
        Err(error) => row.note = error.to_string(),
    }
    if row.seconds == 0.0 {
        row.seconds = started.elapsed().as_secs_f64();
    }
    row
}

#[allow(clippy::cast_precision_loss)]
fn summarise(rows: Vec<Row>, json: Option<String>) {
    let mut times: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
    times.sort_by(f64::total_cmp);
    let bugs = rows.len().max(1);
    let plausible = rows.iter().filter(|row| row.plausible).count();
    let correct = rows.iter().filter(|row| row.correct).count();
    let summary = Summary {
        bugs: rows.len(),
        plausible,
        correct,
        plausible_share: plausible as f64 / bugs as f64,
        correct_share: correct as f64 / bugs as f64,
        median_seconds: times.get(times.len() / 2).copied().unwrap_or(0.0),
        rows,
    };
    println!(
        "\n{} bugs: {} plausible ({:.0} %), {} correct on hidden tests ({:.0} %), median {:.1} s over all",
        summary.bugs,
        summary.plausible,
        summary.plausible_share * 100.0,
        summary.correct,
        summary.correct_share * 100.0,
        summary.median_seconds
    );
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&summary).expect("a report that can be written");
        std::fs::write(path, text).expect("a file that can be written");
    }
}
