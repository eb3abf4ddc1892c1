//! Working on a complete copy, where no overlay can be had.
//!
//! The manifest remembers every path as it was in the user's tree and in the copy. What the copy
//! shows now against that says what was touched inside; what the user's tree shows says whether the
//! user was there meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::copies::Copier;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::overlay::TouchedPath;
use crate::tree::node::{FileNodeKind, Stat, Time};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, RootedTree, beneath, os};

/// Tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileIdentity {
    kind: FileNodeKind,
    mode: u32,
    inode: u64,
    size: u64,
    modified: Time,
    changed: Time,
}

impl From<&Stat> for FileIdentity {
    fn from(stat: &Stat) -> Self {
        Self {
            kind: stat.kind,
            mode: stat.mode,
            inode: stat.inode,
            size: stat.size,
            modified: stat.modified,
            changed: stat.changed,
        }
    }
}

impl FileIdentity {
    /// A directory's times and size change with what is in it, which is told apart by itself.
    pub(crate) fn matches(&self, stat: &Stat) -> bool {
        let now = Self::from(stat);
        if self.kind == FileNodeKind::Directory {
            (now.kind, now.mode) == (self.kind, self.mode)
        } else {
            *self == now
        }
    }
}

/// Every path as it was when the copy was made.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CopyManifest(BTreeMap<WorkspacePath, Entry>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    base: FileIdentity,
    copy: FileIdentity,
}

impl CopyManifest {
    /// Copies the user's tree and remembers how it was.
    pub(crate) fn take(
        base: &RootedTree,
        copy: &RootedTree,
        allowed: u64,
    ) -> WorkspaceResult<Self> {
        let mut entries = BTreeMap::new();
        let mut reader = BudgetedReader::default();
        let mut copier = Copier {
            reader: &mut reader,
            layer: false,
            allowed,
        };
        copier.tree(&base.top, &copy.top, &mut |path, was, is| {
            let entry = Entry {
                base: was.into(),
                copy: is.into(),
            };
            entries.insert(path.clone(), entry);
        })?;
        Ok(Self(entries))
    }

    /// The same for a copy of the copy.
    pub(crate) fn moved_to(
        &self,
        copies: &BTreeMap<WorkspacePath, (FileIdentity, FileIdentity)>,
    ) -> Self {
        let moved = self.0.iter().map(|(path, entry)| {
            let copy = match copies.get(path) {
                // Untouched in the one it was copied from, so untouched in the new one.
                Some((from, to)) if *from == entry.copy => *to,
                _ => entry.copy,
            };
            let base = entry.base;
            (path.clone(), Entry { base, copy })
        });
        Self(moved.collect())
    }

    /// How the path was in the user's tree when the copy was made.
    pub(crate) fn base(&self, path: &WorkspacePath) -> Option<&FileIdentity> {
        self.0.get(path).map(|entry| &entry.base)
    }

    /// What was touched in the copy since.
    pub(crate) fn touched(
        &self,
        copy: &RootedTree,
        reader: &mut BudgetedReader,
    ) -> WorkspaceResult<Vec<TouchedPath>> {
        let mut walk = Walk {
            manifest: self,
            reader,
            seen: BTreeSet::new(),
            found: Vec::new(),
        };
        walk.directory(&copy.top, None, 0)?;
        let Walk {
            seen, mut found, ..
        } = walk;
        let gone = self.0.keys().filter(|path| !seen.contains(*path));
        found.extend(gone.map(|path| TouchedPath {
            path: path.clone(),
            new: None,
        }));
        Ok(found)
    }
}

struct Walk<'a> {
    manifest: &'a CopyManifest,
    reader: &'a mut BudgetedReader,
    seen: BTreeSet<WorkspacePath>,
    found: Vec<TouchedPath>,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        directory: &OwnedFd,
        place: Option<&WorkspacePath>,
        depth: usize,
    ) -> WorkspaceResult<()> {
        for path in self.reader.paths(directory, place, depth)? {
            let name = os(path.name());
            let failed = |error| WorkspaceError::io("look at", &path, error);
            let Some(stat) = Stat::maybe(directory, name).map_err(failed)? else {
                continue;
            };
            let known = self.manifest.0.get(&path);
            if known.is_none_or(|entry| !entry.copy.matches(&stat))
                && let Some((new, _)) = self.reader.node(directory, &path)?
            {
                self.found.push(TouchedPath {
                    path: path.clone(),
                    new: Some(new),
                });
            }
            if known.is_some() {
                self.seen.insert(path.clone());
            }
            if stat.kind == FileNodeKind::Directory {
                let inner = beneath(directory, name, OFlags::DIRECTORY).map_err(failed)?;
                self.directory(&inner, Some(&path), depth + 1)?;
            }
        }
        Ok(())
    }
}
