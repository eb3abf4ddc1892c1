//! Staging: the new content of a commit on its way into slots, and the steps that put it in place.

use std::fs::File;
use std::io::Seek;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno;

use crate::commit::base::UserDirectory;
use crate::commit::journal::{JournalOperation, PathMark};
use crate::commit::sync_all;
use crate::copies::{dress, make_link};
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::change::{PathChange, PathChangeKind};
use crate::tree::node::{FileNode, FileNodeKind, PERMISSION_BITS, SPECIAL_BITS, Stat};
use crate::tree::path::{WorkspacePath, unescape};
use crate::tree::{BudgetedReader, OpenParents, RootedTree, beneath, open_plain, os};

/// So many files are flushed one by one; more, with their whole file system.
const FEW: usize = 16;

/// New content on its way into slots.
pub(crate) struct StagingArea<'a> {
    base: &'a UserDirectory,
    from: OpenParents<'a>,
    below: OpenParents<'a>,
    slots: &'a OwnedFd,
    reader: BudgetedReader,
    staged: Vec<File>,
}

impl<'a> StagingArea<'a> {
    pub(crate) fn new(base: &'a UserDirectory, layer: &'a RootedTree, slots: &'a OwnedFd) -> Self {
        Self {
            base,
            from: OpenParents::of(layer),
            below: OpenParents::of(&base.tree),
            slots,
            reader: BudgetedReader::default(),
            staged: Vec::new(),
        }
    }

    /// The steps in the order that works: what goes, the innermost first; what comes, the outermost
    /// first; permissions of directories last.
    pub(crate) fn all(mut self, changes: &[&PathChange]) -> WorkspaceResult<Vec<JournalOperation>> {
        let mut ops = Vec::with_capacity(changes.len());
        for change in changes.iter().rev() {
            let Some(old) = &change.old else { continue };
            let becomes_directory = change.begins_directory();
            if change.ends_directory() {
                ops.push(JournalOperation::RemoveDirectory {
                    path: change.path.clone(),
                    mode: old.mode,
                });
            } else if old.kind != FileNodeKind::Directory
                && (change.new.is_none() || becomes_directory)
            {
                let was = self.mark_of_old(change, old)?;
                ops.push(JournalOperation::Remove {
                    path: change.path.clone(),
                    slot: number(ops.len())?,
                    was,
                });
            }
        }
        let mut permissions = Vec::new();
        for change in changes {
            let Some(new) = &change.new else { continue };
            let path = change.path.clone();
            if new.kind == FileNodeKind::Directory {
                let (was, final_mode) = match &change.old {
                    Some(old) if old.kind == FileNodeKind::Directory => {
                        (old.mode, old.mode & SPECIAL_BITS | new.permissions())
                    }
                    _ => {
                        // Its owner has to put things into it first.
                        let mode = new.permissions() | 0o700;
                        let path = path.clone();
                        ops.push(JournalOperation::MakeDirectory { path, mode });
                        (mode, new.permissions())
                    }
                };
                if was != final_mode {
                    let new = final_mode;
                    let file = None;
                    permissions.push(JournalOperation::Permit {
                        path,
                        was,
                        new,
                        file,
                    });
                }
                continue;
            }
            let old = change
                .old
                .as_ref()
                .filter(|old| old.kind != FileNodeKind::Directory);
            match old {
                Some(old) if change.what == PathChangeKind::Mode => {
                    let (was, new) = (old.mode, new.permissions());
                    let mode = new;
                    let file = Some(PathMark {
                        mode,
                        ..self.mark_of_old(change, old)?
                    });
                    ops.push(JournalOperation::Permit {
                        path,
                        was,
                        new,
                        file,
                    });
                }
                Some(old) => {
                    let slot = number(ops.len())?;
                    let was = self.mark_of_old(change, old)?;
                    let new = self.stage(change, new, slot)?;
                    ops.push(JournalOperation::Exchange {
                        path,
                        slot,
                        was,
                        new,
                    });
                }
                None => {
                    let slot = number(ops.len())?;
                    let new = self.stage(change, new, slot)?;
                    ops.push(JournalOperation::Place { path, slot, new });
                }
            }
        }
        permissions.reverse();
        ops.extend(permissions);
        self.flush()?;
        Ok(ops)
    }

    /// What is in the tree now, which has to be what was reviewed.
    fn mark_of_old(&mut self, change: &PathChange, old: &FileNode) -> WorkspaceResult<PathMark> {
        let conflict = || WorkspaceError::Conflicts(vec![change.path.clone()]);
        let digest = old.digest.ok_or_else(conflict)?;
        // The very file that was reviewed; the step that takes it out compares once more.
        let seen = change.seen.ok_or_else(conflict)?;
        let parent = self.below.get(&change.path).map_err(|_| conflict())?;
        let stat = Stat::of(parent, os(change.path.name())).map_err(|_| conflict())?;
        if !stat.untouched_since(&seen) || stat.kind != old.kind || stat.mode != old.mode {
            return Err(conflict());
        }
        Ok(PathMark::new(&stat, digest))
    }

