//! The servers that tests talk to: real ones, on loopback, with data that is thrown away.
//!
//! They must never outlive the task that started them, however it ends: they are stopped when
//! [`Servers`] is dropped, which covers failure, panic and Ctrl-C, and the kernel signals them when
//! this process is killed. Durability settings stay as a user has them: crash tests rely on them.

mod certificate;
mod postgres;
mod process;
mod redis;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, process::ExitCode, thread, time::Duration};

use anyhow::{Result, bail};

use crate::{
    command,
    interrupt::Interrupt,
    repository::{Metadata, Repository},
};

/// A kind of server that tests can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    Postgres,
    Redis,
}

impl Need {
    const ALL: [Self; 2] = [Self::Postgres, Self::Redis];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    /// Where tests find the server's address.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "LULA_TEST_POSTGRES_URL",
            Self::Redis => "LULA_TEST_REDIS_URL",
        }
    }

    /// The signal that ends the server at once, with nothing written that was not: what
    /// `pg_ctl stop -m immediate` sends, and SIGKILL.
    fn sudden_end(self) -> &'static str {
        match self {
            Self::Postgres => "QUIT",
            Self::Redis => "KILL",
        }
    }

    fn start(self) -> Result<RunningServer> {
        match self {
            Self::Postgres => postgres::start(),
            Self::Redis => redis::start(),
        }
    }
}

/// A server that answered at least once.
struct RunningServer {
    url: String,
    /// What else tests are told: how to speak to it encrypted.
    also: Vec<(&'static str, String)>,
    process: process::Server,
}

/// The servers that are up, until this is dropped.
#[derive(Default)]
pub(crate) struct Servers(Vec<(Need, RunningServer)>);

impl Servers {
    pub(crate) fn start(&mut self, need: Need) -> Result<()> {
        self.0.push((need, need.start()?));
        Ok(())
    }

    /// The environment variables that tell tests where the servers are.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0
            .iter()
            .map(|(need, running)| (need.variable(), running.url.as_str()))
    }

    /// Everything that tests are told about the servers.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let also = self.0.iter().flat_map(|(_, running)| &running.also);
        self.variables()
            .chain(also.map(|(name, value)| (*name, value.as_str())))
    }

    /// A shell command that ends every server at once, with nothing written that was not.
    pub(crate) fn end_suddenly(&self) -> String {
        let ends = self.0.iter();
        let ends = ends.map(|(need, running)| running.process.signal_command(need.sudden_end()));
        ends.collect::<Vec<_>>().join(" && ")
    }

    /// Starts those again that have ended. Only from the thread that started them: they end with
    /// it.
    pub(crate) fn revive(&mut self) -> Result<()> {
        let mut running = self.0.iter_mut();
        running.try_for_each(|(_, running)| running.process.revive())
    }

    /// One line for each server: its address, its process and its files.
    pub(crate) fn places(&self) -> impl Iterator<Item = String> {
        self.0
            .iter()
            .map(|(need, RunningServer { url, process, .. })| {
                let (variable, pid) = (need.variable(), process.pid());
                format!(
                    "{variable}={url} (process {pid} in {})",
                    process.directory().display()
                )
            })
    }
}

/// What the workspace's crates ask for: `[package.metadata.lula] needs = ["postgres", "redis"]`.
pub(crate) fn needs(metadata: &Metadata) -> Result<BTreeSet<Need>> {
    let mut needs = BTreeSet::new();
    for package in &metadata.packages {
        for name in package.needs() {
            let Some(need) = Need::ALL.into_iter().find(|need| need.name() == name) else {
                bail!(
                    "{} needs `{name}` for its tests, and no such server is known: \
                     write `postgres` or `redis` in [package.metadata.lula]",
                    package.name
                );
            };
            needs.insert(need);
        }
    }
    Ok(needs)
}

/// Starts every server and runs a command beside them, or waits to be stopped.
pub(crate) fn run_beside(
    repository: &Repository,
    words: &[String],
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let mut servers = Servers::default();
    for need in Need::ALL {
        servers.start(need)?;
    }
    if let Some((program, arguments)) = words.split_first() {
        let mut beside = std::process::Command::new(program);
        beside
            .args(arguments)
            .envs(servers.environment())
            .current_dir(repository.root());
        return command::run(&mut beside, interrupt);
    }
    for (variable, value) in servers.environment() {
        println!("export {variable}={value}");
    }
    while !interrupt.is_raised() {
        thread::sleep(Duration::from_millis(50));
    }
    Ok(ExitCode::SUCCESS)
}
