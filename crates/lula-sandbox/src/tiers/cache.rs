//! Verdicts remembered for as long as the machine and the program stay the same.

use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lula_protocol::{Digest, IsolationTier};

use super::TierRefusal;
use crate::helper::HelperProgram;

/// How many verdicts are kept across processes: a handful of programs with a few tiers each.
const MOST: usize = 32;

/// What a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TierCacheKey(Digest);

impl TierCacheKey {
    /// `None` where the machine does not say which boot this is.
    pub(super) fn of(
        helper: &HelperProgram,
        tier: IsolationTier,
        floor: IsolationTier,
    ) -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let program = fs::canonicalize(helper.path()).ok()?;
        let about = fs::metadata(&program).ok()?;
        // Identity, size and time of change stand for the contents: hashing a large program would
        // cost more than the trial.
        // A directory may be shared with other containers, in which other things work.
        let around = fs::read_link("/proc/self/ns/mnt").ok()?;
        let text = format!(
            "{boot}|{}|{}|{}:{}:{}:{}.{}|{}|{}|{tier}|{floor}",
            around.display(),
            program.display(),
            about.dev(),
            about.ino(),
            about.len(),
            about.ctime(),
            about.ctime_nsec(),
            rustix::process::geteuid().as_raw(),
            crate::sys::lockdown::is_filtered(),
        );
        Some(Self(Digest::of_bytes(text.as_bytes())))
    }
}

type Verdict = Result<(), TierRefusal>;

static KNOWN: Mutex<Vec<(TierCacheKey, Verdict)>> = Mutex::new(Vec::new());

/// Where a success is remembered across processes: a directory only this user can write.
fn place(key: &TierCacheKey) -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = rustix::process::geteuid();
    let base = match runtime {
        Some(runtime) => runtime,
        None if user.is_root() => PathBuf::from("/run"),
        None => return None,
    };
    let about = fs::metadata(&base).ok()?;
    if about.uid() != user.as_raw() || about.mode() & 0o022 != 0 {
        return None;
    }
    Some(
        base.join("lula-tiers")
            .join(key.0.to_string().replace(':', "-")),
    )
}

pub(super) fn recall(key: &TierCacheKey) -> Option<Verdict> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, verdict)) = known.iter().find(|(known, _)| known == key) {
        return Some(verdict.clone());
    }
    drop(known);
    place(key)?.is_file().then_some(Ok(()))
}

/// A success is remembered for this boot. A refusal only for this process: the operator may just be
/// turning the knob it names.
pub(super) fn remember(key: &TierCacheKey, verdict: &Verdict) {
    KNOWN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((key.clone(), verdict.clone()));
    if verdict.is_err() {
        return;
    }
    let Some(path) = place(key) else { return };
    if let Some(directory) = path.parent() {
        let _ = fs::create_dir(directory);
    }
    // Forgetting is harmless: the trial is run again.
    let _ = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path);
    if let Some(directory) = path.parent() {
        forget_oldest(directory, MOST);
    }
}

/// Removes all but the newest verdicts: every program that is built anew has its own, and no process asks
/// for those of the ones before.
fn forget_oldest(directory: &Path, most: usize) {
    let mut verdicts: Vec<_> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    verdicts.sort();
    let surplus = verdicts.len().saturating_sub(most);
    for (_, path) in &verdicts[..surplus] {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_newest_verdicts_stay() {
        let directory = tempfile::tempdir().unwrap();
        let begun = SystemTime::now();
        for number in 0..6 {
            let file = fs::File::create(directory.path().join(number.to_string())).unwrap();
            // The names say nothing about the order.
            let age = Duration::from_secs((number * 5) % 6);
            file.set_modified(begun - age).unwrap();
        }
        forget_oldest(directory.path(), 2);
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["0", "5"]);
    }
}
