//! Keeping a process of ours, one that starts no sandbox, out of everything but what it names.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::landlock::{self, PathAccess, PathGrant};
use crate::sys::lockdown;

/// What a process keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetainedAccess {
    /// What is below it may be read and run.
    Read(PathBuf),
    /// What is below it may be changed too.
    Write(PathBuf),
    /// What is there may be used, and nothing made: devices.
    Use(PathBuf),
}

impl RetainedAccess {
    pub fn path(&self) -> &Path {
        match self {
            Self::Read(path) | Self::Write(path) | Self::Use(path) => path,
        }
    }
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOutReport {
    /// The version of Landlock.
    pub abi: u32,
    /// How many paths are kept.
    pub rules: u32,
}

/// How long threads that were told to end may take.
const ENDING: Duration = Duration::from_secs(3);

/// Locks this process out of the file system for ever, but for what it keeps, together with
/// everything that it starts. What is open already stays open. Refuses where there is more than one
/// thread: it would hold for one of them only.
///
/// The kind of the error is [`io::ErrorKind::Unsupported`] where the kernel has no Landlock.
pub fn lock_out(kept: &[RetainedAccess]) -> io::Result<LockOutReport> {
    let begun = Instant::now();
    loop {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            break;
        }
        if begun.elapsed() > ENDING {
            let message = format!("there are {threads} threads, and it holds for one");
            return Err(io::Error::other(message));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let grants: Vec<PathGrant> = kept
        .iter()
        .map(|kept| {
            let access = match kept {
                RetainedAccess::Read(_) => PathAccess::Read,
                RetainedAccess::Write(_) => PathAccess::Write,
                RetainedAccess::Use(_) => PathAccess::Use,
            };
            let path = kept.path().to_str().map(str::to_owned);
            let path = path.ok_or_else(|| io::Error::other("a path that is not text"))?;
            Ok(PathGrant { path, access })
        })
        .collect::<io::Result<_>>()?;
    lockdown::no_new_privileges()?;
    let enforced = landlock::enforce(&grants, landlock::version())?;
    Ok(LockOutReport {
        abi: enforced.abi,
        rules: enforced.rules,
    })
}
