//! The record of a workspace, and small files that are replaced in one step.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lula_protocol::WorkspaceId;
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Result, WorkspaceError};
use crate::node::Time;
use crate::path::{escape, unescape};
use crate::tree::{Tree, beneath};

const VERSION: u32 = 1;
/// Largest record or journal that is read.
const MAX_BYTES: u64 = 1 << 30;

/// How the private layer is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backend {
    /// An overlay over the user's directory: only what was touched takes space.
    Overlay,
    /// A complete copy.
    Copy {
        /// Why not an overlay.
        why: String,
    },
}

/// What became of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
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
pub struct Snapshot {
    /// Its name.
    pub label: String,
    /// When it was taken, in milliseconds since 1970.
    pub at_ms: u64,
    pub(crate) number: u32,
}

/// What is known about a workspace without looking into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    /// Its name.
    pub id: WorkspaceId,
    base: String,
    pub(crate) identity: (u32, u32, u64),
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// The same by the clock that stamps files.
    pub(crate) opened: Time,
    /// How its layer is kept.
    pub backend: Backend,
    /// What was done in it, for people.
    pub title: String,
    /// What became of it.
    pub state: State,
    /// Paths changed when somebody last looked.
    pub changes: u64,
    /// Bytes it took on disk when somebody last looked.
    pub bytes: u64,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<Snapshot>,
}

pub(crate) struct Opening<'a> {
    pub(crate) id: WorkspaceId,
    pub(crate) base: &'a Path,
    pub(crate) identity: (u32, u32, u64),
    pub(crate) opened_ms: u64,
    pub(crate) opened: Time,
    pub(crate) backend: Backend,
    pub(crate) title: &'a str,
}

impl Record {
    pub(crate) fn new(opening: Opening<'_>) -> Self {
        Self {
            version: VERSION,
            id: opening.id,
            base: path_text(opening.base),
            identity: opening.identity,
            opened_ms: opening.opened_ms,
            opened: opening.opened,
            backend: opening.backend,
            title: opening.title.chars().take(200).collect(),
            state: State::Pending,
            changes: 0,
            bytes: 0,
            snapshots: Vec::new(),
        }
    }

    /// The user's directory.
    pub fn base(&self) -> PathBuf {
        text_path(&self.base).unwrap_or_default()
    }

    /// Whether nobody waits for its changes any more.
    pub(crate) fn is_decided(&self) -> bool {
        self.state != State::Pending
    }

    pub(crate) fn base_text(&self) -> &str {
        &self.base
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
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
    let Ok(record) = Record::from_bytes(bytes) else {
        return false;
    };
    let again = Record::from_bytes(&record.to_bytes());
    assert_eq!(
        again.as_ref(),
        Ok(&record),
        "a record must read back as written"
    );
    true
}

/// Reads a small file of ours; `None` where there is none.
pub(crate) fn read(directory: &Tree, name: &str) -> Result<Option<Vec<u8>>> {
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
pub(crate) fn write(directory: &Tree, name: &str, bytes: &[u8]) -> Result<()> {
    replace(directory, name, bytes, true)
}

/// The same for what may be lost with the power: it reaches the disk some time later.
pub(crate) fn write_lazily(directory: &Tree, name: &str, bytes: &[u8]) -> Result<()> {
    replace(directory, name, bytes, false)
}

fn replace(directory: &Tree, name: &str, bytes: &[u8], durable: bool) -> Result<()> {
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
pub(crate) fn unlink(directory: &Tree, name: &str) -> Result<()> {
    match rustix::fs::unlinkat(&directory.top, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::fsync(&directory.top),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| WorkspaceError::io("remove", directory.path.join(name).display(), error))
}

/// A lock on a file of ours, held until dropped or until the process ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] OwnedFd);

impl Lock {
    /// `None` where somebody else holds it.
    pub(crate) fn try_take(directory: &Tree, name: &str) -> Result<Option<Self>> {
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
