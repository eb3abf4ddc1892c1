//! Sandboxes as callers see them: an engine opens sessions, a session runs commands.

mod books;
mod capture;
mod command;
mod disk;
mod door;
mod drawing;
mod engine;
mod first_process;
pub(crate) mod gone;
mod link;
mod private;
mod process;
mod resources;
mod sandbox;
#[allow(clippy::module_inception)] // the session is what sessions are about
mod session;
mod stock;
mod workspace;
mod zygote;

pub use capture::CapturedStream;
pub use command::{FinishedCommand, SandboxCommand};
pub(crate) use door::DoorFacts;
pub use door::{
    DoorKeeper, DoorListeners, DoorOpening, DoorPlan, DoorSubject, MOST_DOOR_PORTS, OpenDoor,
    SandboxSockets,
};
pub use engine::SandboxEngine;
pub use process::{NextOutput, OutputChunk, SandboxProcess, SandboxProcessId};
pub use sandbox::Sandbox;
pub use session::SandboxSession;
pub use workspace::OverlayWorkspace;
