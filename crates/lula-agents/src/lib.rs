//! From a task to a verified change.
//!
//! Twelve nodes over the durable graph of `lula-graph`: a task is taken in, routed, let through a
//! gate, planned, given context, coded, executed, verified and reported. A failed verification
//! comes back through the gate with its evidence; in a chat ([`chat`]) a person hears of it. Decisions are pure functions with tests of their
//! own ([`route`], [`model_choice`], [`recovery`], [`verdict`], [`heal`], [`guidelines`]); everything that acts is a journaled effect
//! ([`effects`]), done by [`RunnerPort`] (workspaces, commands, repositories) or [`ModelPort`] (models).
//!
//! It must never call something done that no test or command shows, never open a workspace or
//! start a program by itself, and never let a model's words decide anything but what it tries
//! next. It depends on `lula-graph`, `lula-models`, `lula-edit`, `lula-index`, `lula-repair`,
//! `lula-protocol` and the words of `lula-runner`'s interface.
#![forbid(unsafe_code)]

mod acts;
pub mod agent_pool;
pub mod chat;
mod coder;
pub mod effects;
mod fence;
mod graph;
pub mod guidelines;
pub mod heal;
pub mod intent;
pub mod lessons;
pub mod model_choice;
pub mod model_port;
mod nodes;
pub mod plan;
pub mod recovery;
pub mod route;
pub mod runner_port;
pub mod survey;
pub mod task;
pub mod team;
pub mod test_selection;
pub mod toolset;
pub mod verdict;
pub mod work;
pub mod world;

pub use agent_pool::AgentPoolPort;
pub use graph::{CodingGraph, RunNode, RunNodeExit};
pub use model_port::{AnswerObserver, ModelPort, NoModels, ProviderModels};
pub use runner_port::{RunnerPort, RunnerPortError};
pub use task::{CoderChoice, DeliverMode, ModelChoice, RunTask};
pub use verdict::RunVerdict;
pub use work::CodingState;
pub use world::{ProgressObserver, ReadOnlyWorld, RunWorld};
