//! `cargo xtask bench graph`

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::chart::{self, Bar};
use super::crash;
use super::program;
use super::results::Results;
use crate::interrupt::Interrupt;
use crate::repository::Repository;
use crate::servers::{Need, Servers};

/// What the rival needs, newest from the package index.
const RIVAL: [&str; 5] = [
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "aiosqlite",
    "psycopg[binary,pool]",
];

/// How many runs share a store at once.
const WIDTHS: [u32; 3] = [1, 8, 64];

/// What acknowledged data survives: the default, and what may be chosen instead.
const DURABILITIES: [&str; 2] = ["power-loss", "process-crash"];

/// A ratio ours / theirs, of which row and field, and whether it may be at most or must be at
/// least so much.
const RATIOS: [(&str, &str, u32, Bound); 3] = [
    (
        "cpu_per_step_ratio",
        "cpu_us_per_step",
        1,
        Bound::AtMost(1.0 / 15.0),
    ),
    (
        "concurrent64_steps_ratio",
        "steps_per_second",
        64,
        Bound::AtLeast(50.0),
    ),
    (
        "bytes_per_run_ratio",
        "bytes_per_run",
        1,
        Bound::AtMost(0.2),
    ),
];

/// What the two sides keep, so that the reader does not compare more than there is.
const PERSISTED: &str = "
Both persist every step's kilobyte, and both go on after a crash with the step that was cut off.
- lula: nine steps, two of them calls of a model. Every event, hash-chained and compressed, with the
  state of each call; committed before each call and at the end: 3 commits for a run. What a call
  answered is committed with the next of these, or alone after 2 ms; until then nothing that follows
  from it is asked or shown. A step that asks the world for nothing is committed with the next of
  these, because run again it comes out the same. A crash repeats a call whose answer was not
  committed.
