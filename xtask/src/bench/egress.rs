//! `cargo xtask bench egress`

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::chart::{self, Bar};
use super::program;
use super::results::Results;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// The rival that opens connections too.
const MITMPROXY: &str = "mitmproxy==11.0.2";

/// Key, name for people, whether it is ours.
const ROWS: [(&str, &str, bool); 5] = [
    ("direct", "direct", false),
    ("spliced", "lula: spliced", true),
    ("intercepted", "lula: intercepted", true),
    ("tinyproxy", "tinyproxy (relays)", false),
    ("mitmproxy", "mitmproxy (intercepts)", false),
];

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// Rounds; in each, every contender runs once
    #[arg(long, default_value_t = 9)]
    rounds: u32,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    let mitmdump = mitmproxy(&place)?;
    let bench = program::example(repository, interrupt, "lula-egress", "egress_bench")?;
    let folder = tempfile::tempdir()?;
    let output = Command::new(bench)
        .arg(flags.rounds.to_string())
        .arg(folder.path())
        .arg(mitmdump)
        .arg("tinyproxy")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the benchmark")?;
    if !output.status.success() {
        bail!("the benchmark ended with {}", output.status);
    }
    let mut report: Value = serde_json::from_slice(&output.stdout)?;
    report["targets"] = targets(&report);
    let results = Results {
        report: &report,
        table: &table(&report),
        plot: &plot(&report),
    };
    results.publish(&place, "egress", flags.json)
}

/// A Python with the rival in it, made once.
fn mitmproxy(place: &Path) -> Result<PathBuf> {
    let home = place.join("mitmproxy");
    if !home.join("complete").exists() {
        ok(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        let mut install = Command::new(home.join("bin/python"));
        ok(install.args(["-m", "pip", "install", "--quiet", MITMPROXY]))?;
        std::fs::write(home.join("complete"), "")?;
    }
    Ok(home.join("bin/mitmdump"))
}

fn ok(command: &mut Command) -> Result<()> {
    let status = command
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

/// What was aimed at; a rival that is not there is no success.
fn targets(report: &Value) -> Value {
    let number = |row: &str, field: &str| report[row][field].as_f64();
    let pair = |a: &str, b: &str, field: &str| number(a, field).zip(number(b, field));
    let spliced = pair("spliced", "direct", "mib_per_s").map(|(ours, theirs)| ours / theirs);
    let intercepted =
        pair("intercepted", "mitmproxy", "mib_per_s").map(|(ours, theirs)| ours / theirs);
    let added = pair("spliced", "direct", "connect_p50_us").map(|(ours, theirs)| ours - theirs);
    json!({
        "spliced_to_direct": {"value": spliced, "at_least": 0.8, "met": spliced.map(|value| value >= 0.8)},
        "intercepted_to_mitmproxy": {"value": intercepted, "at_least": 3.0, "met": intercepted.map(|value| value >= 3.0)},
        "connect_added_us": {"value": added, "at_most": 200.0, "met": added.map(|value| value <= 200.0)},
    })
}

fn table(report: &Value) -> String {
    let mut out = String::from(
        "| | MiB/s, median | best | processor ms for a GiB | connect and TLS, p50 | p95 | connects |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (key, name, _) in ROWS {
        let row = &report[key];
        let speed = |field: &str| {
            row[field]
                .as_f64()
                .map_or("–".to_owned(), |value| format!("{value:.0}"))
        };
        let time = |field: &str| row[field].as_f64().map_or("–".to_owned(), chart::human);
        let _ = match row["reason"].as_str() {
            Some(reason) => writeln!(out, "| {name} | not here: {reason} | | | | | |"),
            None => writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} | {} |",
                speed("mib_per_s"),
                speed("mib_per_s_best"),
                speed("relay_cpu_ms_per_gib"),
                time("connect_p50_us"),
                time("connect_p95_us"),
                row["n"]
            ),
        };
    }
    out.push('\n');
    for (name, text) in [
        (
            "spliced_to_direct",
            "spliced / direct, throughput (at least 0.8)",
        ),
        (
            "intercepted_to_mitmproxy",
            "intercepted / mitmproxy, throughput (at least 3)",
        ),
        (
            "connect_added_us",
            "µs that splicing adds to connect and TLS (at most 200)",
        ),
    ] {
        let value = report["targets"][name]["value"].as_f64();
        let value = value.map_or("not measured".to_owned(), |value| format!("{value:.2}"));
        let _ = writeln!(out, "- {text}: **{value}**");
    }
    out
}

fn plot(report: &Value) -> String {
    let bars: Vec<_> = ROWS
        .iter()
        .filter_map(|(key, label, ours)| {
            Some(Bar {
                label,
                p50: report[key]["connect_p50_us"].as_f64()?,
                p95: report[key]["connect_p95_us"].as_f64()?,
                ours: *ours,
            })
        })
        .collect();
    chart::svg(
        "Time to connect and agree on TLS, median with 95th percentile",
        &bars,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_that_is_missing_is_no_success() {
        let report = json!({
            "direct": {"mib_per_s": 1000.0, "connect_p50_us": 500.0},
            "spliced": {"mib_per_s": 900.0, "connect_p50_us": 650.0},
            "mitmproxy": {"reason": "not installed"},
        });
        let targets = targets(&report);
        assert_eq!(targets["spliced_to_direct"]["met"], true);
        assert_eq!(targets["connect_added_us"]["value"], 150.0);
        assert_eq!(targets["intercepted_to_mitmproxy"]["met"], Value::Null);
        assert!(table(&report).contains("not here: not installed"));
    }
}
