//! Why a file tool did not do what it was asked.

use std::fmt::Display;
use std::io;

use lula_edit::patch::PatchError;
use lula_protocol::Code;
use serde::{Deserialize, Serialize};

use super::limits;

/// Why a file tool did not do what it was asked. The words are for the model that asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Not a path inside.
    #[error("{path:?} is not a path inside the workspace: {why}")]
    BadPath {
        /// As it was given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing of that name.
    #[error("there is no {path} in the workspace")]
    Missing {
        /// The path that is not there.
        path: String,
    },
    /// A thing of another kind.
    #[error("{path} is {found}, not {wanted}")]
    OtherKind {
        /// The path that is of another kind.
        path: String,
        /// What is there instead, with its article.
        found: &'static str,
        /// What the tool works on.
        wanted: &'static str,
    },
    /// A link in the way of a write, or out of the workspace.
    #[error("{path} goes through a symbolic link: name the file it points to")]
    Link {
        /// The path that goes through the link.
        path: String,
    },
    /// Leads out of the workspace.
    #[error("{path} leads out of the workspace")]
    Outside {
        /// The path that leads out.
        path: String,
    },
    /// Belongs to version control or to Lula.
    #[error("{path} belongs to version control or to Lula and is not written by file tools")]
    Protected {
        /// The path that file tools do not write.
        path: String,
    },
    /// Something is longer than what is taken.
    #[error("{what} is too large: {size} bytes, at most {most} are taken")]
    TooLarge {
        what: String,
        /// Its size in bytes.
        size: u64,
        most: u64,
    },
    /// There are more of something than are taken.
    #[error("too many {what}: {count}, at most {most} are taken")]
    TooMany {
        what: &'static str,
        count: usize,
        most: usize,
    },
    /// The file is not UTF-8 text.
    #[error("{path} is not UTF-8 text, so it is not edited")]
    NotText { path: String },
    /// A line range that is none.
    #[error("{path} has {lines} lines; there is no range from {from} to {to}")]
    NoSuchLines {
        path: String,
        /// First line that was asked for.
        from: u32,
        /// Last line that was asked for.
        to: u32,
        /// How many there are.
        lines: u32,
    },
    /// A language without a parser here.
    #[error("{path} has no outline: its language is not known, or it is too large to parse")]
    NoOutline { path: String },
    /// A pattern that does not parse.
    #[error("the {what} cannot be used: {why}")]
    Pattern {
        /// The argument that holds it: `pattern` or `glob`.
        what: &'static str,
        /// What its compiler says.
        why: String,
    },
    /// A patch that does not parse.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A patch that changes nothing.
    #[error("the patch changes nothing")]
    NoChange,
    /// Edits without a place.
    #[error("nothing was written. {}", told(.0))]
    NotPlaced(Vec<String>),
    /// The result would no longer parse.
    #[error(
        "nothing was written: {path} would no longer parse at line {line}:\n{shown}Edits of one call \
         are judged together: make those that belong together in one call"
    )]
    Broken {
        path: String,
        /// The first line that would not parse, from 1.
        line: usize,
        /// The lines around it, as they would be.
        shown: String,
    },
    /// A file that is to be made is there.
    #[error("nothing was written: {path} is there already")]
    Exists {
        /// The path that is there already.
        path: String,
    },
    /// Part of a change could not be written; what was written has been put back.
    #[error("nothing was changed: {path} cannot be written: {source}")]
    NotWritten {
        /// The path that could not be written.
        path: String,
        source: io::Error,
    },
    /// The operating system said no.
    #[error("{path} cannot be used: {source}")]
    Io {
        /// The path at which it failed.
        path: String,
        source: io::Error,
    },
    /// A tool that is not a file tool.
    #[error("{0} is not a file tool")]
    NotHere(&'static str),
}

fn told(failures: &[String]) -> String {
    failures.join("\n")
}

impl ToolError {
    pub const fn code(&self) -> Code {
        match self {
            Self::BadPath { .. }
            | Self::Link { .. }
            | Self::Outside { .. }
            | Self::Protected { .. } => Code::PathRefused,
            Self::Missing { .. } | Self::OtherKind { .. } | Self::NoSuchLines { .. } => {
                Code::NothingThere
            }
            Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::NotText { .. }
            | Self::NoOutline { .. } => Code::OverLimit,
            Self::Pattern { .. } => Code::BadPattern,
            Self::Patch(_)
            | Self::NoChange
            | Self::NotPlaced(_)
            | Self::Broken { .. }
            | Self::Exists { .. } => Code::EditNotPlaced,
            Self::NotWritten { .. } | Self::Io { .. } => Code::FileAccess,
            Self::NotHere(_) => Code::BadRequest,
        }
    }

    pub(super) fn edits<E: Display>(failures: impl Iterator<Item = (usize, E)>) -> Self {
        let told = failures.map(|(index, error)| format!("edit {}: {error}", index + 1));
        Self::NotPlaced(told.collect())
    }

    pub(super) fn file_too_large(path: &str, size: u64) -> Self {
        Self::TooLarge {
            what: path.to_owned(),
            size,
            most: limits::FILE,
        }
    }
}

/// A [`ToolError`] on its way out of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    pub code: Code,
    /// What happened, to what, and what to do.
    pub message: String,
}

impl From<ToolError> for ToolFailure {
    fn from(error: ToolError) -> Self {
        const MOST: usize = 16 << 10;
        let mut message = error.to_string();
        if message.len() > MOST {
            let mut end = MOST;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push('…');
        }
        Self {
            code: error.code(),
            message,
        }
    }
}
