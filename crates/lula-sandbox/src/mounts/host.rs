//! Looking at the host's tree.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// What makes a file this one and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostFileIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) owner: (u32, u32),
    pub(super) size: u64,
}

/// What is at a path, without following it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostPathKind {
    Nothing,
    Link(PathBuf),
    Directory(HostFileIdentity),
    File(HostFileIdentity),
}

pub(super) fn look(path: &Path) -> Result<HostPathKind, SandboxError> {
    let unusable = |source| SandboxError::Path {
        path: path.to_owned(),
        source,
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(HostPathKind::Nothing);
        }
        Err(error) => return Err(unusable(error)),
    };
    if metadata.is_symlink() {
        return Ok(HostPathKind::Link(fs::read_link(path).map_err(unusable)?));
    }
    let found = HostFileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        owner: (metadata.uid(), metadata.gid()),
        size: metadata.len(),
    };
    Ok(if metadata.is_dir() {
        HostPathKind::Directory(found)
    } else {
        HostPathKind::File(found)
    })
}
