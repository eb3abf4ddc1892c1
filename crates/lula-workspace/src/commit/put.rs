//! A change that is known file by file, put into a directory in one journaled step: all of it, and
//! only where every file it touches is as the change found it.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use lula_protocol::{Digest, WorkspaceId};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::commit::journal::CommitSide;
use crate::commit::own_like;
use crate::copies::own;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::change::{ChangeSelection, PathChange, WorkspaceDiff};
use crate::store::record::{LayerBackend, WorkspaceRecord};
use crate::store::workspace::{Workspace, WorkspaceCommit};
use crate::store::{LayerPreference, WorkspaceStore};
use crate::tree::node::{FileNode, FileNodeKind, PERMISSION_BITS, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{OpenParents, RootedTree, beneath, os, remove};

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathContent {
    /// A file with its bytes.
    File {
        bytes: Vec<u8>,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A link, to this.
    Link(Vec<u8>),
}

/// One path as a change found it and as it leaves it; nothing where it was not or is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathReplacement {
    pub path: WorkspacePath,
    /// What the change found.
    pub before: Option<PathContent>,
    /// What the change leaves; none where the path is gone.
    pub after: Option<PathContent>,
}

impl PathContent {
    fn is(&self, node: &FileNode) -> bool {
        match self {
            Self::File { bytes, executable } => {
                node.kind == FileNodeKind::File
                    && node.digest == Some(Digest::of_bytes(bytes))
                    && (node.mode & 0o100 != 0) == *executable
            }
            Self::Link(target) => {
                node.kind == FileNodeKind::Symlink && node.digest == Some(Digest::of_bytes(target))
            }
        }
    }
}

impl WorkspaceStore {
    /// Puts a change into a directory. Where a file it touches is not as it found it, nothing is
    /// changed. It is undone and redone like every other commit.
    pub fn put(
        &self,
        base: &Path,
        title: &str,
        pieces: &[PathReplacement],
    ) -> WorkspaceResult<(WorkspaceId, WorkspaceCommit)> {
        let mut workspace = self.create(base, LayerPreference::Overlay, title)?;
        match workspace.take_over(pieces) {
            Ok(committed) => Ok((workspace.id().clone(), committed)),
            Err(error) => {
                // Nothing but copies of the change is in it.
                let _ = workspace.discard(true);
                Err(error)
            }
        }
    }
}

impl WorkspaceStore {
    /// The workspace of a change of that title that was put into a directory and not taken back.
    pub fn was_put(&self, base: &Path, title: &str) -> WorkspaceResult<Option<WorkspaceId>> {
        let of_it = |record: &WorkspaceRecord| record.base() == base && record.title == title;
        for record in self.list()?.into_iter().filter(of_it) {
            // What a crash left half done is put right by opening it.
            let id = self.open(&record.id)?.id().clone();
            let entries = self.entries(&id)?;
            if entries.iter().any(|entry| entry.side == CommitSide::Done) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

impl Workspace {
    /// Makes every path of a change hold what the change leaves there, as if it had been written
    /// inside. Refused while a sandbox is open on it.
    pub fn lay(&mut self, pieces: &[PathReplacement]) -> WorkspaceResult<()> {
        let _lock = self.exclusive()?;
        let (base, _) = crate::commit::base::open(&self.record.base())?;
        let laying = ReplacementWriter {
            layer: &self.layer_tree()?,
            base: &base,
            overlay: self.record.backend == LayerBackend::Overlay,
        };
        // What goes comes first: a file may take the place of a directory, and the other way round.
        let (come, go): (Vec<&PathReplacement>, Vec<&PathReplacement>) =
            pieces.iter().partition(|piece| piece.after.is_some());
        go.into_iter()
            .chain(come)
            .try_for_each(|piece| laying.lay(piece))
    }

    fn take_over(&mut self, pieces: &[PathReplacement]) -> WorkspaceResult<WorkspaceCommit> {
        self.lay(pieces)?;
        let diff = self.diff()?;
        let changed = not_as_found(pieces, &diff);
        if !changed.is_empty() {
            return Err(WorkspaceError::Conflicts(changed));
        }
        self.commit(&ChangeSelection::all(), Some(&diff.digest))
    }
}

/// The paths that are not in the directory as the change found them.
fn not_as_found(pieces: &[PathReplacement], diff: &WorkspaceDiff) -> Vec<WorkspacePath> {
    let found = |piece: &PathReplacement| {
        diff.get(&piece.path)
            .is_some_and(|change| match (&piece.before, &change.old) {
                (None, None) => true,
                (Some(before), Some(old)) => before.is(old),
                _ => false,
            })
    };
    let named = |change: &PathChange| pieces.iter().any(|piece| piece.path == change.path);
    let pieces_otherwise = pieces.iter().filter(|piece| !found(piece));
    let others = diff
        .changes
        .iter()
        .filter(|change| !named(change) && (change.old.is_some() || !change.begins_directory()));
    pieces_otherwise
        .map(|piece| piece.path.clone())
        .chain(others.map(|change| change.path.clone()))
        .collect()
}

/// Writing into a layer that no sandbox shows.
struct ReplacementWriter<'a> {
    layer: &'a RootedTree,
    base: &'a RootedTree,
    overlay: bool,
}

impl ReplacementWriter<'_> {
    fn lay(&self, piece: &PathReplacement) -> WorkspaceResult<()> {
        let path = &piece.path;
        self.directories(path)?;
        let failed = |error: Errno| WorkspaceError::io("write", path, error);
        let mut parents = OpenParents::of(self.layer);
        let parent = parents.get(path).map_err(failed)?;
        let name = os(path.name());
        remove(parent, name).map_err(failed)?;
        match &piece.after {
            // A name that is gone, in the way of overlays.
            None if self.overlay => {
                let kind = FileType::CharacterDevice;
                rustix::fs::mknodat(parent, name, kind, Mode::empty(), 0).map_err(failed)
            }
            None => Ok(()),
            Some(PathContent::Link(target)) => {
                let target = CString::new(target.clone()).map_err(|_| failed(Errno::INVAL))?;
                rustix::fs::symlinkat(target.as_c_str(), parent, name).map_err(failed)
            }
            Some(PathContent::File { bytes, executable }) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let file = beneath(parent, name, flags).map_err(failed)?;
                let mut file = File::from(file);
                file.write_all(bytes)
                    .map_err(|error| WorkspaceError::io("write", path, error))?;
                let old = self.base.stat(path)?;
                self.dress(&file, old.as_ref(), *executable).map_err(failed)
            }
        }
    }

    /// Owner and permissions of what it takes the place of.
    fn dress(&self, file: &File, old: Option<&Stat>, executable: bool) -> rustix::io::Result<()> {
        let top = Stat::of_open(&self.base.top)?;
        own(file, old.map_or(top.owner, |old| old.owner))?;
        let old = old.filter(|old| old.kind == FileNodeKind::File);
        let mode = old.map_or(0o644, |old| old.mode & PERMISSION_BITS);
        let mode = if executable {
            mode | (mode & 0o444) >> 2
        } else {
            mode & !0o111
        };
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
    }

    /// The directories a path is in, as they are in the base.
    fn directories(&self, path: &WorkspacePath) -> WorkspaceResult<()> {
        let mut above = Vec::new();
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            above.push(directory);
        }
        for directory in above.iter().rev() {
            self.directory(directory)
                .map_err(|error| WorkspaceError::io("create", directory, error))?;
        }
        Ok(())
    }

    fn directory(&self, path: &WorkspacePath) -> rustix::io::Result<()> {
        let mode = Mode::from_raw_mode(0o755);
        let mut parents = OpenParents::of(self.layer);
        let parent = parents.get(path)?;
        let name = os(path.name());
        match rustix::fs::mkdirat(parent, name, mode) {
            Ok(()) => {}
            Err(Errno::EXIST) if beneath(parent, name, OFlags::DIRECTORY).is_ok() => return Ok(()),
            // A file was there, or the mark that one is gone.
            Err(Errno::EXIST) => {
                remove(parent, name)?;
                rustix::fs::mkdirat(parent, name, mode)?;
            }
            Err(error) => return Err(error),
        }
        let open = |tree: &RootedTree| -> rustix::io::Result<OwnedFd> {
            beneath(&tree.top, path.as_os_str(), OFlags::DIRECTORY)
        };
        let here = open(self.layer)?;
        match open(self.base) {
            Ok(like) => own_like(&here, &like),
            Err(_) => own(&here, Stat::of_open(&self.base.top)?.owner),
        }
    }
}
