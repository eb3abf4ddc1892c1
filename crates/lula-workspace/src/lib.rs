//! The directories agents work on, and what becomes of their changes.
//!
//! A [`Workspace`] is a user's directory seen through a private layer. Commands write into the layer;
//! the directory itself does not change until the operator commits. This crate must never run a command
//! of a workspace outside a sandbox, never follow a link that lies in one, never write into the
//! user's directory except by a journaled commit, and never touch the user's index, references or
//! stash by itself. It knows `lula-protocol` only: the
//! caller opens the sandbox.
//!
//! # A workspace from beginning to end
//!
//! ```no_run
//! use lula_workspace::{LayerDirectories, ChangeSelection, WorkspaceStore, LayerPreference};
//!
//! # fn main() -> Result<(), lula_workspace::WorkspaceError> {
//! let store = WorkspaceStore::at("/home/me/.local/state/lula".as_ref(), 10 << 30);
//! let mut workspace = store.create(".".as_ref(), LayerPreference::Overlay, "pytest -q")?;
//!
//! // What a sandbox needs. It is locked as long as `layer` lives: drop it after the sandbox.
//! let layer = workspace.layer()?;
//! match &layer.place {
//!     LayerDirectories::Overlay { lower, upper, work } => { /* mount them where `lower` is */ }
//!     LayerDirectories::Copy { directory } => { /* work in `directory` */ }
//! }
//!
//! // At any time, also while a command runs in it.
//! let diff = workspace.diff()?;
//! for change in &diff.changes {
//!     println!("{} {} {:?}", change.what.letter(), change.path, change.risks);
//! }
//!
//! // What was reviewed, or nothing.
//! let committed = workspace.commit(&ChangeSelection::all(), Some(&diff.digest))?;
//! workspace.undo()?;
//! workspace.redo()?;
//! # drop(committed);
//! drop(layer);
//! # Ok(())
//! # }
//! ```
//!
//! | call | while a sandbox is open on it |
//! |---|---|
//! | [`Workspace::diff`], [`Workspace::sides`] | yes: each file is seen as it was at one moment; one that never holds still is an error |
//! | [`Workspace::commit`], [`Workspace::undo`], [`Workspace::redo`] | yes: bytes that are not those of the diff are refused; what was committed stays in the layer and no longer counts as a change |
//! | [`Workspace::snapshot`], [`Workspace::fork`] | yes, if no command is writing |
//! | [`Workspace::restore`], [`Workspace::discard`] | no: drop the sandbox and the [`WorkspaceLayer`] first, open it again afterwards |
//!
//! # What a crash leaves
//!
//! A commit stages everything beside its journal, writes the journal, and then exchanges names, one
//! after the other, each in one step. A reader of the tree in between sees each file either old
//! or new and never a part of one; after `kill -9` or a power cut that may stay so until the next
//! call that opens a workspace on the same directory, which first takes back what was half done (or
//! counts it as done, if every name was exchanged already). After that the tree is the old one or the
//! new one. Where the state directory is on another file system, new files wait in a directory
//! `.lula-commit-*` at the top of the user's tree; it goes away with the commit or its recovery.
//!
//! The rest: [`git`] is the one door through which git is called on the host, with everything off
//! that a repository could make it run. [`fork`] makes throw-away copies of a project, [`scratch`]
//! throw-away repositories, [`checkout`] lays a
//! commit out for agents and brings their change back as a branch, [`mod@integration_branch`] is what several agents of
//! a run build on together, [`sources`] lists and reads a project as it is, and [`folder`] reads and
//! writes a directory by handle.
//!
//! # Where things are
//!
//! `store.rs` keeps records below the state directory, `workspace.rs` is one workspace,
//! `snapshots.rs` copies layers. A layer is an overlay's upper directory (`overlay.rs` reads it as
//! the kernel does) or, without an overlay, a copy with a manifest (`copy.rs`); both yield the
//! touched paths. `diff.rs` compares those with the user's tree as it is now, `risk.rs` labels
//! them, `change.rs` binds them by a digest. `commit.rs` has new content staged (`staging.rs`) and
//! writes a journal (`journal.rs`); `steps.rs` exchanges each name in the tree with a slot beside
//! the journal. Every step has an inverse and its slot says whether it was done, so a recovery
//! (`base.rs`), an undo and a redo are the same few steps. `tree.rs` is the only way to the file
//! system, by handles. `laid.rs` lays a workspace's changes over a fork, so that a fork is the
//! workspace as it was at one moment.
#![forbid(unsafe_code)]

mod aside;
mod base;
mod change;
pub mod checkout;
mod commit;
mod copy;
mod copying;
mod diff;
mod error;
#[cfg(test)]
mod faults;
pub mod folder;
pub mod fork;
pub mod git;
mod ignored;
pub mod integration_branch;
mod journal;
mod laid;
mod node;
mod overlay;
mod patch;
mod path;
mod put;
mod record;
mod risk;
pub mod scratch;
mod snapshots;
pub mod sources;
mod spare;
mod staging;
mod steps;
mod store;
mod tally;
#[cfg(test)]
mod tests;
mod tree;
mod workspace;

pub use aside::ExcludedChanges;
pub use change::{ChangeSelection, PathChange, PathChangeKind, UncommittableReason, WorkspaceDiff};
pub use checkout::Checkout;
pub use error::WorkspaceError;
pub use folder::OpenDirectory;
pub use fork::{ForkError, ForkableProject, WorkspaceFork};
pub use git::{GitError, GitProgram};
pub use ignored::{IgnoredExtent, IgnoredLayers};
pub use integration_branch::IntegrationBranch;
#[doc(hidden)]
pub use journal::reads_as_journal;
pub use node::{FileNode, FileNodeKind};
pub use patch::{patch, unified};
pub use path::{InvalidWorkspacePath, WorkspacePath};
pub use put::{PathContent, PathReplacement};
#[doc(hidden)]
pub use record::reads_as_record;
pub use record::{LayerBackend, LayerSnapshot, WorkspaceRecord, WorkspaceStatus};
pub use risk::{ChangeRisk, risks_of};
pub use scratch::ScratchRepository;
pub use sources::SourceDirectory;
pub use store::{LayerPreference, WorkspaceStore};
pub use workspace::{BeforeAndAfter, LayerDirectories, Workspace, WorkspaceCommit, WorkspaceLayer};
