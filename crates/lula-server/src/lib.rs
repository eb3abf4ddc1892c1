//! The API of Lula over HTTP: what teams, the web app and other programs build on.
//!
//! It does: begin runs and list them, tell their logs as live events, show plans, changes and questions,
//! take answers, and find out who sends a request and what they may. Runs are driven as the command line
//! drives them: each by a driver of its own process, which starts its own runner and locks itself out of
//! the repository. This process holds no workspace, starts no tool and asks no model; it starts drivers.
//!
//! One table of routes ([`routes`]) says what exists, who may call it and what goes in and out. The router,
//! the checks of permission and the OpenAPI document are made from it, so they cannot differ.
//!
//! It must never: take a principal, a role or a way around a question from a request; name a path of this
//! machine from a request; hold in memory what a client does not read.
//!
//! It depends on: host, agents, graph, store, gate, audit, config, files and protocol.
#![forbid(unsafe_code)]

mod approvals;
mod audit;
mod changes;
mod drivers;
mod events;
mod http;
pub mod identity;
mod limits;
mod metrics;
mod openapi;
mod problem;
mod records;
mod repositories;
pub mod routes;
mod runs;
mod serve;
mod state;
mod text;

pub use openapi::document as openapi;
pub use problem::Problem;
pub use serve::{ListeningServer, ServeError, ServerOptions, serve};
