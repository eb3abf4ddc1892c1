//! `cargo xtask bench index`

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::chart::{self, Bar};
use super::program::{self, Profile, ok};
use super::results::Results;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// The rival, newest from the package index.
const RIVAL: &str = "aider-chat";
/// The project both make a map of: more than 500 files of Python and JavaScript.
const PROJECT: &str = "django==5.2.*";
const LEAST_FILES: usize = 500;
/// Both maps may have so many tokens, at three bytes each.
const TOKENS: &str = "4096";
/// Where the rival keeps what it learned.
const RIVAL_CACHE: &str = ".aider.tags.cache.v4";
const SITUATIONS: [&str; 3] = ["cold", "warm", "after one edit"];

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// How often ours is measured; the median counts. The rival is measured once
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    let lula = match program::lula(repository, interrupt, Profile::Dist)? {
        ControlFlow::Continue(lula) => lula,
        ControlFlow::Break(ended) => return Ok(ended),
    };
    let race = Race {
        lula,
        python: program::venv(&place, "aider", &[RIVAL])?,
        script: repository.root().join("xtask/bench/rival_aider.py"),
        project: project(&place)?,
        state: place.join("index-state"),
    };
    let files = count(&race.project)?;
    if files < LEAST_FILES {
        bail!("{PROJECT} has {files} files: too few for the race");
    }
    let mut rows = Vec::new();
    for situation in SITUATIONS {
        let mut ours = Vec::new();
        for _ in 0..flags.runs.max(1) {
            race.prepare(situation)?;
            ours.push(race.we()?);
        }
        rows.push(row("lula", situation, &median(ours)));
    }
    for situation in SITUATIONS {
        race.prepare(situation)?;
        rows.push(row("aider", situation, &race.they()?));
    }
    race.restore()?;
    let report = json!({
        "project": {"name": PROJECT, "files": files},
        "commands": {
            "lula": format!("lula index map PROJECT --tokens {TOKENS}"),
            "aider": format!("python xtask/bench/rival_aider.py map PROJECT {TOKENS}"),
        },
        "rows": rows,
        "rival": version(&race.python)?,
        "cpu_ratio": SITUATIONS
            .iter()
            .map(|situation| ((*situation).to_owned(), json!(ratio(&rows, situation))))
            .collect::<serde_json::Map<_, _>>(),
    });
    let results = Results {
        report: &report,
        table: &table(&report),
        plot: &plot(&rows),
    };
    results.publish(&place, "index", flags.json)
}

struct Race {
    lula: PathBuf,
    python: PathBuf,
    script: PathBuf,
    project: PathBuf,
    state: PathBuf,
}

impl Race {
    /// Both find the same: nothing kept, everything kept, or everything kept and one file edited.
    fn prepare(&self, situation: &str) -> Result<()> {
        match situation {
            "cold" => {
                for kept in [&self.state, &self.project.join(RIVAL_CACHE)] {
                    if kept.exists() {
                        std::fs::remove_dir_all(kept)?;
                    }
                }
                self.restore()
            }
            "warm" => Ok(()),
            _ => {
                let nanos = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)?
                    .as_nanos();
                let added = format!("\n\ndef added_by_the_race_{nanos}():\n    return None\n");
                let original = std::fs::read_to_string(self.original())?;
                Ok(std::fs::write(self.edited(), original + &added)?)
            }
        }
    }

    fn edited(&self) -> PathBuf {
        self.project.join("django/db/models/query.py")
    }

    fn original(&self) -> PathBuf {
        self.project.with_extension("original")
    }

    fn restore(&self) -> Result<()> {
        if !self.original().exists() {
            std::fs::copy(self.edited(), self.original())?;
        }
        std::fs::copy(self.original(), self.edited())?;
        Ok(())
    }

    fn we(&self) -> Result<Value> {
        let mut command = self.measured(&self.lula);
        command.args(["index", "map"]).arg(&self.project);
        measure(command.args(["--tokens", TOKENS, "--quiet"]))
    }

    fn they(&self) -> Result<Value> {
        let mut command = self.measured(&self.python);
        command.arg(&self.script).arg("map").arg(&self.project);
        measure(command.arg(TOKENS))
    }

    fn measured(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg("cpu").arg(program);
        command.env("LULA_STATE_DIR", &self.state);
        command
    }
}

