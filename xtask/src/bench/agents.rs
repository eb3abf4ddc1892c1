//! `cargo xtask bench agents`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// How long the scripted model takes for each answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    latency: u64,
    /// How often each is run
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// Measure unoptimised builds, which are there sooner and say less
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let (release, folder) = if flags.debug {
        ("", "debug")
    } else {
        ("--release", "release")
    };
    let built = command::run(
        &mut repository.cargo(&format!("build --quiet -p lula {release}")),
        interrupt,
    )?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let mut bench = repository.cargo(&format!(
        "run --quiet -p lula --example agents_bench {release} --"
    ));
    bench.arg(repository.root().join("target").join(folder).join("lula"));
    bench.args([flags.latency.to_string(), flags.rounds.to_string()]);
    bench.args(flags.json.then_some("--json"));
    command::run(&mut bench, interrupt)
}
