//! Empty workspaces that were closed, kept for the next ones: a command that changes nothing then costs
//! the disk next to nothing.
//!
//! What is in one was writable to a command once, so nothing of it is believed: it is used again only
//! if what is there is what a new one has, and removed otherwise.

use lula_protocol::WorkspaceId;
use rustix::fs::{Dir, OFlags};
use rustix::io::Errno;

use crate::error::{Result, WorkspaceError};
use crate::record::Lock;
use crate::store::{RECORD, Store};
use crate::tree::{Tree, beneath, remove};
use crate::workspace::{IN_USE, UPPER, WORK};

/// More than these at once are not needed but by commands that run side by side.
const KEPT: usize = 4;

/// The mark by which the kernel knows a layer again. It says nothing about what is in it.
const KNOWN_BY: &[u8] = b"user.overlay.uuid\0";

impl Store {
    /// Takes an empty workspace away, as [`Store::put_aside`] does, and keeps it for the next one.
    pub(crate) fn spare(&self, id: &WorkspaceId) -> Result<bool> {
        let spares = self.spares()?;
        let kept = std::fs::read_dir(&spares.path).into_iter().flatten();
        if kept.count() >= KEPT {
            return self.put_aside(id);
        }
        self.take_away(id, &spares, |directory| {
            let work = beneath(&directory.top, WORK, OFlags::DIRECTORY)?;
            remove(&work, "work".as_ref())?;
            // Without it this is no workspace any more, wherever it lies.
            remove(&directory.top, RECORD.as_ref())
        })
    }

    /// Makes a spare the workspace of that name: its directory, with an empty layer in it. `None` where
    /// there is none.
    pub(crate) fn take_spare(&self, id: &WorkspaceId) -> Result<Option<Tree>> {
        let spares = self.spares()?;
        let home = Tree::open(&self.root().join("workspaces"))?;
        let entries = std::fs::read_dir(&spares.path).into_iter().flatten();
        for entry in entries.flatten() {
            // Whoever keeps it may not have let go of it yet; another may have just taken it.
            let Ok(spare) = Tree::open(&entry.path()) else {
                continue;
            };
            let Some(lock) = Lock::try_take(&spare, IN_USE)? else {
                continue;
            };
            // Whoever moves it has it.
            match rustix::fs::renameat(&spares.top, entry.file_name(), &home.top, id.as_str()) {
                Ok(()) => {}
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(WorkspaceError::io("take", spares.path.display(), error)),
            }
            drop(lock);
            let directory = Tree::open(&home.path.join(id.as_str()))?;
            if is_as_new(&directory).unwrap_or(false) {
                return Ok(Some(directory));
            }
            self.remove(id)?;
        }
        Ok(None)
    }

    fn spares(&self) -> Result<Tree> {
        Tree::create(&self.root().join("spare"))
    }
}

/// Whether a directory holds nothing but what a new workspace has before its record is written.
fn is_as_new(directory: &Tree) -> rustix::io::Result<bool> {
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
