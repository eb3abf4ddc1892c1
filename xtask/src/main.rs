//! Every task a person repeats in this repository, as `cargo xtask <task>`.
//!
//! It installs what the tests need, starts the servers they talk to, runs every check and says how
//! many held; and it keeps the workspace to the table in `ARCHITECTURE.md`. It must never call a
//! check passed that did not run. It depends on no crate of the workspace, so that it can judge
//! them all, even while they do not compile.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    reason = "what a task prints is what it is run for"
)]

mod aarch64;
mod architecture;
mod bench;
mod command;
#[cfg(test)]
mod documented;
mod install;
mod interrupt;
mod kernels;
#[cfg(target_arch = "x86_64")]
mod order;
mod real;
mod report;
mod repository;
mod requirements;
mod schemathesis;
mod servers;
mod standing;
mod steps;
mod surroundings;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{interrupt::Interrupt, repository::Repository, steps::Check};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Every task a person repeats in this repository"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need, start their servers, run every check and count the results
    Test {
        /// Run only these checks
        #[arg(long, value_enum, value_name = "CHECK", value_delimiter = ',')]
        only: Vec<Check>,
        /// Change nothing on this machine: what is missing is a failure
        #[arg(long)]
        no_install: bool,
        /// Arguments for nextest, such as a part of a test's name; runs only the tests
        #[arg(last = true, value_name = "NEXTEST ARGUMENT")]
        nextest: Vec<String>,
    },
    /// Formatting, clippy, dependency rules and documentation, without the tests
    Lint,
    /// Format every crate
    Fmt,
    /// Hold the workspace to the table and the invariants of ARCHITECTURE.md
    Architecture,
    /// Race against rivals, in one run
    #[command(subcommand)]
    Bench(bench::Race),
    /// Try the product on public projects, set up as their developers have them (downloads them)
    Real(real::Options),
    /// Find out which functions `lula exec` runs, so that the linker lays them together
    #[cfg(target_arch = "x86_64")]
    Order,
    /// Become a program that is traced; `order` starts it
    #[command(hide = true)]
    #[cfg(target_arch = "x86_64")]
    Traced {
        #[arg(last = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Attack every tier in every surrounding (containers, pods, other sandboxes) and write the table of
    /// docs/surroundings.md; as root
    Surroundings(surroundings::Flags),
    /// Compile for 64-bit ARM, run its pure tests under emulation, and hold the tables of system calls
    /// against the kernel's headers (needs rustup, apt-get, a cross compiler and qemu-user)
    Aarch64,
    /// Boot kernels of distributions under emulation, attack every tier on each and write the table of
    /// docs/surroundings.md (minutes for each kernel; needs apt-get and qemu-system-x86)
    Kernels(kernels::Flags),
    /// Send the runner and the server hostile requests, made from their own OpenAPI documents
    Schemathesis {
        /// Requests for each operation and phase
        #[arg(long, default_value_t = 20)]
        examples: u32,
    },
    /// Start throw-away PostgreSQL and Redis servers; run a command beside them, or wait for Ctrl-C
    Servers {
        /// The command, which finds the servers in `LULA_TEST_POSTGRES_URL` and `LULA_TEST_REDIS_URL`
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let repository = Repository::around_here()?;
    let interrupt = Interrupt::listen()?;
    match arguments.task {
        Task::Test {
            only,
            no_install,
            nextest,
        } => {
            let selection = steps::Selection::for_test(only, nextest).installing(!no_install);
            Ok(steps::run(&repository, &selection, &interrupt))
        }
        Task::Lint => Ok(steps::run(
            &repository,
            &steps::Selection::for_lint(),
            &interrupt,
        )),
        Task::Fmt => command::run(&mut repository.cargo("fmt --all"), &interrupt),
        Task::Architecture => architecture::run(&repository),
        Task::Real(options) => real::run(&options, &repository, &interrupt),
        Task::Bench(race) => bench::run(&race, &repository, &interrupt),
        #[cfg(target_arch = "x86_64")]
        Task::Order => order::run(&repository, &interrupt),
        #[cfg(target_arch = "x86_64")]
        Task::Traced { command } => order::become_traced(&command),
        Task::Surroundings(flags) => surroundings::run(&flags, &repository, &interrupt),
        Task::Aarch64 => aarch64::run(&repository, &interrupt),
        Task::Kernels(flags) => kernels::run(&flags, &repository, &interrupt),
        Task::Schemathesis { examples } => schemathesis::run(examples, &repository, &interrupt),
        Task::Servers { command } => servers::run_beside(&repository, &command, &interrupt),
    }
}
