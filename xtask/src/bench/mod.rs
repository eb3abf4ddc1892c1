//! Races against rivals: each in one run, with the rival's command shown.

mod agents;
mod chart;
mod coder;
mod crash;
mod egress;
mod graph;
mod index;
pub(crate) mod program;
mod repair;
mod results;
mod runner;
mod sandbox;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::interrupt::Interrupt;
use crate::repository::Repository;

#[derive(Subcommand)]
pub(crate) enum Race {
    /// A plan of six agents at once against the same plan one after the other
    Agents(agents::Flags),
    /// Conversations with a coder, word for word, against mini-swe-agent
    Coder(coder::Flags),
    /// Our way out of a sandbox against mitmproxy and tinyproxy
    Egress(egress::Flags),
    /// Our durable graph against LangGraph
    Graph(graph::Flags),
    /// Our map of a project against aider's
    Index(index::Flags),
    /// The built-in repairer on its seeded bugs
    Repair(repair::Flags),
    /// Calls a runner answers, over its socket
    Runner(runner::Flags),
    /// Our sandbox against bubblewrap, crun and gVisor
    Sandbox(sandbox::Flags),
    /// Commits of many files against `cp -a` and `git checkout`
    Workspace(workspace::Flags),
}

pub(crate) fn run(race: &Race, repository: &Repository, interrupt: &Interrupt) -> Result<ExitCode> {
    match race {
        Race::Agents(flags) => agents::run(flags, repository, interrupt),
        Race::Coder(flags) => coder::run(flags, repository, interrupt),
        Race::Egress(flags) => egress::run(flags, repository, interrupt),
        Race::Graph(flags) => graph::run(flags, repository, interrupt),
        Race::Index(flags) => index::run(flags, repository, interrupt),
        Race::Repair(flags) => repair::run(flags, repository, interrupt),
        Race::Runner(flags) => runner::run(flags, repository, interrupt),
        Race::Sandbox(flags) => sandbox::run(flags, repository, interrupt),
        Race::Workspace(flags) => workspace::run(flags, repository, interrupt),
    }
}
