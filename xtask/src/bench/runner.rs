//! `cargo xtask bench runner`

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
        "run --quiet -p lula-runner --example bench {release} --"
    ));
    bench.arg(repository.root().join("target").join(folder).join("lula"));
    bench.args(flags.json.then_some("--json"));
    command::run(&mut bench, interrupt)
}
