//! What a workspace changed, to be laid over copies of its base: so a fork is the workspace as it
//! was at one moment, without a mount.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use lula_files::beneath;
use rustix::fs::{Mode, OFlags};

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::fork::{DEPENDENCIES, ForkError, LEFT_OUT, LayeredFork, failed};
use crate::ignored::IgnoredLayers;
use crate::store::workspace::Workspace;
use crate::tree::node::{FileNodeKind, PERMISSION_BITS};
use crate::tree::remove;

/// Most bytes of changed files that are kept in memory.
const MOST: u64 = 512 << 20;

#[derive(Debug)]
enum LaidContent {
    File(Vec<u8>, u32),
    Link(Vec<u8>),
    Directory,
    Nothing,
}

/// Changed names with what is there now, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct SortedChanges(Vec<(String, LaidContent)>);

impl SortedChanges {
    /// What a workspace changed so far.
    pub(crate) fn of(
        workspace: &Workspace,
        below: Option<&IgnoredLayers>,
    ) -> WorkspaceResult<Self> {
        let mut laid = Vec::new();
        let mut left = MOST;
        for change in workspace.diff()?.changes {
            // A name that is not text is in no fork either.
            let Ok(path) = std::str::from_utf8(change.path.as_bytes()) else {
                continue;
            };
            let top = path.split('/').next().unwrap_or(path);
            let left_out = path.split('/').any(|part| LEFT_OUT.contains(&part));
            let ignored = below.is_some_and(|below| below.ignores(change.path.as_bytes()));
            if change.held_back.is_some() || left_out || ignored || DEPENDENCIES.contains(&top) {
                continue;
            }
            let put = match &change.new {
                None => LaidContent::Nothing,
                Some(node) if node.kind == FileNodeKind::Directory => LaidContent::Directory,
                Some(node) => {
                    let too_much = || WorkspaceError::TooMuch {
                        what: "bytes of changes for a fork",
                        limit: MOST,
                    };
                    left = left.checked_sub(node.size).ok_or_else(too_much)?;
                    let bytes = workspace.sides(&change, node.size)?.new;
                    let bytes = bytes.ok_or_else(too_much)?;
                    if node.kind == FileNodeKind::Symlink {
                        LaidContent::Link(bytes)
                    } else {
                        LaidContent::File(bytes, node.mode & PERMISSION_BITS)
                    }
                }
            };
            laid.push((path.to_owned(), put));
        }
        Ok(Self(laid))
    }

    /// Lays it into the upper directory of a fork.
    pub(crate) fn put_over(&self, fork: &LayeredFork) -> std::result::Result<(), ForkError> {
        for (path, put) in &self.0 {
            match put {
                LaidContent::File(bytes, mode) => fork.put_file(path, bytes, *mode)?,
                LaidContent::Link(target) => fork.put_link(path, target)?,
                LaidContent::Directory => fork.put_directory(path)?,
                LaidContent::Nothing => fork.put_nothing(path)?,
            }
        }
        Ok(())
    }

    /// Lays it over a copy of the base.
    pub(crate) fn put(&self, copy: &OwnedFd) -> std::result::Result<(), ForkError> {
        for (path, put) in &self.0 {
            let io_failed = |error: rustix::io::Errno| failed(path, error.into());
            let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
            let parent = match beneath(copy, above, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(parent) => parent,
                // It went with its directory.
                Err(rustix::io::Errno::NOENT) if matches!(put, LaidContent::Nothing) => continue,
                Err(error) => return Err(io_failed(error)),
            };
            if let LaidContent::Directory = put {
                match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) => continue,
                    Err(rustix::io::Errno::EXIST)
                        if beneath(&parent, name, OFlags::PATH | OFlags::DIRECTORY).is_ok() =>
                    {
                        continue;
                    }
                    Err(_) => {}
                }
            }
            remove(&parent, name.as_ref()).map_err(io_failed)?;
            match put {
                LaidContent::Nothing => {}
                LaidContent::Directory => {
                    rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))
                        .map_err(io_failed)?;
                }
                LaidContent::Link(target) => {
                    rustix::fs::symlinkat(target.as_slice(), &parent, name).map_err(io_failed)?;
                }
                LaidContent::File(bytes, mode) => {
                    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                    let file = beneath(&parent, name, flags).map_err(io_failed)?;
                    let mut file = File::from(file);
                    file.write_all(bytes)
                        .map_err(|source| failed(path, source))?;
                    rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode)).map_err(io_failed)?;
                }
            }
        }
        Ok(())
    }
}
