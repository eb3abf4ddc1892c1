//! Where it is remembered what a repository broke with: one file for each, beside the runs.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lula_agents::heal::History;
use lula_protocol::{Code, Digest, Exit};

use crate::failure::Failure;
use crate::runs::store::RUNS;
use crate::session::Session;

/// In the brain's own part of the state directory.
const DIRECTORY: &str = "heal";
/// Larger than any history that this program writes.
const LARGEST: u64 = 16 << 20;

/// The history of one repository.
pub(super) struct Memory {
    file: PathBuf,
    repository: String,
    /// Held until this value ends.
    _lock: Option<File>,
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("the history {} cannot be used: {error}", path.display());
    Failure::new(Code::FileAccess, Exit::Environment, message)
        .remedy("make it a readable file of yours, or move it away to forget what is in it")
}

impl Memory {
    /// To look at.
    pub(super) fn of(repository: &str, session: &Session) -> Result<Self, Failure> {
        let digest = Digest::of_bytes(repository.as_bytes());
        let mut name = [0; 8];
        name.copy_from_slice(&digest.as_bytes()[..8]);
        let name = u64::from_be_bytes(name);
        let directory = session.state_directory()?.join(RUNS).join(DIRECTORY);
        Ok(Self {
            file: directory.join(format!("{name:016x}.json")),
            repository: repository.to_owned(),
            _lock: None,
        })
    }

    /// For whoever looks after the repository, who is the only one.
    pub(super) fn hold(repository: &str, session: &Session) -> Result<Self, Failure> {
        let memory = Self::of(repository, session)?;
        let path = memory.file.with_extension("lock");
        let failed = |error: std::io::Error| refused(&path, &error);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let file = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another `lula heal` is looking after {repository}");
                return Err(Failure::new(Code::RunBusy, Exit::Failed, message)
                    .remedy("wait for it, or end it; `lula heal --history` shows what it did"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Self {
            _lock: Some(file),
            ..memory
        })
    }

    /// What is remembered. A file that cannot be read is an error, never an empty history: that
    /// would begin every run again.
    pub(super) fn read(&self) -> Result<History, Failure> {
        let empty = History {
            repository: self.repository.clone(),
            ..History::default()
        };
        let size = match std::fs::metadata(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
            found => found.map_err(|error| refused(&self.file, &error))?.len(),
        };
        if size > LARGEST {
            return Err(refused(&self.file, &"it is too large"));
        }
        let text = std::fs::read(&self.file).map_err(|error| refused(&self.file, &error))?;
        serde_json::from_slice(&text).map_err(|error| refused(&self.file, &error))
    }

    /// Returns when it is on disk, whole.
    pub(super) fn write(&self, history: &History) -> Result<(), Failure> {
        let failed = |error: std::io::Error| refused(&self.file, &error);
        let fresh = self.file.with_extension("new");
        let mut file = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .map_err(failed)?;
        file.write_all(&serde_json::to_vec_pretty(history)?)
            .map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&fresh, &self.file).map_err(failed)?;
        match self.file.parent() {
            Some(directory) => File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed),
            None => Ok(()),
        }
    }
}
