//! `cargo xtask bench agents`

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::program::{self, Profile};
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
    let program = match program::lula(repository, interrupt, Profile::measured(flags.debug))? {
        ControlFlow::Continue(program) => program,
        ControlFlow::Break(ended) => return Ok(ended),
    };
    let profile = Profile::measured(flags.debug).flag();
    let mut bench = repository.cargo(&format!(
        "run --quiet -p lula --example agents_bench {profile} --"
    ));
    bench.arg(program);
    bench.args([flags.latency.to_string(), flags.rounds.to_string()]);
    bench.args(flags.json.then_some("--json"));
    command::run(&mut bench, interrupt)
}
