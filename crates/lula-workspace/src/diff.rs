//! What a workspace would change: what was touched inside, against the user's tree as it is now.

use std::collections::BTreeMap;

use crate::change::{Change, Diff};
use crate::copy::Manifest;
use crate::error::{Result, WorkspaceError};
use crate::journal::{Entry, Mark, Op};
use crate::node::{Kind, Node, Stat, Time};
use crate::overlay::{self, Touched};
use crate::path::RelPath;
use crate::tree::{Parents, Reader, Tree, attribute, is_absent, open_plain};

/// The attribute that overlayfs leaves on what it copied up.
const ORIGIN: &str = "user.overlay.origin";

/// How to tell whether the user's tree is still as the workspace found it.
pub(crate) enum Found<'a> {
    /// Whatever was stamped later than this was changed meanwhile.
    At(Time),
    /// Every path was remembered.
    As(&'a Manifest),
}

/// Paths that commits of the workspace itself left in the tree.
#[derive(Default)]
pub(crate) struct Settled(BTreeMap<RelPath, Option<Mark>>);

impl Settled {
    /// Entries in the order they were carried out.
    pub(crate) fn by(entries: &[Entry]) -> Self {
        let mut settled = BTreeMap::new();
        for op in entries.iter().flat_map(|entry| &entry.ops) {
            match op {
                Op::Permit { path, file, .. } => {
                    settled.insert(path.clone(), file.clone());
                }
                Op::Remove { path, .. } | Op::RemoveDirectory { path, .. } => {
                    settled.insert(path.clone(), None);
                }
                _ => {
                    settled.insert(op.path().clone(), op.puts().cloned());
                }
            }
        }
        Self(settled)
    }

    fn is(&self, path: &RelPath, now: Option<&Stat>) -> bool {
        match (self.0.get(path), now) {
            (Some(Some(mark)), Some(stat)) => mark.is(stat),
            (Some(None), None) => true,
            // A directory that a commit made.
            (Some(None), Some(stat)) => stat.kind == Kind::Directory,
            _ => false,
        }
    }
}

/// The layer, the tree and how to compare them.
pub(crate) struct Look<'a> {
    pub(crate) layer: &'a Tree,
    pub(crate) base: &'a Tree,
    /// Names the base in the digest.
    pub(crate) name: &'a str,
    pub(crate) found: Found<'a>,
    pub(crate) settled: Settled,
}

impl Look<'_> {
    pub(crate) fn diff(&self) -> Result<Diff> {
        let mut reader = Reader::default();
        let mut touched = match self.found {
            Found::At(_) => overlay::touched(self.layer, self.base, &mut reader)?,
            Found::As(manifest) => manifest.touched(self.layer, &mut reader)?,
        };
        touched.sort_by(|a, b| a.path.cmp(&b.path));
        let mut parents = Parents::of(self.base);
        let mut changes = Vec::new();
        for Touched { path, new } in touched {
            let old = match parents.get(&path) {
                Ok(parent) => reader.node(parent, &path)?,
                Err(error) if is_absent(error) => None,
                Err(error) => return Err(WorkspaceError::io("open", &path, error)),
            };
            if crate::base::is_ours(
                &path,
                old.as_ref().map_or(Kind::File, |(node, _)| node.kind),
            ) {
                continue;
            }
            let (old, seen) = old.unzip();
            let drifted = self.drifted(&path, old.as_ref(), seen.as_ref(), new.as_ref());
            if let Some(mut change) = Change::between(path, old, new) {
                change.conflict = drifted;
                change.seen = seen;
                changes.push(change);
            }
        }
        Ok(Diff::new(self.name, changes))
    }

    /// Whether the user's tree is not at this path what the workspace found there.
    fn drifted(
        &self,
        path: &RelPath,
        old: Option<&Node>,
        now: Option<&Stat>,
        new: Option<&Node>,
    ) -> bool {
        if self.settled.is(path, now) {
            return false;
        }
        match (&self.found, now) {
            (Found::As(manifest), now) => match (manifest.base(path), now) {
                (Some(then), Some(now)) => !then.matches(now),
                (None, None) => false,
                _ => true,
            },
            (Found::At(opened), Some(now)) => {
                // A directory's stamp changes with every name in it. What came into one that goes
                // is listed, and in conflict, by itself.
                let goes = old.is_some_and(|old| old.kind == Kind::Directory) && new.is_none();
                !goes && now.changed > *opened
            }
            (Found::At(opened), None) => {
                new.is_some_and(|new| new.kind == Kind::File)
                    && self.settled.0.is_empty()
                    && self.lost_a_name(path, *opened)
                    && self.was_copied_up(path)
            }
        }
    }

    /// Whether names came or went, since, in the user's directory that the path would be in.
    fn lost_a_name(&self, path: &RelPath, opened: Time) -> bool {
        let mut parents = Parents::of(self.base);
        let parent = parents.get(path).and_then(Stat::of_open);
        parent.is_ok_and(|parent| parent.changed > opened)
    }

    /// Whether the file in the layer began as one of the user's: this one, which is not there any
    /// more, or one that was moved here inside.
    fn was_copied_up(&self, path: &RelPath) -> bool {
        let mut parents = Parents::of(self.layer);
        let Ok(parent) = parents.get(path) else {
            return false;
        };
        let file = open_plain(parent, path);
        file.is_ok_and(|file| attribute(file, ORIGIN).is_some())
    }
}
