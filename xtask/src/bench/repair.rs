//! `cargo xtask bench repair`

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
    /// Seconds for each bug
    #[arg(long, default_value_t = 60)]
    budget: u32,
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
    let mut bench = repository.cargo("run --release --quiet -p lula-repair --example bench --");
    bench
        .args(&flags.filter)
        .arg("--budget")
        .arg(flags.budget.to_string());
    bench.arg("--json").arg(&file);
    if flags.json {
        bench.stdout(std::process::Stdio::null());
    }
    let ended = command::run(&mut bench, interrupt)?;
    if flags.json && ended == ExitCode::SUCCESS {
        println!("{}", std::fs::read_to_string(&file)?);
    }
    Ok(ended)
}
