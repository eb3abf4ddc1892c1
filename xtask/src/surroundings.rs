//! `cargo xtask surroundings`: every tier, attacked in every surrounding, as a table for the documentation.

#[path = "../../tests/surroundings/mod.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "it is test code, which says no by panicking, and the tests use more of it"
)]
mod around;

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::bench::program::{self, Profile};
use crate::interrupt::Interrupt;
use crate::repository::Repository;
use crate::requirements;
use crate::standing::{Standing, cell, put};
use around::{Stage, Surrounding};

const DEPLOY_FROM_HERE: &str = "../deploy";

/// The page, and the lines between which the table stands.
const PAGE: &str = "docs/surroundings.md";
const BEGIN: &str = "<!-- begin: cargo xtask surroundings -->\n";
const END: &str = "<!-- end -->\n";

#[derive(Args)]
pub(crate) struct Flags {
    /// Only these surroundings; the page is then left as it is
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Program to try, instead of one that is built for it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Say of each probe that does not hold what was seen
    #[arg(long)]
    verbose: bool,
}

/// What was found in one surrounding.
struct Row {
    surrounding: &'static Surrounding,
    standing: Standing,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        bail!("surroundings are set up as root, as engines are: run it as root");
    }
    let program = match &flags.program {
        Some(program) => program.clone(),
        None => match program::lula(repository, interrupt, Profile::Dev)? {
            ControlFlow::Continue(program) => program,
            ControlFlow::Break(failed) => return Ok(failed),
        },
    };
    let chosen = |one: &&Surrounding| {
        flags.only.is_empty() || flags.only.iter().any(|name| name == one.name)
    };
    let stage = Stage::new(&program);
    let mut rows = Vec::new();
    for surrounding in around::ALL.iter().filter(chosen) {
        for needed in surrounding.needs {
            if requirements::program(needed).is_none() {
                bail!("{} is missing, which {} needs", needed, surrounding.name);
            }
        }
        let lula = |arguments: &[&str]| document(surrounding, &stage, arguments);
        let standing = Standing::found(lula, true, flags.verbose)
            .with_context(|| format!("in {}", surrounding.name))?;
        let row = Row {
            surrounding,
            standing,
        };
        println!("{}", line(&row));
        rows.push(row);
    }
    let table = table(&rows);
    if flags.only.is_empty() {
        let page = repository.root().join(PAGE);
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, put(&text, BEGIN, END, &table)?)?;
    }
    let kept = rows.iter().all(|row| row.standing.is_kept());
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What `lula` prints there with these arguments.
fn document(surrounding: &Surrounding, stage: &Stage, arguments: &[&str]) -> Result<Value> {
    let output = surrounding.command(stage, arguments).output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "lula {arguments:?} ended with {}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn line(row: &Row) -> String {
    let tiers: Vec<_> = row.standing.tiers.iter().map(ToString::to_string).collect();
    let mark = if row.standing.is_kept() {
        "ok  "
    } else {
        "FAIL"
    };
    format!("{mark} {}: {}", row.surrounding.name, tiers.join(" | "))
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| surrounding | what it is | namespace | landlock | what would give more |\n\
         |---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            row.surrounding.name,
            row.surrounding.what,
            cell(&row.standing.tiers[0].to_string()),
            cell(&row.standing.tiers[1].to_string()),
            cell(row.standing.remedy.as_deref().unwrap_or(""))
        );
    }
    out
}
