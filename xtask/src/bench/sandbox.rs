//! `cargo xtask bench sandbox`

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::chart::{self, Bar};
use super::program::{self, Profile};
use super::results::Results;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// Key, name for people, whether it is ours.
const ROWS: [(&str, &str, bool); 11] = [
    ("vfork_exec", "bare vfork + exec", false),
    ("built_in", "lula: ask a built-in", true),
    ("session_exec", "lula: exec in a session", true),
    ("warm", "lula: warm sandbox", true),
    ("cold", "lula: cold sandbox", true),
    ("cli_exec", "lula exec -- /bin/true", true),
    ("bwrap_minimal", "bwrap, minimal", false),
    ("bwrap_unshare_all", "bwrap --unshare-all", false),
    ("bwrap_unshare_all_true", "… with /bin/true", false),
    ("crun", "crun", false),
    ("runsc", "runsc (gVisor)", false),
];

/// A ratio, who it compares, and the most it may be.
const RATIOS: [(&str, &str, &str, f64); 3] = [
    ("cold_to_bwrap", "cold", "bwrap_unshare_all", 0.35),
    ("session_exec_to_vfork", "session_exec", "vfork_exec", 2.0),
    (
        "cli_exec_to_bwrap",
        "cli_exec",
        "bwrap_unshare_all_true",
        1.5,
    ),
];

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// Rounds; in each, every contender runs once
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Sandboxes for the leak check
    #[arg(long, default_value_t = 1000)]
    soak: u32,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    let noop = place.join("noop");
    build_noop(repository, &noop)?;
    let bench = program::example(repository, interrupt, "lula-sandbox", "sandbox_bench")?;
    // By itself, as people build it: together they would be made with the features of both.
    let lula = match program::lula(repository, interrupt, Profile::Dist)? {
        ControlFlow::Continue(lula) => lula,
        ControlFlow::Break(failed) => return Ok(failed),
    };
    #[cfg(target_arch = "x86_64")]
    crate::order::warn_if_old(repository, &lula)?;
    // As it would be installed: what a linker has just written lies in memory in smaller pieces than
    // what was copied or read from disk, as every rival here was.
    let installed = place.join("lula");
    std::fs::copy(lula, &installed)?;
    let output = Command::new(bench)
        .arg(flags.rounds.to_string())
        .arg(&noop)
        .arg(&installed)
        .arg(flags.soak.to_string())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the benchmark")?;
    if !output.status.success() {
        bail!("the benchmark ended with {}", output.status);
    }
    let mut report: Value = serde_json::from_slice(&output.stdout)?;
    report["ratios"] = ratios(&report);
    let results = Results {
        report: &report,
        table: &table(&report),
        plot: &plot(&report),
    };
    results.publish(&place, "sandbox", flags.json)
}

fn build_noop(repository: &Repository, to: &Path) -> Result<()> {
    let linking = ["-nostartfiles", "-nostdlib", "-static"].map(|flag| format!("link-arg={flag}"));
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition",
        "2024",
        "-O",
        "-C",
        "panic=abort",
        "-C",
        "relocation-model=static",
    ]);
    for flag in linking {
        rustc.args(["-C", &flag]);
    }
    rustc
        .arg("-o")
        .arg(to)
        .arg(repository.root().join("xtask/bench/noop.rs"));
    let status = rustc.status().context("cannot start rustc")?;
    if !status.success() {
        bail!("rustc ended with {status} on the no-op program");
    }
    Ok(())
}

fn p50(report: &Value, key: &str) -> Option<f64> {
    report[key]["p50_us"].as_f64()
}

fn ratios(report: &Value) -> Value {
    RATIOS
        .iter()
        .map(|(name, ours, rival, limit)| {
            let ratio = p50(report, ours)
                .zip(p50(report, rival))
                .map(|(a, b)| a / b);
            let met = ratio.map(|ratio| ratio <= *limit);
            (
                (*name).to_owned(),
                json!({"p50": ratio, "target": limit, "met": met}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn table(report: &Value) -> String {
    let mut out = String::from("| | p50 | p95 | min | n | command |\n|---|---|---|---|---|---|\n");
    for (key, name, _) in ROWS {
        let row = &report[key];
        let command = row["command"].as_str().unwrap_or_default();
        let time = |field: &str| row[field].as_f64().map_or("–".to_owned(), chart::human);
        let _ = match row["reason"].as_str() {
            Some(reason) => writeln!(out, "| {name} | not here: {reason} | | | | `{command}` |"),
            None => writeln!(
                out,
                "| {name} | {} | {} | {} | {} | `{command}` |",
                time("p50_us"),
                time("p95_us"),
                time("min_us"),
                row["n"]
            ),
        };
    }
    out.push('\n');
    for (name, ours, rival, limit) in RATIOS {
        let ratio = &report["ratios"][name]["p50"];
        let text = ratio
            .as_f64()
            .map_or("not measured".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(out, "- {ours} / {rival}: **{text}** (at most {limit})");
    }
    let idle = &report["idle"]["kb_each"];
    let leaks = &report["leaks"];
    let _ = writeln!(out, "- memory of an idle sandbox: {idle} kB");
    let _ = writeln!(
        out,
        "- {} sandboxes in a row: {}, before {}, after {}",
        leaks["sandboxes"],
        if leaks["clean"] == true {
            "nothing leaked"
        } else {
            "**something leaked**"
        },
        leaks["before"],
        leaks["after"]
    );
    out
}

fn plot(report: &Value) -> String {
    let bars: Vec<_> = ROWS
        .iter()
        .filter_map(|(key, label, ours)| {
            let p95 = report[key]["p95_us"].as_f64()?;
            Some(Bar {
                label,
                p50: p50(report, key)?,
                p95,
                ours: *ours,
            })
        })
        .collect();
    chart::svg("Time to run a program, median with 95th percentile", &bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_ours_over_the_rivals_and_a_missing_rival_is_no_success() {
        let report = json!({"cold": {"p50_us": 100.0}, "bwrap_unshare_all": {"p50_us": 400.0}});
        let ratios = ratios(&report);
        assert_eq!(ratios["cold_to_bwrap"]["p50"], 0.25);
        assert_eq!(ratios["cold_to_bwrap"]["met"], true);
        assert_eq!(ratios["cli_exec_to_bwrap"]["met"], Value::Null);
    }
}
