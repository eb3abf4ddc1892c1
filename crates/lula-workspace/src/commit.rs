//! Commits: staging what was reviewed, putting it into the user's tree in one journaled go, and
//! turning it round again.

use std::fs::File;
use std::io::Seek;
use std::os::fd::OwnedFd;

use lula_protocol::WorkspaceId;
use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::base::Base;
use crate::change::{Change, What};
use crate::copying::{copy_content, dress, make_link, own};
use crate::error::{Result, WorkspaceError};
use crate::journal::{Entry, Mark, Op, Side, TRANSIT_PREFIX};
use crate::node::{Kind, Node, PERMISSION_BITS, SPECIAL_BITS, Stat};
use crate::path::{RelPath, unescape};
use crate::record;
use crate::steps::Steps;
use crate::tree::{Parents, Reader, Tree, beneath, open_plain, os};

/// The record of a commit, in its directory.
pub(crate) const RECORD: &str = "commit.json";
/// So many files are flushed one by one; more, with their whole file system.
const FEW: usize = 16;

/// The directory of slots of that generation.
pub(crate) fn slots_name(generation: u32) -> String {
    format!("slots-{generation}")
}

fn transit_name(workspace: &WorkspaceId) -> String {
    let body = workspace.as_str().rsplit('_').next().unwrap_or_default();
    format!("{TRANSIT_PREFIX}{body}")
}

/// Where the slots of a commit in the making are.
struct Stage {
    slots: OwnedFd,
    transit: Option<String>,
}

impl Stage {
    fn open(base: &Base, commit: &Tree, entry: &Entry) -> Result<Self> {
        if base.shares_mount_with(commit) {
            let slots = make_slots(commit, entry.generation)?;
            let transit = None;
            return Ok(Self { slots, transit });
        }
        let name = transit_name(&entry.workspace);
        let slots = base.make_transit(&name)?;
        let transit = Some(name);
        Ok(Self { slots, transit })
    }
}

fn make_slots(commit: &Tree, generation: u32) -> Result<OwnedFd> {
    let name = slots_name(generation);
    let failed = |error| WorkspaceError::io("create", commit.path.join(&name).display(), error);
    match rustix::fs::mkdirat(&commit.top, &name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(error)),
    }
    beneath(&commit.top, &name, OFlags::DIRECTORY).map_err(failed)
}

/// Puts the changes into the user's tree. `entry` says whose they are and has no steps yet.
pub(crate) fn make(
    base: &Base,
    layer: &Tree,
    commit: &Tree,
    mut entry: Entry,
    changes: &[&Change],
) -> Result<Entry> {
    let stage = Stage::open(base, commit, &entry)?;
    entry.transit.clone_from(&stage.transit);
    entry.ops = Staging {
        base,
        from: Parents::of(layer),
        below: Parents::of(&base.tree),
        slots: &stage.slots,
        reader: Reader::default(),
        staged: Vec::new(),
    }
    .all(changes)?;
    carry_out(base, commit, &stage.slots, &entry)?;
    Ok(entry)
}

/// Turns a commit round: what is in the slots goes into the tree, and back.
pub(crate) fn turn(base: &Base, commit: &Tree, last: &Entry, at_ms: u64) -> Result<Entry> {
    let mut entry = last.clone();
    entry.at_ms = at_ms;
    entry.side = match last.side {
        Side::Done => Side::Undone,
        Side::Undone | Side::Void => Side::Done,
    };
    entry.ops = last.ops.iter().rev().map(Op::inverse).collect();
    entry.transit = None;
    expect_tree(base, &mut entry)?;
    if base.shares_mount_with(commit) {
        let slots = make_slots(commit, entry.generation)?;
        carry_out(base, commit, &slots, &entry)?;
        return Ok(entry);
    }
    let kept = make_slots(commit, last.generation)?;
    let name = transit_name(&entry.workspace);
    let transit = base.make_transit(&name)?;
    entry.transit = Some(name);
    entry.generation += 1;
    for op in &mut entry.ops {
        let Some(slot) = op.slot() else { continue };
        if let Some(mark) = op.puts_mut() {
            let stat = copy_slot(&kept, &transit, slot)?;
            mark.inode = stat.inode;
            mark.modified = stat.modified;
        }
    }
    sync_all(&transit)?;
    carry_out(base, commit, &transit, &entry)?;
    Ok(entry)
}

