//! Why a workspace did not do what it was asked to.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use lula_protocol::{Code, Digest, WorkspaceId};

use crate::tree::path::{InvalidWorkspacePath, WorkspacePath};

/// Why a workspace did not do what it was asked to. In every case the user's tree is as it was,
/// except where a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The operating system said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        path: String,
        source: io::Error,
    },
    /// A name that no path inside a workspace has.
    #[error(transparent)]
    Path(#[from] InvalidWorkspacePath),
    /// A record or journal that was not written by this program, or by a newer one.
    #[error("{path} is damaged: {reason}")]
    BadRecord {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The private layer holds what only an attacker, or another program, puts there.
    #[error("{path} in the workspace's layer carries {what}, which its file system does not write")]
    ForeignMark {
        path: WorkspacePath,
        /// The mark that was found, and does not belong there.
        what: String,
    },
    /// More than can be looked through.
    #[error("the workspace has more than {limit} {what}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        limit: u64,
    },
    /// A file that changes faster than it can be read.
    #[error("{path} changes while it is read")]
    Busy { path: WorkspacePath },
    /// The user's tree has moved on where the workspace changed it too.
    #[error("{} changed since the workspace was opened", listed(.0))]
    Conflicts(Vec<WorkspacePath>),
    /// The changes are not those that were reviewed.
    #[error("the changes are not the reviewed ones: expected {expected}, found {found}")]
    ChangedSinceReview {
        /// The digest of the review.
        expected: Digest,
        /// The digest of what is there.
        found: Digest,
    },
    /// Everything asked for is of the kind that is never committed, or not without being allowed.
    #[error("nothing can be committed: {} held back", listed(.0))]
    AllHeldBack(Vec<WorkspacePath>),
    /// There is nothing to do.
    #[error("workspace {0} has no changes")]
    NoChanges(WorkspaceId),
    /// No change is at or below that path.
    #[error("workspace {id} has no change at {path}")]
    NoSuchChange {
        /// The workspace that was searched.
        id: WorkspaceId,
        /// The path as it was asked for.
        path: WorkspacePath,
    },
    /// No workspace has that id.
    #[error("there is no workspace {0}")]
    Unknown(String),
    /// An abbreviation that fits several.
    #[error("{given} may be any of {}", .ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The abbreviation that was given.
        given: String,
        ids: Vec<WorkspaceId>,
    },
    /// There is nothing to undo or redo.
    #[error("there is nothing to {0}")]
    Nothing(&'static str),
    /// No snapshot has that name.
    #[error("workspace {id} has no snapshot {label:?}")]
    NoSuchSnapshot {
        /// The workspace that was searched.
        id: WorkspaceId,
        label: String,
    },
    /// A session works in it.
    #[error("workspace {0} is in use")]
    InUse(WorkspaceId),
    /// Another process commits to, or undoes in, the same directory.
    #[error("another process is changing {0}")]
    BaseBusy(PathBuf),
    /// The directory a workspace belongs to is not there any more.
    #[error("{0} is not the directory that the workspace was opened on")]
    BaseGone(PathBuf),
    /// The workspace was discarded.
    #[error("workspace {0} was discarded")]
    Discarded(WorkspaceId),
    /// The private layers take all the space they may.
    #[error("workspaces take {used} bytes of the {allowed} that they may")]
    Full {
        /// Bytes taken by workspaces that still have something to review.
        used: u64,
        /// Most bytes that all layers may take.
        allowed: u64,
    },
    /// The file system cannot exchange two files in one step, so a commit could not be undone by a
    /// crash.
    #[error("the file system of {0} cannot exchange files atomically")]
    NoExchange(PathBuf),
    /// The base directory holds or is held by the place of the private layers.
    #[error("{0} and the state directory lie in each other")]
    Nested(PathBuf),
    /// A step was cut off by a test.
    #[cfg(test)]
    #[error("stopped by a test")]
    Stopped,
}

impl WorkspaceError {
    pub const fn code(&self) -> Code {
        match self {
            Self::Conflicts(_) => Code::WorkspaceConflict,
            Self::ChangedSinceReview { .. } => Code::ChangedSinceReview,
            Self::AllHeldBack(_) => Code::HeldBack,
            Self::Full { .. } => Code::WorkspacesFull,
            Self::NoChanges(_)
            | Self::NoSuchChange { .. }
            | Self::Unknown(_)
            | Self::Ambiguous { .. }
            | Self::Nothing(_)
            | Self::NoSuchSnapshot { .. }
            | Self::Discarded(_)
            | Self::Path(_) => Code::NoSuchWorkspace,
            Self::Io { .. } => Code::FileAccess,
            _ => Code::WorkspaceUnusable,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { .. } => {
                "check that the file can be read and written, and that there is space"
            }
            Self::BadRecord { .. } => "look at it, and remove it if nothing in it is needed",
            Self::ForeignMark { .. } | Self::TooMuch { .. } => {
                "`lula discard ID` drops it; your files are not touched"
            }
            Self::Busy { .. } | Self::InUse(_) => "wait until the command in it has ended",
            Self::BaseBusy(_) => "try again in a moment",
            Self::Conflicts(_) => {
                "nothing was changed: look with `lula diff`, take the others with `lula commit --path P`, or put these files back"
            }
            Self::ChangedSinceReview { .. } => "look again with `lula diff`, then commit that",
            Self::AllHeldBack(_) => {
                "`lula diff` says why; changes inside .git need `lula commit --allow-git`"
            }
            Self::NoChanges(_) | Self::NoSuchChange { .. } => {
                "`lula diff` lists the changes there are"
            }
            Self::Path(_) => "name a path below the top of the workspace, such as src/main.rs",
            Self::Nothing(_) | Self::Unknown(_) | Self::NoSuchSnapshot { .. } => {
                "`lula workspaces` lists what there is"
            }
            Self::Ambiguous { .. } => "give more of the id",
            Self::BaseGone(_) => {
                "put the directory back in its place, or `lula discard` the workspace"
            }
            Self::Discarded(_) => "`lula undo ID` brings it back while its layer is still kept",
            Self::Full { .. } => {
                "commit or discard some (`lula workspaces`), or raise workspace.max_bytes"
            }
            Self::NoExchange(_) => "apply `lula diff` by hand, or run with --write direct",
            Self::Nested(_) => "keep state elsewhere: set state.dir",
            #[cfg(test)]
            Self::Stopped => "",
        }
    }

    pub(crate) fn io(what: &'static str, path: impl Display, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what,
            path: path.to_string(),
            source: source.into(),
        }
    }
}

/// The first few, and how many more.
fn listed(paths: &[WorkspacePath]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(|path| format!("{path:?}").trim_matches('"').to_owned())
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > SHOWN {
        let more = paths.len() - SHOWN;
        text = format!("{text} and {more} more");
    }
    text
}

pub(crate) type WorkspaceResult<T, E = WorkspaceError> = std::result::Result<T, E>;
