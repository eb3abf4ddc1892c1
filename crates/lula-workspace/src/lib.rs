//! The directories agents work on.
//!
//! [`git`] is the one door through which git is called on the host: a repository is content that
//! somebody else wrote, and git runs programs that a repository names (hooks, filters, monitors,
//! aliases). Through this door it runs none of them. [`fork`] makes private copies of a project,
//! [`folder`] reads and writes one that stays, and [`scratch`] makes throw-away repositories.
//!
//! This crate must never run a command of a workspace outside a sandbox.
#![forbid(unsafe_code)]

pub mod folder;
pub mod fork;
pub mod git;
pub mod scratch;

pub use folder::Folder;
pub use fork::{Fork, ForkError, Project};
pub use git::{Git, GitError};
pub use scratch::Scratch;