fn carry_out(base: &Base, commit: &Tree, slots: &OwnedFd, entry: &Entry) -> Result<()> {
    #[cfg(test)]
    crate::faults::step()?;
    base.begin(entry)?;
    if let Err((error, taken)) = Steps::new(&base.tree, slots).all(&entry.ops) {
        #[cfg(test)]
        if matches!(error, WorkspaceError::Stopped) {
            return Err(error);
        }
        give_up(base, entry, commit, taken)?;
        return Err(error);
    }
    settle(base, entry, commit, slots)
}

/// After what was done of it was taken back, by these steps.
pub(crate) fn give_up(base: &Base, entry: &Entry, commit: &Tree, taken: Vec<Op>) -> Result<()> {
    if load(commit)?.is_none() {
        if !taken.is_empty() {
            let void = Entry {
                side: Side::Void,
                transit: None,
                ops: taken,
                ..entry.clone()
            };
            record::write(commit, RECORD, &void.to_bytes())?;
        }
        // Space, not correctness.
        let _ = crate::tree::remove(&commit.top, slots_name(entry.generation).as_ref());
    }
    base.abandon()?;
    base.remove_transit()
}

/// After the last step: everything is made durable, then the commit counts.
pub(crate) fn settle(base: &Base, entry: &Entry, commit: &Tree, slots: &OwnedFd) -> Result<()> {
    base.sync(entry)?;
    if entry.transit.is_some() {
        crate::tree::remove(&commit.top, slots_name(entry.generation).as_ref())
            .map_err(|e| WorkspaceError::io("remove", commit.path.display(), e))?;
        let kept = make_slots(commit, entry.generation)?;
        for op in &entry.ops {
            if let Some(slot) = op.slot().filter(|_| op.takes().is_some()) {
                copy_slot(slots, &kept, slot)?;
            }
        }
        sync_all(&kept)?;
    }
    #[cfg(test)]
    crate::faults::step()?;
    base.finish(commit)?;
    #[cfg(test)]
    crate::faults::step()?;
    base.remove_transit()?;
    if let Some(earlier) = entry.generation.checked_sub(1) {
        // Space, not correctness.
        let _ = crate::tree::remove(&commit.top, slots_name(earlier).as_ref());
    }
    Ok(())
}

fn sync_all(directory: &OwnedFd) -> Result<()> {
    rustix::fs::syncfs(directory).map_err(|error| WorkspaceError::io("write", "the layer", error))
}

