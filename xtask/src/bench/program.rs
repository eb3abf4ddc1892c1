//! The program that several benchmarks measure.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// `--release`, unless an unoptimised build is wanted.
pub(super) const fn profile(debug: bool) -> &'static str {
    if debug { "" } else { "--release" }
}

/// Builds `lula` and tells where it is, or how its build ended.
pub(crate) fn lula(
    repository: &Repository,
    interrupt: &Interrupt,
    debug: bool,
) -> Result<ControlFlow<ExitCode, PathBuf>> {
    let release = profile(debug);
    let mut cargo = repository.cargo(&format!("build --quiet -p lula {release}"));
    let built = command::run(&mut cargo, interrupt)?;
    if built != ExitCode::SUCCESS {
        return Ok(ControlFlow::Break(built));
    }
    let folder = if debug { "debug" } else { "release" };
    let program = repository.root().join("target").join(folder).join("lula");
    Ok(ControlFlow::Continue(program))
}