fn row(engine: &str, situation: &str, measured: &Value) -> Value {
    let mut row = measured.clone();
    row["engine"] = json!(engine);
    row["situation"] = json!(situation);
    row
}

fn median(mut measured: Vec<Value>) -> Value {
    measured.sort_by(|a, b| cpu(a).total_cmp(&cpu(b)));
    measured.swap_remove(measured.len() / 2)
}

/// What counts: the map alone where that is known, which spares the rival its imports.
fn cpu(row: &Value) -> f64 {
    row["map_cpu_seconds"]
        .as_f64()
        .or(row["cpu_seconds"].as_f64())
        .unwrap_or(f64::NAN)
}

/// Our time as a part of the other tool's.
fn ratio(rows: &[Value], situation: &str) -> Option<f64> {
    let of = |engine: &str| {
        let mut rows = rows.iter();
        rows.find(|row| row["engine"] == engine && row["situation"] == situation)
            .map(cpu)
    };
    Some(of("lula")? / of("aider")?)
}

fn measure(command: &mut Command) -> Result<Value> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("a measurement ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("a measurement is not JSON")
}

/// The project, unpacked once.
fn project(place: &Path) -> Result<PathBuf> {
    let home = place.join("index-project");
    let marker = place.join("index-project.complete");
    if !marker.exists() {
        let mut install = Command::new("python3");
        ok(install
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--no-compile",
            ])
            .arg("--target")
            .arg(&home)
            .arg(PROJECT))?;
        std::fs::write(marker, "")?;
    }
    Ok(home)
}

/// Files of languages that both understand.
fn count(directory: &Path) -> Result<usize> {
    let mut files = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            files += count(&path)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "py" || extension == "js")
        {
            files += 1;
        }
    }
    Ok(files)
}

fn version(python: &Path) -> Result<Value> {
    let show = "import importlib.metadata as m, json; \
                print(json.dumps({'aider-chat': m.version('aider-chat')}))";
    measure(Command::new(python).args(["-c", show]))
}

fn table(report: &Value) -> String {
    let mut out = String::from(
        "| engine | situation | CPU s, map | CPU s, whole process | wall s |\n|---|---|---|---|---|\n",
    );
    for row in report["rows"].as_array().into_iter().flatten() {
        let number = |field: &str| {
            let number = row[field].as_f64();
            number.map_or_else(|| "–".to_owned(), |number| format!("{number:.3}"))
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            row["engine"].as_str().unwrap_or_default(),
            row["situation"].as_str().unwrap_or_default(),
            number("map_cpu_seconds"),
            number("cpu_seconds"),
            number("wall_seconds"),
        );
    }
    let _ = writeln!(
        out,
        "\n{} with {} source files; aider-chat {}.\n{}\n{}",
        report["project"]["name"].as_str().unwrap_or_default(),
        report["project"]["files"],
        report["rival"]["aider-chat"].as_str().unwrap_or_default(),
        report["commands"]["lula"].as_str().unwrap_or_default(),
        report["commands"]["aider"].as_str().unwrap_or_default(),
    );
    for (situation, ratio) in report["cpu_ratio"].as_object().into_iter().flatten() {
        let ratio = ratio.as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            out,
            "{situation}: ours takes {ratio:.4} of the rival's time"
        );
    }
    out
}

fn plot(rows: &[Value]) -> String {
    let labels: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default();
            (format!("{}, {}", text("engine"), text("situation")), row)
        })
        .collect();
    let bars: Vec<_> = labels
        .iter()
        .map(|(label, row)| Bar {
            label,
            p50: cpu(row) * 1e6,
            p95: cpu(row) * 1e6,
            ours: row["engine"] == "lula",
        })
        .collect();
    chart::svg("Processor time of a repository map", &bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rival_is_not_charged_for_its_imports() {
        let rows = [
            json!({"engine": "lula", "situation": "warm", "cpu_seconds": 0.1, "map_cpu_seconds": null}),
            json!({"engine": "aider", "situation": "warm", "cpu_seconds": 9.0, "map_cpu_seconds": 2.0}),
        ];
        assert_eq!(ratio(&rows, "warm"), Some(0.05));
        assert_eq!(ratio(&rows, "cold"), None);
    }

    #[test]
    fn the_median_counts() {
        let measured = [3.0, 1.0, 2.0].map(|seconds| json!({"cpu_seconds": seconds}));
        assert!((cpu(&median(measured.to_vec())) - 2.0).abs() < 1e-9);
    }
}
