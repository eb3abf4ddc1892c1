//! Looking at the host's tree.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// What makes a file this one and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) owner: (u32, u32),
}

/// What is at a path, without following it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    Link(PathBuf),
    Directory(Found),
    File(Found),
}

pub(super) fn look(path: &Path) -> Result<Look, SandboxError> {
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
            return Ok(Look::Nothing);
        }
        Err(error) => return Err(unusable(error)),
    };
    if metadata.is_symlink() {
        return Ok(Look::Link(fs::read_link(path).map_err(unusable)?));
    }
    let found = Found {
        device: metadata.dev(),
        inode: metadata.ino(),
        owner: (metadata.uid(), metadata.gid()),
    };
    Ok(if metadata.is_dir() {
        Look::Directory(found)
    } else {
        Look::File(found)
    })
}

/// The text of a small file.
pub(super) fn small_text(path: &Path) -> Option<String> {
    const SMALL: usize = 16 * 1024;
    let mut text = Vec::with_capacity(SMALL + 1);
    let file = fs::File::open(path).ok()?;
    file.take(SMALL as u64 + 1).read_to_end(&mut text).ok()?;
    if text.len() > SMALL || text.contains(&0) {
        return None;
    }
    String::from_utf8(text).ok()
}
