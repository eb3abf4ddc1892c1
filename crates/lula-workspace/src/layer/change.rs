//! What a workspace would change, in a form that can be reviewed and bound by a digest.

use std::collections::BTreeSet;

use lula_protocol::Digest;
use lula_protocol::digest::DigestDomain;
use serde::Serialize;

use crate::layer::aside::ExcludedChanges;
use crate::layer::risk::ChangeRisk;
use crate::tree::node::{FileNode, FileNodeKind, Stat};
use crate::tree::path::WorkspacePath;

/// One path that the workspace would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathChange {
    pub path: WorkspacePath,
    /// What happens to it.
    pub what: PathChangeKind,
    /// What is in the user's tree.
    pub old: Option<FileNode>,
    /// What the workspace makes of it.
    pub new: Option<FileNode>,
    /// Why it deserves a second look.
    pub risks: Vec<ChangeRisk>,
    /// The user's tree changed here too since the workspace was opened.
    pub conflict: bool,
    /// Why it is not committed, or not without being allowed.
    pub held_back: Option<UncommittableReason>,
    /// What the file system said of the old one when it was read.
    #[serde(skip)]
    pub(crate) seen: Option<Stat>,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChangeKind {
    Added,
    /// Its content, or where a link points, is another.
    Modified,
    Deleted,
    /// Only its permissions change.
    Mode,
    /// It becomes something else: a file becomes a link, a directory becomes a file.
    Type,
}

impl PathChangeKind {
    /// As `git status` abbreviates it.
    pub const fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Mode => 'X',
            Self::Type => 'T',
        }
    }
}

/// Why a change is not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UncommittableReason {
    /// A device, pipe or socket.
    Special,
    /// A file that cannot be read.
    Unreadable,
    /// Inside a git directory: committed only where that is allowed.
    GitInternals,
}

impl PathChange {
    pub(crate) fn between(
        path: WorkspacePath,
        old: Option<FileNode>,
        new: Option<FileNode>,
    ) -> Option<Self> {
        let what = match (&old, &new) {
            (None, None) => return None,
            (None, Some(_)) => PathChangeKind::Added,
            (Some(_), None) => PathChangeKind::Deleted,
            (Some(old), Some(new)) if old.kind != new.kind => PathChangeKind::Type,
            (Some(old), Some(new)) if old.same(new) => return None,
            (Some(old), Some(new)) if old.same_content(new) => PathChangeKind::Mode,
            (Some(_), Some(_)) => PathChangeKind::Modified,
        };
        let risks = crate::layer::risk::labels(&path, new.as_ref());
        let nodes = || [&old, &new].into_iter().flatten();
        let held_back = if nodes().any(|node| node.kind.is_special()) {
            Some(UncommittableReason::Special)
        } else if nodes().any(|node| {
            matches!(node.kind, FileNodeKind::File | FileNodeKind::Symlink) && node.digest.is_none()
        }) {
            Some(UncommittableReason::Unreadable)
        } else if risks.contains(&ChangeRisk::GitInternals) {
            Some(UncommittableReason::GitInternals)
        } else {
            None
        };
        Some(Self {
            path,
            what,
            old,
            new,
            risks,
            conflict: false,
            held_back,
            seen: None,
        })
    }

    /// Whether a directory goes away here, by deletion or by becoming something else.
    pub(crate) fn ends_directory(&self) -> bool {
        let is = |node: &Option<FileNode>| {
            node.as_ref()
                .is_some_and(|node| node.kind == FileNodeKind::Directory)
        };
        is(&self.old) && !is(&self.new)
    }

    /// Whether a directory comes into being here.
    pub(crate) fn begins_directory(&self) -> bool {
        let is = |node: &Option<FileNode>| {
            node.as_ref()
                .is_some_and(|node| node.kind == FileNodeKind::Directory)
        };
        is(&self.new) && !is(&self.old)
    }
}

/// Everything a workspace would change, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceDiff {
    /// Ties a review to these bytes: over the base directory and every change.
    pub digest: Digest,
    pub changes: Vec<PathChange>,
}

#[derive(Serialize)]
struct BoundDiff<'a> {
    base: &'a str,
    changes: Vec<BoundChange<'a>>,
}

#[derive(Serialize)]
struct BoundChange<'a> {
    path: &'a WorkspacePath,
    old: Option<&'a FileNode>,
    new: Option<&'a FileNode>,
}

