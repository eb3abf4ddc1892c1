//! Sandboxes as callers see them: an engine opens sessions, a session runs commands.

mod books;
mod capture;
mod command;
mod engine;
mod link;
mod process;
#[allow(clippy::module_inception)] // the session is what sessions are about
mod session;
mod stock;
mod workspace;

pub use capture::Captured;
pub use command::{Command, Finished};
pub use engine::{Engine, Sandbox};
pub use process::{Next, Output, Process, ProcessId};
pub use session::Session;
pub use workspace::Overlay;
