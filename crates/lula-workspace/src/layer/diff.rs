//! What a workspace would change: what was touched inside, against the user's tree as it is now.
//!
//! How drift is detected: a copy remembers every file it was made from. An overlay remembers only
//! when it was opened, so that opening costs the same for any directory: a file with a later time
//! stamp was changed by another program, unless a commit of the workspace itself left it there.

use std::collections::BTreeMap;

use lula_protocol::Digest;
use serde::{Deserialize, Serialize};

use crate::commit::journal::{CommitJournalEntry, JournalOperation, PathMark};
use crate::copies::manifest::CopyManifest;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::change::{PathChange, WorkspaceDiff};
use crate::layer::overlay::{self, TouchedPath};
use crate::tree::node::{FileNode, FileNodeKind, Stat, Time};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, OpenParents, RootedTree, attribute, is_absent, open_plain};

/// The attribute that overlayfs leaves on what it copied up.
const ORIGIN: &str = "user.overlay.origin";

/// How to tell whether the user's tree is still as the workspace found it.
pub(crate) enum OriginalStateSource<'a> {
    /// Whatever was stamped later than this was changed meanwhile.
    At(Time),
    /// Every path was remembered.
    As(&'a CopyManifest),
}

/// Paths that commits of the workspace itself left in the tree.
#[derive(Default)]
pub(crate) struct CommittedPaths(BTreeMap<WorkspacePath, Option<PathMark>>);

impl CommittedPaths {
    /// Entries in the order they were carried out.
    pub(crate) fn by(entries: &[CommitJournalEntry]) -> Self {
        let mut settled = BTreeMap::new();
        for op in entries.iter().flat_map(|entry| &entry.ops) {
            match op {
                JournalOperation::Permit { path, file, .. } => {
                    settled.insert(path.clone(), file.clone());
                }
                JournalOperation::Remove { path, .. }
                | JournalOperation::RemoveDirectory { path, .. } => {
                    settled.insert(path.clone(), None);
                }
                _ => {
                    settled.insert(op.path().clone(), op.puts().cloned());
                }
            }
        }
        Self(settled)
    }

    fn is(&self, path: &WorkspacePath, now: Option<&FileNode>) -> bool {
        match (self.0.get(path), now) {
            (Some(Some(mark)), Some(node)) => mark.equals(node),
            (Some(None), None) => true,
            // A directory that a commit made.
            (Some(None), Some(node)) => node.kind == FileNodeKind::Directory,
            _ => false,
        }
    }
}

/// How paths were in the user's tree when the changes were first looked at, before the user
/// changed them. What is put back as it was is no conflict.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FirstSeenPaths(BTreeMap<WorkspacePath, Option<OriginalState>>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginalState {
    kind: FileNodeKind,
    mode: u32,
    digest: Option<Digest>,
}

impl From<&FileNode> for OriginalState {
    fn from(node: &FileNode) -> Self {
        Self {
            kind: node.kind,
            mode: node.mode,
            digest: node.digest,
        }
    }
}

impl FirstSeenPaths {
    /// Adds what is not known yet; tells whether there was anything.
    pub(crate) fn add(&mut self, diff: &WorkspaceDiff) -> bool {
        let before = self.0.len();
        for change in diff.changes.iter().filter(|change| !change.conflict) {
            let old = change.old.as_ref().map(OriginalState::from);
            self.0.entry(change.path.clone()).or_insert(old);
        }
        self.0.len() > before
    }

    /// Whether that is how it was; `None` if it was not looked at.
    fn is(&self, path: &WorkspacePath, now: Option<&FileNode>) -> Option<bool> {
        self.0
            .get(path)
            .map(|old| *old == now.map(OriginalState::from))
    }
}

/// The layer, the tree and how to compare them.
pub(crate) struct DiffContext<'a> {
    pub(crate) layer: &'a RootedTree,
    pub(crate) base: &'a RootedTree,
    /// Names the base in the digest.
    pub(crate) name: &'a str,
    pub(crate) found: OriginalStateSource<'a>,
    pub(crate) settled: CommittedPaths,
    pub(crate) remembered: FirstSeenPaths,
}

impl DiffContext<'_> {
    pub(crate) fn diff(&self) -> WorkspaceResult<WorkspaceDiff> {
        let mut reader = BudgetedReader::default();
        let mut touched = match self.found {
            OriginalStateSource::At(_) => overlay::touched(self.layer, self.base, &mut reader)?,
            OriginalStateSource::As(manifest) => manifest.touched(self.layer, &mut reader)?,
        };
        touched.sort_by(|a, b| a.path.cmp(&b.path));
        let mut parents = OpenParents::of(self.base);
        let mut changes = Vec::new();
        for TouchedPath { path, new } in touched {
            let old = match parents.get(&path) {
                Ok(parent) => reader.node(parent, &path)?,
                Err(error) if is_absent(error) => None,
                Err(error) => return Err(WorkspaceError::io("open", &path, error)),
            };
            if crate::commit::base::is_ours(
                &path,
                old.as_ref()
                    .map_or(FileNodeKind::File, |(node, _)| node.kind),
            ) {
                continue;
            }
            let (old, seen) = old.unzip();
            let drifted = self.drifted(&path, old.as_ref(), seen.as_ref(), new.as_ref());
            if let Some(mut change) = PathChange::between(path, old, new) {
                change.conflict = drifted;
                change.seen = seen;
                changes.push(change);
            }
        }
        Ok(WorkspaceDiff::new(self.name, changes))
    }

    /// Whether the user's tree is not at this path what the workspace found there.
    fn drifted(
        &self,
        path: &WorkspacePath,
        old: Option<&FileNode>,
        now: Option<&Stat>,
        new: Option<&FileNode>,
    ) -> bool {
        if self.settled.is(path, old) {
            return false;
        }
        // Of a directory only its being there counts; what is in it is looked at by itself.
        if old.is_none_or(|old| old.kind != FileNodeKind::Directory)
            && let Some(as_it_was) = self.remembered.is(path, old)
        {
            return !as_it_was;
        }
        match (&self.found, now) {
            (OriginalStateSource::As(manifest), now) => match (manifest.base(path), now) {
                (Some(then), Some(now)) => !then.matches(now),
                (None, None) => false,
                _ => true,
            },
            (OriginalStateSource::At(opened), Some(now)) => {
                // A directory's stamp changes with every name in it. What came into one that goes
                // is listed, and in conflict, by itself.
                let goes =
                    old.is_some_and(|old| old.kind == FileNodeKind::Directory) && new.is_none();
                !goes && now.changed > *opened
            }
            (OriginalStateSource::At(opened), None) => {
                new.is_some_and(|new| new.kind == FileNodeKind::File)
                    && self.settled.0.is_empty()
                    && self.lost_a_name(path, *opened)
                    && self.was_copied_up(path)
            }
        }
    }

    /// Whether names came or went, since, in the user's directory that the path would be in.
    fn lost_a_name(&self, path: &WorkspacePath, opened: Time) -> bool {
        let mut parents = OpenParents::of(self.base);
        let parent = parents.get(path).and_then(Stat::of_open);
        parent.is_ok_and(|parent| parent.changed > opened)
    }

    /// Whether the file in the layer began as one of the user's: this one, which is not there any
    /// more, or one that was moved here inside.
    fn was_copied_up(&self, path: &WorkspacePath) -> bool {
        let mut parents = OpenParents::of(self.layer);
        let Ok(parent) = parents.get(path) else {
            return false;
        };
        let file = open_plain(parent, path);
        file.is_ok_and(|file| attribute(file, ORIGIN).is_some())
    }
}
