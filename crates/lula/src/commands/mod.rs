//! The commands, one file each.

mod attack;
mod config;
mod detect;
mod doctor;
mod exec;
mod explain;
mod generate;
mod index;
mod models;
mod repair;
mod try_it;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::session::Session;
use crate::status::Status;

/// Runs the command that was asked for.
pub(crate) fn run(cli: Cli, session: &Session) -> Result<Status, Failure> {
    let exit = match cli.command {
        Command::Try(flags) => try_it::run(&flags, session),
        Command::Repair(flags) => repair::run(&flags, session),
        Command::Detect => detect::run(session),
        Command::Index(command) => index::run(command, session),
        Command::Exec(flags) => return exec::run(&flags, session),
        Command::Doctor(flags) if flags.attack => attack::run(flags.tier, session),
        Command::Doctor(_) => doctor::run(session),
        Command::Models(command) => models::run(command, session),
        Command::Config(command) => config::run(command, session),
        Command::Explain { code } => explain::run(code.as_deref(), session),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { dir } => generate::man(dir.as_deref(), session),
    };
    exit.map(Status::from)
}
