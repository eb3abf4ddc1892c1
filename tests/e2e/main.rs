//! End to end: the `lula` binary as a person or a script meets it.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a test says no by panicking"
)]

mod agents;
mod approvals;
mod audit;
mod best_of;
mod cancelling;
mod change_sets;
mod chat;
mod command_line;
mod configuration;
mod conversations;
mod diagnosis;
mod doctor;
mod earlier_logs;
mod environment_builds;
mod environments;
mod exec;
mod guidelines;
mod heal;
mod ignored;
mod index;
mod javascript;
mod lessons;
mod mcp;
mod models;
mod monorepos;
mod network;
mod pictures;
mod plans;
mod policy;
mod public_projects;
mod repair;
mod repositories;
mod review;
mod routing;
mod run;
mod run_conversations;
mod run_delivery;
mod run_doors;
mod run_fences;
mod run_finish;
mod run_kills;
mod run_nearby;
mod run_processes;
mod run_rules;
mod run_tools;
mod run_verdicts;
mod runner;
mod runs;
mod seen;
mod serve;
mod stores;
mod support;
mod surroundings;
mod trace;
mod traces;
mod try_it;
mod workspaces;
