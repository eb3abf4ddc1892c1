//! What one name in a directory stands for.

use lula_protocol::Digest;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// The kinds of things a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileNodeKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
}

impl FileNodeKind {
    /// Whether it is neither file, directory nor link. Such things are never committed.
    pub const fn is_special(self) -> bool {
        !matches!(self, Self::File | Self::Directory | Self::Symlink)
    }

    fn from_mode(mode: u16) -> Self {
        match FileType::from_raw_mode(u32::from(mode)) {
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            _ => Self::File,
        }
    }
}

/// A file, directory, link or special thing with what its review needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileNode {
    pub kind: FileNodeKind,
    /// Permission bits, the special ones included.
    pub mode: u32,
    /// Bytes of content, or of a link's target.
    pub size: u64,
    /// Digest of the content, or of a link's target. `None` for directories and special things, and
    /// for a file that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Where a link points, escaped as paths are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether the content is not text.
    pub binary: bool,
    /// Whether it carries file capabilities.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub capabilities: bool,
}

/// Set-user-id, set-group-id and sticky.
pub(crate) const SPECIAL_BITS: u32 = 0o7000;
/// The bits for reading, writing and executing.
pub(crate) const PERMISSION_BITS: u32 = 0o777;

impl FileNode {
    /// Whether both are the same to a user: kind, permissions and content.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && (self.kind == FileNodeKind::Symlink || self.permissions() == other.permissions())
            && self.same_content(other)
    }

    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match self.kind {
                FileNodeKind::File | FileNodeKind::Symlink => {
                    self.digest.is_some() && self.digest == other.digest
                }
                _ => true,
            }
    }

    pub(crate) const fn permissions(&self) -> u32 {
        self.mode & PERMISSION_BITS
    }
}

/// A time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Time(pub(crate) i64, pub(crate) u32);

/// What the file system says about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: FileNodeKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) inode: u64,
    pub(crate) device: (u32, u32),
    pub(crate) mount: u64,
    pub(crate) represents: (u32, u32),
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) owner: (u32, u32),
}

impl Stat {
    /// Of a name in a directory; a link is not followed.
    pub(crate) fn of(
        directory: impl AsFd,
        name: impl rustix::path::Arg,
    ) -> rustix::io::Result<Self> {
        let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, mask)
            .map(|raw| Self::from(&raw))
    }

    /// The same, or nothing where there is nothing.
    pub(crate) fn maybe(
        directory: impl AsFd,
        name: impl rustix::path::Arg,
    ) -> rustix::io::Result<Option<Self>> {
        match Self::of(directory, name) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Of what is open.
    pub(crate) fn of_open(file: impl AsFd) -> rustix::io::Result<Self> {
        let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask).map(|raw| Self::from(&raw))
    }

    /// Whether nothing was written between the two.
    pub(crate) fn untouched_since(&self, earlier: &Self) -> bool {
        (
            self.inode,
            self.device,
            self.size,
            self.modified,
            self.changed,
        ) == (
            earlier.inode,
            earlier.device,
            earlier.size,
            earlier.modified,
            earlier.changed,
        )
    }
}

impl From<&Statx> for Stat {
    fn from(raw: &Statx) -> Self {
        Self {
            kind: FileNodeKind::from_mode(raw.stx_mode),
            mode: u32::from(raw.stx_mode) & 0o7777,
            size: raw.stx_size,
            blocks: raw.stx_blocks,
            inode: raw.stx_ino,
            device: (raw.stx_dev_major, raw.stx_dev_minor),
            mount: raw.stx_mnt_id,
            represents: (raw.stx_rdev_major, raw.stx_rdev_minor),
            modified: Time(raw.stx_mtime.tv_sec, raw.stx_mtime.tv_nsec),
            changed: Time(raw.stx_ctime.tv_sec, raw.stx_ctime.tv_nsec),
            owner: (raw.stx_uid, raw.stx_gid),
        }
    }
}
