//! What drives runs on one machine, below every door they are begun through: the command line today,
//! the server later.
//!
//! It does: open the store, start and supervise the runner process, lock the driver's process out of
//! the repositories, drive a run with its pool of agents, read the history of earlier runs, tell the
//! story of a log as text lines, lay it out in time, report it as data, look after a repository, and
//! keep a diagnostic log.
//!
//! It never: prints to a terminal, reads command-line arguments, asks a person, or ends the process.
//! What happens on the way goes to an [`drive::Observer`]; what went wrong is a [`HostError`], which
//! says what happened and what to do. It opens no workspace of a run: that is the runner's.
//!
//! It depends on: agents, graph, models, store, runner (its client), sandbox (the lock), workspace
//! (git), index, gate, audit, repair, config and protocol.
#![forbid(unsafe_code)]

pub mod approvals;
pub mod chat;
pub mod columns;
pub mod confidence;
pub mod configuration;
pub mod diagnosis;
pub mod doctor;
pub mod drive;
pub mod environment;
mod error;
pub mod examples;
pub mod exec;
pub mod folder;
pub mod guidelines;
pub mod heal;
pub mod history;
pub mod index;
mod installation;
pub mod lessons;
pub mod maintenance;
pub mod models;
pub mod network;
pub mod otlp;
pub mod output;
pub mod pages;
pub mod policy;
pub mod record;
pub mod remote;
pub mod remote_approvals;
pub mod repair;
pub mod replay;
pub mod report;
pub mod repository;
pub mod rules;
pub mod runner_client;
pub mod runs;
pub mod sandbox;
pub mod secrets;
pub mod showcase;
pub mod standing;
pub mod store;
pub mod story;
pub mod task;
pub mod text;
pub mod trace;
pub mod undo;
pub mod workspaces;

pub use error::{HostError, MistakeLocation};
pub use installation::Installation;