impl WorkspaceDiff {
    /// `base` names the directory and which one it is.
    pub(crate) fn new(base: &str, mut changes: Vec<PathChange>) -> Self {
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        mark_embedded_repositories(&mut changes);
        let bound = BoundDiff {
            base,
            changes: changes
                .iter()
                .map(|change| BoundChange {
                    path: &change.path,
                    old: change.old.as_ref(),
                    new: change.new.as_ref(),
                })
                .collect(),
        };
        // Sizes are below 2^53 and the nesting is fixed, so this value always has canonical bytes;
        // were it otherwise, a digest of nothing matches no review.
        let digest =
            Digest::of(DigestDomain::Diff, &bound).unwrap_or_else(|_| Digest::from_bytes([0; 32]));
        Self { digest, changes }
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The change of that path.
    pub fn get(&self, path: &WorkspacePath) -> Option<&PathChange> {
        let at = self
            .changes
            .binary_search_by(|change| change.path.cmp(path));
        at.ok().and_then(|at| self.changes.get(at))
    }
}

/// A directory that gains `HEAD` and `config`, `objects` or `refs` is a git directory whatever its
/// name: git obeys its configuration when a person or a program enters it.
fn mark_embedded_repositories(changes: &mut [PathChange]) {
    let is_new = |path: Option<WorkspacePath>| {
        let path = path?;
        let at = changes
            .binary_search_by(|change| change.path.cmp(&path))
            .ok()?;
        changes[at].new.is_some().then_some(())
    };
    let repositories: BTreeSet<WorkspacePath> = changes
        .iter()
        .filter(|change| change.new.is_some() && change.path.name() == b"HEAD")
        .filter(|change| !change.risks.contains(&ChangeRisk::GitInternals))
        .filter_map(|change| change.path.parent())
        .filter(|directory| {
            let parts = [&b"config"[..], b"objects", b"refs"];
            parts
                .iter()
                .any(|part| is_new(directory.child(part).ok()).is_some())
        })
        .collect();
    if repositories.is_empty() {
        return;
    }
    for change in changes {
        let mut above = Some(change.path.clone());
        while let Some(path) = above {
            if repositories.contains(&path) {
                change.risks.push(ChangeRisk::EmbeddedRepository);
                break;
            }
            above = path.parent();
        }
    }
}

/// Which changes to commit.
#[derive(Debug, Clone, Default)]
pub struct ChangeSelection {
    /// These paths and everything below them; all where empty.
    pub paths: Vec<WorkspacePath>,
    /// Changes inside git directories too.
    pub git_internals: bool,
}

/// What a selection takes and what it leaves although it was asked for.
#[derive(Debug)]
pub(crate) struct SelectedChanges<'a> {
    pub(crate) taken: Vec<&'a PathChange>,
    pub(crate) held_back: Vec<WorkspacePath>,
}

impl ChangeSelection {
    /// Everything but what is held back.
    pub fn all() -> Self {
        Self::default()
    }

    /// The chosen changes, with those directories that they need and without those that cannot go
    /// because something held back is inside.
    pub(crate) fn choose<'a>(
        &self,
        diff: &'a WorkspaceDiff,
        aside: &ExcludedChanges,
    ) -> Result<SelectedChanges<'a>, WorkspacePath> {
        for path in &self.paths {
            if !diff
                .changes
                .iter()
                .any(|change| change.path.is_within(path))
            {
                return Err(path.clone());
            }
        }
        let aside = aside.except(&self.paths);
        let named = |change: &PathChange| {
            let named = self.paths.iter().any(|path| change.path.is_within(path));
            (self.paths.is_empty() || named) && !aside.contains(&change.path)
        };
        let mut wanted: Vec<bool> = diff.changes.iter().map(named).collect();
        self.add_parents(diff, &mut wanted);
        let held = |change: &PathChange| match change.held_back {
            None => false,
            Some(UncommittableReason::GitInternals) => !self.git_internals,
            Some(UncommittableReason::Special | UncommittableReason::Unreadable) => true,
        };
        let mut stays: Vec<bool> = diff.changes.iter().map(held).collect();
        keep_full_directories(diff, &wanted, &mut stays);
        let mut chosen = SelectedChanges {
            taken: Vec::new(),
            held_back: Vec::new(),
        };
        for (index, change) in diff.changes.iter().enumerate() {
            match (wanted[index], stays[index]) {
                (true, false) => chosen.taken.push(change),
                (true, true) => chosen.held_back.push(change.path.clone()),
                (false, _) => {}
            }
        }
        Ok(chosen)
    }

    /// A new file needs the new directories it is in.
    fn add_parents(&self, diff: &WorkspaceDiff, wanted: &mut [bool]) {
        if self.paths.is_empty() {
            return;
        }
        let mut open: Vec<usize> = Vec::new();
        for index in 0..diff.changes.len() {
            let change = &diff.changes[index];
            while open
                .last()
                .is_some_and(|last| !change.path.is_below(&diff.changes[*last].path))
            {
                open.pop();
            }
            if wanted[index] && change.new.is_some() {
                for parent in &open {
                    wanted[*parent] = true;
                }
            }
            if change.begins_directory() {
                open.push(index);
            }
        }
    }
}

