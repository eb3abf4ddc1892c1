//! Keeping a process of ours, one that starts no sandbox, out of everything but what it names.

use std::io;
use std::path::{Path, PathBuf};

use crate::landlock::{self, Access, Grant};
use crate::sys::lockdown;

/// What a process keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// What is below it may be read and run.
    Read(PathBuf),
    /// What is below it may be changed too.
    Write(PathBuf),
    /// What is there may be used, and nothing made: devices.
    Use(PathBuf),
}

impl Kept {
    /// Where.
    pub fn path(&self) -> &Path {
        match self {
            Self::Read(path) | Self::Write(path) | Self::Use(path) => path,
        }
    }
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedOut {
    /// The version of Landlock.
    pub abi: u32,
    /// How many paths are kept.
    pub rules: u32,
}

/// Locks this process out of the file system for ever, but for what it keeps, together with
/// everything that it starts. What is open already stays open. Refuses where there is more than one
/// thread: it would hold for one of them only.
pub fn lock_out(kept: &[Kept]) -> io::Result<LockedOut> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let message = format!("there are {threads} threads, and it holds for one");
        return Err(io::Error::other(message));
    }
    let grants: Vec<Grant> = kept
        .iter()
        .map(|kept| {
            let access = match kept {
                Kept::Read(_) => Access::Read,
                Kept::Write(_) => Access::Write,
                Kept::Use(_) => Access::Use,
            };
            let path = kept.path().to_str().map(str::to_owned);
            let path = path.ok_or_else(|| io::Error::other("a path that is not text"))?;
            Ok(Grant { path, access })
        })
        .collect::<io::Result<_>>()?;
    lockdown::no_new_privileges()?;
    let enforced = landlock::enforce(&grants)?;
    Ok(LockedOut {
        abi: enforced.abi,
        rules: enforced.rules,
    })
}
