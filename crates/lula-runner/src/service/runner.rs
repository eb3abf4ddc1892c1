//! Which runner this is. Several may share a state directory (one for each run that goes on), and
//! what one of them is at must not be taken back by another.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::refusal::RequestRefusal;

/// How long an effect of another runner is waited for: one whose driver is gone ends soon.
const PATIENCE: Duration = Duration::from_secs(15);

/// This runner, known to others as long as it lives.
#[derive(Debug)]
pub(super) struct RunnerRegistration {
    name: String,
    home: PathBuf,
    /// Locked; the kernel lets go of it however the process ends.
    _lock: File,
}

impl RunnerRegistration {
    pub(super) fn begin(state: &Path) -> Result<Self, RequestRefusal> {
        let internal = |error: std::io::Error| {
            RequestRefusal::Internal(format!("runners cannot be told apart: {error}"))
        };
        let home = state.join("runners");
        std::fs::create_dir_all(&home).map_err(internal)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
        let name = format!("{:016x}", u64::from_be_bytes(random));
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(home.join(format!("{name}.new")))
            .map_err(internal)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| internal(error.into()))?;
        // Under its name only once it is locked: no other runner must take it for one that ended.
        std::fs::rename(home.join(format!("{name}.new")), home.join(&name)).map_err(internal)?;
        let runner = Self {
            name,
            home,
            _lock: lock,
        };
        runner.sweep();
        Ok(runner)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether that is the name of another runner, and it lives.
    pub(super) fn is_another(&self, name: &str) -> bool {
        name != self.name && self.lives(name)
    }

    /// Waits a moment for another runner; whether it is worth looking again.
    pub(super) fn waits_for(&self, name: &str) -> bool {
        let begun = Instant::now();
        if !self.is_another(name) {
            return false;
        }
        while begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            if !self.is_another(name) {
                return true;
            }
        }
        false
    }

    fn lives(&self, name: &str) -> bool {
        is_name(name)
            && File::open(self.home.join(name)).is_ok_and(|file| {
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
            })
    }

    /// Names of runners that ended without a word.
    fn sweep(&self) {
        for entry in std::fs::read_dir(&self.home)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_name(&name) && name != self.name && !self.lives(&name) {
                // One that another runner swept already is gone as well.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Drop for RunnerRegistration {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.home.join(&self.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_known_to_live_until_it_ends() {
        let state = tempfile::tempdir().unwrap();
        let one = RunnerRegistration::begin(state.path()).unwrap();
        let two = RunnerRegistration::begin(state.path()).unwrap();
        assert!(one.is_another(two.name()));
        assert!(!one.is_another(one.name()));
        assert!(!one.is_another("../../etc/passwd"));
        let name = two.name().to_owned();
        drop(two);
        assert!(!one.is_another(&name));
        assert!(!one.waits_for(&name));
    }
}
