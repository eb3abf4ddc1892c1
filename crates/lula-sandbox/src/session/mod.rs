//! Sandboxes as callers see them: an engine opens sessions, a session runs commands.

mod capture;
mod command;
mod engine;
mod link;
mod process;
mod stock;

pub use capture::Captured;
pub use command::{Command, Finished};
pub use engine::{Engine, Sandbox};
pub use link::Session;
pub use process::{Output, Process, ProcessId};