- langgraph (durability=\"sync\"): the writes of each step and then a checkpoint of the whole state:
  21 commits for a run, each before the next step begins. It does not know which steps ask the world
  for something. A crash repeats a step whose writes were not committed.
- power-loss is synchronous=FULL and process-crash synchronous=NORMAL on both sides, in WAL mode;
  Postgres runs as installed. CPU is that of the client's process, system calls included.
";

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(limit) => ratio <= limit,
            Self::AtLeast(limit) => ratio >= limit,
        }
    }

    fn spell(self) -> String {
        match self {
            Self::AtMost(limit) => format!("at most {limit:.3}"),
            Self::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// Runs of nine steps in each row of the rival; ours get ten times as many
    #[arg(long, default_value_t = 100)]
    runs: u32,
    /// Suspended runs that a fresh engine has to look after
    #[arg(long, default_value_t = 10_000)]
    suspended: u32,
    /// Only the embedded store: no servers, a tenth of the time
    #[arg(long)]
    sqlite: bool,
    /// Kill processes instead of measuring: what is lost, doubled and stuck
    #[arg(long)]
    crash: bool,
    /// How many processes are killed, for each backend of ours and for the rival
    #[arg(long, default_value_t = 100)]
    kills: u32,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    if flags.crash {
        return kill(flags, repository, &place);
    }
    let race = Race {
        ours: program::example(repository, interrupt, "lula-graph", "graph_bench")?,
        python: program::venv(&place, "langgraph", &RIVAL)?,
        script: repository.root().join("xtask/bench/rival_langgraph.py"),
        place: place.clone(),
        runs: flags.runs,
    };
    let mut servers = Servers::default();
    if !flags.sqlite {
        servers.start(Need::Postgres)?;
        servers.start(Need::Redis)?;
    }
    let rows = race.rows(&servers)?;
    let suspended = race.fresh("suspended", |directory| {
        measure(
            Command::new(&race.ours)
                .arg("suspended")
                .arg(directory)
                .arg(flags.suspended.to_string()),
        )
    })?;
    let mut report =
        json!({"rows": rows, "suspended": suspended, "rival": versions(&race.python)?});
    for (name, field, width, bound) in RATIOS {
        let ratio = |durability| ratio(&rows, durability, field, width);
        let met = |durability| ratio(durability).map(|ratio| bound.is_met(ratio));
        let [strict, other] = DURABILITIES;
        report[name] = json!(ratio(strict));
        report[other][name] = json!(ratio(other));
        report["targets"][name] =
            json!({"bound": bound.spell(), "met": met(strict), other: met(other)});
    }
    let results = Results {
        report: &report,
        table: &table(&report),
        plot: &plot(&rows),
    };
    results.publish(&place, "graph", flags.json)
}

/// Kills processes, ours and the rival's.
fn kill(flags: &Flags, repository: &Repository, place: &Path) -> Result<ExitCode> {
    let python = program::venv(place, "langgraph", &RIVAL)?;
    let script = repository
        .root()
        .join("xtask/bench/rival_langgraph_crash.py");
    let mut servers = Servers::default();
    servers.start(Need::Postgres)?;
    servers.start(Need::Redis)?;
    let mut rows = crash::ours(repository, &mut servers, flags.kills)?;
    let directory = tempfile::tempdir_in(place)?;
    rows.push(crash::theirs(
        &python,
        &script,
        directory.path(),
        flags.kills,
    )?);
    let report = json!({"crash": rows, "rival": versions(&python)?});
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(place.join("graph-crash.json"), &text)?;
    if flags.json {
        println!("{text}");
    } else {
        println!("{}", crash::table(&rows));
    }
    Ok(ExitCode::SUCCESS)
}

struct Race {
    ours: PathBuf,
    python: PathBuf,
    script: PathBuf,
    place: PathBuf,
    runs: u32,
}

impl Race {
    /// Every row, ours and theirs side by side.
    fn rows(&self, servers: &Servers) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        for durability in DURABILITIES {
            for width in WIDTHS {
                rows.push(self.fresh("ours", |place| self.we("sqlite", place, durability, width))?);
                rows.push(self.fresh("theirs", |place| {
                    self.they("sqlite", place, durability, width)
                })?);
            }
        }
        for (variable, url) in servers.variables() {
            let backend = if variable == Need::Postgres.variable() {
                "postgres"
            } else {
                "redis"
            };
            let durability = if backend == "postgres" {
                "power-loss"
            } else {
                "process-crash"
            };
            for width in WIDTHS {
                rows.push(self.we(backend, url.as_ref(), durability, width)?);
                if backend == "postgres" {
                    rows.push(self.they(backend, url.as_ref(), durability, width)?);
                }
            }
        }
        Ok(rows)
    }

    fn we(&self, backend: &str, place: &Path, durability: &str, width: u32) -> Result<Value> {
        let runs = (self.runs * 10).to_string();
        let mut command = Command::new(&self.ours);
        command.args(["run", backend]).arg(place);
        measure(command.args([durability, &runs, &width.to_string()]))
    }

    fn they(&self, backend: &str, place: &Path, durability: &str, width: u32) -> Result<Value> {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(backend).arg(place);
        measure(command.args([durability, &self.runs.to_string(), &width.to_string()]))
    }

    /// Measures in an empty directory, on the disk the build is on.
    fn fresh(&self, name: &str, work: impl FnOnce(&Path) -> Result<Value>) -> Result<Value> {
        let directory = self.place.join(format!("graph-{name}"));
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        let measured = work(&directory);
        std::fs::remove_dir_all(&directory)?;
        measured
    }
}

pub(super) fn measure(command: &mut Command) -> Result<Value> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}",
            command.get_program().display(),
            output.status
        );
    }
    serde_json::from_slice(&output.stdout).context("a measurement is not JSON")
}

fn versions(python: &Path) -> Result<Value> {
    let show = "import importlib.metadata as m, json; \
                print(json.dumps({d.name: d.version for d in m.distributions() \
                if d.name.startswith('langgraph')}))";
    measure(Command::new(python).args(["-c", show]))
}

