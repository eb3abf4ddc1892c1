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
//! a run build on together, and [`sources`] lists and reads a project as it is.
//!
//! # Where things are
//!
//! | room | what |
//! |---|---|
//! | `store/` | records below the state directory, and one workspace (`workspace.rs`) |
//! | `layer/` | what was touched in a layer (`overlay.rs` reads an overlay's upper directory as the kernel does), compared with the user's tree as it is now (`diff.rs`), labelled (`risk.rs`) and bound by a digest (`change.rs`) |
//! | `copies/` | whole trees copied; where no overlay can be had a layer is such a copy with a manifest, and a snapshot is one of a layer |
//! | `commit/` | new content staged (`staging.rs`), written down (`journal.rs`), and each name in the tree exchanged with a slot beside the journal (`steps.rs`) |
//! | `git/` | git on the host, made inert |
//! | `tree/` | the only way to the file system, by handles |
//! | `fork/` | private versions for tests; `changes.rs` lays a workspace's changes over one, so that a fork is the workspace as it was at one moment |
//! | `checkout/`, `integration_branch/`, `ignored/` | commits laid out and delivered; the branch of several agents; what git ignores |
//!
//! Every step of a commit has an inverse and its slot says whether it was done, so a recovery
//! (`commit/base.rs`), an undo and a redo are the same few steps.
#![forbid(unsafe_code)]

pub mod checkout;
mod commit;
mod copies;
mod creation_lock;
mod environment;
mod error;
pub mod fork;
pub mod git;
mod ignored;
pub mod integration_branch;
mod layer;
mod store;
#[cfg(test)]
mod tests;
mod tree;

pub use checkout::Checkout;
#[doc(hidden)]
pub use commit::journal::reads_as_journal;
use commit::put;
pub use commit::put::{PathContent, PathReplacement};
pub use environment::{EnvironmentGround, EnvironmentHarvest};
pub use error::WorkspaceError;
pub use fork::{ForkError, ForkableProject, OpenDirectory, WorkspaceFork};
pub use git::scratch::{self, ScratchRepository};
pub use git::{GitError, GitProgram};
pub use ignored::{IgnoredExtent, IgnoredLayers};
pub use integration_branch::IntegrationBranch;
pub use layer::aside::ExcludedChanges;
pub use layer::change::{
    ChangeSelection, PathChange, PathChangeKind, UncommittableReason, WorkspaceDiff,
};
pub use layer::patch::{patch, unified};
pub use layer::risk::{ChangeRisk, risks_of};
#[doc(hidden)]
pub use store::record::reads_as_record;
pub use store::record::{LayerBackend, LayerSnapshot, WorkspaceRecord, WorkspaceStatus};
#[cfg(test)]
use store::workspace;
pub use store::workspace::{
    BeforeAndAfter, LayerDirectories, Workspace, WorkspaceCommit, WorkspaceLayer,
};
pub use store::{LayerPreference, WorkspaceStore};
pub use tree::node::{FileNode, FileNodeKind};
pub use tree::path::{InvalidWorkspacePath, WorkspacePath};
pub use tree::sources::{self, SourceDirectory};