/// A directory in which something stays cannot go either.
fn keep_full_directories(diff: &WorkspaceDiff, wanted: &[bool], stays: &mut [bool]) {
    let mut open: Vec<usize> = Vec::new();
    for index in 0..diff.changes.len() {
        let path = &diff.changes[index].path;
        while open
            .last()
            .is_some_and(|last| !path.is_below(&diff.changes[*last].path))
        {
            open.pop();
        }
        if stays[index] || !wanted[index] {
            for parent in &open {
                stays[*parent] = true;
            }
        }
        if diff.changes[index].ends_directory() {
            open.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: FileNodeKind, content: &str) -> FileNode {
        FileNode {
            kind,
            mode: 0o644,
            size: content.len() as u64,
            digest: (kind == FileNodeKind::File).then(|| Digest::of_bytes(content.as_bytes())),
            target: None,
            binary: false,
            capabilities: false,
        }
    }

    fn change(path: &str, old: Option<FileNodeKind>, new: Option<FileNodeKind>) -> PathChange {
        let old = old.map(|kind| node(kind, "old"));
        let new = new.map(|kind| node(kind, "new"));
        PathChange::between(path.parse().unwrap(), old, new).unwrap()
    }

    fn taken(selection: &ChangeSelection, diff: &WorkspaceDiff) -> Vec<String> {
        let chosen = selection.choose(diff, &ExcludedChanges::none()).unwrap();
        chosen
            .taken
            .iter()
            .map(|change| change.path.to_string())
            .collect()
    }

    #[test]
    fn a_file_brings_the_new_directories_it_needs() {
        let diff = WorkspaceDiff::new(
            "base",
            vec![
                change("a", None, Some(FileNodeKind::Directory)),
                change("a/b", None, Some(FileNodeKind::Directory)),
                change("a/b/c", None, Some(FileNodeKind::File)),
                change("a/d", None, Some(FileNodeKind::File)),
            ],
        );
        let one = ChangeSelection {
            paths: vec!["a/b/c".parse().unwrap()],
            ..ChangeSelection::default()
        };
        assert_eq!(taken(&one, &diff), ["a", "a/b", "a/b/c"]);
    }

    #[test]
    fn a_directory_stays_while_something_in_it_stays() {
        let gone = |path| change(path, Some(FileNodeKind::File), None);
        let diff = WorkspaceDiff::new(
            "base",
            vec![
                change("sub", Some(FileNodeKind::Directory), None),
                change("sub/.git", Some(FileNodeKind::File), None),
                gone("sub/x"),
            ],
        );
        assert_eq!(taken(&ChangeSelection::all(), &diff), ["sub/x"]);
        let git_too = ChangeSelection {
            git_internals: true,
            ..ChangeSelection::default()
        };
        assert_eq!(taken(&git_too, &diff), ["sub", "sub/.git", "sub/x"]);
        let part = ChangeSelection {
            paths: vec!["sub/x".parse().unwrap()],
            ..ChangeSelection::default()
        };
        assert_eq!(taken(&part, &diff), ["sub/x"]);
    }

    #[test]
    fn one_byte_or_one_path_more_is_another_digest() {
        let one = WorkspaceDiff::new("base", vec![change("a", None, Some(FileNodeKind::File))]);
        let same = WorkspaceDiff::new("base", vec![change("a", None, Some(FileNodeKind::File))]);
        let elsewhere =
            WorkspaceDiff::new("other", vec![change("a", None, Some(FileNodeKind::File))]);
        let kind = WorkspaceDiff::new(
            "base",
            vec![change("a", None, Some(FileNodeKind::Directory))],
        );
        assert_eq!(one.digest, same.digest);
        assert_ne!(one.digest, elsewhere.digest);
        assert_ne!(one.digest, kind.digest);
    }

    #[test]
    fn a_git_directory_under_another_name_is_noticed() {
        let diff = WorkspaceDiff::new(
            "base",
            vec![
                change("vendor/HEAD", None, Some(FileNodeKind::File)),
                change("vendor/config", None, Some(FileNodeKind::File)),
                change("HEAD", None, Some(FileNodeKind::File)),
            ],
        );
        let risks = |path: &str| &diff.get(&path.parse().unwrap()).unwrap().risks;
        assert!(risks("vendor/config").contains(&ChangeRisk::EmbeddedRepository));
        assert!(risks("HEAD").is_empty());
    }
}
