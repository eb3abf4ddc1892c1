//! Empty workspaces that were closed, kept for the next ones: a command that changes nothing then costs
//! the disk next to nothing.
//!
//! What is in one was writable to a command once, so nothing of it is believed: it is used again only
//! if what is there is what a new one has, and removed otherwise.

use std::ffi::OsStr;

use lula_protocol::WorkspaceId;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::store::record::FileLock;
use crate::store::workspace::{IN_USE, UPPER, WORK};
use crate::store::{RECORD, WorkspaceStore};
use crate::tree::{RootedTree, beneath, remove};

/// More than these at once are not needed but by commands that run side by side.
const KEPT: usize = 4;

/// The mark by which the kernel knows a layer again. It says nothing about what is in it.
const KNOWN_BY: &[u8] = b"user.overlay.uuid\0";

impl WorkspaceStore {
    /// Takes an empty workspace away, as [`WorkspaceStore::put_aside`] does, and keeps it for a next one.
    pub(crate) fn spare(&self, id: &WorkspaceId) -> WorkspaceResult<bool> {
        let used = self.used()?;
        if is_enough(&used) {
            return self.put_aside(id);
        }
        // Without its record it is no workspace any more, wherever it lies.
        self.take_away(id, &used, |directory, _| {
            remove(&directory.top, RECORD.as_ref())?;
            Ok(true)
        })
    }

    /// Makes what closed workspaces left fit for the next ones, or has it removed with everything else
    /// that was put aside. For a moment in which no caller waits. It removes nothing itself: a file system
    /// may take its time for that.
    pub fn tidy_spares(&self) {
        let (Ok(used), Ok(spares), Ok(trash)) = (self.used(), self.spares(), self.trash()) else {
            return;
        };
        for entry in entries(&used) {
            let Ok(directory) = RootedTree::open(&entry.path()) else {
                continue;
            };
            // The process that closed it may not have let go of it yet; another may be at it already.
            let Ok(Some(_lock)) = FileLock::try_take(&directory, IN_USE) else {
                continue;
            };
            let name = entry.file_name();
            let fit = !is_enough(&spares) && tidy(&directory, &trash, &name).is_ok();
            let to = if fit { &spares } else { &trash };
            // What cannot be moved is met again the next time.
            let _ = rustix::fs::renameat(&used.top, &name, &to.top, &name);
        }
    }

    /// Makes a spare the workspace of that name: its directory, with an empty layer in it. `None` where
    /// there is none.
    pub(crate) fn take_spare(&self, id: &WorkspaceId) -> WorkspaceResult<Option<RootedTree>> {
        let spares = self.spares()?;
        let home = RootedTree::open(&self.root().join("workspaces"))?;
        for entry in entries(&spares) {
            // The process that tidied it may not have let go of it yet; another may have just taken it.
            let Ok(spare) = RootedTree::open(&entry.path()) else {
                continue;
            };
            let Some(lock) = FileLock::try_take(&spare, IN_USE)? else {
                continue;
            };
            // The process that moves it has it.
            match rustix::fs::renameat(&spares.top, entry.file_name(), &home.top, id.as_str()) {
                Ok(()) => {}
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(WorkspaceError::io("take", spares.path.display(), error)),
            }
            drop(lock);
            let directory = RootedTree::open(&home.path.join(id.as_str()))?;
            if is_as_new(&directory).unwrap_or(false) {
                return Ok(Some(directory));
            }
            self.remove(id)?;
        }
        Ok(None)
    }

    /// Those that the next workspaces take.
    fn spares(&self) -> WorkspaceResult<RootedTree> {
        RootedTree::create(&self.root().join("spare"))
    }

    /// Those with what the kernel left in them.
    fn used(&self) -> WorkspaceResult<RootedTree> {
        RootedTree::create(&self.root().join("used"))
    }
}

fn entries(place: &RootedTree) -> impl Iterator<Item = std::fs::DirEntry> {
    std::fs::read_dir(&place.path)
        .into_iter()
        .flatten()
        .flatten()
}

/// Whether a place holds as many as are kept.
fn is_enough(place: &RootedTree) -> bool {
    entries(place).nth(KEPT - 1).is_some()
}

/// Puts aside what the kernel left of a layer that was in use.
fn tidy(directory: &RootedTree, trash: &RootedTree, name: &OsStr) -> rustix::io::Result<()> {
    let work = beneath(&directory.top, WORK, OFlags::DIRECTORY)?;
    let mut aside = name.to_owned();
    aside.push(".work");
    let put = || rustix::fs::renameat(&work, "work", &trash.top, &aside);
    match put() {
        Err(Errno::NOENT) => Ok(()),
        // The kernel leaves it without any permission, which only its owner's privileges overcome.
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&work, "work", Mode::RWXU, AtFlags::empty())?;
            put()
        }
        other => other,
    }
}

/// Whether a directory holds nothing but what a new workspace has before its record is written.
fn is_as_new(directory: &RootedTree) -> rustix::io::Result<bool> {
    let layer = beneath(&directory.top, "layer", OFlags::DIRECTORY)?;
    let upper = beneath(&directory.top, UPPER, OFlags::DIRECTORY)?;
    let work = beneath(&directory.top, WORK, OFlags::DIRECTORY)?;
    let mut marks = [0; 64];
    let marks = match rustix::fs::flistxattr(&upper, &mut marks[..]) {
        Ok(length) => &marks[..length],
        Err(Errno::NOTSUP) => &[],
        Err(error) => return Err(error),
    };
    Ok((marks.is_empty() || marks == KNOWN_BY)
        && names(&upper)?.is_empty()
        && names(&work)?.is_empty()
        && names(&layer)? == [b"upper".to_vec(), b"work".to_vec()]
        && names(&directory.top)? == [IN_USE.as_bytes(), b"layer"])
}

/// The names in a directory, in order.
fn names(directory: &rustix::fd::OwnedFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort();
    Ok(names)
}
