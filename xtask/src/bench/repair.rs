//! `cargo xtask bench repair`

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use super::program::{self, Profile};
use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// Least share of the seeded bugs that the best patch must pass the visible tests of.
const PLAUSIBLE: f64 = 0.75;
/// Least share that it must pass the hidden tests of too.
const CORRECT: f64 = 0.65;
/// Least validations a minute where the tests take a tenth of a second.
const PER_MINUTE: f64 = 100.0;

#[derive(Args)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the tables
    #[arg(long)]
    json: bool,
    /// Seconds for each bug
    #[arg(long, default_value_t = 60)]
    budget: u32,
    /// The bugs that the search was never fitted to
    #[arg(long)]
    held_out: bool,
    /// Small algorithms with the mistakes that people make in them
    #[arg(long, conflicts_with = "held_out")]
    practice: bool,
    /// Measure candidate validations a minute instead
    #[arg(long, conflicts_with_all = ["held_out", "practice"])]
    rate: bool,
    /// Fail where the figures are below what we promise
    #[arg(long)]
    check: bool,
    /// Only bugs whose project or name contains this
    filter: Option<String>,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    let file = place.join("repair.json");
    let program = match program::lula(repository, interrupt, Profile::Dist)? {
        ControlFlow::Continue(program) => program,
        ControlFlow::Break(ended) => return Ok(ended),
    };
    let mut bench =
        repository.cargo("run --profile dist --quiet -p lula-repair --example repair_bench --");
    bench
        .arg("--lula")
        .arg(program)
        .args(&flags.filter)
        .args(flags.held_out.then_some("--held-out"))
        .args(flags.practice.then_some("--practice"))
        .args(flags.rate.then_some("--rate"))
        .arg("--budget")
        .arg(flags.budget.to_string());
    bench.arg("--json").arg(&file);
    if flags.json {
        bench.stdout(std::process::Stdio::null());
    }
    let ended = command::run(&mut bench, interrupt)?;
    if ended != ExitCode::SUCCESS {
        return Ok(ended);
    }
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    if flags.json {
        println!("{text}");
    }
    if flags.check {
        let floors: &[(&str, f64)] = if flags.rate {
            &[("per_minute", PER_MINUTE)]
        } else {
            &[("plausible_share", PLAUSIBLE), ("correct_share", CORRECT)]
        };
        let low = below(&serde_json::from_str(&text)?, floors);
        ensure!(low.is_empty(), "{}", low.join("; "));
    }
    Ok(ended)
}

/// The figures that are missing or below their floors.
fn below(measured: &Value, floors: &[(&str, f64)]) -> Vec<String> {
    floors
        .iter()
        .filter_map(|(name, floor)| match measured[name].as_f64() {
            Some(figure) if figure >= *floor => None,
            Some(figure) => Some(format!("{name} is {figure:.2}, below the floor of {floor}")),
            None => Some(format!("{name} was not measured")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_below_their_floors_are_named() {
        let floors = [("plausible_share", PLAUSIBLE), ("correct_share", CORRECT)];
        let good = json!({"plausible_share": 0.75, "correct_share": 0.9});
        assert!(below(&good, &floors).is_empty());
        let poor = json!({"plausible_share": 0.8, "correct_share": 0.64});
        assert_eq!(below(&poor, &floors).len(), 1);
        assert_eq!(below(&json!({}), &floors).len(), 2);
    }
}
