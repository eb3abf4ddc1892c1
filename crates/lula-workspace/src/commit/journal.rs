//! What a commit is going to do to the user's tree, written down before it does it.
//!
//! Every step exchanges a name in the tree with a numbered slot in a private directory, or makes,
//! removes or re-permits a directory. Each has an inverse, and whether it was done can be read from
//! the slots, so a commit that was cut off is taken back, and a finished one is undone and redone, by
//! the same few steps.

use std::collections::BTreeSet;

use lula_protocol::{Digest, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::tree::node::{FileNode, FileNodeKind, Stat, Time};
use crate::tree::path::WorkspacePath;

/// The format written here.
pub(crate) const VERSION: u32 = 1;
/// Directories for slots inside a user's tree, where the state lies on another file system.
pub(crate) const TRANSIT_PREFIX: &str = ".lula-commit-";

/// A file or link as it was put into, or found in, the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathMark {
    pub(crate) kind: FileNodeKind,
    pub(crate) mode: u32,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    pub(crate) digest: Digest,
}

impl PathMark {
    pub(crate) fn new(stat: &Stat, digest: Digest) -> Self {
        Self {
            kind: stat.kind,
            mode: stat.mode,
            inode: stat.inode,
            size: stat.size,
            modified: stat.modified,
            digest,
        }
    }

    /// Whether that is certainly it, unread. A rename changes the change time, so that is not asked.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        (self.kind, self.mode, self.inode, self.size, self.modified)
            == (stat.kind, stat.mode, stat.inode, stat.size, stat.modified)
    }

    /// Whether that has the same content and permissions.
    pub(crate) fn equals(&self, node: &FileNode) -> bool {
        self.kind == node.kind
            && node.digest == Some(self.digest)
            && (self.kind == FileNodeKind::Symlink || self.mode == node.mode)
    }
}

/// One step of a commit, as the journal remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum JournalOperation {
    /// From the tree into a slot.
    Remove {
        path: WorkspacePath,
        slot: u32,
        was: PathMark,
    },
    /// From a slot into the tree, where nothing is.
    Place {
        path: WorkspacePath,
        slot: u32,
        new: PathMark,
    },
    /// What is in the slot against what is in the tree.
    Exchange {
        path: WorkspacePath,
        slot: u32,
        was: PathMark,
        new: PathMark,
    },
    MakeDirectory {
        path: WorkspacePath,
        mode: u32,
    },
    /// An empty directory goes.
    RemoveDirectory {
        path: WorkspacePath,
        mode: u32,
    },
    /// Other permissions. A file is remembered with its new ones.
    Permit {
        path: WorkspacePath,
        was: u32,
        new: u32,
        file: Option<PathMark>,
    },
}

impl JournalOperation {
    pub(crate) const fn path(&self) -> &WorkspacePath {
        match self {
            Self::Remove { path, .. }
            | Self::Place { path, .. }
            | Self::Exchange { path, .. }
            | Self::MakeDirectory { path, .. }
            | Self::RemoveDirectory { path, .. }
            | Self::Permit { path, .. } => path,
        }
    }

    pub(crate) const fn slot(&self) -> Option<u32> {
        match self {
            Self::Remove { slot, .. } | Self::Place { slot, .. } | Self::Exchange { slot, .. } => {
                Some(*slot)
            }
            _ => None,
        }
    }

    /// What the step takes out of the tree.
    pub(crate) const fn takes(&self) -> Option<&PathMark> {
        match self {
            Self::Remove { was, .. } | Self::Exchange { was, .. } => Some(was),
            _ => None,
        }
    }

    /// What the step puts into the tree.
    pub(crate) const fn puts(&self) -> Option<&PathMark> {
        match self {
            Self::Place { new, .. } | Self::Exchange { new, .. } => Some(new),
            _ => None,
        }
    }

    pub(crate) const fn puts_mut(&mut self) -> Option<&mut PathMark> {
        match self {
            Self::Place { new, .. } | Self::Exchange { new, .. } => Some(new),
            _ => None,
        }
    }

    /// The step that takes this one back.
    pub(crate) fn inverse(&self) -> Self {
        match self.clone() {
            Self::Remove { path, slot, was } => Self::Place {
                path,
                slot,
                new: was,
            },
            Self::Place { path, slot, new } => Self::Remove {
                path,
                slot,
                was: new,
            },
            Self::Exchange {
                path,
                slot,
                was,
                new,
            } => Self::Exchange {
                path,
                slot,
                was: new,
                new: was,
            },
            Self::MakeDirectory { path, mode } => Self::RemoveDirectory { path, mode },
            Self::RemoveDirectory { path, mode } => Self::MakeDirectory { path, mode },
            Self::Permit {
                path,
                was,
                new,
                file,
            } => Self::Permit {
                path,
                was: new,
                new: was,
                file: file.map(|mark| PathMark { mode: was, ..mark }),
            },
        }
    }
}

