//! Directory trees by handle: everything is opened below a directory that is already open, follows
//! no link and crosses into no other mount.
//!
//! What lies in a tree may have been put there by an attacker. So nothing is opened before it
//! is known to be a plain file, every read is counted against a budget, and no walk recurses on the
//! stack deeper than [`MAX_DEPTH`].

pub(crate) mod node;
pub(crate) mod path;
pub mod sources;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) use lula_files::beneath;
use lula_protocol::Digest;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::tree::node::{FileNode, FileNodeKind, Stat};
use crate::tree::path::{WorkspacePath, escape};

/// Deepest directory that is looked into.
pub(crate) const MAX_DEPTH: usize = 256;
/// Most names in all directories of one walk.
pub(crate) const MAX_ENTRIES: u64 = 1_000_000;
/// Largest file that is read. A sparse one of a petabyte costs its writer nothing.
pub(crate) const MAX_FILE: u64 = 8 << 30;
/// Most bytes that are read in one go over a workspace.
pub(crate) const MAX_BYTES: u64 = 64 << 30;
/// How often a file may change under a reader before it is called busy.
const TRIES: usize = 4;
/// So many bytes decide whether a file is text, as in git.
const SNIFFED: usize = 8000;
const CHUNK: usize = 256 * 1024;

/// A directory that everything is looked up below.
#[derive(Debug)]
pub(crate) struct RootedTree {
    pub(crate) top: OwnedFd,
    pub(crate) path: PathBuf,
}

