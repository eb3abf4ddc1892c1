//! Commits: staging what was reviewed, putting it into the user's tree in one journaled go, and
//! turning it round again.

pub(crate) mod base;
#[cfg(test)]
pub(crate) mod faults;
pub(crate) mod journal;
pub(crate) mod put;
pub(crate) mod staging;
pub(crate) mod steps;

use std::fs::File;
use std::os::fd::OwnedFd;

use lula_protocol::WorkspaceId;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::commit::base::UserDirectory;
use crate::commit::journal::{CommitJournalEntry, CommitSide, JournalOperation, TRANSIT_PREFIX};
use crate::commit::staging::{StagingArea, keep_attributes};
use crate::commit::steps::TreeExchange;
use crate::copies::{copy_content, dress, own};
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::change::PathChange;
use crate::store::record;
use crate::tree::node::{FileNodeKind, PERMISSION_BITS, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, OpenParents, RootedTree, beneath, open_plain, os};

/// The record of a commit, in its directory.
pub(crate) const RECORD: &str = "commit.json";

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
    fn open(
        base: &UserDirectory,
        commit: &RootedTree,
        entry: &CommitJournalEntry,
    ) -> WorkspaceResult<Self> {
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

fn make_slots(commit: &RootedTree, generation: u32) -> WorkspaceResult<OwnedFd> {
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
    base: &UserDirectory,
    layer: &RootedTree,
    commit: &RootedTree,
    mut entry: CommitJournalEntry,
    changes: &[&PathChange],
) -> WorkspaceResult<CommitJournalEntry> {
    let stage = Stage::open(base, commit, &entry)?;
    entry.transit.clone_from(&stage.transit);
    entry.ops = StagingArea::new(base, layer, &stage.slots).all(changes)?;
    carry_out(base, commit, &stage.slots, &entry)?;
    Ok(entry)
}

/// Turns a commit round: what is in the slots goes into the tree, and back.
pub(crate) fn turn(
    base: &UserDirectory,
    commit: &RootedTree,
    last: &CommitJournalEntry,
    at_ms: u64,
) -> WorkspaceResult<CommitJournalEntry> {
    let mut entry = last.clone();
    entry.at_ms = at_ms;
    entry.side = match last.side {
        CommitSide::Done => CommitSide::Undone,
        CommitSide::Undone | CommitSide::Void => CommitSide::Done,
    };
    entry.ops = last
        .ops
        .iter()
        .rev()
        .map(JournalOperation::inverse)
        .collect();
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

fn carry_out(
    base: &UserDirectory,
    commit: &RootedTree,
    slots: &OwnedFd,
    entry: &CommitJournalEntry,
) -> WorkspaceResult<()> {
    #[cfg(test)]
    crate::commit::faults::step()?;
    base.begin(entry)?;
    if let Err((error, taken)) = TreeExchange::new(&base.tree, slots).all(&entry.ops) {
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
pub(crate) fn give_up(
    base: &UserDirectory,
    entry: &CommitJournalEntry,
    commit: &RootedTree,
    taken: Vec<JournalOperation>,
) -> WorkspaceResult<()> {
    if load(commit)?.is_none() {
        if !taken.is_empty() {
            let void = CommitJournalEntry {
                side: CommitSide::Void,
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
pub(crate) fn settle(
    base: &UserDirectory,
    entry: &CommitJournalEntry,
    commit: &RootedTree,
    slots: &OwnedFd,
) -> WorkspaceResult<()> {
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
    crate::commit::faults::step()?;
    base.finish(commit)?;
    #[cfg(test)]
    crate::commit::faults::step()?;
    base.remove_transit()?;
    if let Some(earlier) = entry.generation.checked_sub(1) {
        // Space, not correctness.
        let _ = crate::tree::remove(&commit.top, slots_name(earlier).as_ref());
    }
    Ok(())
}

pub(crate) fn sync_all(directory: &OwnedFd) -> WorkspaceResult<()> {
    rustix::fs::syncfs(directory).map_err(|error| WorkspaceError::io("write", "the layer", error))
}

fn copy_slot(from: &OwnedFd, to: &OwnedFd, slot: u32) -> WorkspaceResult<Stat> {
    let name = WorkspacePath::top(slot.to_string().as_bytes())?;
    let failed = |error: Errno| WorkspaceError::io("copy", format!("slot {slot}"), error);
    let stat = Stat::of(from, os(name.name())).map_err(failed)?;
    if stat.kind == FileNodeKind::Symlink {
        crate::copies::symlink(from, to, &name, &stat).map_err(failed)?;
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
/// are as good; directories that others use by now stay.
fn expect_tree(base: &UserDirectory, entry: &mut CommitJournalEntry) -> WorkspaceResult<()> {
    let mut parents = OpenParents::of(&base.tree);
    let mut reader = BudgetedReader::default();
    let mut conflicts = Vec::new();
    let mut goes: std::collections::BTreeSet<WorkspacePath> = entry
        .ops
        .iter()
        .filter(|op| {
            matches!(
                op,
                JournalOperation::Remove { .. } | JournalOperation::RemoveDirectory { .. }
            )
        })
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
            JournalOperation::Remove { was, .. } | JournalOperation::Exchange { was, .. } => {
                match found {
                    Some((_, stat)) if was.is(&stat) => true,
                    Some((node, stat)) if was.equals(&node) => {
                        (was.inode, was.size, was.modified) =
                            (stat.inode, stat.size, stat.modified);
                        true
                    }
                    _ => false,
                }
            }
            JournalOperation::Place { .. } => found.is_none() || goes.contains(&path),
            JournalOperation::MakeDirectory { .. } if goes.contains(&path) => true,
            JournalOperation::MakeDirectory { .. } => match found {
                Some((node, _)) if node.kind == FileNodeKind::Directory => continue,
                found => found.is_none(),
            },
            JournalOperation::RemoveDirectory { .. } => match found {
                None => continue,
                Some((node, _)) if node.kind != FileNodeKind::Directory => false,
                Some(_) => {
                    if foreign_entry(base, &path, &mut reader, &goes)? {
                        goes.remove(&path);
                        continue;
                    }
                    true
                }
            },
            JournalOperation::Permit { was, .. } => {
                found.is_some_and(|(node, _)| node.mode == *was)
            }
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
    base: &UserDirectory,
    directory: &WorkspacePath,
    reader: &mut BudgetedReader,
    goes: &std::collections::BTreeSet<WorkspacePath>,
) -> WorkspaceResult<bool> {
    let opened = beneath(&base.tree.top, directory.as_os_str(), OFlags::DIRECTORY)
        .map_err(|error| WorkspaceError::io("open", directory, error))?;
    for name in reader.names(&opened, &directory.to_string())? {
        if !goes.contains(&directory.child(&name)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Used where a whole directory is made for a user.
pub(crate) fn own_like(directory: &OwnedFd, like: &OwnedFd) -> rustix::io::Result<()> {
    let stat = Stat::of_open(like)?;
    own(directory, stat.owner)?;
    rustix::fs::fchmod(directory, Mode::from_raw_mode(stat.mode & PERMISSION_BITS))
}

/// The record of that commit, if it was finished.
pub(crate) fn load(commit: &RootedTree) -> WorkspaceResult<Option<CommitJournalEntry>> {
    let Some(bytes) = record::read(commit, RECORD)? else {
        return Ok(None);
    };
    CommitJournalEntry::from_bytes(&bytes)
        .map(Some)
        .map_err(|reason| WorkspaceError::BadRecord {
            path: commit.path.join(RECORD),
            reason,
        })
}