/// Whether a commit is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommitSide {
    /// Its changes are in the tree.
    Done,
    /// They were taken back on request.
    Undone,
    /// It never came about: what had been done of it was taken back. Kept because that gave files
    /// of the user new stamps, which are not the user's doing.
    Void,
}

/// A commit, or one that is just being made, undone or redone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommitJournalEntry {
    pub(crate) version: u32,
    pub(crate) workspace: WorkspaceId,
    pub(crate) number: u32,
    /// The user's directory, escaped as paths are, and which one it is.
    pub(crate) base: String,
    pub(crate) identity: (u32, u32, u64),
    pub(crate) at_ms: u64,
    pub(crate) side: CommitSide,
    /// Which directory of slots belongs to it.
    pub(crate) generation: u32,
    /// The directory in the user's tree that the slots are in while it is being made.
    pub(crate) transit: Option<String>,
    /// As they were carried out last.
    pub(crate) ops: Vec<JournalOperation>,
}

impl CommitJournalEntry {
    /// Reads what [`Entry::to_bytes`] wrote, and nothing that could make a step do more than a step
    /// does.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let entry: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if entry.version != VERSION {
            return Err(format!("format {} is not known", entry.version));
        }
        if let Some(name) = &entry.transit
            && !is_transit(name)
        {
            return Err(format!("{name:?} is not a place for slots"));
        }
        let mut slots = BTreeSet::new();
        for op in &entry.ops {
            if op.slot().is_some_and(|slot| !slots.insert(slot)) {
                return Err("two steps share a slot".to_owned());
            }
            let is_plain =
                |mark: &PathMark| matches!(mark.kind, FileNodeKind::File | FileNodeKind::Symlink);
            if [op.takes(), op.puts()]
                .into_iter()
                .flatten()
                .any(|mark| !is_plain(mark))
            {
                return Err(format!("{} is neither file nor link", op.path()));
            }
            let modes = match op {
                JournalOperation::MakeDirectory { mode, .. }
                | JournalOperation::RemoveDirectory { mode, .. } => [*mode, 0],
                JournalOperation::Permit { was, new, .. } => [*was, *new],
                _ => [0, 0],
            };
            if modes.iter().any(|mode| mode & !0o7777 != 0) {
                return Err(format!("{} has impossible permissions", op.path()));
            }
        }
        Ok(entry)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Whether a directory of that name is one of ours to remove.
pub(crate) fn is_transit(name: &str) -> bool {
    name.strip_prefix(TRANSIT_PREFIX)
        .is_some_and(|rest| rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Whether bytes are a journal that recovery would act on. For fuzzing.
#[doc(hidden)]
pub fn reads_as_journal(bytes: &[u8]) -> bool {
    let Ok(entry) = CommitJournalEntry::from_bytes(bytes) else {
        return false;
    };
    let again = CommitJournalEntry::from_bytes(&entry.to_bytes());
    assert_eq!(
        again.as_ref(),
        Ok(&entry),
        "a journal must read back as written"
    );
    let twice: Vec<JournalOperation> = entry.ops.iter().map(|op| op.inverse().inverse()).collect();
    assert_eq!(twice, entry.ops, "an inverse must have its inverse");
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> CommitJournalEntry {
        let mark = PathMark {
            kind: FileNodeKind::File,
            mode: 0o644,
            inode: u64::MAX,
            size: 3,
            modified: Time(1, 2),
            digest: Digest::of_bytes(b"new"),
        };
        CommitJournalEntry {
            version: VERSION,
            workspace: WorkspaceId::from_parts(1, [7; 10]),
            number: 1,
            base: "/home/me/project".to_owned(),
            identity: (8, 1, 42),
            at_ms: 1,
            side: CommitSide::Done,
            generation: 0,
            transit: None,
            ops: vec![JournalOperation::Place {
                path: "a/b".parse().unwrap(),
                slot: 0,
                new: mark,
            }],
        }
    }

    #[test]
    fn a_journal_reads_back_as_written() {
        assert!(reads_as_journal(&entry().to_bytes()));
    }

    #[test]
    fn a_forged_journal_is_refused() {
        let text = String::from_utf8(entry().to_bytes()).unwrap();
        for (from, to) in [
            ("a/b", "../b"),
            ("a/b", "/etc/passwd"),
            ("\"version\":1", "\"version\":2"),
            ("\"kind\":\"file\"", "\"kind\":\"block_device\""),
            ("\"transit\":null", "\"transit\":\"src\""),
            ("\"transit\":null", "\"transit\":\".lula-commit-../../x\""),
            ("\"side\":\"done\"", "\"side\":\"done\",\"more\":1"),
        ] {
            assert!(text.contains(from));
            assert!(!reads_as_journal(text.replace(from, to).as_bytes()), "{to}");
        }
    }
}