    fn stage(
        &mut self,
        change: &PathChange,
        new: &FileNode,
        slot: u32,
    ) -> WorkspaceResult<PathMark> {
        let path = &change.path;
        let failed = |error: Errno| WorkspaceError::io("copy", path, error);
        let name = slot.to_string();
        let digest = new
            .digest
            .ok_or_else(|| WorkspaceError::Busy { path: path.clone() })?;
        let replaced = match self.below.get(path) {
            Ok(parent) => Stat::maybe(parent, os(path.name())).map_err(failed)?,
            Err(_) => None,
        };
        let owner = self.owner(path, replaced.as_ref());
        let from = self.from.get(path).map_err(failed)?;
        let seen = Stat::of(from, os(path.name())).map_err(failed)?;
        if new.kind == FileNodeKind::Symlink {
            let target = new.target.as_deref().and_then(unescape).unwrap_or_default();
            let target = std::ffi::CString::new(target).map_err(|_| failed(Errno::INVAL))?;
            let like = Stat { owner, ..seen };
            make_link(self.slots, name.as_bytes(), &target, &like).map_err(failed)?;
            let stat = Stat::of(self.slots, &name).map_err(failed)?;
            return Ok(PathMark::new(&stat, digest));
        }
        let mut source = open_plain(from, path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        let mut file = File::from(beneath(self.slots, &name, flags).map_err(failed)?);
        let content = if rustix::fs::ioctl_ficlone(&file, &source).is_ok() {
            // What is shared is what is committed, so that is what is read.
            file.rewind()
                .map_err(|e| WorkspaceError::io("read", path, e))?;
            self.reader.read(&mut file, path, None)?
        } else {
            self.reader.read(&mut source, path, Some(&mut file))?
        };
        if content.digest != digest {
            return Err(WorkspaceError::Busy { path: path.clone() });
        }
        if let Some(old) = replaced.filter(|old| old.kind == FileNodeKind::File)
            && let Ok(parent) = self.below.get(path)
            && let Ok(old_file) = beneath(parent, os(path.name()), OFlags::RDONLY)
            && Stat::of_open(&old_file).is_ok_and(|now| now.inode == old.inode)
        {
            keep_attributes(&File::from(old_file), &file);
        }
        let mode = new.mode & PERMISSION_BITS;
        dress(
            &file,
            &Stat {
                mode,
                owner,
                ..seen
            },
        )
        .map_err(failed)?;
        let stat = Stat::of_open(&file).map_err(failed)?;
        if self.staged.len() <= FEW {
            self.staged.push(file);
        }
        Ok(PathMark::new(&stat, digest))
    }

    /// A new file belongs to whom the old one, or else the directory, belonged.
    fn owner(&mut self, path: &WorkspacePath, replaced: Option<&Stat>) -> (u32, u32) {
        let of_parent = || Stat::of_open(&self.base.tree.top).map(|stat| stat.owner);
        match replaced {
            Some(stat) => stat.owner,
            None => match self.below.get(path).map(Stat::of_open) {
                Ok(Ok(stat)) => stat.owner,
                _ => of_parent().unwrap_or_default(),
            },
        }
    }

    fn flush(&self) -> WorkspaceResult<()> {
        if self.staged.len() > FEW {
            return sync_all(self.slots);
        }
        for file in &self.staged {
            file.sync_all()
                .map_err(|error| WorkspaceError::io("write", "the layer", error))?;
        }
        rustix::fs::fsync(self.slots).map_err(|e| WorkspaceError::io("write", "the layer", e))
    }
}

fn number(index: usize) -> WorkspaceResult<u32> {
    u32::try_from(index).map_err(|_| WorkspaceError::TooMuch {
        what: "changes",
        limit: u32::MAX.into(),
    })
}

/// Attributes and access lists that the user gave a file survive its replacement.
pub(crate) fn keep_attributes(from: &File, to: &File) {
    let mut names = vec![0_u8; 64 * 1024];
    let Ok(length) = rustix::fs::flistxattr(from, &mut names[..]) else {
        return;
    };
    let mut value = vec![0_u8; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else {
            continue;
        };
        let users = name.starts_with("user.") && !name.starts_with("user.overlay.");
        if (users || name == "system.posix_acl_access")
            && let Ok(length) = rustix::fs::fgetxattr(from, name, &mut value[..])
        {
            // A file system that cannot keep them did not have them.
            let _ = rustix::fs::fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}