fn copy_slot(from: &OwnedFd, to: &OwnedFd, slot: u32) -> Result<Stat> {
    let name = RelPath::top(slot.to_string().as_bytes())?;
    let failed = |error: Errno| WorkspaceError::io("copy", format!("slot {slot}"), error);
    let stat = Stat::of(from, os(name.name())).map_err(failed)?;
    if stat.kind == Kind::Symlink {
        crate::copying::symlink(from, to, &name, &stat).map_err(failed)?;
    } else {
        let source = open_plain(from, &name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let target = File::from(beneath(to, os(name.name()), flags).map_err(failed)?);
        copy_content(&source, &target).map_err(|e| WorkspaceError::io("copy", &name, e))?;
        keep_attributes(&source, &target);
        dress(&target, &stat).map_err(failed)?;
        // `dress` drops these; what was the user's own keeps them.
        rustix::fs::fchmod(&target, Mode::from_raw_mode(stat.mode)).map_err(failed)?;
    }
    Stat::of(to, os(name.name())).map_err(failed)
}

/// Checks the tree against what a turned commit expects in it. Files rewritten with the same content
/// are as good; directories that somebody else uses by now stay.
fn expect_tree(base: &Base, entry: &mut Entry) -> Result<()> {
    let mut parents = Parents::of(&base.tree);
    let mut reader = Reader::default();
    let mut conflicts = Vec::new();
    let mut goes: std::collections::BTreeSet<RelPath> = entry
        .ops
        .iter()
        .filter(|op| matches!(op, Op::Remove { .. } | Op::RemoveDirectory { .. }))
        .map(|op| op.path().clone())
        .collect();
    let mut ops = Vec::with_capacity(entry.ops.len());
    for mut op in std::mem::take(&mut entry.ops) {
        let path = op.path().clone();
        let parent = match parents.get(&path) {
            Ok(parent) => Some(parent),
            Err(error) if crate::tree::is_absent(error) => None,
            Err(error) => return Err(WorkspaceError::io("open", &path, error)),
        };
        let found = match parent {
            Some(parent) => reader.node(parent, &path)?,
            None => None,
        };
        let as_expected = match &mut op {
            Op::Remove { was, .. } | Op::Exchange { was, .. } => match found {
                Some((_, stat)) if was.is(&stat) => true,
                Some((node, stat)) if was.equals(&node) => {
                    (was.inode, was.size, was.modified) = (stat.inode, stat.size, stat.modified);
                    true
                }
                _ => false,
            },
            Op::Place { .. } => found.is_none() || goes.contains(&path),
            Op::MakeDirectory { .. } if goes.contains(&path) => true,
            Op::MakeDirectory { .. } => match found {
                Some((node, _)) if node.kind == Kind::Directory => continue,
                found => found.is_none(),
            },
            Op::RemoveDirectory { .. } => match found {
                None => continue,
                Some((node, _)) if node.kind != Kind::Directory => false,
                Some(_) => {
                    if foreign_entry(base, &path, &mut reader, &goes)? {
                        goes.remove(&path);
                        continue;
                    }
                    true
                }
            },
            Op::Permit { was, .. } => found.is_some_and(|(node, _)| node.mode == *was),
        };
        if as_expected {
            ops.push(op);
        } else {
            conflicts.push(path);
        }
    }
    entry.ops = ops;
    if conflicts.is_empty() {
        Ok(())
    } else {
        Err(WorkspaceError::Conflicts(conflicts))
    }
}

/// Whether a directory holds something that is not about to go.
fn foreign_entry(
    base: &Base,
    directory: &RelPath,
    reader: &mut Reader,
    goes: &std::collections::BTreeSet<RelPath>,
) -> Result<bool> {
    let opened = beneath(&base.tree.top, directory.as_os_str(), OFlags::DIRECTORY)
        .map_err(|error| WorkspaceError::io("open", directory, error))?;
    for name in reader.names(&opened, &directory.to_string())? {
        if !goes.contains(&directory.child(&name)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// New content on its way into slots.
struct Staging<'a> {
    base: &'a Base,
    from: Parents<'a>,
    below: Parents<'a>,
    slots: &'a OwnedFd,
    reader: Reader,
    staged: Vec<File>,
}

impl Staging<'_> {
    /// The steps in the order that works: what goes, the innermost first; what comes, the outermost
    /// first; permissions of directories last.
    fn all(mut self, changes: &[&Change]) -> Result<Vec<Op>> {
        let mut ops = Vec::with_capacity(changes.len());
        for change in changes.iter().rev() {
            let Some(old) = &change.old else { continue };
            let becomes_directory = change.begins_directory();
            if change.ends_directory() {
                ops.push(Op::RemoveDirectory {
                    path: change.path.clone(),
                    mode: old.mode,
                });
            } else if old.kind != Kind::Directory && (change.new.is_none() || becomes_directory) {
                let was = self.mark_of_old(change, old)?;
                ops.push(Op::Remove {
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
            if new.kind == Kind::Directory {
                let (was, final_mode) = match &change.old {
                    Some(old) if old.kind == Kind::Directory => {
                        (old.mode, old.mode & SPECIAL_BITS | new.permissions())
                    }
                    _ => {
                        // Its owner has to put things into it first.
                        let mode = new.permissions() | 0o700;
                        let path = path.clone();
                        ops.push(Op::MakeDirectory { path, mode });
                        (mode, new.permissions())
                    }
                };
                if was != final_mode {
                    let new = final_mode;
                    let file = None;
                    permissions.push(Op::Permit {
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
                .filter(|old| old.kind != Kind::Directory);
            match old {
                Some(old) if change.what == What::Mode => {
                    let (was, new) = (old.mode, new.permissions());
                    let mode = new;
                    let file = Some(Mark {
                        mode,
                        ..self.mark_of_old(change, old)?
                    });
                    ops.push(Op::Permit {
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
                    ops.push(Op::Exchange {
                        path,
                        slot,
                        was,
                        new,
                    });
                }
                None => {
                    let slot = number(ops.len())?;
                    let new = self.stage(change, new, slot)?;
                    ops.push(Op::Place { path, slot, new });
                }
            }
        }
        permissions.reverse();
        ops.extend(permissions);
        self.flush()?;
        Ok(ops)
    }

    /// What is in the tree now, which has to be what was reviewed.
    fn mark_of_old(&mut self, change: &Change, old: &Node) -> Result<Mark> {
        let conflict = || WorkspaceError::Conflicts(vec![change.path.clone()]);
        let digest = old.digest.ok_or_else(conflict)?;
        // The very file that was reviewed; whoever takes it out compares once more.
        let seen = change.seen.ok_or_else(conflict)?;
        let parent = self.below.get(&change.path).map_err(|_| conflict())?;
        let stat = Stat::of(parent, os(change.path.name())).map_err(|_| conflict())?;
        if !stat.untouched_since(&seen) || stat.kind != old.kind || stat.mode != old.mode {
            return Err(conflict());
        }
        Ok(Mark::new(&stat, digest))
    }

    fn stage(&mut self, change: &Change, new: &Node, slot: u32) -> Result<Mark> {
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
        if new.kind == Kind::Symlink {
            let target = new.target.as_deref().and_then(unescape).unwrap_or_default();
            let target = std::ffi::CString::new(target).map_err(|_| failed(Errno::INVAL))?;
            let like = Stat { owner, ..seen };
            make_link(self.slots, name.as_bytes(), &target, &like).map_err(failed)?;
            let stat = Stat::of(self.slots, &name).map_err(failed)?;
            return Ok(Mark::new(&stat, digest));
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
        if let Some(old) = replaced.filter(|old| old.kind == Kind::File)
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
        Ok(Mark::new(&stat, digest))
    }

    /// A new file belongs to whom the old one, or else the directory, belonged.
    fn owner(&mut self, path: &RelPath, replaced: Option<&Stat>) -> (u32, u32) {
        let of_parent = || Stat::of_open(&self.base.tree.top).map(|stat| stat.owner);
        match replaced {
            Some(stat) => stat.owner,
            None => match self.below.get(path).map(Stat::of_open) {
                Ok(Ok(stat)) => stat.owner,
                _ => of_parent().unwrap_or_default(),
            },
        }
    }

    fn flush(&self) -> Result<()> {
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

fn number(index: usize) -> Result<u32> {
    u32::try_from(index).map_err(|_| WorkspaceError::TooMuch {
        what: "changes",
        limit: u32::MAX.into(),
    })
}

/// Attributes and access lists that the user gave a file survive its replacement.
fn keep_attributes(from: &File, to: &File) {
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

/// Used where a whole directory is made for a user.
pub(crate) fn own_like(directory: &OwnedFd, like: &OwnedFd) -> rustix::io::Result<()> {
    let stat = Stat::of_open(like)?;
    own(directory, stat.owner)?;
    rustix::fs::fchmod(directory, Mode::from_raw_mode(stat.mode & PERMISSION_BITS))
}

/// The record of that commit, if it was finished.
pub(crate) fn load(commit: &Tree) -> Result<Option<Entry>> {
    let Some(bytes) = record::read(commit, RECORD)? else {
        return Ok(None);
    };
    Entry::from_bytes(&bytes)
        .map(Some)
        .map_err(|reason| WorkspaceError::BadRecord {
            path: commit.path.join(RECORD),
            reason,
        })
}