fn find<'a>(rows: &'a [Value], engine: &str, durability: &str, width: u32) -> Option<&'a Value> {
    rows.iter().find(|row| {
        row["engine"] == engine
            && row["backend"] == "sqlite"
            && row["durability"] == durability
            && row["concurrency"] == width
    })
}

/// Ours over theirs, on SQLite with both surviving the same.
fn ratio(rows: &[Value], durability: &str, field: &str, width: u32) -> Option<f64> {
    let of = |engine| find(rows, engine, durability, width)?[field].as_f64();
    Some(of("lula")? / of("langgraph")?)
}

fn table(report: &Value) -> String {
    let mut out = String::from(
        "| | backend | survives | at once | CPU per step | steps/s | bytes per run |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in report["rows"].as_array().into_iter().flatten() {
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let number = |field: &str| {
            let value = row[field].as_f64();
            value.map_or("–".to_owned(), |value| format!("{value:.0}"))
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} µs | {} | {} |",
            text("engine"),
            text("backend"),
            text("durability"),
            row["concurrency"],
            number("cpu_us_per_step"),
            number("steps_per_second"),
            number("bytes_per_run"),
        );
    }
    out.push('\n');
    for (name, ..) in RATIOS {
        let spell = |ratio: &Value| {
            let ratio = ratio.as_f64();
            ratio.map_or("not measured".to_owned(), |ratio| format!("{ratio:.3}"))
        };
        let [strict, other] = DURABILITIES;
        let (ratio, less) = (spell(&report[name]), spell(&report[other][name]));
        let bound = report["targets"][name]["bound"]
            .as_str()
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "- {name}: **{ratio}** surviving {strict}, {less} surviving {other} ({bound})"
        );
    }
    let suspended = &report["suspended"];
    let _ = writeln!(
        out,
        "- {} suspended runs: opened and swept in {:.3} s, {:.1} MB resident",
        suspended["suspended_runs"],
        suspended["open_and_sweep_seconds"]
            .as_f64()
            .unwrap_or(f64::NAN),
        suspended["resident_mb"].as_f64().unwrap_or(f64::NAN),
    );
    out.push_str(PERSISTED);
    out
}

fn plot(rows: &[Value]) -> String {
    let labels: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default();
            let label = format!(
                "{} {} ×{}",
                text("engine"),
                text("backend"),
                row["concurrency"]
            );
            (label, row)
        })
        .filter(|(_, row)| row["durability"] == "power-loss" || row["backend"] == "redis")
        .collect();
    let bars: Vec<_> = labels
        .iter()
        .filter_map(|(label, row)| {
            let cpu = row["cpu_us_per_step"].as_f64()?;
            Some(Bar {
                label,
                p50: cpu,
                p95: cpu,
                ours: row["engine"] == "lula",
            })
        })
        .collect();
    chart::svg("Processor time per durable step", &bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(engine: &str, width: u32, cpu: f64) -> Value {
        json!({"engine": engine, "backend": "sqlite", "durability": "power-loss",
               "concurrency": width, "cpu_us_per_step": cpu})
    }

    #[test]
    fn a_ratio_is_ours_over_the_rivals_at_equal_durability() {
        let rows = [
            row("lula", 1, 50.0),
            row("langgraph", 1, 1000.0),
            row("lula", 64, 40.0),
        ];
        assert_eq!(ratio(&rows, "power-loss", "cpu_us_per_step", 1), Some(0.05));
        assert_eq!(
            ratio(&rows, "power-loss", "cpu_us_per_step", 64),
            None,
            "no rival, no ratio"
        );
        assert_eq!(
            ratio(&rows, "process-crash", "cpu_us_per_step", 1),
            None,
            "what survives less is not compared"
        );
    }

    #[test]
    fn a_bound_is_met_on_its_side() {
        assert!(Bound::AtMost(0.2).is_met(0.1) && !Bound::AtMost(0.2).is_met(0.3));
        assert!(Bound::AtLeast(50.0).is_met(60.0) && !Bound::AtLeast(50.0).is_met(40.0));
    }
}
