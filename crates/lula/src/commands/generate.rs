//! `lula completions` and `lula man`, from the same definitions as `--help`.

use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;
use lula_protocol::{Code, RunExit};

use crate::cli;
use crate::failure::CommandFailure;
use crate::session::CliSession;

pub(super) fn completions(shell: Shell) -> Result<RunExit, CommandFailure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "lula", &mut text);
    io::stdout().lock().write_all(&text)?;
    Ok(RunExit::Verified)
}

pub(super) fn man(
    directory: Option<&Path>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let Some(directory) = directory else {
        clap_mangen::Man::new(cli::command()).render(&mut io::stdout().lock())?;
        return Ok(RunExit::Verified);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(cli::command(), directory))
        .map_err(|error| {
            let message = format!("cannot write man pages to {}: {error}", directory.display());
            CommandFailure::new(Code::FileAccess, RunExit::Environment, message)
                .remedy("name a directory that you can write to")
        })?;
    session
        .screen
        .note(&format!("man pages are in {}", directory.display()));
    Ok(RunExit::Verified)
}
