//! The record of a workspace, and small files that are replaced in one step.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lula_protocol::WorkspaceId;
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::tree::node::Time;
use crate::tree::path::{escape, unescape};
use crate::tree::{RootedTree, beneath};

const VERSION: u32 = 1;
/// Largest record or journal that is read.
const MAX_BYTES: u64 = 1 << 30;

/// How the private layer is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LayerBackend {
    /// An overlay over the user's directory: only what was touched takes space.
    Overlay,
    /// A complete copy of the user's directory.
    Copy {
        /// Why not an overlay.
        why: String,
    },
}

/// What became of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceStatus {
    /// Its changes wait for a decision.
    Pending,
    /// They are in the user's tree.
    Committed,
    /// They were turned down; the layer is kept until its space is needed.
    Discarded,
}

/// A named state of the private layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSnapshot {
    pub label: String,
    /// When it was taken, in milliseconds since 1970.
    pub at_ms: u64,
    pub(crate) number: u32,
}

/// What is known about a workspace without looking into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRecord {
    version: u32,
    pub id: WorkspaceId,
    base: String,
    pub(crate) identity: (u32, u32, u64),
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// The same by the clock that stamps files.
    pub(crate) opened: Time,
    /// How its layer is kept.
    pub backend: LayerBackend,
    /// What was done in it, for people.
    pub title: String,
    /// What became of it.
    pub state: WorkspaceStatus,
    /// Paths changed when it was last looked at.
    pub changes: u64,
    /// Bytes it took on disk when it was last measured.
    pub bytes: u64,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<LayerSnapshot>,
}

pub(crate) struct WorkspaceOpening<'a> {
    pub(crate) id: WorkspaceId,
    pub(crate) base: &'a Path,
    pub(crate) identity: (u32, u32, u64),
    pub(crate) opened_ms: u64,
    pub(crate) opened: Time,
    pub(crate) backend: LayerBackend,
    pub(crate) title: &'a str,
}

impl WorkspaceRecord {
    pub(crate) fn new(opening: WorkspaceOpening<'_>) -> Self {
        Self {
            version: VERSION,
            id: opening.id,
            base: path_text(opening.base),
            identity: opening.identity,
            opened_ms: opening.opened_ms,
            opened: opening.opened,
            backend: opening.backend,
            title: opening.title.chars().take(200).collect(),
            state: WorkspaceStatus::Pending,
            changes: 0,
            bytes: 0,
            snapshots: Vec::new(),
        }
    }

    pub fn base(&self) -> PathBuf {
        text_path(&self.base).unwrap_or_default()
    }

    /// Whether its changes no longer wait for a decision.
    pub(crate) fn is_decided(&self) -> bool {
        self.state != WorkspaceStatus::Pending
    }

    pub(crate) fn base_text(&self) -> &str {
        &self.base
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> WorkspaceResult<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version != VERSION {
            return Err(format!("format {} is not known", record.version));
        }
        if !text_path(&record.base).is_some_and(|path| path.is_absolute()) {
            return Err("its directory is not an absolute path".to_owned());
        }
        Ok(record)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to be written as JSON.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}

pub(crate) fn path_text(path: &Path) -> String {
    escape(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))
}

pub(crate) fn text_path(text: &str) -> Option<PathBuf> {
    let bytes = unescape(text)?;
    Some(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into())
}

/// Whether bytes are a record that would be believed. For fuzzing.
#[doc(hidden)]
pub fn reads_as_record(bytes: &[u8]) -> bool {
    let Ok(record) = WorkspaceRecord::from_bytes(bytes) else {
        return false;
    };
    let again = WorkspaceRecord::from_bytes(&record.to_bytes());
    assert_eq!(
        again.as_ref(),
        Ok(&record),
        "a record must read back as written"
    );
    true
}

/// Reads a small file of ours; `None` where there is none.
pub(crate) fn read(directory: &RootedTree, name: &str) -> WorkspaceResult<Option<Vec<u8>>> {
    let place = directory.path.join(name);
    let file = match beneath(&directory.top, name, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(WorkspaceError::io("open", place.display(), error)),
    };
    // Room for most, so that one look at the file is enough.
    let mut bytes = Vec::with_capacity(2048);
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES), &mut bytes)
        .map_err(|error| WorkspaceError::io("read", place.display(), error))?;
    Ok(Some(bytes))
}

/// Replaces a small file of ours in one step; when it returns, it is on disk.
pub(crate) fn write(directory: &RootedTree, name: &str, bytes: &[u8]) -> WorkspaceResult<()> {
    replace(directory, name, bytes, true)
}

/// The same for what may be lost with the power: it reaches the disk some time later.
pub(crate) fn write_lazily(
    directory: &RootedTree,
    name: &str,
    bytes: &[u8],
) -> WorkspaceResult<()> {
    replace(directory, name, bytes, false)
}

fn replace(directory: &RootedTree, name: &str, bytes: &[u8], durable: bool) -> WorkspaceResult<()> {
    let place = directory.path.join(name);
    let failed = |error: std::io::Error| WorkspaceError::io("write", place.display(), error);
    let fresh = format!("{name}.new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = beneath(&directory.top, &fresh, flags).map_err(|error| failed(error.into()))?;
    let mut file = File::from(file);
    file.write_all(bytes).map_err(failed)?;
    if durable {
        file.sync_all().map_err(failed)?;
    }
    rustix::fs::renameat(&directory.top, &fresh, &directory.top, name)
        .and_then(|()| {
            if durable {
                rustix::fs::fsync(&directory.top)
            } else {
                Ok(())
            }
        })
        .map_err(|error| failed(error.into()))
}

/// Removes a small file of ours; when it returns, it is gone from disk.
pub(crate) fn unlink(directory: &RootedTree, name: &str) -> WorkspaceResult<()> {
    match rustix::fs::unlinkat(&directory.top, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::fsync(&directory.top),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| WorkspaceError::io("remove", directory.path.join(name).display(), error))
}

/// A lock on a file of ours, held until dropped or until the process ends.
#[derive(Debug)]
pub(crate) struct FileLock(#[expect(dead_code, reason = "held, not used")] OwnedFd);

impl FileLock {
    /// `None` where another process holds it.
    pub(crate) fn try_take(directory: &RootedTree, name: &str) -> WorkspaceResult<Option<Self>> {
        let failed =
            |error: Errno| WorkspaceError::io("lock", directory.path.join(name).display(), error);
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = beneath(&directory.top, name, flags).map_err(failed)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}
