//! Carrying out the steps of a journal, and taking them back.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::commit::journal::{JournalOperation, PathMark};
use crate::copies::own;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::tree::node::{FileNodeKind, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, OpenParents, RootedTree, beneath, is_absent, os};

/// Exchanges names of a tree with slots.
pub(crate) struct TreeExchange<'a> {
    tree: &'a RootedTree,
    slots: &'a OwnedFd,
    parents: OpenParents<'a>,
    reader: BudgetedReader,
}

/// Why a step was not done.
enum StepRefusal {
    /// The tree is not as the step expects it.
    Drifted,
    Failed(Errno),
}

impl From<Errno> for StepRefusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR => Self::Drifted,
            error if is_absent(error) => Self::Drifted,
            error => Self::Failed(error),
        }
    }
}

impl<'a> TreeExchange<'a> {
    pub(crate) fn new(tree: &'a RootedTree, slots: &'a OwnedFd) -> Self {
        Self {
            tree,
            slots,
            parents: OpenParents::of(tree),
            reader: BudgetedReader::default(),
        }
    }

    /// Does all, or none: where the tree is not as expected, what was done is taken back, and told.
    pub(crate) fn all(
        &mut self,
        ops: &[JournalOperation],
    ) -> WorkspaceResult<(), (WorkspaceError, Vec<JournalOperation>)> {
        for (index, op) in ops.iter().enumerate() {
            #[cfg(test)]
            crate::commit::faults::step().map_err(|error| (error, Vec::new()))?;
            if let Err(error) = self.one(op) {
                let taken = self.take_back(&ops[..index]);
                return Err((error, taken));
            }
        }
        #[cfg(test)]
        crate::commit::faults::step().map_err(|error| (error, Vec::new()))?;
        Ok(())
    }

    /// Takes back those that were done, the last first, and tells which those were. What the user
    /// changed meanwhile stays theirs.
    pub(crate) fn take_back(&mut self, ops: &[JournalOperation]) -> Vec<JournalOperation> {
        let mut taken = Vec::new();
        for op in ops.iter().rev() {
            if self.was_done(op) && self.one(&op.inverse()).is_ok() {
                taken.push(op.inverse());
            }
        }
        taken
    }

    /// Whether a step was done, by what its slot holds.
    pub(crate) fn was_done(&mut self, op: &JournalOperation) -> bool {
        let in_slot = |slot: u32| Stat::maybe(self.slots, slot.to_string()).ok().flatten();
        match op {
            JournalOperation::Remove { slot, .. } => in_slot(*slot).is_some(),
            JournalOperation::Place { slot, .. } => in_slot(*slot).is_none(),
            JournalOperation::Exchange { slot, new, .. } => {
                let slot = *slot;
                !self.slot_holds(slot, new)
            }
            JournalOperation::MakeDirectory { path, .. } => self.is_directory(path),
            JournalOperation::RemoveDirectory { path, .. } => !self.is_directory(path),
            JournalOperation::Permit { path, new, .. } => {
                matches!(self.tree.stat(path), Ok(Some(stat)) if stat.mode == *new)
            }
        }
    }

    fn is_directory(&self, path: &WorkspacePath) -> bool {
        matches!(self.tree.stat(path), Ok(Some(stat)) if stat.kind == FileNodeKind::Directory)
    }

    fn one(&mut self, op: &JournalOperation) -> WorkspaceResult<()> {
        self.try_one(op).map_err(|refused| match refused {
            StepRefusal::Drifted => WorkspaceError::Conflicts(vec![op.path().clone()]),
            StepRefusal::Failed(Errno::XDEV | Errno::INVAL) => {
                WorkspaceError::NoExchange(self.tree.path.clone())
            }
            StepRefusal::Failed(error) => WorkspaceError::io("change", op.path(), error),
        })
    }

    fn try_one(&mut self, op: &JournalOperation) -> WorkspaceResult<(), StepRefusal> {
        let path = op.path();
        let name = os(path.name());
        match op {
            JournalOperation::Remove { slot, was, .. } => {
                let parent = self.parents.get(path)?;
                let to = slot.to_string();
                rustix::fs::renameat_with(parent, name, self.slots, &to, RenameFlags::NOREPLACE)?;
                if self.slot_holds(*slot, was) {
                    return Ok(());
                }
                let parent = self.parents.get(path)?;
                rustix::fs::renameat_with(self.slots, &to, parent, name, RenameFlags::NOREPLACE)?;
                Err(StepRefusal::Drifted)
            }
            JournalOperation::Place { slot, .. } => {
                let parent = self.parents.get(path)?;
                let from = slot.to_string();
                rustix::fs::renameat_with(self.slots, from, parent, name, RenameFlags::NOREPLACE)?;
                Ok(())
            }
            JournalOperation::Exchange { slot, was, .. } => {
                let both = slot.to_string();
                let parent = self.parents.get(path)?;
                rustix::fs::renameat_with(self.slots, &both, parent, name, RenameFlags::EXCHANGE)?;
                if self.slot_holds(*slot, was) {
                    return Ok(());
                }
                let parent = self.parents.get(path)?;
                rustix::fs::renameat_with(self.slots, &both, parent, name, RenameFlags::EXCHANGE)?;
                Err(StepRefusal::Drifted)
            }
            JournalOperation::MakeDirectory { mode, .. } => {
                let parent = self.parents.get(path)?;
                rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
                let made = beneath(parent, name, OFlags::DIRECTORY)?;
                own(&made, Stat::of_open(parent)?.owner)?;
                rustix::fs::fchmod(&made, Mode::from_raw_mode(*mode))?;
                self.parents.forget();
                Ok(())
            }
            JournalOperation::RemoveDirectory { .. } => {
                let parent = self.parents.get(path)?;
                rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
                self.parents.forget();
                Ok(())
            }
            JournalOperation::Permit { was, new, .. } => {
                let parent = self.parents.get(path)?;
                let handle = beneath(parent, name, OFlags::PATH)?;
                let stat = Stat::of_open(&handle)?;
                if stat.mode != *was
                    || !matches!(stat.kind, FileNodeKind::File | FileNodeKind::Directory)
                {
                    return Err(StepRefusal::Drifted);
                }
                // A handle like this cannot be given permissions by itself, but by its name.
                let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
                rustix::fs::chmod(by_handle, Mode::from_raw_mode(*new))?;
                Ok(())
            }
        }
    }

    /// Whether the slot holds exactly that: by identity, or by content where the file system gives
    /// a renamed file another number.
    fn slot_holds(&mut self, slot: u32, mark: &PathMark) -> bool {
        let Ok(name) = WorkspacePath::top(slot.to_string().as_bytes()) else {
            return false;
        };
        match Stat::maybe(self.slots, os(name.name())) {
            Ok(Some(stat)) if mark.is(&stat) => true,
            Ok(Some(_)) => {
                let node = self.reader.node(self.slots, &name);
                matches!(node, Ok(Some((node, _))) if mark.equals(&node))
            }
            _ => false,
        }
    }
}
