//! From a task to a verified change.
//!
//! Eleven nodes over the durable graph of `lula-graph`: a task is taken in, routed, let through a
//! gate, planned, given context, coded, executed, verified and reported. A failed verification
//! comes back through the gate with its evidence. Decisions are pure functions with tests of their
//! own ([`route`], [`choose`], [`recover`], [`verdict`], [`heal`], [`glean`]); everything that acts is a journaled effect
//! ([`deeds`]), done by [`Hands`] (workspaces, commands, repositories) or [`Minds`] (models).
//!
//! It must never call something done that no test or command shows, never open a workspace or
//! start a program by itself, and never let a model's words decide anything but what it tries
//! next. It depends on `lula-graph`, `lula-models`, `lula-edit`, `lula-index`, `lula-repair`,
//! `lula-protocol` and the words of `lula-runner`'s interface.
#![forbid(unsafe_code)]

pub mod choose;
mod coder;
pub mod crew;
pub mod dag;
pub mod deeds;
pub mod glean;
mod graph;
pub mod hands;
pub mod heal;
pub mod intent;
pub mod lessons;
pub mod minds;
mod nodes;
pub mod pick;
pub mod recover;
pub mod route;
pub mod survey;
pub mod task;
pub mod team;
pub mod verdict;
pub mod work;
pub mod world;

pub use crew::Crew;
pub use graph::{Coding, Node, Way};
pub use hands::{Hands, HandsError};
pub use minds::{Minds, Nobody, Providers};
pub use task::{CoderChoice, Deliver, Mind, Task};
pub use verdict::Verdict;
pub use work::Work;
pub use world::{NoWorld, Watch, Workshop};
