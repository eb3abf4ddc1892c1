//! The execution engine: one policy over several isolation tiers.
//!
//! This crate turns a [`policy::SandboxPolicy`] into a running, fenced command and reports exactly what it
//! applied. It must never claim a layer that was not read back, never run below the floor a policy
//! states, and never build a path from a name it did not check. It depends on `lula-protocol` only;
//! system calls that need `unsafe` live in `sys`.
//!
//! # One sandbox, many commands
//!
//! ```no_run
//! use lula_sandbox::policy::Profile;
//! use lula_sandbox::{SandboxCommand, SandboxEngine, Sandbox};
//!
//! fn main() -> Result<(), lula_sandbox::SandboxError> {
//!     // The first thing in main, before any thread: the engine starts this very binary as its
//!     // helper, which never comes back from here.
//!     lula_sandbox::helper_main_if_asked(&[]);
//!
//!     let engine = SandboxEngine::start()?;
//!     let session = engine.open(&Sandbox::new(Profile::Build.policy(), "."))?;
//!     let finished = session.run(&SandboxCommand::new("cargo").arguments(["test", "--offline"]))?;
//!     assert!(finished.succeeded());
//!     println!("{}", String::from_utf8_lossy(&finished.stdout.bytes()));
//!     println!("{:?}", finished.receipt.layers);
//!     Ok(())
//! }
//! ```
//!
//! A [`SandboxSession`] is one sandbox; dropping it ends everything in it. [`SandboxSession::start`] gives a
//! [`SandboxProcess`] with standard input, streamed output, signals and, where asked for, a terminal.
//! Calls block. Nothing here needs a thread of its own unless a command runs in the background
//! ([`SandboxSession::start_in_background`]); an event loop can watch [`SandboxSession::descriptors`] instead and
//! call [`SandboxSession::take_ready`] when one is readable.
//!
//! A command need not be a file: the helper's own program can bring functions along ([`BuiltInProgram`])
//! that run inside like any command ([`SandboxCommand::built_in`]), behind the same layers.
//!
//! # Who does what
//!
//! The engine never forks. It starts one tiny helper, the zygote, which clones a first process for
//! each sandbox; that process builds the sandbox from the inside, locks itself in, and serves
//! commands over [`frames`]. If the engine dies, the zygote ends; if the zygote ends, every sandbox
//! does.
//!
//! # Where things are
//!
//! `policy` is what is granted, `mounts/` and `idmap/` plan the file system, `zygote/` and `init/`
//! build the sandbox, `landlock/`, `seccomp/` and `sys/lockdown.rs` lock it, `frames/` carries
//! commands without passing descriptors (so it fits any transport), `session/` is the side that
//! callers see, `receipt/` reads back what is in force, `watch/` looks at calls that are allowed
//! (every connection; every path if the caller asks for it) and reports what the sandbox withholds
//! from them, `tiers/` finds out what works by running a command, and `probes/` attacks all of it.
//! What makes it quick is described in docs/sandbox-speed.md.

mod blueprint;
mod buffer;
mod built_in;
pub mod cgroup;
mod error;
pub mod frames;
mod helper;
mod idmap;
mod init;
mod landlock;
mod lock_out;
mod mounts;
mod owner;
mod page;
pub mod policy;
pub mod probes;
mod receipt;
pub mod seccomp;
mod session;
mod sys;
pub mod tiers;
mod watch;
mod zygote;

/// Makes system calls answer with an error for this thread and everything that it starts from now on, as the
/// seccomp profile of a container engine does: for tests of what the engine does then.
#[cfg(feature = "test-switches")]
pub fn keep_back_calls(calls: &[&str], errno: u16) -> std::io::Result<()> {
    sys::ways::keep_back(calls, errno)
}

pub use built_in::BuiltInProgram;
pub use error::SandboxError;
pub use helper::{EarlyHelper, HelperProgram, helper_main_if_asked};
pub use lock_out::{LockOutReport, RetainedAccess, lock_out};
pub use mounts::{HostToolchains, ProjectEnvironment, Virtualenv};

/// Where the certificates of a door are seen inside.
pub const CERTIFICATES_INSIDE: &str = mounts::CERTIFICATES;
pub use session::{
    CapturedStream, DoorKeeper, DoorListeners, DoorOpening, DoorPlan, DoorSubject, FinishedCommand,
    MOST_DOOR_PORTS, NextOutput, OpenDoor, OutputChunk, OverlayWorkspace, Sandbox, SandboxCommand,
    SandboxEngine, SandboxProcess, SandboxProcessId, SandboxSession, SandboxSockets,
};