impl RootedTree {
    pub(crate) fn open(path: &Path) -> WorkspaceResult<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let top = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| WorkspaceError::io("open", path.display(), error))?;
        let path = path.to_owned();
        Ok(Self { top, path })
    }

    /// Opens a directory of our own, made where it is missing.
    pub(crate) fn create(path: &Path) -> WorkspaceResult<Self> {
        use std::os::unix::fs::DirBuilderExt;
        // Nearly always it is there.
        if let Ok(tree) = Self::open(path) {
            return Ok(tree);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| WorkspaceError::io("create", path.display(), error))?;
        Self::open(path)
    }

    /// What that path is, if anything.
    pub(crate) fn stat(&self, path: &WorkspacePath) -> WorkspaceResult<Option<Stat>> {
        let failed = |error| WorkspaceError::io("look at", path, error);
        match beneath(&self.top, path.as_os_str(), OFlags::PATH) {
            Ok(handle) => Stat::of_open(handle).map(Some).map_err(failed),
            Err(error) if is_absent(error) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Nothing is at that path: not there, or the way to it is not of directories.
pub(crate) fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// Parents of paths, each opened once for paths that follow each other.
pub(crate) struct OpenParents<'a> {
    tree: &'a RootedTree,
    last: Option<(WorkspacePath, OwnedFd)>,
}

impl<'a> OpenParents<'a> {
    pub(crate) const fn of(tree: &'a RootedTree) -> Self {
        Self { tree, last: None }
    }

    /// The directory that the path is in.
    pub(crate) fn get(&mut self, path: &WorkspacePath) -> rustix::io::Result<&OwnedFd> {
        let Some(parent) = path.parent() else {
            return Ok(&self.tree.top);
        };
        if self.last.as_ref().is_none_or(|(last, _)| *last != parent) {
            let opened = beneath(&self.tree.top, parent.as_os_str(), OFlags::DIRECTORY)?;
            self.last = None;
            return Ok(&self.last.insert((parent, opened)).1);
        }
        Ok(self
            .last
            .as_ref()
            .map_or(&self.tree.top, |(_, handle)| handle))
    }

    /// After a directory came or went.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

pub(crate) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Reads within a budget.
pub(crate) struct BudgetedReader {
    buffer: Vec<u8>,
    bytes_left: u64,
    entries_left: u64,
}

impl Default for BudgetedReader {
    fn default() -> Self {
        Self {
            buffer: vec![0; CHUNK],
            bytes_left: MAX_BYTES,
            entries_left: MAX_ENTRIES,
        }
    }
}

/// Content that was read once: its digest, how much, and whether it is text.
pub(crate) struct ReadContent {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    binary: bool,
}

impl BudgetedReader {
    /// The names in a directory, sorted.
    pub(crate) fn names(
        &mut self,
        directory: &OwnedFd,
        place: &str,
    ) -> WorkspaceResult<Vec<Vec<u8>>> {
        let failed = |error| WorkspaceError::io("list", place, error);
        let mut found = Vec::new();
        for entry in Dir::read_from(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            self.entries_left =
                self.entries_left
                    .checked_sub(1)
                    .ok_or(WorkspaceError::TooMuch {
                        what: "entries",
                        limit: MAX_ENTRIES,
                    })?;
            found.push(name.to_vec());
        }
        found.sort();
        Ok(found)
    }

    /// The paths of what is in a directory, sorted, for a walk that has come this deep.
    pub(crate) fn paths(
        &mut self,
        directory: &OwnedFd,
        place: Option<&WorkspacePath>,
        depth: usize,
    ) -> WorkspaceResult<Vec<WorkspacePath>> {
        if depth > MAX_DEPTH {
            return Err(WorkspaceError::TooMuch {
                what: "levels of directories",
                limit: MAX_DEPTH as u64,
            });
        }
        let text = place.map_or_else(|| ".".to_owned(), ToString::to_string);
        let names = self.names(directory, &text)?;
        let path = |name: &Vec<u8>| match place {
            Some(place) => Ok(place.child(name)?),
            None => Ok(WorkspacePath::top(name)?),
        };
        names.iter().map(path).collect()
    }

    /// What a name stands for, its content read.
    pub(crate) fn node(
        &mut self,
        directory: &OwnedFd,
        path: &WorkspacePath,
    ) -> WorkspaceResult<Option<(FileNode, Stat)>> {
        let failed = |error: Errno| WorkspaceError::io("read", path, error);
        let name = os(path.name());
        for _ in 0..TRIES {
            let Some(before) = Stat::maybe(directory, name).map_err(failed)? else {
                return Ok(None);
            };
            let mut node = FileNode {
                kind: before.kind,
                mode: before.mode,
                size: before.size,
                digest: None,
                target: None,
                binary: false,
                capabilities: false,
            };
            match before.kind {
                FileNodeKind::File => match open_seen(directory, path, &before) {
                    Ok(Some(mut file)) => {
                        node.capabilities = has_capabilities(&file);
                        let content = self.read(&mut file, path, None)?;
                        let after = Stat::of_open(&file).map_err(failed)?;
                        if !after.untouched_since(&before) || content.size != before.size {
                            continue;
                        }
                        node.digest = Some(content.digest);
                        node.binary = content.binary;
                    }
                    Ok(None) => continue,
                    Err(Errno::ACCESS | Errno::PERM) => {}
                    Err(error) if is_absent(error) => continue,
                    Err(error) => return Err(failed(error)),
                },
                FileNodeKind::Symlink => {
                    match rustix::fs::readlinkat(directory, name, Vec::new()) {
                        Ok(target) => {
                            node.digest = Some(Digest::of_bytes(target.to_bytes()));
                            node.target = Some(escape(target.to_bytes()));
                            node.size = target.to_bytes().len() as u64;
                        }
                        Err(Errno::NOENT | Errno::INVAL) => continue,
                        Err(error) => return Err(failed(error)),
                    }
                }
                FileNodeKind::Directory => node.size = 0,
                _ => {}
            }
            return Ok(Some((node, before)));
        }
        Err(WorkspaceError::Busy { path: path.clone() })
    }

    /// Reads a file to its end, and copies it if there is somewhere to.
    pub(crate) fn read(
        &mut self,
        file: &mut File,
        path: &WorkspacePath,
        mut to: Option<&mut File>,
    ) -> WorkspaceResult<ReadContent> {
        let mut hasher = blake3::Hasher::new();
        let (mut size, mut binary) = (0_u64, false);
        loop {
            let count = match file.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(WorkspaceError::io("read", path, error)),
            };
            let chunk = &self.buffer[..count];
            if size < SNIFFED as u64 {
                binary |= chunk[..count.min(SNIFFED)].contains(&0);
            }
            size += count as u64;
            self.bytes_left = self.bytes_left.saturating_sub(count as u64);
            if size > MAX_FILE || self.bytes_left == 0 {
                return Err(WorkspaceError::TooMuch {
                    what: "bytes to read",
                    limit: MAX_FILE,
                });
            }
            hasher.update(chunk);
            if let Some(to) = &mut to {
                to.write_all(chunk)
                    .map_err(|error| WorkspaceError::io("copy", path, error))?;
            }
        }
        Ok(ReadContent {
            digest: Digest::from_bytes(*hasher.finalize().as_bytes()),
            size,
            binary,
        })
    }
}

/// Opens what was seen to be a file; nothing if it is another one by now.
fn open_seen(
    directory: &OwnedFd,
    path: &WorkspacePath,
    seen: &Stat,
) -> rustix::io::Result<Option<File>> {
    let file = beneath(directory, os(path.name()), OFlags::RDONLY)?;
    let now = Stat::of_open(&file)?;
    let same =
        now.kind == FileNodeKind::File && (now.inode, now.device) == (seen.inode, seen.device);
    Ok(same.then(|| File::from(file)))
}

/// A plain file in that directory, by the last part of its path, open for reading.
pub(crate) fn open_plain(directory: &OwnedFd, path: &WorkspacePath) -> WorkspaceResult<File> {
    let failed = |error: Errno| WorkspaceError::io("open", path, error);
    let seen = Stat::of(directory, os(path.name())).map_err(failed)?;
    if seen.kind != FileNodeKind::File {
        return Err(WorkspaceError::Busy { path: path.clone() });
    }
    open_seen(directory, path, &seen)
        .map_err(failed)?
        .ok_or_else(|| WorkspaceError::Busy { path: path.clone() })
}

fn has_capabilities(file: &File) -> bool {
    rustix::fs::fgetxattr(file, c"security.capability", &mut [0_u8; 64][..])
        .is_ok_and(|size| size > 0)
}

/// A small extended attribute; `None` where it is not set or not supported.
pub(crate) fn attribute(file: impl AsFd, name: &str) -> Option<Vec<u8>> {
    let mut value = [0_u8; 256];
    let length = rustix::fs::fgetxattr(file, name, &mut value[..]).ok()?;
    Some(value[..length].to_vec())
}

pub(crate) fn set_attribute(file: impl AsFd, name: &str, value: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())
}

