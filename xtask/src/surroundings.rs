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
use around::{Stage, Surrounding};

const DEPLOY_FROM_HERE: &str = "../deploy";

/// The tiers that are a boundary.
const TIERS: [&str; 2] = ["namespace", "landlock"];

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
    /// For each of [`TIERS`].
    tiers: Vec<Cell>,
    /// The setting that would give more.
    remedy: Option<String>,
}

/// How a tier stands somewhere.
enum Cell {
    /// Why it cannot be had.
    Refused(String),
    /// How many attacks were made and how many held; how many limits are not in force.
    Attacked {
        held: usize,
        all: usize,
        unlimited: usize,
        is_floor: bool,
    },
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
        let row = look(&stage, surrounding, flags.verbose)
            .with_context(|| format!("in {}", surrounding.name))?;
        println!("{}", line(&row));
        rows.push(row);
    }
    let table = table(&rows);
    if flags.only.is_empty() {
        let page = repository.root().join(PAGE);
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, put(&text, &table)?)?;
    }
    let kept = rows.iter().all(Row::is_kept);
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Row {
    /// Whether some tier works and every attack on every one that works was held off, or the refusal names
    /// what to do.
    fn is_kept(&self) -> bool {
        let held = self.tiers.iter().all(|cell| match cell {
            Cell::Refused(_) => true,
            Cell::Attacked { held, all, .. } => held == all,
        });
        let works = self
            .tiers
            .iter()
            .any(|cell| matches!(cell, Cell::Attacked { .. }));
        held && (works || self.remedy.is_some())
    }
}

fn look(stage: &Stage, surrounding: &'static Surrounding, verbose: bool) -> Result<Row> {
    let report = document(surrounding, stage, &["doctor", "--json"])?;
    let mut remedy = None;
    let mut tiers = Vec::new();
    for name in TIERS {
        let found = report["tiers"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|tier| tier["name"] == name)
            .context("the report has no such tier")?;
        if let Some(said) = found["remedy"].as_str() {
            remedy.get_or_insert_with(|| said.to_owned());
        }
        if found["available"] != true {
            let reason = found["reason"].as_str().unwrap_or_default();
            tiers.push(Cell::Refused(reason.to_owned()));
            continue;
        }
        let attack = ["doctor", "--attack", "--tier", name, "--json"];
        let attack = document(surrounding, stage, &attack)?;
        let probes = attack["probes"]
            .as_array()
            .with_context(|| format!("no probes: {attack}"))?;
        let count = |outcome: &str| {
            let probes = probes.iter();
            probes.filter(|probe| probe["outcome"] == outcome).count()
        };
        for probe in probes {
            let outcome = &probe["outcome"];
            if verbose && outcome != "held" {
                println!(
                    "    {name} {outcome} {}: expected {}, saw {}",
                    probe["name"], probe["expected"], probe["observed"]
                );
            }
        }
        let unlimited = count("unlimited");
        tiers.push(Cell::Attacked {
            held: count("held"),
            all: probes.len() - unlimited,
            unlimited,
            is_floor: found["is_floor"] == true,
        });
    }
    Ok(Row {
        surrounding,
        tiers,
        remedy,
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

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::Attacked {
                held,
                all,
                unlimited,
                is_floor,
            } => {
                write!(f, "{held} of {all}")?;
                if *unlimited > 0 {
                    write!(f, ", {unlimited} not limited")?;
                }
                if !is_floor {
                    f.write_str("; shows the /proc around it")?;
                }
                Ok(())
            }
        }
    }
}

fn line(row: &Row) -> String {
    let cells: Vec<_> = row.tiers.iter().map(ToString::to_string).collect();
    let mark = if row.is_kept() { "ok  " } else { "FAIL" };
    format!("{mark} {}: {}", row.surrounding.name, cells.join(" | "))
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| surrounding | what it is | namespace | landlock | what would give more |\n\
         |---|---|---|---|---|\n",
    );
    for row in rows {
        let cell = |cell: &Cell| cell.to_string().replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            row.surrounding.name,
            row.surrounding.what,
            cell(&row.tiers[0]),
            cell(&row.tiers[1]),
            row.remedy.as_deref().unwrap_or("")
        );
    }
    out
}

/// The page with another table.
fn put(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the table has no end")?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tiers: Vec<Cell>, remedy: Option<&str>) -> Row {
        Row {
            surrounding: Surrounding::named("docker"),
            tiers,
            remedy: remedy.map(str::to_owned),
        }
    }

    fn attacked(held: usize, all: usize) -> Cell {
        Cell::Attacked {
            held,
            all,
            unlimited: 2,
            is_floor: true,
        }
    }

    #[test]
    fn a_surrounding_is_kept_where_all_that_works_holds_or_the_knob_is_named() {
        let refused = || Cell::Refused("no".to_owned());
        assert!(row(vec![refused(), attacked(9, 9)], None).is_kept());
        assert!(!row(vec![refused(), attacked(8, 9)], Some("x")).is_kept());
        assert!(row(vec![refused(), refused()], Some("a line to copy")).is_kept());
        assert!(!row(vec![refused(), refused()], None).is_kept());
    }

    #[test]
    fn only_the_table_of_the_page_changes() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let now = put(&page, "new\n").unwrap();
        assert_eq!(now, format!("before\n{BEGIN}new\n{END}after\n"));
        assert!(put("nothing", "new\n").is_err());
    }
}
