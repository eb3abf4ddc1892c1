//! The user's directory: who may change it now, and what an earlier change left unfinished.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::commit::journal::{CommitJournalEntry, is_transit};
use crate::commit::steps::TreeExchange;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::store::WorkspaceStore;
use crate::store::record::{self, FileLock, path_text, text_path};
use crate::tree::node::{FileNodeKind, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{RootedTree, beneath};

const INTENT: &str = "intent.json";
const TRANSIT: &str = "transit";
/// How long to wait for a commit of another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// A user's directory that no other process commits to.
#[derive(Debug)]
pub(crate) struct UserDirectory {
    pub(crate) tree: RootedTree,
    /// Our own notes about it.
    pub(crate) notes: RootedTree,
    _lock: FileLock,
}

/// Opens a user's directory and tells which one it is.
pub(crate) fn open(path: &Path) -> WorkspaceResult<(RootedTree, (u32, u32, u64))> {
    let tree = RootedTree::open(path)?;
    let stat =
        Stat::of_open(&tree.top).map_err(|e| WorkspaceError::io("look at", path.display(), e))?;
    Ok((tree, (stat.device.0, stat.device.1, stat.inode)))
}

impl UserDirectory {
    /// Waits for others, takes back what a crash left half done, and keeps others out.
    pub(crate) fn lock(
        store: &WorkspaceStore,
        path: &Path,
        identity: (u32, u32, u64),
    ) -> WorkspaceResult<Self> {
        let (tree, found) = open(path).map_err(|_| WorkspaceError::BaseGone(path.to_owned()))?;
        if found != identity {
            return Err(WorkspaceError::BaseGone(path.to_owned()));
        }
        let key = blake3::hash(path_text(path).as_bytes()).to_hex();
        let notes = RootedTree::create(&store.root().join("bases").join(&key.as_str()[..32]))?;
        let begun = Instant::now();
        let lock = loop {
            if let Some(lock) = FileLock::try_take(&notes, "lock")? {
                break lock;
            }
            if begun.elapsed() > PATIENCE {
                return Err(WorkspaceError::BaseBusy(path.to_owned()));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let base = Self {
            tree,
            notes,
            _lock: lock,
        };
        base.recover(store)?;
        Ok(base)
    }

    /// Writes down what is about to be done. From here on a crash is recovered from.
    pub(crate) fn begin(&self, entry: &CommitJournalEntry) -> WorkspaceResult<()> {
        record::write(&self.notes, INTENT, &entry.to_bytes())
    }

    /// Forgets what was about to be done, after it was taken back.
    pub(crate) fn abandon(&self) -> WorkspaceResult<()> {
        record::unlink(&self.notes, INTENT)
    }

    /// The commit point: what was about to be done becomes the commit's record.
    pub(crate) fn finish(&self, commit: &RootedTree) -> WorkspaceResult<()> {
        let place = || commit.path.join(crate::commit::RECORD);
        rustix::fs::renameat(&self.notes.top, INTENT, &commit.top, crate::commit::RECORD)
            .and_then(|()| rustix::fs::fsync(&commit.top))
            .and_then(|()| rustix::fs::fsync(&self.notes.top))
            .map_err(|error| WorkspaceError::io("write", place().display(), error))
    }

    /// A directory for slots in the user's tree, noted first so that it is never left behind.
    pub(crate) fn make_transit(&self, name: &str) -> WorkspaceResult<OwnedFd> {
        let failed =
            |error| WorkspaceError::io("create", self.tree.path.join(name).display(), error);
        record::write(&self.notes, TRANSIT, name.as_bytes())?;
        rustix::fs::mkdirat(&self.tree.top, name, rustix::fs::Mode::RWXU).map_err(failed)?;
        beneath(&self.tree.top, name, OFlags::DIRECTORY).map_err(failed)
    }

    /// Removes that directory, if there is one.
    pub(crate) fn remove_transit(&self) -> WorkspaceResult<()> {
        let Some(name) = record::read(&self.notes, TRANSIT)? else {
            return Ok(());
        };
        let name = String::from_utf8(name).unwrap_or_default();
        if is_transit(&name) {
            crate::tree::remove(&self.tree.top, name.as_ref()).map_err(|error| {
                WorkspaceError::io("remove", self.tree.path.join(&name).display(), error)
            })?;
        }
        record::unlink(&self.notes, TRANSIT)
    }

    /// Ends what was cut off: forward if every step was done, back otherwise.
    fn recover(&self, store: &WorkspaceStore) -> WorkspaceResult<()> {
        if let Some(bytes) = record::read(&self.notes, INTENT)? {
            let place = self.notes.path.join(INTENT);
            let bad = |reason: String| WorkspaceError::BadRecord {
                path: place.clone(),
                reason,
            };
            let entry = CommitJournalEntry::from_bytes(&bytes).map_err(bad)?;
            if text_path(&entry.base).as_deref() != Some(&self.tree.path) {
                return Err(bad("it is about another directory".to_owned()));
            }
            let commit = store.commit_directory(&entry.workspace, entry.number)?;
            self.recover_entry(&entry, &commit)?;
        }
        self.remove_transit()
    }

    fn recover_entry(
        &self,
        entry: &CommitJournalEntry,
        commit: &RootedTree,
    ) -> WorkspaceResult<()> {
        let slots = match &entry.transit {
            Some(name) => beneath(&self.tree.top, name.as_str(), OFlags::DIRECTORY),
            None => beneath(
                &commit.top,
                crate::commit::slots_name(entry.generation),
                OFlags::DIRECTORY,
            ),
        };
        let slots = slots.map_err(|error| WorkspaceError::BadRecord {
            path: self.notes.path.join(INTENT),
            reason: format!("what it set aside cannot be opened: {error}"),
        })?;
        let mut steps = TreeExchange::new(&self.tree, &slots);
        if entry.ops.iter().all(|op| steps.was_done(op)) {
            crate::commit::settle(self, entry, commit, &slots)
        } else {
            let taken = steps.take_back(&entry.ops);
            crate::commit::give_up(self, entry, commit, taken)
        }
    }

    /// Directory entries that changed are on disk when it returns.
    pub(crate) fn sync(&self, entry: &CommitJournalEntry) -> WorkspaceResult<()> {
        const FEW: usize = 16;
        let failed = |error| WorkspaceError::io("write", self.tree.path.display(), error);
        let parents: std::collections::BTreeSet<Option<WorkspacePath>> =
            entry.ops.iter().map(|op| op.path().parent()).collect();
        if parents.len() > FEW {
            return rustix::fs::syncfs(&self.tree.top).map_err(failed);
        }
        for parent in parents {
            let opened = match &parent {
                None => rustix::fs::fsync(&self.tree.top),
                Some(path) => match beneath(&self.tree.top, path.as_os_str(), OFlags::DIRECTORY) {
                    Ok(directory) => rustix::fs::fsync(&directory),
                    // It went away with what was in it.
                    Err(_) => Ok(()),
                },
            };
            opened.map_err(failed)?;
        }
        Ok(())
    }

    /// Whether files can be renamed between it and that directory.
    pub(crate) fn shares_mount_with(&self, directory: &RootedTree) -> bool {
        let of = |tree: &RootedTree| Stat::of_open(&tree.top).map(|stat| (stat.device, stat.mount));
        matches!((of(&self.tree), of(directory)), (Ok(a), Ok(b)) if a == b)
    }
}

/// Whether a name in the user's tree belongs to us.
pub(crate) fn is_ours(path: &WorkspacePath, kind: FileNodeKind) -> bool {
    kind == FileNodeKind::Directory
        && path.parent().is_none()
        && std::str::from_utf8(path.name()).is_ok_and(is_transit)
}
