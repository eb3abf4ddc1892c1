//! Lula for other agents: its sandbox, its held workspaces, its test runs and its runs as tools of any program
//! that speaks the Model Context Protocol.
//!
//! It does: list the tools, give each client a workspace of its own, do what a call asks through a runner, name
//! the approval that a held call waits for, begin and follow runs, and write the server into an agent's
//! configuration.
//!
//! It never: touches a file of a project or starts a command (that is the runner's), decides what may happen
//! (that is the gate's), or believes what a client says about itself. Every argument is hostile.
//!
//! It depends on: host (the runner process, runs), agents (the coder's tools), runner-api (its client), and the
//! wire types.
#![forbid(unsafe_code)]

pub mod install;
mod server;

pub use server::{McpServeError, McpServerOptions, serve_stdio};
