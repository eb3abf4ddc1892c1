//! `cargo xtask bench workspace`

use std::fmt::Write;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use super::program;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// Key and name for people.
const ROWS: [(&str, &str); 8] = [
    ("open", "lula: open a workspace"),
    ("diff", "lula: diff"),
    ("commit", "lula: commit (durable, undoable)"),
    ("undo", "lula: undo (durable, undoable)"),
    ("redo", "lula: redo (durable, undoable)"),
    ("cp_a", "cp -a"),
    ("cp_a_sync", "cp -a, sync"),
    ("git_checkout", "git checkout"),
];

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// Changed files
    #[arg(long, default_value_t = 10_000)]
    files: u32,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let bench = program::example(repository, interrupt, "lula-workspace", "workspace_bench")?;
    let output = Command::new(bench)
        .arg(flags.files.to_string())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the benchmark")?;
    if !output.status.success() {
        bail!("the benchmark ended with {}", output.status);
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    if flags.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", table(&report)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &Value) -> Result<String> {
    let mut out = format!(
        "| {} changed files | ms | files/s |\n|---|---:|---:|\n",
        report["files"]
    );
    let rows = report["rows"].as_array().context("no rows")?;
    for (key, name) in ROWS {
        let row = rows.iter().find(|row| row["name"] == key);
        let row = row.with_context(|| format!("no row {key}"))?;
        let ms = row["seconds"].as_f64().unwrap_or_default() * 1000.0;
        let rate = row["files_per_second"].as_f64();
        let rate = rate.map_or_else(String::new, |rate| format!("{rate:.0}"));
        writeln!(out, "| {name} | {ms:.1} | {rate} |")?;
    }
    Ok(out)
}
