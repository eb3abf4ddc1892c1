//! The runner: what may be done to a workspace, done.
//!
//! `lula runner` opens transactional workspaces, runs tools in them and answers over HTTP; what is
//! said there, and the client that asks, are `lula-runner-api`. It must never run anything outside a sandbox, never let a
//! change reach the user's tree without a commit of exactly the reviewed bytes, never do one effect
//! twice, and never hold a model's key. It depends on the sandbox, on transactional workspaces, on
//! the understanding of edits, on the repairer (a program that needs no model), and on the wire
//! types.
#![forbid(unsafe_code)]

pub mod environments;
pub mod ground;
pub mod halt;
pub mod http;
mod run;
pub mod service;
pub mod toolbox;

pub use run::{RunnerOptions, RunnerStartError, run};
pub use toolbox::BUILT_IN as TOOLBOX;
