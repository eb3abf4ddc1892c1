//! The disk limit of a workspace that no other writer uses: measured, and enforced by ending commands.
//!
//! Nothing in an ordinary filesystem limits one directory, so the sum is taken again and again while
//! commands run. A command can write more than the limit for a moment; the receipt says so.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Weak;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::link::HelperLink;
use crate::error::SandboxError;

/// Time between two measurements, at least.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// Share of its time that measuring may take: one part in so many.
const SHARE: u32 = 20;

/// Directories within each other, at most.
const DEEPEST: usize = 256;

/// A directory whose size is limited.
#[derive(Debug)]
pub(crate) struct MeasuredDirectory {
    directory: OwnedFd,
    /// Others that count towards the same limit.
    others: Vec<OwnedFd>,
    /// What was there before the first command.
    before: u64,
    limit: u64,
}

impl MeasuredDirectory {
    /// Everything in the directory counts.
    pub(super) fn whole(path: &Path, limit: u64) -> Result<Self, SandboxError> {
        Ok(Self {
            directory: open(path)?,
            others: Vec::new(),
            before: 0,
            limit,
        })
    }

    /// What is there already does not count.
    pub(super) fn growth(path: &Path, limit: u64) -> Result<Self, SandboxError> {
        let whole = Self::whole(path, limit)?;
        let before = size(&whole.directory, u64::MAX);
        Ok(Self { before, ..whole })
    }

    /// Everything in another directory counts too.
    pub(super) fn count_too(&mut self, path: &Path) -> Result<(), SandboxError> {
        self.others.push(open(path)?);
        Ok(())
    }

    fn is_exceeded(&self) -> bool {
        let most = self.before.saturating_add(self.limit);
        let mut sum = size(&self.directory, most);
        for other in &self.others {
            if sum <= most {
                sum = sum.saturating_add(size(other, most));
            }
        }
        sum > most
    }
}

fn open(path: &Path) -> Result<OwnedFd, SandboxError> {
    rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| SandboxError::Path {
        path: path.to_owned(),
        source: error.into(),
    })
}

/// Watches for as long as the sandbox is there.
pub(super) fn watch(
    link: Weak<HelperLink>,
    measured: MeasuredDirectory,
) -> Result<(), SandboxError> {
    std::thread::Builder::new()
        .name("lula-sandbox-disk".to_owned())
        .spawn(move || keep_watching(&link, &measured))
        .map(drop)
        .map_err(SandboxError::io("cannot start a thread"))
}

fn keep_watching(link: &Weak<HelperLink>, measured: &MeasuredDirectory) {
    let mut pause = INTERVAL;
    loop {
        std::thread::sleep(pause);
        let Some(link) = link.upgrade() else { return };
        if link.is_closed() {
            return;
        }
        if !link.is_busy() {
            pause = INTERVAL;
            continue;
        }
        let begun = Instant::now();
        if measured.is_exceeded() {
            link.end_for_disk();
        }
        pause = INTERVAL.max(begun.elapsed() * SHARE);
    }
}

/// Bytes on disk below a directory, links counted once and never followed. Stops above `enough`.
/// What vanishes or cannot be read while it is counted does not count; a tree deeper than any real one
/// counts as endless, so that nothing can hide down there.
fn size(directory: &OwnedFd, enough: u64) -> u64 {
    let mut sum = 0;
    let mut seen = HashSet::new();
    let mut open: Vec<Dir> = Dir::read_from(directory).into_iter().collect();
    while let Some(current) = open.last_mut() {
        let Some(entry) = current.next() else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else {
            open.pop();
            continue;
        };
        let name = entry.file_name();
        let Ok(current) = current.fd() else { continue };
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(current, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if stat.st_nlink > 1 && !is_directory && !seen.insert((stat.st_dev, stat.st_ino)) {
            continue;
        }
        sum += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        if sum > enough {
            return sum;
        }
        if is_directory {
            let below = open_directory(current, name).and_then(Dir::new);
            if open.len() == DEEPEST {
                return u64::MAX;
            }
            open.extend(below);
        }
    }
    sum
}

fn open_directory(at: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        at,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_once_and_links_lead_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::create_dir_all(path("a/b")).unwrap();
        std::fs::write(path("a/b/file"), vec![1; 1 << 20]).unwrap();
        std::fs::hard_link(path("a/b/file"), path("again")).unwrap();
        std::os::unix::fs::symlink("/usr", path("link")).unwrap();
        let limit = |bytes| MeasuredDirectory::growth(place.path(), bytes).unwrap();
        let sum = limit(0).before;
        assert!((1 << 20..3 << 19).contains(&sum), "{sum}");

        let measured = limit(1 << 19);
        assert!(!measured.is_exceeded());
        std::fs::write(path("more"), vec![1; 1 << 20]).unwrap();
        assert!(measured.is_exceeded());
        std::fs::remove_file(path("more")).unwrap();
        assert!(!measured.is_exceeded());
        assert!(
            MeasuredDirectory::whole(place.path(), 1 << 19)
                .unwrap()
                .is_exceeded()
        );
    }
}