/// Removes what is at a name, however deep it goes: directories below the depth that handles allow
/// are first moved up.
pub(crate) fn remove(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let top = open_to_empty(parent, name)?;
    let mut moved = 0_u64;
    let mut round = 0;
    loop {
        empty(&top, &top, 0, &mut moved)?;
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Something deep was moved up, or a process still writes.
            Err(Errno::NOTEMPTY | Errno::EXIST) if round < 10_000 => round += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn open_to_empty(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    match beneath(parent, name, OFlags::DIRECTORY) {
        Err(Errno::ACCESS) => {
            // Only its owner gets here, and the layer is ours: overlayfs leaves a work directory
            // with no permissions at all.
            rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            beneath(parent, name, OFlags::DIRECTORY)
        }
        opened => {
            let opened = opened?;
            let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
            Ok(opened)
        }
    }
}

fn empty(
    top: &OwnedFd,
    directory: &OwnedFd,
    depth: usize,
    moved: &mut u64,
) -> rustix::io::Result<()> {
    let mut inner = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(directory, entry.file_name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => inner.push(name.to_vec()),
            Err(error) => return Err(error),
        }
    }
    for name in inner {
        let name = os(&name);
        if depth >= 64 {
            move_up(directory, name, top, moved)?;
            continue;
        }
        let opened = open_to_empty(directory, name)?;
        empty(top, &opened, depth + 1, moved)?;
        drop(opened);
        match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Names at the top may have been taken beforehand by the command that built the depth.
fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> rustix::io::Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    for _ in 0..MAX_ENTRIES {
        *moved += 1;
        match rustix::fs::renameat_with(from, name, top, format!(".deep-{moved}"), flags) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
    Err(Errno::EXIST)
}

/// Bytes on disk below a directory; an estimate where it cannot be read.
pub(crate) fn disk_usage(directory: &OwnedFd) -> u64 {
    disk_usage_within(directory, &mut { MAX_ENTRIES })
}

/// The same, of at most so many entries.
pub(crate) fn disk_usage_within(directory: &OwnedFd, left: &mut u64) -> u64 {
    let mut total = 0;
    usage(directory, 0, &mut total, left);
    total
}

fn usage(directory: &OwnedFd, depth: usize, total: &mut u64, left: &mut u64) {
    let Ok(entries) = Dir::read_from(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let Some(remaining) = left.checked_sub(1) else {
            return;
        };
        *left = remaining;
        let Ok(stat) = Stat::of(directory, entry.file_name()) else {
            continue;
        };
        *total += stat.blocks * 512;
        if stat.kind == FileNodeKind::Directory
            && depth < MAX_DEPTH
            && let Ok(inner) = beneath(directory, entry.file_name(), OFlags::DIRECTORY)
        {
            usage(&inner, depth + 1, total, left);
        }
    }
}
